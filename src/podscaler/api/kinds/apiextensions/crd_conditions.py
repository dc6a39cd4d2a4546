"""Sets the accepted names and the conditions in the status of a CustomResourceDefinition, in place.

Called by `api.kinds.apiextensions.customresourcedefinition` when a definition is deleted, else by
`podscaler.controlplane.controllers.cluster.custom_resources`. A definition is passed as its JSON object; the names that
other definitions use and the time are arguments. A new field of `spec.names` goes into `_accept_names` and
`names_in_use`.

Source: the API documentation of CustomResourceDefinition conditions; kube-apiserver's reasons and messages.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object
from podscaler.api.text.quoting import quoted

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
TERMINATING = "Terminating"
_NO_CONFLICTS = "NoConflicts"
"""The reason of a true NamesAccepted; that of a false one names the field in conflict."""


@dataclass(frozen=True, slots=True)
class NamesInUse:
    """The accepted names of other definitions of the group.

    Attributes:
        resources: plurals, singulars and short names.
        kinds: kinds and list kinds.
    """

    resources: Collection[str] = ()
    kinds: Collection[str] = ()


def names_in_use(other_definitions: Iterable[Object]) -> NamesInUse:
    """The accepted names in the statuses of `other_definitions`, the other definitions of the group."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in other_definitions:
        accepted_names = (crd.get("status") or {}).get("acceptedNames") or {}
        resources |= {
            accepted_names.get("plural", ""),
            accepted_names.get("singular", ""),
            *(accepted_names.get("shortNames") or ()),
        }
        kinds |= {accepted_names.get("kind", ""), accepted_names.get("listKind", "")}
    return NamesInUse(resources - {""}, kinds - {""})


def is_true(crd: Object, condition_type: str) -> bool:
    """Whether the condition of that type (such as ESTABLISHED) has the status True."""
    condition = _find_condition(crd, condition_type)
    return condition is not None and condition.get("status") == "True"


def set_names_and_conditions(crd: Object, in_use: NamesInUse, now: str) -> None:
    """Sets accepted names and conditions; a definition whose names are all accepted becomes Established, and stays so.

    Args:
        crd: the stored definition.
        in_use: the names of other definitions of the group.
        now: the present time, RFC 3339, for lastTransitionTime.
    """
    status = crd.setdefault("status", {})
    accepted_names, reason, message = _accept_names(crd, in_use)
    status["acceptedNames"] = accepted_names
    is_accepted = reason == _NO_CONFLICTS
    condition_status = "True" if is_accepted else "False"
    _set_condition(crd, NAMES_ACCEPTED, now, status=condition_status, reason=reason, message=message)
    if is_true(crd, ESTABLISHED):
        return
    accepted = {"reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}
    not_accepted = {"reason": "NotAccepted", "message": "not all names are accepted"}
    _set_condition(crd, ESTABLISHED, now, status=condition_status, **(accepted if is_accepted else not_accepted))


def mark_for_deletion(crd: Object, now: str) -> None:
    """Sets the condition Terminating: the custom resources will be deleted."""
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _set_condition(crd, TERMINATING, now, status="True", reason="InstanceDeletionPending", message=message)


def mark_deleting(crd: Object, now: str) -> None:
    """Sets the condition Terminating: the custom resources are being deleted."""
    message = "CustomResource deletion is in progress"
    _set_condition(crd, TERMINATING, now, status="True", reason="InstanceDeletionInProgress", message=message)


def _accept_names(crd: Object, in_use: NamesInUse) -> tuple[Object, str, str]:
    """Determines the accepted names: each requested name that no other definition uses.

    Returns:
        The names for `status.acceptedNames`; the reason and the message of the condition NamesAccepted, of several
        conflicts those of the last. A field in conflict keeps the value that was accepted before.
    """
    spec_names = crd["spec"]["names"]
    accepted_names = semantics.copied((crd.get("status") or {}).get("acceptedNames") or {})
    reason, message = _NO_CONFLICTS, "no conflicts found"
    for field, used_names in (
        ("plural", in_use.resources),
        ("singular", in_use.resources),
        ("shortNames", in_use.resources),
        ("kind", in_use.kinds),
        ("listKind", in_use.kinds),
    ):
        conflict = _conflict_message(spec_names.get(field), accepted_names.get(field), used_names)
        if conflict:
            reason, message = f"{field[0].upper()}{field[1:]}Conflict", conflict  # PluralConflict
        else:
            _copy_or_remove(field, spec_names, accepted_names)
    _copy_or_remove("categories", spec_names, accepted_names)
    return accepted_names, reason, message


def _conflict_message(
    requested: str | list[str] | None, accepted: str | list[str] | None, used_names: Collection[str]
) -> str:
    """The message about requested names that another definition uses; empty if there are none.

    Args:
        requested: the value of one field of `spec.names`: a name, a list of short names, or None.
        accepted: the value of the same field of `status.acceptedNames`; the definition may keep these names.
        used_names: the names that other definitions use.
    """
    own_names = accepted if isinstance(accepted, list) else [accepted]
    requested_names = requested if isinstance(requested, list) else [requested]
    messages = [
        f"{quoted(name)} is already in use"
        for name in requested_names
        if name and name not in own_names and name in used_names
    ]
    if len(messages) > 1:
        return f"[{', '.join(messages)}]"
    return messages[0] if messages else ""


def _copy_or_remove(field: str, spec_names: Object, accepted_names: Object) -> None:
    """Makes `accepted_names[field]` equal to `spec_names[field]`, in place; an empty value removes the field."""
    if spec_names.get(field):
        accepted_names[field] = spec_names[field]
    else:
        accepted_names.pop(field, None)


def _find_condition(crd: Object, condition_type: str) -> Object | None:
    """The condition of that type in the status of a definition, None if there is none."""
    conditions = (crd.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == condition_type), None)


def _set_condition(crd: Object, condition_type: str, now: str, *, status: str, reason: str, message: str) -> None:
    """Sets a condition in place; `now` (RFC 3339) becomes its lastTransitionTime only if its status changes."""
    old_condition = _find_condition(crd, condition_type)
    is_same_status = old_condition is not None and old_condition.get("status") == status
    transition_time = old_condition["lastTransitionTime"] if old_condition and is_same_status else now
    new_condition = {
        "type": condition_type,
        "status": status,
        "lastTransitionTime": transition_time,
        "reason": reason,
        "message": message,
    }
    crd_status = crd.setdefault("status", {})
    conditions = crd_status.get("conditions") or []
    if old_condition is None:
        crd_status["conditions"] = [*conditions, new_condition]
    else:
        crd_status["conditions"] = [
            new_condition if condition is old_condition else condition for condition in conditions
        ]
