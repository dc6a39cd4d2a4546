"""Scales the samples of an observation so that their averages are those that another controller reported.

Called by `podscaler.controller.coexistence.comparison`, which compares our decisions with those of another HPA
controller: they may differ only because that one sampled at another moment. Its status has averages; pods, readiness
and requests are those of our observation. Example: we measured 60 %, the other reports 75 %; a sample of 300m becomes
about 375m. The report is rounded down, so that the samples are known between two bounds only.

Invariant: pure; different metrics, zero averages and failures cannot be scaled and give None.
"""

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from podscaler.api.machinery import quantity
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus, MetricStatus, MetricValueStatus
from podscaler.core.model.model import Failure, Measurement, Observation, PodSamples, Values

Span = tuple[Fraction, Fraction]
"""The lowest and the highest exact value behind one that is rounded down: 75 is from 75 to 76."""


def lowest_and_highest(
    observation: Observation, ours: HorizontalPodAutoscalerStatus, theirs: HorizontalPodAutoscalerStatus
) -> tuple[Observation, Observation] | None:
    """The observations with the lowest and with the highest samples that agree with the other controller's status.

    Args:
        observation: with measurements of all metrics.
        ours: the status of our decision about it.
        theirs: the status that another controller wrote.

    Returns None where the two statuses have different metrics or none, or a metric cannot be scaled.
    """
    mine, other = ours.current_metrics or (), theirs.current_metrics or ()
    answers = observation.metrics
    if not mine or not len(mine) == len(other) == len(answers):
        return None
    spans = [_factors(before, after) for before, after in zip(mine, other, strict=True)]
    pairs = list(zip(answers, spans, strict=True))
    low, high = ([None if span is None else _scaled(answer, span[end]) for answer, span in pairs] for end in (0, 1))
    if None in low or None in high:
        return None
    return _with(observation, low), _with(observation, high)


def _with(observation: Observation, answers: Sequence[Measurement | None]) -> Observation:
    return msgspec.structs.replace(observation, metrics=tuple(answers))


def _factors(ours: MetricStatus, theirs: MetricStatus) -> Span | None:
    """The lowest and the highest factor from our value to theirs; None: the metrics or values have no ratio."""
    before, after = _current(ours), _current(theirs)
    if ours.type != theirs.type or before is None or after is None:
        return None
    mine, other = _span(before), _span(after)
    if mine is None or other is None or mine[0] <= 0:
        return None
    return other[0] / mine[1], other[1] / mine[0]


def _current(metric: MetricStatus) -> MetricValueStatus | None:
    for part in (metric.resource, metric.container_resource, metric.pods, metric.object, metric.external):
        if part is not None:
            return part.current
    return None


def _span(value: MetricValueStatus) -> Span | None:
    if value.average_utilization is not None:
        return Fraction(value.average_utilization), Fraction(value.average_utilization + 1)
    text = value.value if value.value not in (None, "0") else value.average_value
    if text is None:
        return None
    milli = quantity.parse(text).milli_value()
    return Fraction(milli), Fraction(milli + 1)


def _scaled(answer: Measurement | None, factor: Fraction) -> Measurement | None:
    match answer:
        case PodSamples():
            samples = {
                pod: msgspec.structs.replace(sample, value_milli=round(sample.value_milli * factor))
                for pod, sample in answer.samples.items()
            }
            return msgspec.structs.replace(answer, samples=samples)
        case Values():
            return Values(tuple([round(value * factor) for value in answer.values_milli]), answer.query)
        case Failure() | None:
            return None
