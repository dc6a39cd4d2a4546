"""What the controller remembers between syncs.

The loop registers and forgets autoscalers; the reconciler reads and changes what belongs to one. Lifetimes:

* histories (recommendations, scale events): from the first sync that reads a scale until a sync finds the autoscaler
  gone. An autoscaler that is deleted and made again before that keeps them. What an earlier process left
  (`podscaler.controller.history.store`) is added when a scale is read.
* registrations and selectors: from the watch's addition until its deletion.
* the last error, to log it once: as the history.
* status versions: see `podscaler.controller.scales.consistency`.
* turns that came to nothing: see `podscaler.controller.reconcile.retries`.

Source: docs/spec/controller.md 1 (State).
"""

import zlib

from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import RestoredHistory
from podscaler.controller.reconcile.retries import EarlyTurns
from podscaler.controller.scales.consistency import ConsistencyStore
from podscaler.core.model import history, lasting_history
from podscaler.core.model.history import History
from podscaler.core.model.neighbours import Namespace, SelectorStore
from podscaler.kube.informers.cache import Key

STEP_MAX_NS = 2 * NANOSECONDS
"""A clock that is set by less is followed."""


class Memory:
    """See the module."""

    def __init__(self) -> None:
        self._histories: dict[Key, History] = {}
        self._recalled: set[Key] = set()
        self._found: dict[Key, RestoredHistory] = {}
        self._clock_offset_ns: int | None = None
        self._registered: set[Key] = set()
        self._selectors = SelectorStore()
        self._targets: dict[Key, Selector] = {}
        self._reported_s: dict[Key, float] = {}
        self._rivals: dict[Key, frozenset[Key]] = {}
        self._stood_at: dict[Key, int] = {}
        self._wishes: dict[Key, int | None] = {}
        self._waiting: set[Key] = set()
        self._errors: dict[Key, str] = {}
        self.versions = ConsistencyStore()
        self.early = EarlyTurns()

    def register(self, key: Key) -> bool:
        """The autoscaler is there; whether that is news."""
        is_new = key not in self._registered
        self._registered.add(key)
        return is_new

    def unregister(self, key: Key, uid: str) -> None:
        """The autoscaler was deleted; its history stays until a sync finds it gone."""
        self._registered.discard(key)
        self._let_go(key)
        self.versions.forget(key, uid)

    @property
    def registered(self) -> frozenset[Key]:
        """The autoscalers that are there."""
        return frozenset(self._registered)

    @property
    def known(self) -> frozenset[Key]:
        """Those that are there, and those that a sync has yet to find gone."""
        return frozenset(self._registered | self._histories.keys() | self._recalled | self._errors.keys())

    def is_registered(self, key: Key) -> bool:
        """Whether the watch says that the autoscaler is there."""
        return key in self._registered

    def history(self, key: Key) -> History:
        """What earlier syncs left."""
        return self._histories.get(key, history.EMPTY)

    def is_recalled(self, key: Key) -> bool:
        """Whether it is known what an earlier process left."""
        return key in self._recalled

    def recall(self, key: Key, found: RestoredHistory | None) -> None:
        """An earlier process left this, or nothing."""
        self._recalled.add(key)
        if found is not None:
            self._found[key] = found

    def resume(self, key: Key, replicas: int, now: int, *, has_behavior: bool) -> None:
        """A scale was read: with the first one after a recall, what was found is part of the history.

        Args:
            replicas: what the target has.
            has_behavior: whether the spec has a `behavior`.
        """
        found = self._found.pop(key, None)
        if found is not None:
            earlier = history_record.resumed(found, replicas, now, has_behavior=has_behavior)
            self._histories[key] = lasting_history.merged(earlier, self.history(key))

    def follow_clock(self, now_ns: int, monotonic_s: float) -> None:
        """Keep what was long ago as long ago where the wall clock was set by more than STEP_MAX_NS.

        Source: the instants that Go's time.Now gives carry a monotonic reading, by which upstream compares them.
        """
        offset_ns = now_ns - round(monotonic_s * NANOSECONDS)
        if self._clock_offset_ns is None:
            self._clock_offset_ns = offset_ns
        step_ns = offset_ns - self._clock_offset_ns
        if abs(step_ns) <= STEP_MAX_NS:
            return
        self._clock_offset_ns = offset_ns
        for key, kept in self._histories.items():
            self._histories[key] = lasting_history.moved(kept, step_ns)

    def keep_history(self, key: Key, latest: History) -> None:
        """What this sync leaves."""
        self._histories[key] = latest

    def keep_selector(self, key: Key, selector: Selector) -> None:
        """The selector of the autoscaler's target, if the autoscaler is still there."""
        if key in self._registered and self._targets.get(key) is not selector:
            self._targets[key] = selector
            self._selectors.store("/".join(key), selector)

    def find_selector(self, key: Key) -> Selector | None:
        """The selector of the autoscaler's target; None where no sync has seen it."""
        return self._targets.get(key)

    def withdraw(self, key: Key) -> None:
        """The autoscaler's target is not looked after here for now."""
        self._selectors.forget("/".join(key))
        self._targets.pop(key, None)

    def wait(self, key: Key) -> bool:
        """The autoscaler waits, since its target is another's for now; whether that is news."""
        self.withdraw(key)
        is_news = key not in self._waiting
        self._waiting.add(key)
        return is_news

    def go_on(self, key: Key) -> None:
        """The autoscaler does not wait (any more)."""
        self._waiting.discard(key)

    def keep_rivals(self, key: Key, rivals: frozenset[Key], selector: Selector) -> None:
        """Autoscalers that nobody here looks after scale the target of this one, which has the selector."""
        for rival in rivals:
            self._selectors.store("/".join(rival), selector)
        if rivals:
            self._rivals[key] = rivals

    def drop_rivals(self, key: Key, *, besides: frozenset[Key] = frozenset()) -> None:
        """Those of this autoscaler are gone, but for the ones that are given."""
        for gone in self._rivals.pop(key, besides) - besides:
            self._selectors.forget("/".join(gone))
        if besides:
            self._rivals[key] = besides

    def stand_at(self, key: Key, replicas: int) -> int:
        """The target has so many replicas, which somebody else may have set; by how many it changed since last time."""
        before = self._stood_at.get(key, replicas)
        self._stood_at[key] = replicas
        return replicas - before

    def is_new_wish(self, key: Key, replicas: int | None) -> bool:
        """Whether what would be written (None: nothing) while standing by is another count than last time."""
        is_new = self._wishes.get(key) != replicas
        self._wishes[key] = replicas
        return is_new

    def act(self, key: Key) -> None:
        """What becomes of the target is our own doing."""
        self._stood_at.pop(key, None)
        self._wishes.pop(key, None)

    def keep_report(self, key: Key, at_s: float, period_s: float) -> None:
        """The status was written at that instant of the monotonic clock.

        The first write of each counts as up to `period_s` later: all statuses are written soon after the start, and are
        not to be written together ever after.
        """
        if key in self._registered and period_s:
            later_s = 0.0 if key in self._reported_s else zlib.crc32("/".join(key).encode()) / 2**32 * period_s
            self._reported_s[key] = at_s + later_s

    def find_report(self, key: Key) -> float | None:
        """When the last write of the status counts from, by the monotonic clock; None where we have written none."""
        return self._reported_s.get(key)

    def neighbours(self, namespace: str) -> Namespace:
        """The selectors of the autoscalers of a namespace."""
        return self._selectors.namespace(namespace)

    def is_news(self, key: Key, error: str) -> bool:
        """Whether a sync ended otherwise than the one before (`error` is empty for a good end)."""
        if self._errors.get(key, "") == error:
            return False
        if error:
            self._errors[key] = error
        else:
            del self._errors[key]
        return True

    def forget(self, key: Key) -> None:
        """A sync found the autoscaler gone."""
        self._histories.pop(key, None)
        self._recalled.discard(key)
        self._found.pop(key, None)
        self._errors.pop(key, None)
        self.versions.forget(key)
        self.early.forget(key)
        self._let_go(key)

    def lay_down(self, key: Key) -> None:
        """Another process looks after the autoscaler from now on: only that it is there is remembered."""
        self.forget(key)

    def _let_go(self, key: Key) -> None:
        """Forget what syncs found out about the target, and what they said."""
        self.withdraw(key)
        self.go_on(key)
        self.act(key)
        self._reported_s.pop(key, None)
        self.drop_rivals(key)
