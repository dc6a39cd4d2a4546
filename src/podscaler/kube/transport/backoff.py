"""How long to wait after failures in a row: growing, capped, spread so that many clients do not come back at once."""

import random


class Backoff:
    """Delays of 0.5 s, 1 s, 2 s, 4 s and then 5 s, each lengthened by up to half of itself at random.

    The cap is low on purpose: a watch that comes back late holds up every decision, and there are only a few watches.

    Args:
        rng: where the spread comes from.
    """

    FIRST_S = 0.5
    MAX_S = 5.0

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next_s = self.FIRST_S

    def reset(self) -> None:
        """Something succeeded."""
        self._next_s = self.FIRST_S

    def next_s(self) -> float:
        """How long to wait after this failure."""
        delay_s = self._next_s
        self._next_s = min(delay_s * 2, self.MAX_S)
        return delay_s * (1 + self._rng.random() / 2)
