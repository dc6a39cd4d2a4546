"""Limits a count by its rate of change, and by the autoscaler's minimum and maximum.

Called by `podscaler.core.limits.normalisation` after stabilization. Example without behavior: 15 wanted at 4 replicas,
with at most 10, become 8, twice the current count. A new reason of ScalingLimited needs its message in MESSAGES.

Source: docs/spec/decision.md 8 (Normalisation without behavior, points 3 to 5), 9.3 (Rates and bounds).
"""

from podscaler.api.machinery import numbers
from podscaler.core.limits import policies
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Direction, Limits

MESSAGES = {
    "DesiredWithinRange": "the desired count is within the acceptable range",
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
}
"""Reasons of ScalingLimited and their messages."""

WITHIN_RANGE = "DesiredWithinRange"

SCALE_UP_LIMIT_FACTOR = 2.0
SCALE_UP_LIMIT_MINIMUM = 4.0
"""The fixed rate without a behavior: the HPA controller's scaleUpLimitFactor and scaleUpLimitMinimum."""


def without_behavior(spec: Spec, stabilized: int, current: int) -> Limits:
    """`stabilized` within minimum and maximum, and at most twice the current count (at least 4)."""
    rate_limit = numbers.int32_of_float(max(SCALE_UP_LIMIT_FACTOR * float(current), SCALE_UP_LIMIT_MINIMUM))
    highest, reason = _nearer_highest(spec, rate_limit)
    if stabilized < spec.min_replicas:
        limited_replicas, reason = spec.min_replicas, "TooFewReplicas"
    elif stabilized > highest:
        limited_replicas = highest
    else:
        limited_replicas, reason = stabilized, WITHIN_RANGE
    return Limits(
        wanted=stabilized,
        direction=direction(stabilized, current),
        select_policy="",
        policies=(),
        rate_limit=rate_limit,
        bound=None if reason == WITHIN_RANGE else limited_replicas,
        reason=reason,
        result=limited_replicas,
    )


def with_behavior(spec: Spec, facts: PolicyFacts, stabilized: int, current: int) -> Limits:
    """`stabilized` as far as the policies and the bound of its direction allow; an unchanged count is not limited."""
    step_direction = direction(stabilized, current)
    if step_direction is Direction.UNCHANGED:
        return Limits(
            wanted=stabilized,
            direction=step_direction,
            select_policy="",
            policies=(),
            rate_limit=None,
            bound=None,
            reason=WITHIN_RANGE,
            result=stabilized,
            scale_ups=facts.prior_history.scale_ups,
            scale_downs=facts.prior_history.scale_downs,
        )
    if step_direction is Direction.UP:
        policy_limit = policies.scale_up_limit(facts, current)
        bound, reason = _nearer_highest(spec, policy_limit.limit)
        limited_replicas = min(stabilized, bound)
    else:
        policy_limit = policies.scale_down_limit(facts, current)
        bound, reason = _nearer_lowest(spec, policy_limit.limit)
        limited_replicas = max(stabilized, bound)
    is_limited = limited_replicas != stabilized
    return Limits(
        wanted=stabilized,
        direction=step_direction,
        select_policy=policy_limit.select_policy,
        policies=policy_limit.budgets,
        rate_limit=policy_limit.limit,
        bound=bound if is_limited else None,
        reason=reason if is_limited else WITHIN_RANGE,
        result=limited_replicas,
        scale_ups=facts.prior_history.scale_ups,
        scale_downs=facts.prior_history.scale_downs,
    )


def direction(desired: int, current: int) -> Direction:
    """The direction from the current count to the desired one."""
    if desired == current:
        return Direction.UNCHANGED
    return Direction.UP if desired > current else Direction.DOWN


def _nearer_highest(spec: Spec, rate_limit: int) -> tuple[int, str]:
    """The lower one of maxReplicas and the rate limit, and the reason of the condition ScalingLimited."""
    if spec.max_replicas > rate_limit:
        return rate_limit, "ScaleUpLimit"
    return spec.max_replicas, "TooManyReplicas"


def _nearer_lowest(spec: Spec, rate_limit: int) -> tuple[int, str]:
    """The higher one of minReplicas and the rate limit, and the reason of the condition ScalingLimited."""
    if spec.min_replicas < rate_limit:
        return rate_limit, "ScaleDownLimit"
    return spec.min_replicas, "TooFewReplicas"
