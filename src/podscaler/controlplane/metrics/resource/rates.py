"""Computes usage rates from two readings of cumulative CPU time; called by `metrics.resource.sampler`. Pure.

The first rate of a container is measured from its start, so that a new pod has metrics after one round; a container
that started less than `MIN_WINDOW_S` ago has no rate yet. Windows are measured by the monotonic clock, so that setting
the wall clock does not change them.

Source: metrics-server computes the rate between its two newest readings and reports the later one's time, with the
difference as window; the first sample of a container is measured from its start time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.resource.processes import TreeReading

K = TypeVar("K")

MIN_WINDOW_S = 0.5
NANOCORES = 1_000_000_000
"""The nanocores in one core."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of a container, or of the machine: its root process and its start (nanoseconds since the epoch)."""

    pid: int
    started_ns: int


@dataclass(frozen=True, slots=True)
class SampleTime:
    """The time of a round of readings.

    Attributes:
        now_ns: the wall clock in nanoseconds since the epoch, for the ages of containers.
        monotonic_s: the monotonic clock, for the windows between readings.
        stamp_ns: the timestamp to report, nanoseconds since the epoch; it may differ from `now_ns` (`sampler`).
    """

    now_ns: int
    monotonic_s: float
    stamp_ns: int


@dataclass(frozen=True, slots=True)
class Rate:
    """Usage over a window that ends at `at_ns`.

    Attributes:
        cpu_nanocores: CPU usage; 1_000_000_000 is one core.
        memory_bytes: resident memory at the window's end.
        at_ns: the window's end, nanoseconds since the epoch.
        window_ns: its length.
    """

    cpu_nanocores: int
    memory_bytes: int
    at_ns: int
    window_ns: int


@dataclass(frozen=True, slots=True)
class _LastReading:
    """The CPU time of one run of a container at an instant `at_s` of the monotonic clock; 0 at its start."""

    container: MeasuredRun
    cpu_s: float
    at_s: float


class UsageRates(Generic[K]):
    """Keeps the last reading of each running container and computes rates."""

    def __init__(self) -> None:
        self._last_readings: dict[K, _LastReading] = {}

    def observe(
        self, containers: Mapping[K, MeasuredRun], readings: Mapping[int, TreeReading], sampled_at: SampleTime
    ) -> dict[K, Rate]:
        """Add a round of readings; returns the rate of every container since its last reading or its start.

        Containers without a reading are forgotten; one whose window is shorter than MIN_WINDOW_S has no rate yet.

        Args:
            containers: the running containers by key.
            readings: by root pid.
            sampled_at: the time of the readings.
        """
        rates: dict[K, Rate] = {}
        last_readings: dict[K, _LastReading] = {}
        for key, container in containers.items():
            reading = readings.get(container.pid)
            if reading is None:
                continue
            previous = self._last_readings.get(key)
            if previous is None or previous.container != container:
                age_s = max(sampled_at.now_ns - container.started_ns, 0) / NANOSECONDS
                previous = _LastReading(container, 0.0, sampled_at.monotonic_s - age_s)
            rate = _rate_since(previous, reading, sampled_at)
            if rate is not None:
                rates[key] = rate
                previous = _LastReading(container, reading.cpu_s, sampled_at.monotonic_s)
            last_readings[key] = previous
        self._last_readings = last_readings
        return rates


def _rate_since(previous: _LastReading, reading: TreeReading, sampled_at: SampleTime) -> Rate | None:
    """The rate since `previous`; None if that is less than MIN_WINDOW_S ago."""
    window_ns = round((sampled_at.monotonic_s - previous.at_s) * 1_000_000) * 1000  # whole microseconds
    if window_ns < MIN_WINDOW_S * NANOSECONDS:
        return None
    used_s = max(reading.cpu_s - previous.cpu_s, 0.0)
    return Rate(
        cpu_nanocores=round(used_s * NANOCORES * NANOSECONDS / window_ns),
        memory_bytes=reading.memory_bytes,
        at_ns=sampled_at.stamp_ns,
        window_ns=window_ns,
    )
