"""Writes the section "Decision" of an explanation: from the proposals of the metrics, by way of limits, to the scale.

Called by `steps`. A further limit: a line in `_lines`, or in `_limit_lines` for what the trace has in `Limits`, in the
order of the computation.

Source: docs/spec/decision.md 3.2 (Loop), 8 (Normalisation without behavior), 9 (Normalisation with behavior).
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from podscaler.core.model.history import Recommendation, ScaleEvent
from podscaler.core.model.trace import Combination, Cooldown, Direction, Limits, PolicyBudget, Stabilization, Trace
from podscaler.explain import failure_words, hold_reasons, wording
from podscaler.explain.explanation_parts import Line, Section, TraceSource

RUNS_SHOWN = 5
"""The highest number of runs (equal recommendations in a row) and of changes in a line."""


def section(trace: Trace, source: TraceSource) -> Section:
    """The section from the metrics' proposals to the scale."""
    return Section("Decision", tuple(_lines(trace, source)))


def _lines(trace: Trace, source: TraceSource) -> Iterable[Line]:
    """The lines in order: metrics, windows, policies and bounds, cooldown, lifting from zero, result, write."""
    if trace.combination is not None and trace.metrics:
        yield Line("metrics", _combined_text(trace, trace.combination))
    if trace.stabilization is not None and trace.limits is not None:
        if source.has_history:
            yield from _window_lines(trace, trace.stabilization)
        else:
            yield Line("window", "not known: the controller's recommendations are not")
        yield from _limit_lines(trace, trace.limits, source)
    if trace.cooldown is not None:
        yield Line("cooldown", _cooldown_text(trace, trace.cooldown))
    if trace.is_lifted:
        yield Line("lifted", f"to minReplicas, {trace.min_replicas}, on the way from zero")
    yield Line("result", _result_text(trace) + _reservation(trace, source))
    yield Line("scale", _scale_text(trace, source))


def _combined_text(trace: Trace, combination: Combination) -> str:
    """Which proposal wins: `6 by metrics[0], the largest of 6, 4; failed: metrics[2]`."""
    failed = f"; failed: {', '.join(f'metrics[{index}]' for index in combination.failed)}" if combination.failed else ""
    if combination.winner is None:
        proposal = failure_words.fallback(trace) if failure_words.has_fallback(trace) else "no proposal"
        return f"{proposal}{failed}"
    largest = trace.metrics[combination.winner].proposal
    proposals = [str(step.proposal) for step in trace.metrics if step.proposal is not None]
    other_proposals = f", the largest of {', '.join(proposals)}" if len(proposals) > 1 else ""
    sentence = f"{largest} by metrics[{combination.winner}]{other_proposals}{failed}"
    return sentence if combination.proposal is not None else f"{sentence}: nothing is scaled down while metrics fail"


def _window_lines(trace: Trace, step: Stabilization) -> Iterable[Line]:
    """The lines of both windows, and of what they made of the proposal; without a behavior there is no window up."""
    if step.up_cutoff is not None:
        lowest = step.proposal if step.lowest is None else step.lowest
        yield Line("window up", _window_text(trace, step, step.up_cutoff, "lowest", lowest))
    yield Line("window down", _window_text(trace, step, step.down_cutoff, "highest", step.highest))
    yield Line("stabilized", _stabilized_text(trace, step))


def _window_text(trace: Trace, step: Stabilization, cutoff: int, extreme_word: str, extreme: int) -> str:
    """The recommendations in a window: `5 min: 8 (3 min ago), 6 (1 min ago), 2 older; highest 8 (3 min ago)`.

    Args:
        cutoff: the start of the window, in ns since the epoch; that of an empty window (0 s) is now.
        extreme_word, extreme: `highest` or `lowest`, and the replicas that the window results in.
    """
    window_ns = trace.now - cutoff
    if not window_ns:
        return "none"
    in_window = _recommendations_since(step, cutoff)
    older_count = len(step.recommendations) - len(in_window)
    older_count_text = f", {older_count} older" if older_count else ""
    extreme_text = f"{extreme_word} {extreme}{_origin_text(trace, step, extreme, in_window)}"
    return f"{wording.span(window_ns)}: {_runs_text(trace, in_window)}{older_count_text}; {extreme_text}"


def _recommendations_since(step: Stabilization, cutoff: int) -> list[Recommendation]:
    """The recommendations in a window, which includes its start only without a behavior, as upstream."""
    includes_cutoff = step.up_cutoff is None  # without a behavior
    return [
        recommendation
        for recommendation in step.recommendations
        if recommendation.at > cutoff or (includes_cutoff and recommendation.at == cutoff)
    ]


def _runs_text(trace: Trace, recommendations: Sequence[Recommendation]) -> str:
    """The latest recommendations by time, with equal ones in a row joined."""
    ordered = sorted(recommendations, key=lambda recommendation: recommendation.at)
    runs = [list(run) for _, run in groupby(ordered, key=lambda recommendation: recommendation.replicas)]
    if not runs:
        return "no recommendations"
    shown = [_run_text(trace, run) for run in runs[-RUNS_SHOWN:]]
    return ("... " if len(runs) > RUNS_SHOWN else "") + ", ".join(shown)


def _run_text(trace: Trace, run: Sequence[Recommendation]) -> str:
    """Equal recommendations in a row: `8 (3 times, 2 min to 1 min ago)`."""
    oldest_age, newest_age = wording.age(run[0].at, trace.now), wording.age(run[-1].at, trace.now)
    if oldest_age == newest_age:
        return f"{run[0].replicas} ({newest_age})"
    return f"{run[0].replicas} ({len(run)} times, {oldest_age.removesuffix(' ago')} to {newest_age})"


