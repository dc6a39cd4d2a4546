"""Hooks for kinds with a `status` subresource (`Strategy.prepare_*`), and the validation of conditions.

Used by the records in `podscaler.api.kinds` and `podscaler.api.crd.records`. A write of the object does not change the
status; a write of the status changes nothing else.

Source: docs/spec/api.md 3 (Create, update, status update); kube-apiserver's validation of meta/v1 Condition.
"""

import re
from collections.abc import Callable

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, too_long
from podscaler.api.resource import checks, semantics
from podscaler.api.resource.resources import Object

_STATUSES = ("False", "True", "Unknown")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX_BYTES = 1024
_MESSAGE_MAX_BYTES = 32 * 1024
_REASON_MESSAGE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON.pattern}')"
)


def start_with(status: Object) -> Callable[[Object], None]:
    """A `prepare_create` hook: the object starts with a copy of `status`, whatever the client sent."""

    def prepare(new: Object) -> None:
        new["status"] = semantics.copied(status)

    return prepare


def keep_status(new: Object, old: Object) -> None:
    """The `prepare_update` hook: the status stays that of the stored object."""
    _keep_field("status", new, old)


def keep_spec(new: Object, old: Object) -> None:
    """The `prepare_status_update` hook: the spec stays that of the stored object."""
    _keep_field("spec", new, old)


def _keep_field(field: str, new: Object, old: Object) -> None:
    """Makes `new[field]` equal to `old[field]`, in place; a field that `old` lacks is removed."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def validate_conditions(conditions: list[Object] | None, path: str) -> list[FieldError]:
    """The field errors of a list of meta/v1 Condition, whose types must differ."""
    earlier_types: set[str] = set()
    errors = []
    for index, condition in enumerate(conditions or []):
        item_path = f"{path}[{index}]"
        errors += checks.not_repeated(condition.get("type", ""), item_path, earlier_types)
        errors += _condition_errors(condition, item_path)
    return errors


def _condition_errors(condition: Object, path: str) -> list[FieldError]:
    """Field errors of one condition: its type, status, times, reason and message."""
    condition_type, status, message = (condition.get(name, "") for name in ("type", "status", "message"))
    generation, reason = condition.get("observedGeneration", 0), condition.get("reason", "")
    errors = checks.required_form(condition_type, f"{path}.type", names.label_key_errors, "is required")
    errors += checks.required_one_of(status, f"{path}.status", _STATUSES)
    if generation < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    errors += checks.present(condition.get("lastTransitionTime"), f"{path}.lastTransitionTime")
    if len(reason.encode()) > _REASON_MAX_BYTES:
        errors.append(too_long(f"{path}.reason", _REASON_MAX_BYTES))
    else:
        errors += checks.required_form(reason, f"{path}.reason", _reason_messages)
    is_long = len(message.encode()) > _MESSAGE_MAX_BYTES
    return [*errors, too_long(f"{path}.message", _MESSAGE_MAX_BYTES)] if is_long else errors


def _reason_messages(reason: str) -> list[str]:
    return [] if _REASON.fullmatch(reason) else [_REASON_MESSAGE]
