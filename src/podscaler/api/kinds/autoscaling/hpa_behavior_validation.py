"""What is wrong with the behavior of an autoscaler.

Called by `hpa_validation`.

Source: docs/spec/api.md 2.6 (behavior).
"""

from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource.resources import Object

MAX_WINDOW_S = 3600
MAX_PERIOD_S = 1800

_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")


def faults(behavior: Object, path: str) -> list[FieldError]:
    """What is wrong with either direction."""
    found = []
    for direction in ("scaleUp", "scaleDown"):
        if (rules := behavior.get(direction)) is not None:
            found += _rules_faults(rules, f"{path}.{direction}")
    return found


def _rules_faults(rules: Object, path: str) -> list[FieldError]:
    found = _window_faults(rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds")
    select = rules.get("selectPolicy")
    if select is not None and select not in _SELECT_POLICIES:
        found.append(not_supported(f"{path}.selectPolicy", select, _SELECT_POLICIES))
    policies = rules.get("policies") or []
    if not policies:
        found.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        found += _policy_faults(policy, f"{path}.policies[{index}]")
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign() < 0:
        found.append(invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0"))
    return found


def _window_faults(window_s: int | None, path: str) -> list[FieldError]:
    if window_s is None or 0 <= window_s <= MAX_WINDOW_S:
        return []
    if window_s < 0:
        return [invalid(path, window_s, "must be greater than or equal to zero")]
    return [invalid(path, window_s, f"must be less than or equal to {MAX_WINDOW_S}")]


def _policy_faults(policy: Object, path: str) -> list[FieldError]:
    kind, value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    found = [] if kind in _POLICY_TYPES else [not_supported(f"{path}.type", kind, _POLICY_TYPES)]
    if value <= 0:
        found.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period_s <= 0:
        found.append(invalid(f"{path}.periodSeconds", period_s, "must be greater than zero"))
    if period_s > MAX_PERIOD_S:
        found.append(invalid(f"{path}.periodSeconds", period_s, f"must be less than or equal to {MAX_PERIOD_S}"))
    return found
