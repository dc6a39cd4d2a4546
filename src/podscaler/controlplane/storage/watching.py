"""Watches: changes of one resource, in order, exactly once, from any retained resourceVersion on.

`Objects.watch` makes a `Subscription`; the HTTP stream and the in-process registry read it in batches.

A subscription is a place in the shared log, not a queue: a commit only wakes those that wait, and everybody reads the
same events. So nothing can be lost or doubled between list and watch, a slow watcher holds no memory, and one that
falls behind the log is told so (410) instead of slowing the others.

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
from podscaler.controlplane.storage.selecting import SelectionPredicate
from podscaler.controlplane.storage.store import Store

BATCH_SIZE = 500
"""At most so many notices at once: a writer of frames gets to breathe."""


class Notice(msgspec.Struct, frozen=True, gc=False):
    """One watch event.

    Attributes:
        type: as the watcher sees it (an object that enters its selection is ADDED, one that leaves it DELETED).
        entry: the object as it now is; for DELETED as it last was, with the resourceVersion of the deletion.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    entry: Entry
    _frames: dict[Hashable, bytes]

    def encoded(self, form: Hashable, encode: Callable[["Notice"], bytes]) -> bytes:
        """`encode(self)`, made once for each `form` (version, Table, ...) and shared by the watchers of this event."""
        frame = self._frames.get((form, self.type))
        if frame is None:
            frame = self._frames[(form, self.type)] = encode(self)
        return frame


class Batch(msgspec.Struct, frozen=True, gc=False):
    """What came since the last batch.

    Attributes:
        notices: in order; empty only where `initial_done` is set, and after `Subscription.interrupt`.
        revision: everything up to here has been given: the resourceVersion of a bookmark sent now.
        initial_done: this batch ends the initial ADDED events (comes once in a subscription that has them,
            also where there are none).
    """

    notices: list[Notice]
    revision: int
    initial_done: bool = False


class Ended(Exception):
    """What was watched is no longer served as it was; every change before has been given."""


class Receiver(Protocol):
    """Takes what a watcher is to be told at once, at the commit, for as long as it keeps up: no task has to wake."""

    def has_room(self) -> bool:
        """Whether it can take a batch now."""
        ...

    def take(self, batch: Batch) -> None:
        """Take a batch. What it raises is raised again where the batch is then asked for."""
        ...


