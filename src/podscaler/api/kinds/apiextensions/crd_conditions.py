"""Accepted names and conditions of a CustomResourceDefinition.

Called by the record of the kind (deletion) and by `podscaler.controlplane.controllers.cluster.custom_resources`
(everything else). Pure: the names that others have and the time are arguments.

Source: the API documentation of CustomResourceDefinition conditions; upstream's reasons and messages.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object
from podscaler.api.text.quoting import quoted

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
TERMINATING = "Terminating"


@dataclass(frozen=True, slots=True)
class Taken:
    """The names of other definitions of the group: of resources (plural, singular, short names) and of kinds."""

    resources: Collection[str] = ()
    kinds: Collection[str] = ()


def taken(others: Iterable[Object]) -> Taken:
    """The accepted names of other definitions of a group."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in others:
        names = (crd.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return Taken(resources - {""}, kinds - {""})


def is_true(crd: Object, kind: str) -> bool:
    """Whether a condition is True."""
    found = _find(crd, kind)
    return found is not None and found.get("status") == "True"


def settle(crd: Object, names_taken: Taken, now: str) -> None:
    """Sets accepted names, and conditions, in place; a definition with all its names is established.

    Args:
        crd: the stored definition.
        names_taken: the accepted names of other definitions of the group.
        now: the time for transitions, RFC 3339.
    """
    status = crd.setdefault("status", {})
    names, reason, message = _accepted(crd, names_taken)
    status["acceptedNames"] = names
    is_accepted = reason == "NoConflicts"
    _set(crd, NAMES_ACCEPTED, ("True" if is_accepted else "False", reason, message), now)
    if is_true(crd, ESTABLISHED):
        return
    established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    _set(crd, ESTABLISHED, established if is_accepted else ("False", "NotAccepted", "not all names are accepted"), now)


def mark_for_deletion(crd: Object, now: str) -> None:
    """Note, in place, that the objects will be deleted."""
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _set(crd, TERMINATING, ("True", "InstanceDeletionPending", text), now)


def mark_deleting(crd: Object, now: str) -> None:
    """Note, in place, that the objects are being deleted."""
    _set(crd, TERMINATING, ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"), now)


def _accepted(crd: Object, names_taken: Taken) -> tuple[Object, str, str]:
    """The names it gets; reason and message of the last conflict, or that there is none."""
    wanted = crd["spec"]["names"]
    names = semantics.copied((crd.get("status") or {}).get("acceptedNames") or {})
    reason, message = "NoConflicts", "no conflicts found"
    for field, used in (
        ("plural", names_taken.resources),
        ("singular", names_taken.resources),
        ("shortNames", names_taken.resources),
        ("kind", names_taken.kinds),
        ("listKind", names_taken.kinds),
    ):
        clash = _clash(wanted.get(field), names.get(field), used)
        if clash:
            reason, message = f"{field[0].upper()}{field[1:]}Conflict", clash
        else:
            _copy(field, wanted, names)
    _copy("categories", wanted, names)
    return names, reason, message


def _clash(wanted: str | list[str] | None, given: str | list[str] | None, used: Collection[str]) -> str:
    """The message about wanted names that another definition has; empty for none."""
    held = given if isinstance(given, list) else [given]
    asked = wanted if isinstance(wanted, list) else [wanted]
    texts = [f"{quoted(name)} is already in use" for name in asked if name and name not in held and name in used]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _copy(field: str, wanted: Object, names: Object) -> None:
    if wanted.get(field):
        names[field] = wanted[field]
    else:
        names.pop(field, None)


def _find(crd: Object, kind: str) -> Object | None:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == kind), None)


def _set(crd: Object, kind: str, fact: tuple[str, str, str], now: str) -> None:
    """Set a condition; one whose status stays keeps the instant of its transition."""
    status, reason, message = fact
    before = _find(crd, kind)
    since = before["lastTransitionTime"] if before and before.get("status") == status else now
    new = {
        "type": kind,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    kept = crd.setdefault("status", {})
    conditions = kept.get("conditions") or []
    if before is None:
        kept["conditions"] = [*conditions, new]
    else:
        kept["conditions"] = [new if one is before else one for one in conditions]
