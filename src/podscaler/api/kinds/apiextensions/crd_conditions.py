"""Sets the accepted names and the conditions in the status of a CustomResourceDefinition, in place.

Called by the record of the kind (deletion) and by `podscaler.controlplane.controllers.cluster.custom_resources` (all
else). The names of other definitions and the time are arguments.

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


@dataclass(frozen=True, slots=True)
class NamesInUse:
    """The accepted names of other definitions of the group.

    Attributes:
        resources: plurals, singulars and short names.
        kinds: kinds and list kinds.
    """

    resources: Collection[str] = ()
    kinds: Collection[str] = ()


def names_in_use(others: Iterable[Object]) -> NamesInUse:
    """The accepted names of other definitions of a group."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in others:
        names = (crd.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return NamesInUse(resources - {""}, kinds - {""})


def is_true(crd: Object, kind: str) -> bool:
    """Whether a condition is True."""
    condition = _find_condition(crd, kind)
    return condition is not None and condition.get("status") == "True"


def set_names_and_conditions(crd: Object, in_use: NamesInUse, time: str) -> None:
    """Sets accepted names and conditions; a definition whose names are all accepted becomes Established.

    Args:
        crd: the stored definition.
        in_use: the names of other definitions of the group.
        time: the present time, RFC 3339, for lastTransitionTime.
    """
    status = crd.setdefault("status", {})
    names, reason, message = _accepted(crd, in_use)
    status["acceptedNames"] = names
    is_accepted = reason == "NoConflicts"
    _set_condition(crd, NAMES_ACCEPTED, ("True" if is_accepted else "False", reason, message), time)
    if is_true(crd, ESTABLISHED):
        return
    established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    _set_condition(
        crd, ESTABLISHED, established if is_accepted else ("False", "NotAccepted", "not all names are accepted"), time
    )


def mark_for_deletion(crd: Object, time: str) -> None:
    """Sets the condition Terminating: the custom resources will be deleted."""
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _set_condition(crd, TERMINATING, ("True", "InstanceDeletionPending", text), time)


def mark_deleting(crd: Object, time: str) -> None:
    """Sets the condition Terminating: the custom resources are being deleted."""
    _set_condition(
        crd, TERMINATING, ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"), time
    )


def _accepted(crd: Object, in_use: NamesInUse) -> tuple[Object, str, str]:
    """The accepted names; reason and message of the condition NamesAccepted."""
    spec_names = crd["spec"]["names"]
    names = semantics.copied((crd.get("status") or {}).get("acceptedNames") or {})
    reason, message = "NoConflicts", "no conflicts found"
    for field, used_names in (
        ("plural", in_use.resources),
        ("singular", in_use.resources),
        ("shortNames", in_use.resources),
        ("kind", in_use.kinds),
        ("listKind", in_use.kinds),
    ):
        conflict = _conflict_message(spec_names.get(field), names.get(field), used_names)
        if conflict:
            reason, message = f"{field[0].upper()}{field[1:]}Conflict", conflict
        else:
            _copy(field, spec_names, names)
    _copy("categories", spec_names, names)
    return names, reason, message


def _conflict_message(
    requested: str | list[str] | None, accepted: str | list[str] | None, used_names: Collection[str]
) -> str:
    """The message about wanted names that another definition has; empty without such names."""
    owned = accepted if isinstance(accepted, list) else [accepted]
    names = requested if isinstance(requested, list) else [requested]
    texts = [f"{quoted(name)} is already in use" for name in names if name and name not in owned and name in used_names]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _copy(field: str, wanted: Object, names: Object) -> None:
    if wanted.get(field):
        names[field] = wanted[field]
    else:
        names.pop(field, None)


def _find_condition(crd: Object, kind: str) -> Object | None:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def _set_condition(crd: Object, kind: str, state: tuple[str, str, str], time: str) -> None:
    """Sets a condition to `state` (status, reason, message); an equal status keeps its lastTransitionTime."""
    status, reason, message = state
    before = _find_condition(crd, kind)
    since = before["lastTransitionTime"] if before and before.get("status") == status else time
    new = {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    crd_status = crd.setdefault("status", {})
    conditions = crd_status.get("conditions") or []
    if before is None:
        crd_status["conditions"] = [*conditions, new]
    else:
        crd_status["conditions"] = [new if condition is before else condition for condition in conditions]
