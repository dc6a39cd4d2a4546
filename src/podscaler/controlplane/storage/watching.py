"""Watches the changes of one kind: every event in order, each once, from any retained resourceVersion on.

`registry.objects` calls `subscribe`; the HTTP stream and `registry.registry` call `Subscription.batch` in a loop. A
subscription is a position in the shared change log without a queue of its own: a commit only wakes waiting
subscriptions. So no event is lost or duplicated between list and watch, a slow watcher needs no memory, and one that
falls behind the log ends with StatusError 410 without slowing others down.

What a watcher gets of a change is decided in `_entry_event`.

Source: the API conventions on watch; tests/conformance/golden/lists-watch.jsonl.
"""

import asyncio
from collections.abc import Callable, Hashable, Set
from typing import Literal, Protocol

import msgspec

from podscaler.api.machinery import field
from podscaler.api.resource import api_errors
from podscaler.base.errors import StatusError
from podscaler.controlplane.storage import listing
from podscaler.controlplane.storage.change_log import StoreEvent
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.selection_predicate import SelectionPredicate
from podscaler.controlplane.storage.store import Store

BATCH_SIZE = 500
"""The most events in a batch."""


class EntryEvent(msgspec.Struct, frozen=True, gc=False):
    """One watch event, as one watcher gets it.

    Attributes:
        type: an object that begins to match the watcher's selectors is ADDED, one that matches no longer is DELETED.
        entry: the new version; for DELETED the last one, with the resourceVersion of the deletion.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    entry: Entry
    _frames: dict[Hashable, bytes]

    def encoded(self, form: Hashable, encode: Callable[["EntryEvent"], bytes]) -> bytes:
        """`encode(self)`, cached for all watchers of this event that use the same `form` (API version, Table, ...)."""
        frame = self._frames.get((form, self.type))
        if frame is None:
            frame = self._frames[(form, self.type)] = encode(self)
        return frame


class EventBatch(msgspec.Struct, frozen=True, gc=False):
    """The events since the last batch.

    Attributes:
        events: in order; empty only if `initial_done` is set, and after `Subscription.interrupt`.
        revision: the resourceVersion of a bookmark after this batch: all events up to it were returned.
        initial_done: whether this batch ends the initial ADDED events; once in a subscription with initial events, also
            if there are none.
    """

    events: list[EntryEvent]
    revision: int
    initial_done: bool = False


class WatchEnded(Exception):
    """The watched kind is no longer served, or served in another form; all events until then were returned."""


class Receiver(Protocol):
    """Receives batches directly at the commit, as long as it keeps up, so that no task has to be woken."""

    def has_room(self) -> bool:
        """Whether it accepts a batch now."""
        ...

    def take(self, batch: EventBatch) -> None:
        """Process a batch. After an exception the batch is returned by `Subscription.batch` instead."""
        ...


class Watchers:
    """Wakes the subscriptions that wait; the cost of a commit is proportional to the watchers of the changed kinds.

    Attributes:
        store: the watched store.
        waiting: the waiting subscriptions by `Resource.storage_key`; subscriptions add and remove themselves.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: dict[str, set[Subscription]] = {}
        store.listen(self._notify_waiting)

    def _notify_waiting(self, events: list[StoreEvent]) -> None:
        """Wake the subscriptions that wait for changes of these kinds and namespaces."""
        changed: dict[str, set[str]] = {}
        for event in events:
            changed.setdefault(event.subject.resource, set()).add(event.subject.namespace)
        for resource, namespaces in changed.items():
            for subscription in tuple(self.waiting.get(resource, ())):
                subscription.notify(namespaces, events[-1].revision)


