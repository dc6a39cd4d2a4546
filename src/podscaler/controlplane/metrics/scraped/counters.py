"""Computes rates per second of counters over a window of `WINDOW_S`; `scraper` has one `CounterRates` per pod. Pure.

Readings of 100 and 160, 15 s apart, are a rate of 4.0 over 15 s.

Source: `rate` of Prometheus (documentation): a counter that falls was reset, and its value is the increase since then.
Differs: the rate is that between the first and last reading of the window, not extrapolated to its borders.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

WINDOW_S: Final = 30.0
"""The window of a rate: two scrapes at the default `--metric-resolution`."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class CounterRate:
    """The increase of a counter per second, and the seconds between the two readings that it is computed from."""

    per_second: float
    window_s: float


class _Reading(NamedTuple):
    """The increase of a counter from its first reading until an instant of a monotonic clock."""

    at_s: float
    increase: float


@dataclass(slots=True)
class _Counter:
    """A counter's readings in the window.

    Attributes:
        last_value: as the latest reading has it.
        increase: the sum of all increases since the first reading; after a reset the whole new value is an increase.
        readings: oldest first; the first one may be older than the window.
    """

    last_value: float
    increase: float
    readings: deque[_Reading]


class CounterRates(Generic[K]):
    """The counters of one pod by key (metric and labels); a counter that is missing in one reading starts anew."""

    def __init__(self) -> None:
        self._counters: dict[K, _Counter] = {}

    def observe(self, values: Iterable[tuple[K, float]], at_s: float) -> dict[K, CounterRate]:
        """Add a reading; returns the rates by key, of the counters that the previous call had too.

        Args:
            values: key and value of each counter, once.
            at_s: the time of the reading in seconds of a monotonic clock, later than in the previous call.
        """
        rates: dict[K, CounterRate] = {}
        counters: dict[K, _Counter] = {}
        for key, counter_value in values:
            counter = self._counters.get(key)
            if counter is None:
                counters[key] = _Counter(counter_value, increase=0.0, readings=deque([_Reading(at_s, 0.0)]))
                continue
            counters[key] = counter
            rate = _advance_counter(counter, counter_value, at_s)
            if rate is not None:
                rates[key] = rate
        self._counters = counters
        return rates


def _advance_counter(counter: _Counter, counter_value: float, at_s: float) -> CounterRate | None:
    """Add a reading; the rate over the window, None before there are two. A smaller value is a restart from zero."""
    counter.increase += counter_value if counter_value < counter.last_value else counter_value - counter.last_value
    counter.last_value = counter_value
    counter.readings.append(_Reading(at_s, counter.increase))
    # at least two readings stay, and one that is at or before the start of the window
    while len(counter.readings) > 2 and counter.readings[1].at_s <= at_s - WINDOW_S:
        counter.readings.popleft()
    first = counter.readings[0]
    window_s = at_s - first.at_s
    return CounterRate((counter.increase - first.increase) / window_s, window_s) if window_s > 0 else None
