"""Defines the expectations that a scenario states about its result, and checks them with each simulated sync.

`podscaler.simulation.files` reads expectations; `podscaler simulate` exits with status 1 where one fails.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from podscaler.simulation.model.results import SimulatedSync

ExpectedValue = Literal["replicas", "ready", "wanted", "latency", "lost"]


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one value at each sync within a span.

    Attributes:
        workload: its key, `namespace/name`.
        value: `replicas` (of the scale, after the sync), `ready` (pods), `wanted` (what the metrics ask for before any
            limit), `latency` (the mean response time in milliseconds), `lost` (the share of the load that was lost in
            the span).
        low, high: the bounds; None if there is none on that side.
        from_ms, until_ms: the span; both ends belong to it.
    """

    workload: str
    value: ExpectedValue
    low: float | None = None
    high: float | None = None
    from_ms: int = 0
    until_ms: int

    def __str__(self) -> str:
        name = self.workload.partition("/")[2]
        return f"{name}: {self.value} {_bounds(self)} {self.span}"

    @property
    def span(self) -> str:
        """`between 10:00 and 15:00`."""
        return f"between {clock(self.from_ms)} and {clock(self.until_ms)}"


class ExpectationCheck:
    """The check of one expectation; `add` takes every sync of the simulation in order."""

    def __init__(self, expectation: Expectation) -> None:
        self._expectation = expectation
        self._is_checked = False
        self._first_miss = ""
        self._later_misses = 0
        self._arrived = 0
        self._lost = 0

    def add(self, sync: SimulatedSync) -> None:
        """Compare one sync, if it is in the span and of the workload."""
        expectation = self._expectation
        if sync.autoscaler.workload != expectation.workload:
            return
        if not expectation.from_ms <= sync.at_ms <= expectation.until_ms:
            return
        self._is_checked = True
        self._arrived += sync.workload.arrived_ucores_ms
        self._lost += sync.workload.lost_ucores_ms
        if expectation.value == "lost":
            return
        observed_value = _value(sync, expectation.value)
        if observed_value is None and expectation.value == "latency":
            return
        if observed_value is None or not _is_within(observed_value, expectation):
            self._miss(sync, observed_value)

    def failure(self) -> str:
        """The sentence about what was not as expected; empty if all was."""
        expectation = self._expectation
        name = expectation.workload.partition("/")[2]
        if not self._is_checked:
            return f"{name}: no sync {expectation.span}, so that {expectation.value} cannot be checked"
        if expectation.value == "lost":
            share = self._lost / self._arrived if self._arrived else 0.0
            if not _is_within(share, expectation):
                return f"{name}: {_value_text('lost', share)} {expectation.span}, expected {_bounds(expectation)}"
            return ""
        return self._first_miss and self._first_miss + self._more()

    def _miss(self, sync: SimulatedSync, observed_value: float | None) -> None:
        if self._first_miss:
            self._later_misses += 1
            return
        expectation = self._expectation
        name = expectation.workload.partition("/")[2]
        self._first_miss = (
            f"{name}: {_value_text(expectation.value, observed_value)} at {clock(sync.at_ms)}, "
            f"expected {_bounds(expectation)} {expectation.span}"
        )

    def _more(self) -> str:
        if not self._later_misses:
            return ""
        return f"; the same at {self._later_misses} later sync{'s' if self._later_misses > 1 else ''}"


def checks(expectations: Iterable[Expectation]) -> list[ExpectationCheck]:
    """A check for each expectation."""
    return [ExpectationCheck(expectation) for expectation in expectations]


def clock(at_ms: int) -> str:
    """An instant of a simulation: `12:15` for minutes and seconds, `1:02:15` with hours, with milliseconds if any."""
    seconds, milliseconds = divmod(at_ms, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    text = f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{text}.{milliseconds:03}" if milliseconds else text


def _value(sync: SimulatedSync, value: ExpectedValue) -> float | None:
    match value:
        case "replicas":
            return sync.workload.replicas if sync.decision.replicas is None else sync.decision.replicas
        case "ready":
            return sync.workload.ready
        case "wanted":
            combination = sync.decision.trace.combination
            return None if combination is None else combination.proposal
        case _:
            return sync.workload.latency_ms


def _is_within(observed_value: float, expectation: Expectation) -> bool:
    low, high = expectation.low, expectation.high
    return (low is None or observed_value >= low) and (high is None or observed_value <= high)


def _bounds(expectation: Expectation) -> str:
    low, high, value = expectation.low, expectation.high, expectation.value
    if low is not None and low == high:
        return _number(value, low)
    if low is None:
        return f"at most {_number(value, high or 0)}"
    return f"at least {_number(value, low)}" if high is None else f"{_number(value, low)} to {_number(value, high)}"


def _number(value: ExpectedValue, number: float) -> str:
    if value == "lost":
        return f"{number:.4%}".rstrip("0%").rstrip(".") + " %"
    return f"{number:.0f} ms" if value == "latency" else f"{number:g}"


def _value_text(value: ExpectedValue, observed_value: float | None) -> str:
    if observed_value is None:
        return "no replicas wanted, because no metric could be used,"
    match value:
        case "replicas":
            return f"{observed_value:g} replica{'' if observed_value == 1 else 's'}"
        case "ready":
            return f"{observed_value:g} ready pod{'' if observed_value == 1 else 's'}"
        case "wanted":
            return f"{observed_value:g} replicas wanted"
        case "latency":
            return f"a mean response time of {_number(value, observed_value)}"
        case _:
            return f"{_number(value, observed_value)} of the load was lost"
