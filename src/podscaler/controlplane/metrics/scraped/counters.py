"""Rates of counters over a window, with resets handled. Pure.

Source: `rate` of Prometheus (documentation): a counter that falls was reset, and its value is the increase since then.
Differs: nothing is extrapolated to the borders of the window; the rate is that between the readings.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

WINDOW_S: Final = 30.0
"""Over how long rates are taken: two scrapes of the default resolution, and many of a short one."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CounterRate:
    """What a counter rises by in a second, and the seconds between the two readings."""

    per_second: float
    window_s: float


@dataclass(slots=True)
class _Counter:
    """A counter's readings in the window.

    Attributes:
        last: the last value read.
        increase: by how much it has risen since the first reading, resets left out.
        readings: instants in seconds, with the increase until then; the first may be older than the window.
    """

    last: float
    increase: float
    readings: deque[tuple[float, float]]


class CounterRates(Generic[K]):
    """The counters of one pod, by whatever tells them apart; those that are not read again are forgotten."""

    def __init__(self) -> None:
        self._counters: dict[K, _Counter] = {}

    def observe(self, values: Iterable[tuple[K, float]], at_s: float) -> dict[K, CounterRate]:
        """The rates, of the counters that were there before.

        Args:
            values: what was read, each counter once.
            at_s: when, in seconds of a monotonic clock, later than the last time.
        """
        rates: dict[K, CounterRate] = {}
        kept: dict[K, _Counter] = {}
        for key, value in values:
            counter = self._counters.get(key)
            if counter is None:
                kept[key] = _Counter(value, 0.0, deque([(at_s, 0.0)]))
                continue
            kept[key] = counter
            rate = _advance(counter, value, at_s)
            if rate is not None:
                rates[key] = rate
        self._counters = kept
        return rates


def _advance(counter: _Counter, value: float, at_s: float) -> CounterRate | None:
    counter.increase += value if value < counter.last else value - counter.last
    counter.last = value
    counter.readings.append((at_s, counter.increase))
    while len(counter.readings) > 2 and counter.readings[1][0] <= at_s - WINDOW_S:
        counter.readings.popleft()
    since_s, before = counter.readings[0]
    window_s = at_s - since_s
    return CounterRate((counter.increase - before) / window_s, window_s) if window_s > 0 else None
