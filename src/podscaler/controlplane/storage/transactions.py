"""One writer's view while it decides: the newest versions, on disk or on their way there, and its own changes.

`Store.write` makes one for each decision and takes its changes over if the decision stands.
"""

from collections.abc import Callable

from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.change_log import StoreEvent
from podscaler.controlplane.storage.entries import Entry, Object

_DIGITS_BYTES = 16
"""By how much numbers in an object (its version, counters) may grow before it counts as larger."""

Find = Callable[[str, str], Entry | None]


class Transaction:
    """The objects as one decision sees and changes them.

    Args:
        find: the newest version of a resource's key, also one that is not yet durable.
        revision: the newest revision given out.
        now_ns: the wall clock, the same for the whole decision.
        dry_run: whether the changes are for show: none is kept, and objects keep the resourceVersion that they have.
    """

    def __init__(self, find: Find, *, revision: int, now_ns: int, dry_run: bool = False) -> None:
        self._find = find
        self._revision = revision
        self.is_dry = dry_run
        self.now_ns = now_ns
        self.events: list[StoreEvent] = []
        self._undo: list[Callable[[], None]] = []

    def fits_full_disk(self) -> bool:
        """Whether a full disk still takes it: it needs no more space than what it replaces.

        It removes objects, changes those that are being deleted, or makes others not larger: what pods and nodes report
        while they go.
        """
        return all(map(_takes_no_space, self.events))

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Call `undo` if the changes are not committed: the newest first, when reads show the last commit again."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Call what was given to `on_failure`; for the store."""
        while self._undo:
            self._undo.pop()()

    def find(self, resource: str, namespace: str, name: str) -> Entry | None:
        """The newest version, None where there is no object."""
        key = entries.key_of(namespace, name)
        for event in reversed(self.events):
            if event.subject.resource == resource and event.subject.key == key:
                return event.entry
        return self._find(resource, key)

    def put(self, resource: str, obj: Object) -> Entry:
        """Make `obj` (storage version, with name and namespace) the newest version; it gets the next revision."""
        metadata = obj["metadata"]
        previous = self.find(resource, metadata.get("namespace", ""), metadata["name"])
        if self.is_dry:
            return entries.from_object(resource, obj, previous.revision if previous else 0)
        entry = entries.from_object(resource, obj, self._next_revision())
        if previous is not None and previous.uid == entry.uid:
            entry.share(previous)
        self.events.append(StoreEvent(entry.revision, self.now_ns, entry, previous))
        return entry

    def remove(self, entry: Entry) -> Entry:
        """Remove the object of which `entry` is the newest version; returns it with the revision of its end."""
        if self.is_dry:
            return entry
        event = StoreEvent(self._next_revision(), self.now_ns, None, entry)
        self.events.append(event)
        return event.departed()

    def _next_revision(self) -> int:
        self._revision += 1
        return self._revision


def _takes_no_space(event: StoreEvent) -> bool:
    if event.entry is None:
        return True
    if event.previous is not None and len(event.entry.body) <= len(event.previous.body) + _DIGITS_BYTES:
        return True
    return "deletionTimestamp" in event.entry.decode()["metadata"]
