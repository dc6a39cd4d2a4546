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

ValueRange = tuple[Fraction, Fraction]
"""The lowest and the highest exact value behind one that is rounded down: 75 is from 75 to 76."""


def lowest_and_highest(
    observation: Observation, our_status: HorizontalPodAutoscalerStatus, their_status: HorizontalPodAutoscalerStatus
) -> tuple[Observation, Observation] | None:
    """The observations with the lowest and with the highest samples that agree with the other controller's status.

    Args:
        observation: with measurements of all metrics.
        our_status: the status of our decision about it.
        their_status: the status that another controller wrote.

    Returns None if the two statuses have different metrics or none, or a metric cannot be scaled. Raises ValueError for
    a reported quantity that cannot be read.
    """
    our_metrics, their_metrics = our_status.current_metrics or (), their_status.current_metrics or ()
    measurements = observation.metrics
    if not our_metrics or not len(our_metrics) == len(their_metrics) == len(measurements):
        return None
    lowest, highest = [], []
    for measurement, our_metric, their_metric in zip(measurements, our_metrics, their_metrics, strict=True):
        factors = _scale_factors(our_metric, their_metric)
        if factors is None or measurement is None or isinstance(measurement, Failure):
            return None
        lowest_factor, highest_factor = factors
        lowest.append(_scaled_measurement(measurement, lowest_factor))
        highest.append(_scaled_measurement(measurement, highest_factor))
    return _with_measurements(observation, lowest), _with_measurements(observation, highest)


def _with_measurements(observation: Observation, measurements: Sequence[Measurement]) -> Observation:
    return msgspec.structs.replace(observation, metrics=tuple(measurements))


def _scale_factors(our_metric: MetricStatus, their_metric: MetricStatus) -> ValueRange | None:
    """The lowest and the highest factor from our value to theirs; None if the metrics or values have no ratio."""
    our_value, their_value = _current_value(our_metric), _current_value(their_metric)
    if our_metric.type != their_metric.type or our_value is None or their_value is None:
        return None
    our_range, their_range = _exact_range(our_value), _exact_range(their_value)
    if our_range is None or their_range is None:
        return None
    (our_lowest, our_highest), (their_lowest, their_highest) = our_range, their_range
    return None if our_lowest <= 0 else (their_lowest / our_highest, their_highest / our_lowest)


def _current_value(metric: MetricStatus) -> MetricValueStatus | None:
    """The value in a metric's status; None for a type that is not known."""
    for typed_status in (metric.resource, metric.container_resource, metric.pods, metric.object, metric.external):
        if typed_status is not None:
            return typed_status.current
    return None


def _exact_range(reported: MetricValueStatus) -> ValueRange | None:
    """The range of exact values that a reported value, which is rounded down, can stand for; None if there is none."""
    if reported.average_utilization is not None:
        return Fraction(reported.average_utilization), Fraction(reported.average_utilization + 1)
    # A value of 0 has no ratio; it may stand beside the average that counts.
    quantity_text = reported.value if reported.value not in (None, "0") else reported.average_value
    if quantity_text is None:
        return None
    milli = quantity.parse(quantity_text).milli_value()
    return Fraction(milli), Fraction(milli + 1)


def _scaled_measurement(measurement: PodSamples | Values, factor: Fraction) -> Measurement:
    """The measurement with each value multiplied."""
    if isinstance(measurement, Values):
        values_milli = [round(value_milli * factor) for value_milli in measurement.values_milli]
        return Values(tuple(values_milli), measurement.query)
    samples = {
        pod: msgspec.structs.replace(sample, value_milli=round(sample.value_milli * factor))
        for pod, sample in measurement.samples.items()
    }
    return msgspec.structs.replace(measurement, samples=samples)
