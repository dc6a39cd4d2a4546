"""How far the policies of a behavior allow to go now, given what was changed within their periods.

Called by `podscaler.core.limits.bounds`.

Worked examples: 900 % in 60 s goes 1, 10, 100, 1000; 4 pods or 10 %, whichever is more, takes 80 to 72, and below 40
replicas the 4 pods are more.

Source: docs/spec/decision.md 9.3 (Rates and bounds); KEP-853.
"""

from podscaler.api.machinery import numbers
from podscaler.core.model import history
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.history import History
from podscaler.core.model.model import Fact
from podscaler.core.model.spec import Behavior, Policy
from podscaler.core.model.trace import PolicyBudget

DISABLED = "Disabled"


class PolicyFacts(Fact, frozen=True, gc=False):
    """What the policies look at: themselves, earlier changes, and the instant."""

    behavior: Behavior
    past: History
    now: int
    emulation: Emulation


class PolicyLimit(Fact, frozen=True, gc=False):
    """The count that the rate allows in one direction, never on the wrong side of the current one; and why."""

    select_policy: str
    limit: int
    budgets: tuple[PolicyBudget, ...] = ()


def scale_up_allowance(rates: PolicyFacts, current: int) -> PolicyLimit:
    """The highest count that the policies allow (`Min`: the strictest of them decides)."""
    rules = rates.behavior.up
    if rules.select_policy == DISABLED:
        return PolicyLimit(DISABLED, current)
    budgets = tuple([_up_budget(policy, current, rates) for policy in rules.policies])
    limits = [budget.limit for budget in budgets]
    if rules.select_policy == "Min":
        limit = min(limits, default=numbers.INT32_MAX)
    else:
        limit = max(limits, default=numbers.INT32_MIN)
    return PolicyLimit(rules.select_policy, max(limit, current), budgets)


def scale_down_allowance(rates: PolicyFacts, current: int) -> PolicyLimit:
    """The lowest count that the policies allow (`Min`: the strictest of them decides)."""
    rules = rates.behavior.down
    if rules.select_policy == DISABLED:
        return PolicyLimit(DISABLED, current)
    budgets = tuple([_down_budget(policy, current, rates) for policy in rules.policies])
    limits = [budget.limit for budget in budgets]
    if rules.select_policy == "Min":
        limit = max(limits, default=numbers.INT32_MIN)
    else:
        limit = min(limits, default=numbers.INT32_MAX)
    return PolicyLimit(rules.select_policy, min(limit, current), budgets)


def _up_budget(policy: Policy, current: int, rates: PolicyFacts) -> PolicyBudget:
    added, removed, start = _start(policy, current, rates)
    if policy.type == "Pods":
        limit = numbers.wrap32(start + policy.value)
    else:
        limit = rates.emulation.ceil_int32(float(start) * (1.0 + float(policy.value) / 100.0))
    return PolicyBudget(
        policy.type, policy.value, policy.period_ns, added, removed, start, limit, remaining=limit - current
    )


def _down_budget(policy: Policy, current: int, rates: PolicyFacts) -> PolicyBudget:
    added, removed, start = _start(policy, current, rates)
    if policy.type == "Pods":
        limit = numbers.wrap32(start - policy.value)
    else:
        limit = numbers.int32_of_float(float(start) * (1.0 - float(policy.value) / 100.0))
    return PolicyBudget(
        policy.type, policy.value, policy.period_ns, added, removed, start, limit, remaining=current - limit
    )


def _start(policy: Policy, current: int, rates: PolicyFacts) -> tuple[int, int, int]:
    """Replicas added and removed within the period, and how many there were at its start."""
    cutoff = rates.now - policy.period_ns
    added = history.changed_since(rates.past.scale_ups, cutoff)
    removed = history.changed_since(rates.past.scale_downs, cutoff)
    return added, removed, numbers.wrap32(current - added + removed)
