"""Computes delays of exponential backoff, with a cap and jitter, for retries such as those of reflectors."""

import random


class Backoff:
    """Delays of 0.5 s, 1 s, 2 s, 4 s and then 5 s, each lengthened by up to half of itself at random.

    The cap is low: a watch that resumes late delays every decision, and there are only a few watches.

    Args:
        rng: for the jitter.
    """

    FIRST_S = 0.5
    MAX_S = 5.0

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next_s = self.FIRST_S

    def reset(self) -> None:
        """Start again with the first delay: an attempt succeeded."""
        self._next_s = self.FIRST_S

    def next_s(self) -> float:
        """The delay after one more failure, in seconds."""
        delay_s = self._next_s
        self._next_s = min(delay_s * 2, self.MAX_S)
        return delay_s * (1 + self._rng.random() / 2)
