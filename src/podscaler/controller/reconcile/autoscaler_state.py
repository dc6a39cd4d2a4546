"""Keeps the controller's state of each autoscaler between syncs: one AutoscalerState for each key, in memory.

The controller registers and forgets autoscalers; a sync reads and changes the state of its own. Lifetimes:

* The history (recommendations, scale events) and the last error: from the first sync that reads a scale until a sync
  finds the autoscaler deleted. An autoscaler that is deleted and created again before that keeps them. The history that
  an earlier process stored (`podscaler.controller.history.store`) is added when a scale is read.
* The registration, the selector and what else syncs note about the target: from the watch's addition until its
  deletion.
* The version of the last status write: until the cache has it (`podscaler.controller.informers.consistency`).
* The failures in a row: until a sync succeeds. A sync whose status write got no response, or that was skipped because
  of a stale cache, has no result: it is repeated after FIRST_RETRY_S, doubled each time, instead of a whole period
  later. Where that would be a period or more, it waits for its period: a server that is away for long gets no more
  requests than otherwise. A conflict counts as such a failure only after another one, whose write may have been carried
  out although it got no response.

A new attribute that holds something about the target is reset in `AutoscalerStates._drop_target`.

Source: docs/spec/controller.md 1 (State). Differs: kube-controller-manager retries after a period.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

from podscaler.api.machinery.selectors import Selector
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import RestoredHistory
from podscaler.controller.informers import consistency
from podscaler.controller.informers.consistency import WrittenVersion
from podscaler.core.model import history, stored_history
from podscaler.core.model.history import History
from podscaler.core.model.selector_store import NamespaceSelectors, SelectorStore
from podscaler.kube.client.client import is_conflict
from podscaler.kube.informers.cache import Key

STEP_MAX_NS = 2 * NANOSECONDS
"""A smaller step of the wall clock leaves histories as they are."""
FIRST_RETRY_S = 1.0
"""The delay before the first retry, which each further one doubles."""


@dataclass(slots=True)
class AutoscalerState:
    """The state of one autoscaler.

    Attributes:
        key: namespace and name.
        is_registered: whether the watch has the autoscaler.
        history: recommendations and scale events of earlier syncs.
        was_history_sought: whether the store was read for the history of an earlier process.
        restored: the history of an earlier process that is not added to `history` yet; None if there is none.
        selector: the selector of the target's pods; None if no sync has read it.
        conflicting: the autoscalers that another controller manages and that scale the same target.
        is_waiting: whether the autoscaler waits for a migration (`podscaler.controller.informers.handover`).
        standby_replicas: the target's replicas at the last sync on standby; None if there was none.
        standby_desired: the replicas that this sync would have written; None if it would not write.
        error: the error of the last sync; empty if it succeeded.
        uncached_write: the last status write that the cache does not have yet; None if it has all.
        status_period_start_s: from when the status period counts, by the monotonic clock; None: no status was written.
        is_synced: whether a sync was ever begun; then this state stays until a sync finds the autoscaler deleted.
        failures: the number of syncs in a row that ended without a result.
        lacks_result: whether the last sync ended without a result, so that it may be repeated early.
    """

    key: Key
    is_registered: bool = False
    history: History = history.EMPTY
    was_history_sought: bool = False
    restored: RestoredHistory | None = None
    selector: Selector | None = None
    conflicting: frozenset[Key] = frozenset()
    is_waiting: bool = False
    standby_replicas: int | None = None
    standby_desired: int | None = None
    error: str = ""
    uncached_write: WrittenVersion | None = None
    status_period_start_s: float | None = None
    is_synced: bool = False
    failures: int = 0
    lacks_result: bool = False

    def set_restored(self, restored_history: RestoredHistory | None) -> None:
        """Keep the history that an earlier process stored, for `add_restored`; None if there is none."""
        self.was_history_sought, self.restored = True, restored_history

    def add_restored(self, replicas: int, now_ns: int, *, has_behavior: bool) -> None:
        """Add the history of an earlier process (`set_restored`), once a scale was read; nothing if it was added.

        Args:
            replicas: spec.replicas of the scale.
            now_ns: the instant of the sync, since the epoch.
            has_behavior: whether the spec has a `behavior`.
        """
        if self.restored is not None:
            earlier = history_record.resumed(self.restored, replicas, now_ns, has_behavior=has_behavior)
            self.history, self.restored = stored_history.merged(earlier, self.history), None

    def take_standby_change(self, replicas: int) -> int:
        """By how many replicas another writer changed the target since the last sync on standby; notes `replicas`."""
        change = 0 if self.standby_replicas is None else replicas - self.standby_replicas
        self.standby_replicas = replicas
        return change

    def note_desired(self, replicas: int | None) -> bool:
        """Note the replicas that a sync on standby would write (None: none); returns whether they are new."""
        is_new, self.standby_desired = self.standby_desired != replicas, replicas
        return is_new

    def leave_standby(self) -> None:
        """Take note that this process writes the target's replicas from now on."""
        self.standby_replicas = self.standby_desired = None

    def note_error(self, error: str) -> bool:
        """Note the error of a sync (empty if it succeeded); returns whether it differs from the one before."""
        is_new, self.error = self.error != error, error
        return is_new

    def note_status_write(self, written_version: WrittenVersion, at_s: float, period_s: float) -> None:
        """The status was written at `at_s` of the monotonic clock; `period_s` is the status period, 0: none.

        The first write of each autoscaler counts from up to `period_s` later: soon after the start all statuses are
        written, and are not to be written together ever after.
        """
        self.uncached_write = consistency.latest(self.uncached_write, written_version)
        if self.is_registered and period_s:
            is_first = self.status_period_start_s is None
            hash_ratio = zlib.crc32("/".join(self.key).encode()) / 2**32  # the same in each process, from 0 to 1
            self.status_period_start_s = at_s + (hash_ratio * period_s if is_first else 0.0)

    def find_lag(self, cache_version: str) -> str | None:
        """The message if a cache of that version lacks our last status write; else None, and the write is forgotten."""
        lag = consistency.find_lag(self.uncached_write, cache_version)
        if lag is None:
            self.uncached_write = None
        return lag

    def begin_sync(self) -> None:
        """A sync begins."""
        self.is_synced, self.lacks_result = True, False

    def note_failed_write(self, error: StatusError) -> None:
        """A write of this sync failed: without a response, or with a conflict after such a sync, it has no result."""
        if error.code == 0 or (is_conflict(error) and self.failures > 0):
            self.lacks_result = True

    def take_retry_delay_s(self, period_s: float) -> float | None:
        """After how many seconds to sync again before the next period; None: not before.

        Counts the sync that has ended as a failure or a success; so it is called once after each.
        """
        if not self.lacks_result:
            self.failures = 0
            return None
        delay_s = FIRST_RETRY_S * (1 << self.failures)
        if delay_s >= period_s:  # `failures` stays, and with it the delay: the autoscaler is synced once a period
            return None
        self.failures += 1
        return delay_s


