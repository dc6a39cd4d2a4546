"""Defines a series of whole numbers over time that is constant between its steps: a load, or the values of a metric.

`StepSeries((0, 60_000), (250, 700))` is 250 from the start and 700 from second 60 on. Before its first step a series
has the first value, after its last step the last value.
"""

import bisect
from collections.abc import Iterable

import msgspec


class StepSeries(msgspec.Struct, frozen=True):
    """A piecewise constant series.

    Attributes:
        at_ms: the instants of the steps in milliseconds since the start, strictly increasing, not empty.
        values: the value from each step on; its unit is stated where a series is used.
    """

    at_ms: tuple[int, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raises ValueError if steps are missing, out of order, or not as many as values."""
        if not self.at_ms or len(self.at_ms) != len(self.values):
            raise ValueError(f"a series needs as many instants ({len(self.at_ms)}) as values ({len(self.values)})")
        if any(later <= earlier for earlier, later in zip(self.at_ms, self.at_ms[1:], strict=False)):
            raise ValueError("the instants of a series must increase")

    def value_at(self, at_ms: int) -> int:
        """The value at an instant."""
        return self.values[max(bisect.bisect_right(self.at_ms, at_ms) - 1, 0)]

    def next_step_after(self, at_ms: int) -> int | None:
        """The instant of the first step after `at_ms`; None if there is none."""
        index = bisect.bisect_right(self.at_ms, at_ms)
        return self.at_ms[index] if index < len(self.at_ms) else None


def constant(value: int) -> StepSeries:
    """A series that never changes."""
    return StepSeries((0,), (value,))


def from_steps(steps: Iterable[tuple[int, int]]) -> StepSeries:
    """The series of (instant in ms, value), without steps that change nothing.

    Raises ValueError if there are no steps, or their instants do not increase.
    """
    step_instants_ms: list[int] = []
    step_values: list[int] = []
    for instant_ms, value in steps:
        if not step_values or value != step_values[-1]:
            step_instants_ms.append(instant_ms)
            step_values.append(value)
    return StepSeries(tuple(step_instants_ms), tuple(step_values))
