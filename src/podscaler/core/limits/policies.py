"""Computes the replica counts that scaling policies (`spec.behavior`) allow now, after the changes in their periods.

Called by `podscaler.core.limits.bounds`. A new type of policy is a case in `_policy_budget`.

Worked examples: a scale-up of 900 % in 60 s allows 1, 10, 100, 1000 in successive minutes; a scale-down of 4 pods or
10 %, whichever is more, allows 72 from 80; below 40 replicas the 4 pods are more.

Source: docs/spec/decision.md 9.3 (Rates and bounds); KEP-853.
"""

from podscaler.api.machinery import numbers
from podscaler.core.model import history
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.history import History
from podscaler.core.model.observation import Fact
from podscaler.core.model.spec import Behavior, Policy, Rules
from podscaler.core.model.trace import PolicyBudget

DISABLED = "Disabled"


class PolicyFacts(Fact, frozen=True, gc=False):
    """The inputs of the policies.

    Attributes:
        prior_history: the history, with the scale events within the periods.
        now_ns: the instant of the sync.
        emulation: the arithmetic of the emulated version.
    """

    behavior: Behavior
    prior_history: History
    now_ns: int
    emulation: Emulation


class PolicyLimit(Fact, frozen=True, gc=False):
    """The count that the policies of one direction allow.

    Attributes:
        select_policy: `Max`, `Min` or `Disabled`.
        limit: at least the current count for a scale-up, at most that for a scale-down.
        budgets: what each policy allows, in order; empty if the direction is disabled.
    """

    select_policy: str
    limit: int
    budgets: tuple[PolicyBudget, ...] = ()


def scale_up_limit(facts: PolicyFacts, current: int) -> PolicyLimit:
    """The highest count that the policies allow (`Min`: that of the strictest policy)."""
    return _policy_limit(facts.behavior.up, facts, current, sign=1)


def scale_down_limit(facts: PolicyFacts, current: int) -> PolicyLimit:
    """The lowest count that the policies allow (`Min`: that of the strictest policy)."""
    return _policy_limit(facts.behavior.down, facts, current, sign=-1)


def _policy_limit(rules: Rules, facts: PolicyFacts, current: int, *, sign: int) -> PolicyLimit:
    """The limit in the direction of `sign` (1: up, -1: down)."""
    if rules.select_policy == DISABLED:
        return PolicyLimit(DISABLED, current)
    budgets = tuple([_policy_budget(policy, current, facts, sign=sign) for policy in rules.policies])
    limits = [budget.limit for budget in budgets]
    is_up, takes_strictest = sign > 0, rules.select_policy == "Min"
    # the defaults as upstream: without policies Min does not limit, and Max allows no change
    if takes_strictest == is_up:  # the strictest limit of a scale-up is the lowest, that of a scale-down the highest
        limit = min(limits, default=numbers.INT32_MAX)
    else:
        limit = max(limits, default=numbers.INT32_MIN)
    return PolicyLimit(rules.select_policy, max(limit, current) if is_up else min(limit, current), budgets)


def _policy_budget(policy: Policy, current: int, facts: PolicyFacts, *, sign: int) -> PolicyBudget:
    """What a policy allows in the direction of `sign` (1: up, -1: down) from the count at the start of its period."""
    cutoff = facts.now_ns - policy.period_ns
    added = history.change_since(facts.prior_history.scale_ups, cutoff)
    removed = history.change_since(facts.prior_history.scale_downs, cutoff)
    start = numbers.wrap32(current - added + removed)  # int32 wraps around, as in Go
    if policy.type == "Pods":
        limit = numbers.wrap32(start + sign * policy.value)
    else:  # Percent
        scaled = float(start) * (1.0 + sign * float(policy.value) / 100.0)
        limit = facts.emulation.ceil_int32(scaled) if sign > 0 else numbers.int32_of_float(scaled)
    remaining = sign * (limit - current)
    return PolicyBudget(
        type=policy.type,
        value=policy.value,
        period_ns=policy.period_ns,
        added=added,
        removed=removed,
        start=start,
        limit=limit,
        remaining=remaining,
    )
