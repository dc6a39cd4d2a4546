"""Writes the sections of an explanation, with all numbers: facts, metrics, limits, status and events.

`podscaler.explain.explained` calls `of`. A new fact of the trace: a line in `_facts`; a new section: one in `of`. The
sections of the metrics and of the limits are in `metric_steps` and `limit_steps`.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.machinery import instants
from podscaler.api.typed.autoscaling import Condition
from podscaler.core.model.trace import Branch, Selection, Trace, ZeroRules
from podscaler.explain import failure_words, limit_steps, metric_steps, wording
from podscaler.explain.explanation_parts import Line, ReportedEvent, Section, TraceSource


def of(
    trace: Trace, source: TraceSource, conditions: Sequence[Condition], events: Sequence[ReportedEvent]
) -> tuple[Section, ...]:
    """All sections, in the order of a sync.

    Args:
        trace: the decision.
        source: where the trace is from; it decides on the tense of titles.
        conditions: of the status that the decision led to.
        events: those that the decision led to.
    """
    sections = [Section(_title(trace, source), tuple(_facts(trace)))]
    sections += [metric_steps.section(trace, index) for index in range(len(trace.metrics))]
    if trace.branch is not Branch.NO_SCALE:
        sections.append(limit_steps.section(trace, source))
    if status_lines := tuple(_status_lines(trace, conditions, events)):
        sections.append(Section(_STATUS_TITLES[source], status_lines))
    return tuple(sections)


_STATUS_TITLES = {
    TraceSource.RECORDING: "Status and events",
    TraceSource.WHAT_IF: "Status and events as they would have been",
    TraceSource.CLUSTER: "Status as it is",
    TraceSource.CLUSTER_WITHOUT_HISTORY: "Status as it is",
}


def _title(trace: Trace, source: TraceSource) -> str:
    when = instants.text(trace.now)
    verb = "Seen" if source.is_past else "Seen now,"
    rules = f"the algorithm {trace.algorithm}" if trace.algorithm else f"the rules of Kubernetes {trace.version}"
    return f"{verb} at {when}, by {rules}"


def _facts(trace: Trace) -> Iterable[Line]:
    """The lines about what was found before any metric was read."""
    if trace.branch is Branch.NO_SCALE:
        yield Line("scale", f"cannot be read: {trace.scale_failure}")
        return
    yield Line("scale", f"{trace.current_replicas} wanted, {trace.status_replicas} there")
    yield Line("bounds", f"minReplicas {trace.min_replicas}, maxReplicas {trace.max_replicas}")
    if trace.zero is not None and 0 in (trace.current_replicas, trace.min_replicas):
        yield Line("zero", _zero_text(trace.zero))
    if trace.branch is not Branch.METRICS:
        yield Line("metrics", "not looked at")
    if trace.selection is not None:
        yield Line("pods", _pods_text(trace.selection))
    yield from failure_words.lines(trace)


def _zero_text(zero: ZeroRules) -> str:
    """Who scaled the target to zero, and whether a metric can wake it."""
    if not zero.is_enabled:
        return "scaling to zero is switched off (HPAScaleToZero=false)"
    origin = "scaled there by this autoscaler" if zero.was_scaled_to_zero else "not scaled there by this autoscaler"
    waking = "has a" if zero.scales_on_others else "has no"
    return f"{origin}; it {waking} metric of type Object or External, which could wake the target"


def _pods_text(selection: Selection) -> str:
    """The pods that the selector matches, or why they are not known."""
    picked = f"{selection.selector or 'no selector'} picks {wording.count(selection.pods, 'pod')}"
    if selection.overlapping:
        return f"{picked}, which {' and '.join(selection.overlapping)} scale too"
    return picked if selection.failure is None else selection.failure.message


def _status_lines(trace: Trace, conditions: Sequence[Condition], events: Sequence[ReportedEvent]) -> Iterable[Line]:
    """The lines about conditions, events and errors of the sync."""
    for condition in conditions:
        is_new = condition.last_transition_time == instants.text(trace.now)
        since = "from now on" if is_new else f"since {condition.last_transition_time}"
        yield Line(condition.type, f"{condition.status}, {since}: {condition.reason}, {condition.message}")
    for event in events:
        yield Line("event", f"{event.type} {event.reason}: {event.message}")
    if trace.status_failure:
        yield Line("status", f"not written: {trace.status_failure}")
    if trace.error:
        yield Line("error", trace.error)
