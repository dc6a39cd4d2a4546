"""Defines distributions of durations, such as the time that a pod needs to start.

A distribution draws from a generator that its caller seeds, so that equal seeds give equal durations.
"""

from random import Random
from typing import Literal

import msgspec


class DurationDistribution(msgspec.Struct, frozen=True):
    """A distribution of durations in milliseconds. A new kind: a value of `kind`, and its case in `draw_ms`.

    Attributes:
        kind: `fixed` (always `low_ms`), `uniform` (between `low_ms` and `high_ms`), or `lognormal` (median `low_ms`,
            95th percentile `high_ms`; start-up times have such a long tail).
        low_ms, high_ms: see `kind`.
    """

    kind: Literal["fixed", "uniform", "lognormal"] = "fixed"
    low_ms: int = 0
    high_ms: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for bounds that no durations have."""
        if self.low_ms < 0:
            raise ValueError("a duration must not be negative")
        if self.kind != "fixed" and self.high_ms < self.low_ms:
            raise ValueError("the upper bound of a duration must not be below the lower one")
        if self.kind == "lognormal" and self.low_ms == 0:
            raise ValueError("the median of a lognormal duration must be above 0")

    @property
    def is_fixed(self) -> bool:
        """Whether every draw gives the same duration."""
        return self.kind == "fixed" or self.low_ms == self.high_ms

    def draw_ms(self, random: Random) -> int:
        """One duration in milliseconds."""
        if self.is_fixed:
            return self.low_ms
        if self.kind == "uniform":
            return random.randint(self.low_ms, self.high_ms)
        factor: float = (self.high_ms / self.low_ms) ** (random.gauss(0, 1) / _P95_DEVIATIONS)
        return round(self.low_ms * factor)


_P95_DEVIATIONS = 1.6448536269514722
"""How many standard deviations the 95th percentile of a normal distribution is above its mean."""


def fixed(duration_ms: int) -> DurationDistribution:
    """The same duration always."""
    return DurationDistribution("fixed", duration_ms)
