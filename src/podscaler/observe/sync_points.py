"""Extracts the numbers of one sync for plots, and the mark that stands for its decision.

`podscaler.observe.decision_history` makes both of each decision, live and read from recordings. The numbers are those
of the trace, so that a plot cannot disagree with the explanation.
"""

from collections.abc import Sequence
from typing import NamedTuple

from podscaler.core.decision import Decision
from podscaler.core.model.observation import Pod
from podscaler.core.model.trace import MetricStep, OfAverage, OfTotal, PerPod, Trace
from podscaler.explain import metric_words, outlook, sentence, verdict
from podscaler.explain.explanation_parts import TraceSource
from podscaler.explain.verdict import Verdict, VerdictReason
from podscaler.observe.views import Mark, MarkKind

MILLISECOND_NS = 1_000_000
PERCENT = "percent"
MILLI = "milli"
_LIMITING_REASONS = (VerdictReason.RATE_LIMITED, VerdictReason.AT_BOUND)
_PREFIXES = ("external metric ", "pods metric ")
"""What the words of a metric begin with, which its label in a plot leaves out."""


class MetricPoint(NamedTuple):
    """The value of one metric and its target, in `unit`; None: not known."""

    name: str
    unit: str
    current: int | None
    target: int | None


class SyncPoint(NamedTuple):
    """The numbers of one sync, with the attributes of `views.DecisionTimeline`; `at` in ms.

    Attributes:
        tolerances: down and up, as fractions; None: metrics were not evaluated.
    """

    at: int
    replicas: int | None
    desired: int | None
    limited: int | None
    ready: int | None
    min: int
    max: int
    metrics: tuple[MetricPoint, ...]
    tolerances: tuple[float, float] | None


class DecisionOutcome(NamedTuple):
    """What a decision did; two decisions with equal outcomes need no two marks.

    Attributes:
        to: the replicas after it; None if they are not known.
        ending: what ended the decision.
        error: of the decision; empty if it has none.
    """

    kind: MarkKind
    to: int | None
    ending: VerdictReason
    error: str


def of(decision: Decision, pods: Sequence[Pod]) -> SyncPoint:
    """The numbers of a decision; `pods` are those of the target."""
    trace, result = decision.trace, verdict.of(decision.trace)
    tolerances = None
    if trace.tolerance_down is not None and trace.tolerance_up is not None:
        tolerances = (trace.tolerance_down, trace.tolerance_up)
    return SyncPoint(
        at=trace.now // MILLISECOND_NS,
        replicas=result.current,
        desired=result.wanted,  # views call the replicas before limits desired, and those after limits limited
        limited=result.desired,
        ready=None if result.current is None else sum(pod.ready == "True" for pod in pods),
        min=trace.min_replicas,
        max=trace.max_replicas,
        metrics=tuple(map(_metric_point, trace.metrics)),
        tolerances=tolerances,
    )


def outcome(decision: Decision) -> DecisionOutcome:
    """What a decision did."""
    result = verdict.of(decision.trace)
    return DecisionOutcome(_mark_kind(result, decision), result.desired, result.ending, decision.error)


def mark(decision: Decision, *, is_carried_out: bool) -> Mark:
    """The mark of a decision."""
    trace = decision.trace
    result = verdict.of(trace)
    return Mark(
        id=str(trace.now),
        at=trace.now // MILLISECOND_NS,
        kind=_mark_kind(result, decision),
        from_=result.current,
        to=result.desired,
        summary=summary(trace),
        carried_out=is_carried_out,
    )


def summary(trace: Trace) -> str:
    """The sentence with which the explanation of a recorded decision begins."""
    return f"{sentence.of(trace, verdict.of(trace), outlook.of(trace), TraceSource.RECORDING)}."


def _mark_kind(result: Verdict, decision: Decision) -> MarkKind:
    """What the decision did, first match: a failed write, a rescale, an error, no difference, a limit or a delay."""
    if result.write_error:
        return MarkKind.FAILED
    if result.is_change and result.desired is not None and result.current is not None:
        return MarkKind.UP if result.desired > result.current else MarkKind.DOWN
    if decision.error:
        return MarkKind.FAILED
    if result.wanted is None or result.wanted == result.desired:
        return MarkKind.SAME
    return MarkKind.LIMITED if result.ending in _LIMITING_REASONS else MarkKind.HELD


def _metric_point(step: MetricStep) -> MetricPoint:
    """The value and target of a metric's step in a trace."""
    unit = PERCENT if metric_words.is_utilization(step) else MILLI
    return MetricPoint(_label(step), unit, _current_value(step), step.target)


def _label(step: MetricStep) -> str:
    """The name of a metric in plots."""
    name = metric_words.name(step)
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _current_value(step: MetricStep) -> int | None:
    """The value that is compared with the target, as the autoscaler's status reports it."""
    match step.calculation:
        case PerPod(first=reading) if reading is not None:
            return reading.current
        case OfTotal(usage_milli=usage_milli):
            return usage_milli
        case OfAverage(reported_milli=reported_milli):
            return reported_milli
    return None
