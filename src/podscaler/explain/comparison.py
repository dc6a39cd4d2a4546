"""Compares two decisions: with the current and with another spec (what-if), or a computed one with the status.

`podscaler explain` and `podscaler.observe.what_if` call `of` for a what-if; `podscaler explain` of a cluster calls
`contradictions`. A summary: `With minReplicas=3 shop/web stays at 3 instead of going to 2.` A new row of the table:
a line of `_cells`.
"""

from collections.abc import Iterable

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.core.decision import Decision
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALING_ACTIVE
from podscaler.core.model.trace import Step
from podscaler.explain import explained, wording
from podscaler.explain.explained import Explanation
from podscaler.explain.verdict import Verdict

_COMPARED_CONDITIONS = (ABLE_TO_SCALE, SCALING_ACTIVE)
"""The conditions that contradict a status; ScalingLimited depends on the history, which may not be known."""


class ComparisonRow(Step, frozen=True, gc=False):
    """One row of the table: a number of the decision with the current spec, and with the other spec.

    A Step, as its JSON has the form of a trace's parts.
    """

    label: str
    as_it_is: str
    what_if: str


class Comparison(Step, frozen=True, gc=False):
    """The comparison of a decision with that of a what-if.

    Attributes:
        assignments: the changes of the spec, as the user wrote them.
        summary: the difference in one sentence.
        rows: the numbers of both decisions.
        explanation: the explanation of the decision with the other spec.
    """

    assignments: str
    summary: str
    rows: tuple[ComparisonRow, ...]
    explanation: Explanation


def of(as_it_is: Explanation, what_if: Explanation, assignments: str) -> Comparison:
    """The comparison of two decisions about the same facts."""
    before, after = dict(_cells(as_it_is)), dict(_cells(what_if))
    labels = before if len(before) > len(after) else after  # a spec may have more metrics than the other
    rows = [ComparisonRow(label, before.get(label, "-"), after.get(label, "-")) for label in labels]
    reservation = "" if as_it_is.source.has_history else ", history aside"
    difference = _difference(as_it_is.verdict, what_if.verdict)
    summary = f"With {assignments} {as_it_is.autoscaler} {difference}{reservation}."
    return Comparison(assignments, summary, tuple(rows), what_if)


def _difference(before: Verdict, after: Verdict) -> str:
    """What another decision does instead: `scales from 3 to 6 instead of staying at 3`."""
    if after.desired == before.desired and after.is_change == before.is_change:
        either_way = f"{_outcome_phrase(after)} either way"
        if after.wanted == before.wanted:
            return either_way
        return f"wants {_count_text(after.wanted)} instead of {_count_text(before.wanted)}, but {either_way}"
    return f"{_outcome_phrase(after)} instead of {_instead_phrase(before)}"


def _outcome_phrase(verdict: Verdict) -> str:
    """The outcome of a decision: `goes from 3 to 5`, `stays at 3`."""
    if verdict.current is None:
        return "does nothing"
    return f"goes from {verdict.current} to {verdict.desired}" if verdict.is_change else f"stays at {verdict.current}"


def _instead_phrase(verdict: Verdict) -> str:
    """The outcome that another one replaces: `staying at 3`; the count is known, as both decisions have the same."""
    return f"going to {verdict.desired}" if verdict.is_change else f"staying at {verdict.current}"


def _count_text(replicas: int | None) -> str:
    """A count of replicas, `nothing` if there is none."""
    return "nothing" if replicas is None else str(replicas)


def _cells(explanation: Explanation) -> Iterable[tuple[str, str]]:
    """The rows (label, value) of one decision; those that need the history only where it is known."""
    trace, verdict = explanation.trace, explanation.verdict
    yield "bounds", f"{trace.min_replicas} to {trace.max_replicas}"
    for index, metric in enumerate(trace.metrics):
        yield f"metrics[{index}] proposes", "failed" if metric.failure else _count_text(metric.proposal)
    yield "wants", _count_text(verdict.wanted)
    if explanation.source.has_history:
        yield "stabilized", str(trace.stabilization.result) if trace.stabilization else "-"
        yield "limited", str(trace.limits.result) if trace.limits else "-"
    yield "result", f"{_count_text(verdict.current)} -> {_count_text(verdict.desired)}"
    yield "ending", verdict.ending.value
    if explanation.source.has_history:
        yield "next change", _next_change_text(explanation)


def _next_change_text(explanation: Explanation) -> str:
    """The cell `next change`: `to 2 in 4 min`."""
    change = explanation.next_change
    if change is None:
        return "-"
    if change.at <= explanation.at:
        return f"to {change.replicas} at the next sync"
    return f"to {change.replicas} in {wording.wait(change.at - explanation.at)}"


def text(comparison: Comparison, as_it_is: Explanation) -> str:
    """The comparison as lines of text: the difference, both sentences, and the table."""
    head = ("", "as it is", "what if")
    table = [head, *((row.label, row.as_it_is, row.what_if) for row in comparison.rows)]
    widths = [max(len(cells[column]) for cells in table) for column in range(2)]
    lines = [comparison.summary, f"As it is: {as_it_is.summary}", f"What if: {comparison.explanation.summary}", ""]
    lines += [f"  {first:<{widths[0]}}  {second:<{widths[1]}}  {third}" for first, second, third in table]
    return "\n".join(lines)


def full_text(comparison: Comparison, as_it_is: Explanation) -> str:
    """The comparison as in `text`, then the steps of the decision with the other spec."""
    steps = explained.steps_text(comparison.explanation)
    return f"{text(comparison, as_it_is)}\n\nWith {comparison.assignments}:\n{steps}"


def contradictions(decision: Decision, status: HorizontalPodAutoscalerStatus, verdict: Verdict) -> tuple[str, ...]:
    """Where a decision that was computed now contradicts the latest status, in phrases; empty if it does not.

    A change to come is no contradiction, as a status is as old as its last sync. Contradictions are other statuses of
    conditions, and another count where the computation changes nothing."""
    written = {condition.type: condition for condition in status.conditions or ()}
    phrases = []
    for computed in decision.status.conditions or ():
        latest = written.get(computed.type)
        if computed.type in _COMPARED_CONDITIONS and latest is not None and latest.status != computed.status:
            phrases.append(
                f"the status says {computed.type} {latest.status} ({latest.reason}: {latest.message}), "
                f"and what is computed here is {computed.status} ({computed.reason})"
            )
    desired = status.desired_replicas
    if written and not verdict.is_change and verdict.desired not in (None, desired):
        phrases.append(f"the status says {desired} desired replicas, and what is computed here is {verdict.desired}")
    return tuple(phrases)
