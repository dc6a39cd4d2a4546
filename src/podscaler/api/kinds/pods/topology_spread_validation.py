"""What is wrong with the topology spread constraints of a pod spec.

Called by `pod_validation`.

Source: upstream's messages; the API reference of core/v1.
"""

from podscaler.api.kinds.pods import affinity_validation
from podscaler.api.machinery.field import FieldError, duplicate, invalid, not_supported, required
from podscaler.api.resource import label_selector
from podscaler.api.resource.resources import Object

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def faults(constraints: list[Object], path: str) -> list[FieldError]:
    """What is wrong with the constraints at `path`."""
    found = []
    for index, constraint in enumerate(constraints):
        place = f"{path}[{index}]"
        found += _constraint_faults(constraint, place)
        pair = _pair(constraint)
        if any(_pair(later) == pair for later in constraints[index + 1 :]):
            found.append(duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{', '.join(pair)}}}"))
    return found


def _pair(constraint: Object) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _constraint_faults(constraint: Object, path: str) -> list[FieldError]:
    skew, action = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable", "")
    found = [] if skew > 0 else [invalid(f"{path}.maxSkew", skew, "must be greater than zero")]
    if not constraint.get("topologyKey"):
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    if action not in _ACTIONS:
        found.append(not_supported(f"{path}.whenUnsatisfiable", action, _ACTIONS))
    found += _domain_faults(constraint.get("minDomains"), action, f"{path}.minDomains")
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in _POLICIES:
            found.append(not_supported(f"{path}.{name}", policy, _POLICIES))
    found += affinity_validation.label_key_faults(constraint, "matchLabelKeys", path)
    return found + label_selector.faults(constraint.get("labelSelector") or {}, f"{path}.labelSelector")


def _domain_faults(least: int | None, action: str, path: str) -> list[FieldError]:
    if least is None:
        return []
    found = [] if least > 0 else [invalid(path, least, "must be greater than zero")]
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        found.append(invalid(path, least, text))
    return found
