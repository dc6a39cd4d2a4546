"""Reconstructs the demand for CPU of a workload from the measured CPU usage of its pods.

The demand is the sum of the pods' usage, which is exact while no pod is at its limit. A pod at its limit could have
used more: such an instant is censored, its sum is a lower bound, and `Reconstruction.sentences` says when and how much
of the time.

Called by `recording_scenario` and `monitoring_scenario`, with one observation for each instant.
"""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from podscaler.simulation.model import step_series
from podscaler.simulation.model.step_series import StepSeries

AT_LIMIT_RATIO = 0.95
"""A pod that uses this share of its limit counts as limited: CFS quotas throttle bursts below the average of 100 %."""

GAP_RATIO = 2.5
"""A distance of two observations of more than this many usual ones is a gap."""

_SHOWN_PERIODS = 5
"""How many periods a sentence names."""


class UsageObservation(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of the pods of a workload at an instant.

    Attributes:
        at_ms: the begin of the window over which usage was averaged, in milliseconds since the epoch.
        used_milli: the usage of all pods that were measured, in thousandths of a core.
        measured, ready: the numbers of measured pods and of ready pods.
        limited: how many of the measured pods were at their limit, or throttled.
    """

    at_ms: int
    used_milli: int
    measured: int
    ready: int
    limited: int


class UnknownPeriod(msgspec.Struct, frozen=True):
    """A time in which the demand is not fully known, in milliseconds since the epoch."""

    begin_ms: int
    end_ms: int


class Reconstruction(msgspec.Struct, frozen=True, kw_only=True):
    """A demand, and the periods in which it is not fully known.

    Attributes:
        demand: in millionths of a core, over milliseconds since `start_ms`.
        start_ms, end_ms: the begin of the first and the end of the last observation, in ms since the epoch.
        censored: the times in which `demand` is a lower bound.
        extrapolated_pct: the share of the observations in which ready pods were not measured, and count as the average
            of the others.
        gaps: the times without observations; the demand is that of the observation before.
    """

    demand: StepSeries
    start_ms: int
    end_ms: int
    censored: tuple[UnknownPeriod, ...]
    extrapolated_pct: float
    gaps: tuple[UnknownPeriod, ...] = ()

    @property
    def censored_pct(self) -> float:
        """The share of the time in which the demand is a lower bound, in percent."""
        censored_ms = sum(period.end_ms - period.begin_ms for period in self.censored)
        return 100 * censored_ms / (self.end_ms - self.start_ms) if self.end_ms > self.start_ms else 0.0

    def sentences(self) -> tuple[str, ...]:
        """Sentences about the periods in which the demand is not known; empty if it always is."""
        sentences = []
        if self.censored:
            sentences.append(
                f"In {self.censored_pct:.1f} % of the time pods were at their CPU limit, so the demand is only a lower "
                f"bound then: {_periods_text(self.censored)}."
            )
        if self.gaps:
            sentences.append(
                f"Nothing was measured, and the demand before is assumed to last: {_periods_text(self.gaps)}."
            )
        if self.extrapolated_pct:
            sentences.append(
                f"In {self.extrapolated_pct:.1f} % of the observations some ready pods had no sample; each counts as "
                "the average of the others."
            )
        return tuple(sentences)


def _periods_text(periods: Sequence[UnknownPeriod]) -> str:
    period_texts = [f"{utc_text(period.begin_ms)} to {utc_text(period.end_ms)}" for period in periods[:_SHOWN_PERIODS]]
    omitted_count = len(periods) - len(period_texts)
    return ", ".join(period_texts) + (f", and {omitted_count} more" if omitted_count else "")


def utc_text(at_ms: int) -> str:
    """An instant (ms since the epoch) in UTC, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def reconstruct(observations: Sequence[UsageObservation], end_ms: int) -> Reconstruction:
    """The demand behind the usage.

    Args:
        observations: by increasing instants; the caller leaves out those without a measured pod.
        end_ms: the end of the last one, since the epoch.

    Raises ValueError if there are no observations.
    """
    if not observations:
        raise ValueError("no pod's CPU usage was observed, so the demand is unknown")
    start_ms = observations[0].at_ms
    steps = [(observation.at_ms - start_ms, _demand_ucores(observation)) for observation in observations]
    unmeasured = sum(observation.measured < observation.ready for observation in observations)
    return Reconstruction(
        demand=step_series.from_steps(steps),
        start_ms=start_ms,
        end_ms=end_ms,
        censored=_censored(observations, end_ms),
        extrapolated_pct=100 * unmeasured / len(observations),
        gaps=_gaps([observation.at_ms for observation in observations]),
    )


def _gaps(at_ms: Sequence[int]) -> tuple[UnknownPeriod, ...]:
    """The periods between two observations that are further apart than GAP_RATIO times the median distance."""
    distances = sorted(later - earlier for earlier, later in itertools.pairwise(at_ms))
    usual_max_ms = GAP_RATIO * distances[len(distances) // 2] if distances else 0
    neighbors = itertools.pairwise(at_ms)
    return tuple([UnknownPeriod(earlier, later) for earlier, later in neighbors if later - earlier > usual_max_ms])


def _demand_ucores(observation: UsageObservation) -> int:
    """The usage, with the average of the measured pods for each ready one that was not measured."""
    used_ucores = observation.used_milli * 1000
    if 0 < observation.measured < observation.ready:
        return used_ucores * observation.ready // observation.measured
    return used_ucores


def _censored(observations: Sequence[UsageObservation], end_ms: int) -> tuple[UnknownPeriod, ...]:
    """The periods in which pods were at their limit; an observation lasts until the next one, the last to `end_ms`."""
    periods: list[UnknownPeriod] = []
    ends_ms = [*[observation.at_ms for observation in observations[1:]], end_ms]
    previous_is_limited = False
    for observation, observation_end_ms in zip(observations, ends_ms, strict=True):
        is_limited = observation.limited > 0
        if is_limited and previous_is_limited:
            periods[-1] = UnknownPeriod(periods[-1].begin_ms, observation_end_ms)
        elif is_limited:
            periods.append(UnknownPeriod(observation.at_ms, observation_end_ms))
        previous_is_limited = is_limited
    return tuple(periods)
