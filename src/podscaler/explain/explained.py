"""Explains one decision, as data and as text: a summary in one sentence, the advice and the steps.

`podscaler explain` calls `explain`, and prints the result as JSON or with `text`. A summary: `shop/web goes from 4 to
6: cpu is at 90 % of requests, target 60 %.` Each part has its module: `sentence`, `advice`, `steps`, `outlook`. A
further one: an attribute of Explanation that `explain` sets, and its lines in `_lines`.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.typed.autoscaling import Condition
from podscaler.core.decision import Decision
from podscaler.core.model.trace import Step, Trace
from podscaler.explain import advice, outlook, sentence, steps, verdict
from podscaler.explain.explanation_parts import ReportedEvent, Section, TraceSource
from podscaler.explain.outlook import Outlook
from podscaler.explain.verdict import Verdict


class Explanation(Step, frozen=True, gc=False):
    """The explanation of one decision.

    Attributes:
        autoscaler: `namespace/name`.
        at: the instant of the decision.
        summary: one sentence, with its full stop.
        next_change: the earliest change of a count that is held back; None if it is not, or time changes nothing.
        advice: what the user can do about failures, most important first.
        steps: the facts and the computation, in order.
        conditions, events: what the decision writes to the status, and its Events.
        trace: the trace of the decision.
    """

    autoscaler: str
    at: int
    source: TraceSource
    summary: str
    verdict: Verdict
    next_change: Outlook | None
    advice: tuple[str, ...]
    steps: tuple[Section, ...]
    conditions: tuple[Condition, ...]
    events: tuple[ReportedEvent, ...]
    trace: Trace


def explain(
    trace: Trace,
    source: TraceSource = TraceSource.RECORDING,
    *,
    conditions: Sequence[Condition] = (),
    events: Sequence[ReportedEvent] = (),
) -> Explanation:
    """The explanation of the decision with that trace.

    Args:
        conditions, events: what the decision writes to the status, and its Events; empty: not known.
    """
    outcome = verdict.of(trace)
    change = outlook.of(trace) if source.has_history else None
    return Explanation(
        autoscaler=trace.autoscaler,
        at=trace.now,
        source=source,
        summary=f"{sentence.of(trace, outcome, change, source)}.",
        verdict=outcome,
        next_change=change,
        advice=advice.of(trace, outcome),
        steps=steps.of(trace, source, conditions, events),
        conditions=tuple(conditions),
        events=tuple(events),
        trace=trace,
    )


def of_decision(decision: Decision, source: TraceSource = TraceSource.RECORDING) -> Explanation:
    """The explanation of a decision; conditions and events of one that was not executed are left out."""
    if not source.is_past:
        return explain(decision.trace, source, conditions=decision.trace.conditions_before)
    events = [ReportedEvent(event.type, event.reason, event.message) for event in decision.events]
    return explain(decision.trace, source, conditions=decision.status.conditions or (), events=events)


def text(explanation: Explanation) -> str:
    """All of an explanation as lines of text: the sentence first, then advice, then the steps."""
    return "\n".join(_lines(explanation))


def _lines(explanation: Explanation) -> Iterable[str]:
    yield explanation.summary
    for suggestion in explanation.advice:
        yield f"To do: {suggestion}."
    yield from section_lines(explanation.steps)


def steps_text(explanation: Explanation) -> str:
    """The steps alone, as lines of text."""
    return "\n".join(section_lines(explanation.steps))


def section_lines(sections: Iterable[Section]) -> Iterable[str]:
    """The sections as lines of text, each after an empty line."""
    for section in sections:
        yield ""
        yield section.title
        width = max((len(line.label) for line in section.lines), default=0)
        for line in section.lines:
            yield f"  {line.label:<{width}}  {line.text}"
