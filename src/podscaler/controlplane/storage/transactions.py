"""Gives the code that decides a write its view of the store, and collects its changes.

`storage.store.Store.write` creates a `Transaction` for each write, passes it to the caller's function (the decision),
and commits the collected changes if that raises no error; decisions are methods of `registry.object_writer`. Reads
return the newest versions: of this write, of earlier writes that are not committed yet, else of the last commit.
"""

from collections.abc import Callable

from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.change_log import StoreEvent
from podscaler.controlplane.storage.entries import Entry, Object

_SAME_SIZE_TOLERANCE_BYTES = 16
"""How many bytes an object may grow (digits of its version and counters) without counting as larger."""

FindNewest = Callable[[str, str], Entry | None]
"""From resource and key to the newest version, None if there is no object."""


class Transaction:
    """One write while it is decided.

    Args:
        find: finds the newest committed or decided version at a resource and key, as before this transaction.
        revision: the newest assigned revision.
        now_ns: the wall clock in nanoseconds since the epoch, constant during the decision.
        dry_run: whether changes are discarded; objects then keep their resourceVersion.

    Attributes:
        events: the changes so far, in order; always empty in a dry run.
        is_dry, now_ns: as `dry_run` and `now_ns`.
    """

    def __init__(self, find: FindNewest, *, revision: int, now_ns: int, dry_run: bool = False) -> None:
        self._find = find
        self._revision = revision
        self.is_dry = dry_run
        self.now_ns = now_ns
        self.events: list[StoreEvent] = []
        self._undo_functions: list[Callable[[], None]] = []

    def fits_full_disk(self) -> bool:
        """Whether the write is accepted on a full disk, as it needs no more space than the versions that it replaces.

        Such a write removes objects, changes objects that are being deleted, or does not enlarge others: these are the
        writes of controllers and node during deletion.
        """
        return all(map(_takes_no_space, self.events))

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Call `undo` if the commit fails, in reverse order, when reads return the last commit again."""
        self._undo_functions.append(undo)

    def undo(self) -> None:
        """Call the functions passed to `on_failure`; for the store."""
        while self._undo_functions:
            self._undo_functions.pop()()

    def find(self, resource: str, namespace: str, name: str) -> Entry | None:
        """The newest version, None if there is no object."""
        key = entries.key_of(namespace, name)
        for event in reversed(self.events):
            if event.subject.resource == resource and event.subject.key == key:
                return event.entry
        return self._find(resource, key)

    def put(self, resource: str, obj: Object) -> Entry:
        """Store `obj` (storage version, with name and namespace) as the newest version, with the next revision.

        A dry run stores nothing: its entry has the revision of the stored version, 0 for a new object.
        """
        metadata = obj["metadata"]
        previous = self.find(resource, metadata.get("namespace", ""), metadata["name"])
        if self.is_dry:
            return entries.from_object(resource, obj, previous.revision if previous else 0)
        entry = entries.from_object(resource, obj, self._next_revision())
        if previous is not None and previous.uid == entry.uid:  # else a new object of that name
            entry.share_strings(previous)
        self.events.append(StoreEvent(entry.revision, self.now_ns, entry, previous))
        return entry

    def remove(self, entry: Entry) -> Entry:
        """Remove the object with the newest version `entry`; returns the tombstone, or for a dry run `entry`."""
        if self.is_dry:
            return entry
        event = StoreEvent(self._next_revision(), self.now_ns, None, entry)
        self.events.append(event)
        return event.tombstone()

    def _next_revision(self) -> int:
        """Assign a revision."""
        self._revision += 1
        return self._revision


def _takes_no_space(event: StoreEvent) -> bool:
    """Whether a change removes an object, does not enlarge it, or is one of an object that is being deleted."""
    if event.entry is None:
        return True
    if event.previous is not None and len(event.entry.body) <= len(event.previous.body) + _SAME_SIZE_TOLERANCE_BYTES:
        return True
    return "deletionTimestamp" in event.entry.decode()["metadata"]