class Subscription:
    """One watch; created by `subscribe`.

    Args:
        watchers: wakes the subscription after commits.
        selection: the watched objects.
        revision: events after this revision are returned.
        initial: the objects of the initial ADDED events, None for a watch without them.

    Attributes:
        receiver: if set, gets the events of commits while a caller waits in `batch`, which then keeps waiting.
    """

    def __init__(
        self, watchers: Watchers, selection: SelectionPredicate, revision: int, initial: list[Entry] | None
    ) -> None:
        self._watchers = watchers
        self._selection = selection
        self._resource = selection.resource.storage_key
        self._last_revision = revision
        self._initial_entries = initial
        self._initial_sent_count = 0
        self._is_interrupted = False
        self._has_ended = False
        self.receiver: Receiver | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def revision(self) -> int:
        """The resourceVersion of a bookmark sent now: all selected events up to it were returned."""
        store = self._watchers.store
        if self._initial_entries is not None or store.log.after(self._resource, self._last_revision, 1):
            return self._last_revision
        return store.revision

    async def batch(self) -> EventBatch:
        """The next events, at most `BATCH_SIZE`; waits for one, or for `interrupt`. Cancelling loses no event.

        Raises:
            StatusError: 410 when the watcher fell behind the change log.
            WatchEnded: after `end`, when all events until then were returned.
        """
        if self._initial_entries is not None:
            return self._initial_batch(self._initial_entries)
        while True:
            events = self._next_events()
            if events or self._is_interrupted:
                self._is_interrupted = False
                return EventBatch(events, self.revision)
            if self._has_ended:
                raise WatchEnded
            if not self._watchers.store.log.after(self._resource, self._last_revision, 1):
                await self._wait()

    def notify(self, namespaces: Set[str], revision: int) -> None:
        """Pass the events of a commit to the receiver, or else wake `batch`; for `Watchers`, while `batch` waits.

        A commit that changed none of the watched `namespaces` is skipped; `revision` is that of its last event.
        """
        watched_namespace = self._selection.namespace
        if watched_namespace and watched_namespace not in namespaces:
            self._last_revision = max(self._last_revision, revision)
        elif self.receiver is None or not self._deliver(self.receiver):
            self._wake_batch()

    def interrupt(self) -> None:
        """Let `batch` return without waiting for an event, now or at the next call."""
        self._is_interrupted = True
        self._wake_batch()

    def end(self) -> None:
        """Let `batch` raise WatchEnded once all events until now were returned."""
        self._has_ended = True
        self._wake_batch()

    def _deliver(self, receiver: Receiver) -> bool:
        """Pass new events to the receiver; returns whether it took all."""
        if not receiver.has_room():
            return False
        last_revision = self._last_revision
        try:
            events = self._next_events()
            if events:
                receiver.take(EventBatch(events, self._last_revision))
        except Exception:
            self._last_revision = last_revision  # `batch` reads the events again, and raises again if need be
            return False
        return not self._watchers.store.log.after(self._resource, self._last_revision, 1)

    def _wake_batch(self) -> None:
        """End the waiting of `batch`, if it waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _initial_batch(self, entries: list[Entry]) -> EventBatch:
        """The batch with the next initial ADDED events, at most `BATCH_SIZE`."""
        chunk = entries[self._initial_sent_count : self._initial_sent_count + BATCH_SIZE]
        self._initial_sent_count += len(chunk)
        is_last = self._initial_sent_count >= len(entries)
        if is_last:
            self._initial_entries = None
        return EventBatch(
            [EntryEvent("ADDED", entry, {}) for entry in chunk], self._last_revision, initial_done=is_last
        )

    def _next_events(self) -> list[EntryEvent]:
        """The selected events of the next changes in the log, which count as returned. Raises StatusError 410."""
        log = self._watchers.store.log
        if log.is_behind(self._resource, self._last_revision):
            raise too_old(self._last_revision, log.compacted_revision)
        events = []
        for change in log.after(self._resource, self._last_revision, BATCH_SIZE):
            event = _entry_event(change, self._selection)
            if event is not None:
                events.append(event)
            self._last_revision = change.revision
        return events

    async def _wait(self) -> None:
        """Return at the next commit that the receiver did not take, or after `interrupt` or `end`."""
        waiting = self._watchers.waiting.setdefault(self._resource, set())
        self._waiter = asyncio.get_running_loop().create_future()
        waiting.add(self)
        try:
            await self._waiter
        finally:
            waiting.discard(self)
            self._waiter = None


def subscribe(watchers: Watchers, selection: SelectionPredicate, options: ListOptions) -> Subscription:
    """A watch of `selection` from `options.resource_version` on.

    It begins with an ADDED for each object if the version is unset or 0, or with `send_initial_events`; if that is
    False, an unset version means from now on. With a version in the future, the events after it are returned.

    Raises:
        StatusError: 410 for a compacted version, 422 for options that exclude each other, 500 for an invalid version,
            504 for a version in the future with `send_initial_events`.
    """
    _check_options(options)
    store = watchers.store
    revision = listing.parse_revision(options.resource_version)
    if options.send_initial_events or (revision == 0 and options.send_initial_events is None):
        if revision > store.revision:
            raise api_errors.too_large_resource_version(revision, store.revision)
        entries = store.table(selection.resource.storage_key).select(selection.namespace)
        initial = [entry for entry in entries if selection.matches(entry)]
        return Subscription(watchers, selection, store.revision, initial)
    if revision == 0:
        return Subscription(watchers, selection, store.revision, initial=None)
    if revision < store.log.compacted_revision:
        raise too_old(revision, store.log.compacted_revision)
    return Subscription(watchers, selection, revision, initial=None)


def too_old(revision: int, compacted_revision: int) -> StatusError:
    """410: events after `revision` were dropped; those after `compacted_revision` are retained."""
    return api_errors.expired(f"too old resource version: {revision} ({compacted_revision})")


def _check_options(options: ListOptions) -> None:
    """Raise StatusError 422 for options that exclude each other in a watch."""
    parameter, match = "resourceVersionMatch", options.resource_version_match
    errors = []
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(field.forbidden(parameter, f"sendInitialEvents requires setting {parameter} to NotOlderThan"))
    if not match and options.continue_token and options.resource_version in ("", "0"):
        # kube-apiserver validates the list of initial events separately, and reports this error twice
        errors.append(field.forbidden(parameter, f"{parameter} is forbidden when continue is provided"))
    if match:
        if options.send_initial_events is None:
            errors.append(
                field.forbidden(parameter, f"{parameter} is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            errors.append(field.not_supported(parameter, match, ("NotOlderThan",)))
        if options.continue_token:
            errors.append(field.forbidden(parameter, f"{parameter} is forbidden when continue is provided"))
    if errors:
        raise api_errors.invalid_options("ListOptions", errors)


def _entry_event(event: StoreEvent, selection: SelectionPredicate) -> EntryEvent | None:
    """The watch event of a change for a watcher of `selection`, None if it does not concern its objects."""
    frames = {} if event.frames is None else event.frames  # an old event has no cache: each watcher encodes it
    if not selection.namespace and not selection.is_filtered:
        if event.entry is None:
            return EntryEvent("DELETED", event.tombstone(), frames)
        return EntryEvent("ADDED" if event.previous is None else "MODIFIED", event.entry, frames)
    matches_now = event.entry is not None and selection.matches(event.entry)
    matched_before = event.previous is not None and selection.matches(event.previous)
    if matches_now and event.entry is not None:
        return EntryEvent("MODIFIED" if matched_before else "ADDED", event.entry, frames)
    return EntryEvent("DELETED", event.tombstone(), frames) if matched_before else None