class AutoscalerStates:
    """The states of all autoscalers, and the selectors of their targets' pods by namespace."""

    def __init__(self) -> None:
        self._states: dict[Key, AutoscalerState] = {}
        self._selectors = SelectorStore()
        self._clock_offset_ns: int | None = None

    def of(self, key: Key) -> AutoscalerState:
        """The state of an autoscaler; a new one is kept where there is none."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = AutoscalerState(key)
        return state

    def register(self, key: Key) -> None:
        """The watch has a new autoscaler."""
        self.of(key).is_registered = True

    def unregister(self, key: Key, uid: str) -> None:
        """The watch had a deletion; the history and the error stay until a sync finds the autoscaler gone."""
        state = self.of(key)
        state.is_registered = False
        self._drop_target(state)
        if state.uncached_write is not None and state.uncached_write.uid == uid:  # else: of a new object of that name
            state.uncached_write = None
        if not state.is_synced:
            del self._states[key]

    def registered(self, belongs: Callable[[Key], bool]) -> list[Key]:
        """The keys of the autoscalers that the watch has and for which `belongs` is true."""
        return [key for key, state in self._states.items() if state.is_registered and belongs(key)]

    def known_keys(self, belongs: Callable[[Key], bool]) -> list[Key]:
        """As `registered`, and those that were deleted and not synced since."""
        return [key for key in self._states if belongs(key)]

    def follow_clock(self, now_ns: int, monotonic_s: float) -> None:
        """Shift the instants of all histories where the wall clock was set by more than STEP_MAX_NS.

        Source: Go's time.Now has a monotonic reading, by which kube-controller-manager compares instants.
        """
        offset_ns = now_ns - round(monotonic_s * NANOSECONDS)
        if self._clock_offset_ns is None:
            self._clock_offset_ns = offset_ns
        step_ns = offset_ns - self._clock_offset_ns
        if abs(step_ns) > STEP_MAX_NS:
            self._clock_offset_ns = offset_ns
            for state in self._states.values():
                state.history = stored_history.shifted(state.history, step_ns)

    def keep_selector(self, state: AutoscalerState, selector: Selector) -> None:
        """Keep the selector of an autoscaler's target, if the watch still has the autoscaler."""
        if state.is_registered and state.selector is not selector:
            state.selector = selector
            self._selectors.store("/".join(state.key), selector)

    def begin_waiting(self, state: AutoscalerState) -> bool:
        """An autoscaler waits for a migration, so its selector is dropped; returns whether it did not wait before."""
        self._drop_selector(state)
        is_new, state.is_waiting = not state.is_waiting, True
        return is_new

    def set_conflicting(self, state: AutoscalerState, conflicting_keys: frozenset[Key]) -> None:
        """Replace `state.conflicting`, and drop the selectors of the autoscalers that are not in it any more."""
        for key in state.conflicting - conflicting_keys:
            self._selectors.forget("/".join(key))
        state.conflicting = conflicting_keys

    def store_conflicting_selector(self, state: AutoscalerState, selector: Selector) -> None:
        """Store the selector of the target for the autoscalers of `state.conflicting`, too.

        No sync of this controller stores their selectors, without which decisions would not find the conflict.
        """
        for conflicting_key in state.conflicting:
            self._selectors.store("/".join(conflicting_key), selector)

    def neighbours(self, namespace: str) -> NamespaceSelectors:
        """The selectors of the autoscalers of a namespace."""
        return self._selectors.namespace(namespace)

    def forget(self, key: Key) -> None:
        """A sync found the autoscaler gone, or another process manages it now: only its registration stays."""
        state = self._states.pop(key, None)
        if state is not None:
            self._drop_target(state)
            if state.is_registered:
                self.register(key)

    def _drop_target(self, state: AutoscalerState) -> None:
        """Drop what syncs have noted about the target."""
        self._drop_selector(state)
        self.set_conflicting(state, frozenset())
        state.leave_standby()
        state.is_waiting, state.status_period_start_s = False, None

    def _drop_selector(self, state: AutoscalerState) -> None:
        self._selectors.forget("/".join(state.key))
        state.selector = None