def _origin_text(trace: Trace, step: Stabilization, replicas: int, in_window: Iterable[Recommendation]) -> str:
    """Where the result of a window comes from: ` (the proposal itself)` or ` (2 min ago)`."""
    if replicas == step.proposal:
        return " (the proposal itself)"
    latest = max(recommendation.at for recommendation in in_window if recommendation.replicas == replicas)
    return f" ({wording.age(latest, trace.now)})"


def _stabilized_text(trace: Trace, step: Stabilization) -> str:
    """The result of the windows: `8, recommended 2 min ago, instead of 3`."""
    if step.result == step.proposal:
        return f"{step.result}, as proposed"
    held_by = hold_reasons.holding_recommendation(step)
    if held_by is None or held_by.replicas != step.result:
        return f"{step.result}, the current count, instead of {step.proposal}"
    return f"{step.result}, recommended {wording.age(held_by.at, trace.now)}, instead of {step.proposal}"


def _limit_lines(trace: Trace, limits: Limits, source: TraceSource) -> Iterable[Line]:
    """The lines of the policies with their budgets, of the rate that they allow together, and of the bounds."""
    if limits.select_policy == "Disabled":
        yield Line("policies", f"none: scaling {limits.direction.value.lower()} is disabled")
    elif limits.select_policy and not source.has_history:
        yield Line("policies", "not known how much of them is used up: the controller's changes are not")
    elif limits.select_policy:
        for budget in limits.policies:
            yield Line("policy", _budget_text(trace, limits, budget))
        yield Line("rate", f"{_deciding_policy(limits)}: to {limits.rate_limit} at {_most_or_least(limits)}")
    elif limits.rate_limit is not None and limits.direction is Direction.UP:
        yield Line("rate", f"twice the current count, but 4 at least: to {limits.rate_limit} at most")
    yield Line("bounds", _bounds_text(trace, limits))


def _most_or_least(limits: Limits) -> str:
    return "most" if limits.direction is Direction.UP else "least"


def _deciding_policy(limits: Limits) -> str:
    return "the policy that allows least" if limits.select_policy == "Min" else "the policy that allows most"


def _budget_text(trace: Trace, limits: Limits, budget: PolicyBudget) -> str:
    """The budget of a policy: what changed in its period, and what is left."""
    cutoff = trace.now - budget.period_ns
    added_text, removed_text = (
        _changes_text(trace, events, cutoff) for events in (limits.scale_ups, limits.scale_downs)
    )
    changes = (("added", added_text), ("removed", removed_text))
    changes_text = " and ".join(f"{verb} {text}" for verb, text in changes if text)
    start_text = "nothing changed in that time"
    if changes_text:
        start_text = f"{changes_text} in that time, so it began at {budget.start}"
    remaining_text = f"{budget.remaining} left" if budget.remaining >= 0 else f"overdrawn by {-budget.remaining}"
    return f"{hold_reasons.policy_text(budget)}: {start_text}; allows {budget.limit}, {remaining_text}"


def _changes_text(trace: Trace, events: Sequence[ScaleEvent], cutoff: int) -> str:
    """The changes after an instant (ns), at most RUNS_SHOWN: `2 (50 s ago), 1 (just now)`."""
    counted = [event for event in events if event.at > cutoff]
    return ", ".join(f"{event.change} ({wording.age(event.at, trace.now)})" for event in counted[-RUNS_SHOWN:])


def _bounds_text(trace: Trace, limits: Limits) -> str:
    """The range of replicas, and what it changed: `1 to 10: 10 instead of 12 (TooManyReplicas)`."""
    range_text = f"{trace.min_replicas} to {trace.max_replicas}"
    if limits.bound is None:
        return f"{range_text}: nothing to limit ({limits.reason})"
    return f"{range_text}: {limits.result} instead of {limits.wanted} ({limits.reason})"


def _cooldown_text(trace: Trace, cooldown: Cooldown) -> str:
    """The delays after a rescale, which old releases had instead of windows, and whether one still lasts."""
    up_delay, down_delay = (wording.span(ns) if ns else "not" for ns in (cooldown.up_delay_ns, cooldown.down_delay_ns))
    delays_text = f"after a rescale scaling up waits {up_delay}, scaling down {down_delay}"
    if cooldown.scaled_at is None:
        return f"{delays_text}; there was none yet"
    waiting_text = "" if cooldown.held is None else f", so {cooldown.held} has to wait"
    return f"{delays_text}; the last was {wording.age(cooldown.scaled_at, trace.now)}{waiting_text}"


def _result_text(trace: Trace) -> str:
    """The desired replicas, compared with the present ones: `8 instead of 5`, `5, as it is`."""
    if trace.desired is None:
        return "none: the count stays as it is" if trace.current_replicas is not None else "none"
    if trace.desired == trace.current_replicas:
        return f"{trace.desired}, as it is"
    return f"{trace.desired} instead of {trace.current_replicas}"


def _reservation(trace: Trace, source: TraceSource) -> str:
    """A clause for an unknown history, with which the result may differ; else empty."""
    is_held_possible = trace.limits is not None and trace.desired != trace.current_replicas
    return ", if nothing holds it back" if is_held_possible and not source.has_history else ""


def _scale_text(trace: Trace, source: TraceSource) -> str:
    """What was, would be or is not written to the target, by the source of the decision."""
    if trace.write is None:
        return "not written"
    if trace.write.error:
        return f"not written: {trace.write.error}"
    reason = f" ({trace.reason})" if trace.reason else ""
    if source is TraceSource.RECORDING:
        return f"{trace.write.replicas} written at {wording.clock_time(trace.write.at)}{reason}"
    if source is TraceSource.WHAT_IF:
        return f"{trace.write.replicas} would have been written{reason}"
    return f"nothing is written by this command; the controller acts at its next sync{reason}"
