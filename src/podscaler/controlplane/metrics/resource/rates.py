"""From two readings of cumulative CPU time to a rate: pure arithmetic, without a process in sight.

Called by the sampler. A container's first reading is measured from its start, so that a young pod has metrics after one
round; a start less than `MIN_WINDOW_S` ago is too short to divide by and gives nothing yet. Windows are measured by the
monotonic clock, so that a wall clock that is set neither ends nor stretches them.

Source: metrics-server takes the rate between its two newest readings and reports the later one's time, with the
distance as window; the first sample of a container is taken from its start time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.resource.processes import TreeReading

K = TypeVar("K")

MIN_WINDOW_S = 0.5
NANOCORES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ContainerStart:
    """A container's incarnation: its root process and when that started (nanoseconds since the epoch)."""

    pid: int
    started_ns: int


@dataclass(frozen=True, slots=True)
class SampleTime:
    """When readings are taken.

    Attributes:
        now_ns: by the wall clock, which tells how old containers are.
        monotonic_s: by a clock that never jumps, which measures the windows between readings.
        stamp_ns: the instant that is told, nanoseconds since the epoch.
    """

    now_ns: int
    monotonic_s: float
    stamp_ns: int


@dataclass(frozen=True, slots=True)
class Rate:
    """Usage over a window that ends at `at_ns`.

    Attributes:
        cpu_nanocores: CPU, 1_000_000_000 being one core busy for the whole window.
        memory_bytes: resident memory at the window's end.
        at_ns: the window's end, nanoseconds since the epoch.
        window_ns: its length.
    """

    cpu_nanocores: int
    memory_bytes: int
    at_ns: int
    window_ns: int


@dataclass(frozen=True, slots=True)
class _Last:
    container: ContainerStart
    cpu_s: float
    at_s: float


class UsageRates(Generic[K]):
    """Remembers the last reading of each container; containers that are gone are forgotten."""

    def __init__(self) -> None:
        self._last: dict[K, _Last] = {}

    def observe(
        self, containers: Mapping[K, ContainerStart], readings: Mapping[int, TreeReading], at: SampleTime
    ) -> dict[K, Rate]:
        """The rate of every container that has a reading, since its last reading or its start.

        Args:
            containers: the running containers by whatever identifies them.
            readings: by root pid.
            at: when they were taken.
        """
        rates: dict[K, Rate] = {}
        last: dict[K, _Last] = {}
        for key, container in containers.items():
            reading = readings.get(container.pid)
            if reading is None:
                continue
            before = self._last.get(key)
            if before is None or before.container != container:
                age_s = max(at.now_ns - container.started_ns, 0) / NANOSECONDS
                before = _Last(container, 0.0, at.monotonic_s - age_s)
            rate = _rate(before, reading, at)
            if rate is not None:
                rates[key] = rate
                before = _Last(container, reading.cpu_s, at.monotonic_s)
            last[key] = before
        self._last = last
        return rates


def _rate(before: _Last, reading: TreeReading, at: SampleTime) -> Rate | None:
    window_ns = round((at.monotonic_s - before.at_s) * 1_000_000) * 1000
    if window_ns < MIN_WINDOW_S * NANOSECONDS:
        return None
    used_s = max(reading.cpu_s - before.cpu_s, 0.0)
    return Rate(round(used_s * NANOCORES * NANOSECONDS / window_ns), reading.memory_bytes, at.stamp_ns, window_ns)
