"""Defines the expectations that a scenario states about its result, and checks them with each simulated sync.

`podscaler.simulation.files` reads expectations; `podscaler simulate` exits with status 1 where one fails. A new value:
a member of `ExpectedValue`, and its case in `_observed_value` and `_observation_text`.
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
        return f"{self.workload_name}: {self.value} {_bounds_text(self)} {self.span}"

    @property
    def workload_name(self) -> str:
        """The name of the workload without its namespace."""
        return self.workload.partition("/")[2]

    @property
    def span(self) -> str:
        """`between 10:00 and 15:00`."""
        return f"between {clock_text(self.from_ms)} and {clock_text(self.until_ms)}"


class ExpectationCheck:
    """The check of one expectation: `add` takes every sync of the simulation in order, then `failure` has the result.

    A sync without a response time (no ready pod) does not count for `latency`; one without `wanted` fails.
    """

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
        observed_value = _observed_value(sync, expectation.value)
        if observed_value is None and expectation.value == "latency":
            return
        if observed_value is None or not _is_within(observed_value, expectation):
            self._record_miss(sync, observed_value)

    def failure(self) -> str:
        """The sentence about what was not as expected, or that no sync was in the span; empty if all was."""
        expectation, name = self._expectation, self._expectation.workload_name
        if not self._is_checked:
            return f"{name}: no sync {expectation.span}, so that {expectation.value} cannot be checked"
        if expectation.value == "lost":
            lost_ratio = self._lost / self._arrived if self._arrived else 0.0
            if not _is_within(lost_ratio, expectation):
                observation = _observation_text("lost", lost_ratio)
                return f"{name}: {observation} {expectation.span}, expected {_bounds_text(expectation)}"
            return ""
        return self._first_miss + self._later_misses_text() if self._first_miss else ""

    def _record_miss(self, sync: SimulatedSync, observed_value: float | None) -> None:
        """Keep the text of the first sync that is not as expected, and count the later ones."""
        if self._first_miss:
            self._later_misses += 1
            return
        expectation = self._expectation
        self._first_miss = (
            f"{expectation.workload_name}: {_observation_text(expectation.value, observed_value)} "
            f"at {clock_text(sync.at_ms)}, expected {_bounds_text(expectation)} {expectation.span}"
        )

    def _later_misses_text(self) -> str:
        if not self._later_misses:
            return ""
        return f"; the same at {self._later_misses} later sync{'s' if self._later_misses > 1 else ''}"


def checks(expectations: Iterable[Expectation]) -> list[ExpectationCheck]:
    """A check for each expectation."""
    return [ExpectationCheck(expectation) for expectation in expectations]


def clock_text(at_ms: int) -> str:
    """An instant of a simulation: `12:15` for minutes and seconds, `1:02:15` with hours, with milliseconds if any."""
    seconds, milliseconds = divmod(at_ms, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    text_without_ms = f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
    return f"{text_without_ms}.{milliseconds:03}" if milliseconds else text_without_ms


def _observed_value(sync: SimulatedSync, value_name: ExpectedValue) -> float | None:
    """The value at a sync; None: no metric could be used (`wanted`), or no pod is ready (`latency`)."""
    match value_name:
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


def _bounds_text(expectation: Expectation) -> str:
    """The bounds, such as `at most 5`, `2 to 5`, or `3` where both are equal."""
    low, high, value_name = expectation.low, expectation.high, expectation.value
    if low is not None and low == high:
        return _format_number(value_name, low)
    if low is None:
        return f"at most {_format_number(value_name, high or 0)}"
    if high is None:
        return f"at least {_format_number(value_name, low)}"
    return f"{_format_number(value_name, low)} to {_format_number(value_name, high)}"


def _format_number(value_name: ExpectedValue, number: float) -> str:
    """The number with the unit of the value: percent for `lost`, ms for `latency`, none for counts."""
    if value_name == "lost":
        return f"{number:.4%}".rstrip("0%").rstrip(".") + " %"
    return f"{number:.0f} ms" if value_name == "latency" else f"{number:g}"


def _observation_text(value_name: ExpectedValue, observed_value: float | None) -> str:
    """What was observed, such as `3 ready pods`."""
    if observed_value is None:
        return "no replicas wanted, because no metric could be used,"
    match value_name:
        case "replicas":
            return f"{observed_value:g} replica{'' if observed_value == 1 else 's'}"
        case "ready":
            return f"{observed_value:g} ready pod{'' if observed_value == 1 else 's'}"
        case "wanted":
            return f"{observed_value:g} replicas wanted"
        case "latency":
            return f"a mean response time of {_format_number(value_name, observed_value)}"
        case _:
            return f"{_format_number(value_name, observed_value)} of the load was lost"
