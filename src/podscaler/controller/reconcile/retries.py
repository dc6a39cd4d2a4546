"""Which autoscalers have another turn before their next is due, because this one came to nothing.

A status write that got no answer, and a sync that was skipped since the watch had yet to bring our own last write, say
nothing about the autoscaler: waiting a whole period for the next turn would only make a short fault of the API server
longer. A conflict right after such a turn is of the same kind: what got no answer may have happened. The reconciler and
the loop note such turns; the loop asks for the wait. It doubles from one to the next, from a second on, until it is as
long as a period: an API server that stays away is asked no more often than it was, and neither is one where another
controller writes the same statuses.

Differs: upstream waits for the next period.
"""

from podscaler.kube.informers.cache import Key

FIRST_DELAY_S = 1.0


class EarlyTurns:
    """How many turns in a row came to nothing, by autoscaler."""

    def __init__(self) -> None:
        self._missed: dict[Key, int] = {}
        self._is_open: set[Key] = set()

    def begin(self, key: Key) -> None:
        """A turn begins."""
        self._is_open.discard(key)

    def miss(self, key: Key) -> None:
        """This turn comes to nothing, for a reason that another one may not meet."""
        self._is_open.add(key)

    def miss_again(self, key: Key) -> None:
        """This turn comes to nothing, which is no wonder if the one before did; otherwise it counts as taken."""
        if key in self._missed:
            self.miss(key)

    def delay_s(self, key: Key, period_s: float) -> float | None:
        """After how many seconds the next turn is to come; None: when it is due anyway."""
        if key not in self._is_open:
            self._missed.pop(key, None)
            return None
        missed = self._missed.get(key, 0)
        delay_s = FIRST_DELAY_S * (1 << missed)
        if delay_s >= period_s:
            return None
        self._missed[key] = missed + 1
        return delay_s

    def forget(self, key: Key) -> None:
        """The autoscaler is gone, or another's."""
        self._is_open.discard(key)
        self._missed.pop(key, None)
