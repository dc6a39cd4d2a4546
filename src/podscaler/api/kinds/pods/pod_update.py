"""What may change in a pod once it is stored.

Called by the record of Pod. A pod's spec is what its processes were started with, so hardly anything of it may change.

Source: upstream's message (golden captures).
"""

from podscaler.api.kinds.pods import pod_validation
from podscaler.api.machinery.field import FieldError, forbidden
from podscaler.api.resource import go_struct, semantics
from podscaler.api.resource.resources import Object

_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CHANGEABLE = ("activeDeadlineSeconds", "tolerations")


def faults(new: Object, old: Object) -> list[FieldError]:
    """What is wrong with the new version of a stored Pod."""
    found = pod_validation.faults(new, old=old)
    if len(new["spec"].get("containers") or []) != len(old["spec"].get("containers") or []):
        return [*found, forbidden("spec.containers", "pod updates may not add or remove containers")]
    if semantics.same(_fixed_part(new["spec"]), _fixed_part(old["spec"])):
        return found + _toleration_faults(new["spec"], old["spec"])
    changes = go_struct.difference(old["spec"], _with_changeable_of(old["spec"], new["spec"]), "core/v1.PodSpec")
    return [*found, forbidden("spec", f"{_FIXED}\n{changes}")]


def _fixed_part(spec: Object) -> Object:
    return _with_changeable_of({}, spec)


def _with_changeable_of(old: Object, new: Object) -> Object:
    """`new`, except that what may change is as in `old`."""
    fixed = {name: value for name, value in new.items() if name not in _CHANGEABLE}
    fixed |= {name: old[name] for name in _CHANGEABLE if name in old}
    for group in ("containers", "initContainers"):
        if new.get(group):
            fixed[group] = [_with_image_of(old.get(group) or [], index, each) for index, each in enumerate(new[group])]
    return fixed


def _with_image_of(old: list[Object], index: int, container: Object) -> Object:
    return {**container, "image": old[index].get("image", "") if index < len(old) else ""}


def _toleration_faults(new: Object, old: Object) -> list[FieldError]:
    kept = new.get("tolerations") or []
    if all(any(semantics.same(each, other) for other in kept) for each in old.get("tolerations") or []):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]