class Watchers:
    """Those who wait for changes, by resource; costs a commit only as much as there are watchers of what it changed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting: dict[str, set[Subscription]] = {}
        store.listen(self._wake)

    def _wake(self, events: list[StoreEvent]) -> None:
        changed: dict[str, set[str]] = {}
        for event in events:
            changed.setdefault(event.subject.resource, set()).add(event.subject.namespace)
        for resource, namespaces in changed.items():
            for subscription in tuple(self.waiting.get(resource, ())):
                subscription.notify(namespaces, events[-1].revision)


class Subscription:
    """One watcher. Costs nothing while nothing happens; made by `subscribe`.

    Args:
        watchers: where it waits.
        selection: what it is about.
        revision: changes after this revision are given.
        initial: the objects to give first, None for none.

    Attributes:
        receiver: is given what comes while somebody waits for a `batch`, which then waits on.
    """

    def __init__(
        self, watchers: Watchers, selection: SelectionPredicate, revision: int, initial: list[Entry] | None
    ) -> None:
        self._watchers = watchers
        self._selection = selection
        self._resource = selection.resource.storage_key
        self._seen = revision
        self._initial = initial
        self._given = 0
        self._is_interrupted = False
        self._is_ended = False
        self.receiver: Receiver | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_initial(self) -> bool:
        """Whether objects that there are from the start are still to be given: no bookmark can be sent yet."""
        return self._initial is not None

    @property
    def revision(self) -> int:
        """Everything up to here has been given, or is not selected: the resourceVersion of a bookmark sent now."""
        store = self._watchers.store
        if self._initial is not None or store.log.after(self._resource, self._seen, 1):
            return self._seen
        return store.revision

    async def batch(self) -> Batch:
        """The next changes, at most a few hundred; waits until there is one, or `interrupt`. Cancelling loses nothing.

        Raises StatusError 410 once the watcher fell behind the retained history, Ended after `end`: end the stream, the
        client resumes.
        """
        if self._initial is not None:
            return self._initial_batch(self._initial)
        while True:
            notices = self._collect()
            if notices or self._is_interrupted:
                self._is_interrupted = False
                return Batch(notices, self.revision)
            if self._is_ended:
                raise Ended
            if not self._watchers.store.log.after(self._resource, self._seen, 1):
                await self._wait()

    def notify(self, namespaces: Set[str], revision: int) -> None:
        """Tell of changes in `namespaces` if they may concern this watcher, else pass over all up to `revision`.

        Called while it waits.
        """
        wanted = self._selection.namespace
        if wanted and wanted not in namespaces:
            self._seen = max(self._seen, revision)
        elif self.receiver is None or not self._hand_over(self.receiver):
            self._wake()

    def interrupt(self) -> None:
        """Have `batch` return without waiting for a change, now or the next time."""
        self._is_interrupted = True
        self._wake()

    def end(self) -> None:
        """Give what has happened, and no more."""
        self._is_ended = True
        self._wake()

    def _hand_over(self, receiver: Receiver) -> bool:
        """Whether the receiver has taken all that is new."""
        if not receiver.has_room():
            return False
        seen = self._seen
        try:
            notices = self._collect()
            if notices:
                receiver.take(Batch(notices, self._seen))
        except Exception:
            self._seen = seen  # fails once more in the task that waits, where somebody hears of it
            return False
        return not self._watchers.store.log.after(self._resource, self._seen, 1)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _initial_batch(self, entries: list[Entry]) -> Batch:
        chunk = entries[self._given : self._given + BATCH_SIZE]
        self._given += len(chunk)
        done = self._given >= len(entries)
        if done:
            self._initial = None
        return Batch([Notice("ADDED", entry, {}) for entry in chunk], self._seen, initial_done=done)

    def _collect(self) -> list[Notice]:
        log = self._watchers.store.log
        if log.is_behind(self._resource, self._seen):
            raise too_old(self._seen, log.floor)
        notices = []
        for event in log.after(self._resource, self._seen, BATCH_SIZE):
            notice = _notice(event, self._selection)
            if notice is not None:
                notices.append(notice)
            self._seen = event.revision
        return notices

    async def _wait(self) -> None:
        waiting = self._watchers.waiting.setdefault(self._resource, set())
        self._waiter = asyncio.get_running_loop().create_future()
        waiting.add(self)
        try:
            await self._waiter
        finally:
            waiting.discard(self)
            self._waiter = None


def subscribe(watchers: Watchers, selection: SelectionPredicate, options: ListOptions) -> Subscription:
    """A watcher of `selection` from `options.resource_version` on.

    Unset or 0 begins with an ADDED for each object there is, and so does `send_initial_events` (then for an older
    version, too). A version that is still to come is not waited for: changes after it are given.

    Raises StatusError 410 for a version whose history is gone, 422 for options that do not go together, 500 for a
    version that is no number, 504 for one still to come with `send_initial_events`.
    """
    _check(options)
    store = watchers.store
    revision = listing.parse_revision(options.resource_version)
    if options.send_initial_events or (revision == 0 and options.send_initial_events is None):
        if revision > store.revision:
            raise api_errors.too_large_resource_version(revision, store.revision)
        entries = store.table(selection.resource.storage_key).select(selection.namespace)
        return Subscription(watchers, selection, store.revision, [each for each in entries if selection.matches(each)])
    if revision == 0:
        return Subscription(watchers, selection, store.revision, None)
    if revision < store.log.floor:
        raise too_old(revision, store.log.floor)
    return Subscription(watchers, selection, revision, None)


def too_old(revision: int, floor: int) -> StatusError:
    """410: changes after `revision` are no longer all there; those after `floor` are."""
    return api_errors.expired(f"too old resource version: {revision} ({floor})")


def _check(options: ListOptions) -> None:
    where, match = "resourceVersionMatch", options.resource_version_match
    errors = []
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(field.forbidden(where, f"sendInitialEvents requires setting {where} to NotOlderThan"))
    if not match and options.continue_token and options.resource_version in ("", "0"):
        # such a watch begins with what there is, which upstream words as options of its own before it looks at them
        errors.append(field.forbidden(where, f"{where} is forbidden when continue is provided"))
    if match:
        if options.send_initial_events is None:
            errors.append(
                field.forbidden(where, f"{where} is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            errors.append(field.not_supported(where, match, ("NotOlderThan",)))
        if options.continue_token:
            errors.append(field.forbidden(where, f"{where} is forbidden when continue is provided"))
    if errors:
        raise api_errors.invalid_options("ListOptions", errors)


def _notice(event: StoreEvent, selection: SelectionPredicate) -> Notice | None:
    """What a watcher of `selection` is told of `event`."""
    if not selection.namespace and not selection.is_filtered:
        frames = {} if event.frames is None else event.frames
        if event.entry is None:
            return Notice("DELETED", event.departed(), frames)
        return Notice("ADDED" if event.previous is None else "MODIFIED", event.entry, frames)
    is_in = event.entry is not None and selection.matches(event.entry)
    was_in = event.previous is not None and selection.matches(event.previous)
    frames = {} if event.frames is None else event.frames
    if is_in and event.entry is not None:
        return Notice("MODIFIED" if was_in else "ADDED", event.entry, frames)
    return Notice("DELETED", event.departed(), frames) if was_in else None
