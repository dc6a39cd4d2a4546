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
from podscaler.core.model.observation import Failure, Measurement, Observation, PodSamples, Values

Span = tuple[Fraction, Fraction]
"""The lowest and the highest exact value behind one that is rounded down: 75 is from 75 to 76."""


def lowest_and_highest(
    observation: Observation, our_status: HorizontalPodAutoscalerStatus, their_status: HorizontalPodAutoscalerStatus
) -> tuple[Observation, Observation] | None:
    """The observations with the lowest and with the highest samples that agree with the other controller's status.

    Args:
        observation: with measurements of all metrics.
        our_status: the status of our decision about it.
        their_status: the status that another controller wrote.

    Returns None if the two statuses have different metrics or none, or a metric cannot be scaled.
    """
    our_metrics, their_metrics = our_status.current_metrics or (), their_status.current_metrics or ()
    measurements = observation.metrics
    if not our_metrics or not len(our_metrics) == len(their_metrics) == len(measurements):
        return None
    spans = [
        _factors(our_metric, their_metric) for our_metric, their_metric in zip(our_metrics, their_metrics, strict=True)
    ]
    pairs = list(zip(measurements, spans, strict=True))
    lowest = [None if span is None else _scaled(measurement, span[0]) for measurement, span in pairs]
    highest = [None if span is None else _scaled(measurement, span[1]) for measurement, span in pairs]
    if None in lowest or None in highest:
        return None
    return _with(observation, lowest), _with(observation, highest)


def _with(observation: Observation, measurements: Sequence[Measurement | None]) -> Observation:
    return msgspec.structs.replace(observation, metrics=tuple(measurements))


def _factors(our_metric: MetricStatus, their_metric: MetricStatus) -> Span | None:
    """The lowest and the highest factor from our value to theirs; None if the metrics or values have no ratio."""
    our_value, their_value = _current(our_metric), _current(their_metric)
    if our_metric.type != their_metric.type or our_value is None or their_value is None:
        return None
    our_span, their_span = _span(our_value), _span(their_value)
    if our_span is None or their_span is None:
        return None
    (our_lowest, our_highest), (their_lowest, their_highest) = our_span, their_span
    return None if our_lowest <= 0 else (their_lowest / our_highest, their_highest / our_lowest)


def _current(metric: MetricStatus) -> MetricValueStatus | None:
    """The value in a metric's status; None for a type that is not known."""
    for source in (metric.resource, metric.container_resource, metric.pods, metric.object, metric.external):
        if source is not None:
            return source.current
    return None


def _span(reported: MetricValueStatus) -> Span | None:
    """The range of exact values that a reported value, which is rounded down, can stand for; None if there is none."""
    if reported.average_utilization is not None:
        return Fraction(reported.average_utilization), Fraction(reported.average_utilization + 1)
    quantity_text = reported.value if reported.value not in (None, "0") else reported.average_value
    if quantity_text is None:
        return None
    milli = quantity.parse(quantity_text).milli_value()
    return Fraction(milli), Fraction(milli + 1)


def _scaled(measurement: Measurement | None, factor: Fraction) -> Measurement | None:
    """The measurement with each value multiplied; None stays None, and so does a failure."""
    match measurement:
        case PodSamples():
            samples = {
                pod: msgspec.structs.replace(sample, value_milli=round(sample.value_milli * factor))
                for pod, sample in measurement.samples.items()
            }
            return msgspec.structs.replace(measurement, samples=samples)
        case Values():
            return Values(
                tuple([round(value_milli * factor) for value_milli in measurement.values_milli]), measurement.query
            )
        case Failure() | None:
            return None
