"""Describes a decision in one sentence: the autoscaler, what happens to the count, why, and until when.

Called by `explained`. Example: `shop/web stays at 10: its metrics ask for 7, but a recommendation of 10 from 2 min ago
holds back scaling down for 5 min; earliest change in 3 min, to 7`. Each VerdictReason has its function in
`_SENTENCE_BY_ENDING`; those that hold a count back have none and share `_held`.
"""

from collections.abc import Callable

from podscaler.api.typed.autoscaling import Condition
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALING_LIMITED
from podscaler.core.model.trace import Branch, MetricStep, Trace
from podscaler.explain import failure_words, hold_reasons, metric_words, wording
from podscaler.explain.explanation_parts import TraceSource
from podscaler.explain.outlook import Outlook
from podscaler.explain.verdict import RATE_REASONS, Verdict, VerdictReason

_STABILIZED_REASONS = frozenset({"ScaleDownStabilized", "ScaleUpStabilized"})


def of(trace: Trace, verdict: Verdict, outlook: Outlook | None, source: TraceSource) -> str:
    """The sentence, without a full stop at its end."""
    if verdict.write_error:
        return (
            f"{trace.autoscaler} wants to go from {verdict.current} to {verdict.desired} but stays at "
            f"{verdict.current}: the scale could not be written: {verdict.write_error}"
        )
    if not source.has_history and verdict.wanted != verdict.current and trace.limits is not None:
        return _without_history(trace, verdict)
    clause = _SENTENCE_BY_ENDING.get(verdict.ending, _held)(trace, verdict, source)
    next_change = _outlook_clause(trace, verdict, outlook, source)
    return f"{clause}{next_change}{_partial_failure_clause(trace, verdict)}{_status_failure_clause(trace)}"


