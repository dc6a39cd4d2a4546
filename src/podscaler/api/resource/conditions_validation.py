"""What is wrong with a list of conditions that are those of every API (meta/v1 Condition).

Called by the records whose status has them. Source: upstream's validation of meta/v1 Condition.
"""

import re

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, duplicate, invalid, not_supported, required, too_long
from podscaler.api.resource.resources import Object

_STATUSES = ("False", "True", "Unknown")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX_BYTES = 1024
_MESSAGE_MAX_BYTES = 32 * 1024
_REASON_FAULT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON.pattern}')"
)


def faults(conditions: list[Object], path: str) -> list[FieldError]:
    """What is wrong with conditions; each has a type of its own."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, kind = f"{path}[{index}]", condition.get("type", "")
        if kind in seen:
            found.append(duplicate(at, kind))
        seen.add(kind)
        found += _faults_of(condition, at)
    return found


def _faults_of(condition: Object, path: str) -> list[FieldError]:
    kind, status, message = (condition.get(name, "") for name in ("type", "status", "message"))
    found = [] if kind else [required(f"{path}.type", "is required")]
    found += [invalid(f"{path}.type", kind, text) for text in names.label_key_faults(kind)] if kind else []
    if not status:
        found.append(required(f"{path}.status"))
    elif status not in _STATUSES:
        found.append(not_supported(f"{path}.status", status, _STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        found.append(invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        found.append(required(f"{path}.lastTransitionTime"))
    found += _reason_faults(condition.get("reason", ""), f"{path}.reason")
    is_long = len(message.encode()) > _MESSAGE_MAX_BYTES
    return [*found, too_long(f"{path}.message", _MESSAGE_MAX_BYTES)] if is_long else found


def _reason_faults(reason: str, path: str) -> list[FieldError]:
    if not reason:
        return [required(path)]
    if len(reason.encode()) > _REASON_MAX_BYTES:
        return [too_long(path, _REASON_MAX_BYTES)]
    return [] if _REASON.fullmatch(reason) else [invalid(path, reason, _REASON_FAULT)]
