"""Describes why a count is not what the metrics want: a recommendation, an exhausted policy, a bound, a cooldown.

Called by `sentence`, `limit_steps` and `podscaler.observe.health`. A VerdictReason that holds a count back needs a case
in `reason`.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9 (Normalisation with behavior).
"""

from collections.abc import Sequence

from podscaler.core.model.history import Recommendation, ScaleEvent
from podscaler.core.model.trace import Cooldown, Direction, Limits, PolicyBudget, Stabilization, Trace
from podscaler.explain import wording
from podscaler.explain.verdict import Verdict, VerdictReason


def reason(trace: Trace, verdict: Verdict) -> str:
    """The reason as a clause, such as `minReplicas is 3`; empty if the count is what the metrics want."""
    step, limits = trace.stabilization, trace.limits
    if step is None or limits is None:
        return ""
    if verdict.ending is VerdictReason.COOLING and trace.cooldown is not None:
        return _cooldown_clause(trace, trace.cooldown)
    if verdict.ending is VerdictReason.STABILIZED:
        return _window_clause(trace, step) + _other_bound_clause(trace, step)
    if verdict.ending is VerdictReason.RATE_LIMITED:
        return _rate_clause(trace, limits)
    if verdict.ending is VerdictReason.AT_BOUND:
        return _bound_clause(trace, limits)
    if verdict.ending is VerdictReason.LIFTED:
        return f"minReplicas is {trace.min_replicas}"
    return ""


def _cooldown_clause(trace: Trace, cooldown: Cooldown) -> str:
    """The cooldown that holds the count: `the last rescale was 1 min ago, and scaling up waits 3 min after one`."""
    is_up = (cooldown.held or 0) > (trace.current_replicas or 0)
    delay_ns = cooldown.up_delay_ns if is_up else cooldown.down_delay_ns
    direction = "scaling up" if is_up else "scaling down"
    scaled_ago = wording.age(cooldown.scaled_at or 0, trace.now)
    return f"the last rescale was {scaled_ago}, and {direction} waits {wording.span(delay_ns)} after one"


def _window_clause(trace: Trace, step: Stabilization) -> str:
    """Why a window holds the count: `a recommendation of 8 from 2 min ago holds back scaling down for 5 min`."""
    is_down = step.result > step.proposal
    cutoff = step.down_cutoff if is_down or step.up_cutoff is None else step.up_cutoff
    held_by = holding_recommendation(step)
    direction = "scaling down" if is_down else "scaling up"
    window = wording.span(trace.now - cutoff)
    if held_by is None:
        return f"the window of {window} holds back {direction}"
    recommendation = f"a recommendation of {held_by.replicas} from {wording.age(held_by.at, trace.now)}"
    current = trace.current_replicas or 0
    moves_to_recommendation = current < step.result if is_down else current > step.result
    if moves_to_recommendation:
        return f"{recommendation} still counts ({direction} looks back {window})"
    return f"{recommendation} holds back {direction} for {window}"


def _other_bound_clause(trace: Trace, step: Stabilization) -> str:
    """The bound that would hold the count even without the window, as a clause; empty if none would."""
    if step.proposal < trace.min_replicas == trace.current_replicas:
        return f", and minReplicas is {trace.min_replicas}"
    if step.proposal > trace.max_replicas == trace.current_replicas:
        return f", and maxReplicas is {trace.max_replicas}"
    return ""


def holding_recommendation(step: Stabilization) -> Recommendation | None:
    """The latest recommendation in the window that limits the change; None if there is none.

    Without a behavior (`up_cutoff` is None) a recommendation exactly at the beginning of the window counts, too.
    """
    if step.result > step.proposal:
        includes_cutoff = step.up_cutoff is None
        first_at = step.down_cutoff if includes_cutoff else step.down_cutoff + 1
        holding = [
            recommendation
            for recommendation in step.recommendations
            if recommendation.at >= first_at and recommendation.replicas >= step.result
        ]
    else:
        cutoff = step.down_cutoff if step.up_cutoff is None else step.up_cutoff
        holding = [
            recommendation
            for recommendation in step.recommendations
            if recommendation.at > cutoff and recommendation.replicas <= step.result
        ]
    return max(holding, key=lambda recommendation: recommendation.at, default=None)


def _bound_clause(trace: Trace, limits: Limits) -> str:
    """The bound that holds the count: `minReplicas is 3`."""
    if limits.reason == "TooFewReplicas":
        return f"minReplicas is {trace.min_replicas}"
    return f"maxReplicas is {trace.max_replicas}"


def _rate_clause(trace: Trace, limits: Limits) -> str:
    """Why the rate of change holds the count: the policy that allows the least, and what has used it up."""
    if not limits.select_policy:
        return "without a behavior one sync at most doubles the count (4 are always allowed)"
    direction = "scaling up" if limits.direction is Direction.UP else "scaling down"
    if limits.select_policy == "Disabled":
        return f"{direction} is disabled (selectPolicy: Disabled)"
    decisive = _binding_policy(limits)
    if decisive is None:
        return f"no policy allows {direction}"
    selected_text = f"the policy of {policy_text(decisive)}{_selection_note(limits)}"
    if decisive.remaining > 0:
        return f"{selected_text} allows {decisive.limit}{_after_changes(trace, limits, decisive)}"
    changes_text = _changes_in_period(trace, limits, decisive)
    if not changes_text:
        return f"{selected_text} allows no change from {trace.current_replicas}"
    return f"{changes_text} used up {selected_text}"


def policy_text(budget: PolicyBudget) -> str:
    """A policy: `4 pods each 1 min`, `10 % each 15 s`."""
    amount = f"{budget.value} %" if budget.type == "Percent" else wording.count(budget.value, "pod")
    return f"{amount} each {wording.span(budget.period_ns)}"


def _binding_policy(limits: Limits) -> PolicyBudget | None:
    """The policy that selectPolicy (`Min`, `Max`) selects; None if there are no policies."""
    choose = min if limits.select_policy == "Min" else max
    return choose(limits.policies, key=lambda budget: budget.remaining, default=None)


def _selection_note(limits: Limits) -> str:
    """By what rule the policy was selected: ` (the strictest of 2)`; empty if there is only one."""
    if len(limits.policies) < 2:
        return ""
    kind = "strictest" if limits.select_policy == "Min" else "most generous"
    return f" (the {kind} of {len(limits.policies)})"


def _events_in_period(events: Sequence[ScaleEvent], trace: Trace, budget: PolicyBudget) -> list[ScaleEvent]:
    return [event for event in events if event.at > trace.now - budget.period_ns]


def _changes_in_period(trace: Trace, limits: Limits, budget: PolicyBudget) -> str:
    """The changes in the direction and the period of a policy, as a clause; empty if there were none."""
    is_up = limits.direction is Direction.UP
    events = _events_in_period(limits.scale_ups if is_up else limits.scale_downs, trace, budget)
    if not events:
        return ""
    kind = "scale-up" if is_up else "scale-down"
    total, latest = sum(event.change for event in events), max(event.at for event in events)
    latest_ago = wording.age(latest, trace.now)
    if len(events) == 1:
        return f"a {kind} by {wording.count(total, 'replica')} {latest_ago}"
    return f"{len(events)} {kind}s by {wording.count(total, 'replica')} together, the last {latest_ago},"


def _after_changes(trace: Trace, limits: Limits, budget: PolicyBudget) -> str:
    """The changes in the period of a policy: ` after a scale-up by 2 replicas 10 s ago`; empty if there were none."""
    changes_text = _changes_in_period(trace, limits, budget)
    return f" after {changes_text.rstrip(',')}" if changes_text else ""