def _no_scale(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a scale that could not be read."""
    del verdict, source
    return f"{trace.autoscaler} can do nothing: the scale of its target cannot be read: {trace.scale_failure}"


def _paused(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a target with 0 replicas, which metrics cannot or may not wake."""
    del verdict, source
    if trace.zero is not None and trace.zero.was_scaled_to_zero:
        return f"{trace.autoscaler} stays at 0: no metric of type Object or External is there to wake its target"
    return (
        f"{trace.autoscaler} is paused: its target has 0 replicas, and it was not this autoscaler that scaled it there"
    )


def _out_of_bounds(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a count outside of minReplicas and maxReplicas."""
    bound = (
        f"maxReplicas is {trace.max_replicas}"
        if trace.branch is Branch.ABOVE_MAXIMUM
        else f"minReplicas is {trace.min_replicas}"
    )
    return f"{trace.autoscaler} {_moves(verdict, source)}: {bound}, whatever the metrics say"


def _no_pods(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a selector that fails or picks the pods of other autoscalers too."""
    del source
    selection = trace.selection
    stays = f"{trace.autoscaler} stays at {verdict.current}"
    if selection is not None and selection.overlapping:
        keys = " and ".join(selection.overlapping)
        return f"{stays}: {keys} scale the same pods ({selection.selector}), and none of them does so until that ends"
    failure = selection.failure if selection else None
    return f"{stays}: its pods cannot be told: {failure.message if failure else trace.error}"


def _no_metrics(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for metrics none of which could be evaluated."""
    del source
    subject = "its metric" if len(trace.metrics) == 1 else f"none of its {len(trace.metrics)} metrics"
    verb = "cannot" if len(trace.metrics) == 1 else "can"
    return f"{trace.autoscaler} stays at {verdict.current}: {subject} {verb} be evaluated: {_first_failure(trace)}"


def _no_scale_down(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a scale-down that a failed metric prevents."""
    del source
    return (
        f"{trace.autoscaler} stays at {verdict.current}: {_metrics_clause(trace, verdict)}, but nothing is scaled down "
        f"while {_failed_share(trace)} cannot be evaluated: {_first_failure(trace)}"
    )


def _failed_share(trace: Trace) -> str:
    failed = sum(step.failure is not None for step in trace.metrics)
    return f"{failed} of its {len(trace.metrics)} metrics"


def _first_failure(trace: Trace) -> str:
    """The first error of a metric, with its index where there are several metrics."""
    for index, step in enumerate(trace.metrics):
        if step.failure is not None:
            index_text = f"metrics[{index}]: " if len(trace.metrics) > 1 else ""
            return f"{index_text}{step.failure.message}"
    return ""


def _steady(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a count that the winning metric confirms."""
    del source
    stays, winning = f"{trace.autoscaler} stays at {verdict.current}", _winning_metric(trace)
    if winning is None:
        return f"{stays}: {failure_words.fallback(trace)}" if failure_words.has_fallback(trace) else stays
    reason = "" if winning.kept is not None else metric_words.no_change_reason(winning)
    reason = reason or f"which comes to {verdict.current} again"
    return f"{stays}: {failure_words.value_and_target(trace, winning)}, {reason}{_winner_note(trace)}"


def _scaled(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a count that follows the winning metric."""
    winning = _winning_metric(trace)
    if winning is not None:
        reason = f": {failure_words.value_and_target(trace, winning)}"
    else:
        reason = f": {failure_words.fallback(trace)}" if failure_words.has_fallback(trace) else ""
    return f"{trace.autoscaler} {_moves(verdict, source)}{reason}{_winner_note(trace)}"


def _held(trace: Trace, verdict: Verdict, source: TraceSource) -> str:
    """The sentence for a count that a window, a policy, a bound or a cooldown limits."""
    reason = hold_reasons.reason(trace, verdict)
    return f"{trace.autoscaler} {_moves(verdict, source)}: {_metrics_clause(trace, verdict)}, but {reason}"


def _metrics_clause(trace: Trace, verdict: Verdict) -> str:
    """What the metrics want, as a clause, or the fallback that takes their place."""
    if failure_words.has_fallback(trace):
        return failure_words.fallback(trace)
    return f"its metrics ask for {verdict.wanted}"


def _moves(verdict: Verdict, source: TraceSource) -> str:
    """The change of the count: `goes from 3 to 5`, `stays at 3`."""
    if not verdict.is_change:
        return f"stays at {verdict.current}"
    when_text = "" if source.is_past else " at its next sync"
    return f"goes from {verdict.current} to {verdict.desired}{when_text}"


def _without_history(trace: Trace, verdict: Verdict) -> str:
    """The sentence where the history is unknown: what the metrics want, and what the status says about limits."""
    state = f"{trace.autoscaler} has {verdict.current}, and {_metrics_clause(trace, verdict)}"
    condition = _limiting_condition(trace)
    condition_text = f"; the controller's last word was {condition.reason} ({condition.message})" if condition else ""
    return f"{state}{condition_text}; how long something holds it back is not known, because its history is not"


def _limiting_condition(trace: Trace) -> Condition | None:
    """The condition of the status that says that the count is held back; None if there is none."""
    for condition in trace.conditions_before:
        if condition.type == ABLE_TO_SCALE and condition.reason in _STABILIZED_REASONS:
            return condition
        if condition.type == SCALING_LIMITED and condition.status == "True" and condition.reason in RATE_REASONS:
            return condition
    return None


def _winning_metric(trace: Trace) -> MetricStep | None:
    """The metric with the largest proposal; None if no metric could be evaluated."""
    index = trace.combination.winner if trace.combination else None
    return None if index is None else trace.metrics[index]


def _winner_note(trace: Trace) -> str:
    """Of how many metrics the winning one is, in parentheses; empty if only one has a proposal."""
    proposals = sum(step.proposal is not None for step in trace.metrics)
    return f" (the highest of {proposals} metrics)" if proposals > 1 else ""


def _partial_failure_clause(trace: Trace, verdict: Verdict) -> str:
    """A clause about metrics that failed although there is a conclusion; else empty."""
    if verdict.ending in (VerdictReason.NO_METRICS, VerdictReason.NO_SCALE_DOWN):
        return ""
    if not any(step.failure for step in trace.metrics):
        return ""
    if len(trace.metrics) == 1:
        return f"; the error is: {_first_failure(trace)}"
    ignored = ", which prevents no scale-down" if failure_words.ignores_failed(trace) else ""
    return f"; {_failed_share(trace)} cannot be evaluated{ignored}: {_first_failure(trace)}"


def _status_failure_clause(trace: Trace) -> str:
    return f"; the status could not be written: {trace.status_failure}" if trace.status_failure else ""


def _outlook_clause(trace: Trace, verdict: Verdict, outlook: Outlook | None, source: TraceSource) -> str:
    """The clause about the next change: `; change in 4 min at the latest, to 2`."""
    if outlook is None:
        return ""
    change = "earliest change" if source.is_past else "change"
    subject = "next step" if verdict.is_change else change
    if outlook.at <= trace.now:
        return f"; {subject} at the next sync, to {outlook.replicas}"
    latest_text = "" if source.is_past else " at the latest"  # a cluster keeps a recommendation up to a minute too long
    return f"; {subject} in {wording.wait(outlook.at - trace.now)}{latest_text}, to {outlook.replicas}"


_SENTENCE_BY_ENDING: dict[VerdictReason, Callable[[Trace, Verdict, TraceSource], str]] = {
    VerdictReason.NO_SCALE: _no_scale,
    VerdictReason.PAUSED: _paused,
    VerdictReason.OUT_OF_BOUNDS: _out_of_bounds,
    VerdictReason.NO_PODS: _no_pods,
    VerdictReason.NO_METRICS: _no_metrics,
    VerdictReason.NO_SCALE_DOWN: _no_scale_down,
    VerdictReason.STEADY: _steady,
    VerdictReason.SCALED: _scaled,
}
