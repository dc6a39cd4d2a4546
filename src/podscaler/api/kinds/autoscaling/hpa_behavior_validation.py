"""What is wrong with the behavior of an autoscaler.

Called by `hpa_validation`.

Source: docs/spec/api.md 2.6 (behavior).
"""

from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object

MAX_WINDOW_S = 3600
MAX_PERIOD_S = 1800

_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")


def validate(behavior: Object, path: str) -> list[FieldError]:
    """What is wrong with either direction."""
    found = []
    for direction in ("scaleUp", "scaleDown"):
        found += checks.optional(behavior.get(direction), f"{path}.{direction}", _rules_errors)
    return found


def _rules_errors(rules: Object, path: str) -> list[FieldError]:
    found = _window_errors(rules.get("stabilizationWindowSeconds"), f"{path}.stabilizationWindowSeconds")
    select = rules.get("selectPolicy")
    found += checks.optional_one_of(select, f"{path}.selectPolicy", _SELECT_POLICIES)
    policies = rules.get("policies") or []
    found += checks.present(policies, f"{path}.policies", "must specify at least one Policy")
    found += checks.each(policies, f"{path}.policies", _policy_errors)
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign() < 0:
        found.append(invalid(f"{path}.tolerance", tolerance, checks.NOT_NEGATIVE))
    return found


def _window_errors(window_s: int | None, path: str) -> list[FieldError]:
    if window_s is None or 0 <= window_s <= MAX_WINDOW_S:
        return []
    if window_s < 0:
        return [invalid(path, window_s, "must be greater than or equal to zero")]
    return [invalid(path, window_s, f"must be less than or equal to {MAX_WINDOW_S}")]


def _policy_errors(policy: Object, path: str) -> list[FieldError]:
    kind, value, period_s = policy.get("type", ""), policy.get("value", 0), policy.get("periodSeconds", 0)
    found = checks.one_of(kind, f"{path}.type", _POLICY_TYPES)
    if value <= 0:
        found.append(invalid(f"{path}.value", value, "must be greater than zero"))
    if period_s <= 0:
        found.append(invalid(f"{path}.periodSeconds", period_s, "must be greater than zero"))
    if period_s > MAX_PERIOD_S:
        found.append(invalid(f"{path}.periodSeconds", period_s, f"must be less than or equal to {MAX_PERIOD_S}"))
    return found
