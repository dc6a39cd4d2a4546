"""Keeps the recent changes of all objects in memory, so that watches resume and lists stay consistent.

`storage.store` appends durable changes; `storage.watching` and `listing` read. The log is bounded by count, age and the
bytes of old versions (`Retention`); dropping events raises the compacted revision: the newest revision whose events
were dropped, so that a watch from an earlier one must fail. Bodies are shared with the current entries. A new bound: a
field of `Retention` and a condition in `EventLog._exceeds_retention`.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry

_EVENTS_WITH_FRAMES_MAX = 256
"""How many of the newest events cache their encoded frames for all watchers; slower watchers encode again."""
_NO_LIMIT = 1 << 62
_MIN_DROPPED_EVENTS = 64
_DROPPED_SHARE_DIVISOR = 8
"""Dropped events are deleted from the lists of a kind once they are more than 64, and more than an eighth of them."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The bounds of the change log.

    Attributes:
        count: the most events.
        age_s: the age of the oldest event. kube-apiserver compacts etcd every five minutes, to the revision of the time
            before, so that its events are dropped when they are five to ten minutes old; clients may rely on both.
        superseded_bytes: the most bytes of old versions, in memory and on disk.
    """

    count: int = 20_000
    age_s: float = 450.0
    superseded_bytes: int = 32 * 1024 * 1024


class StoreEvent:
    """One change of one object.

    Attributes:
        revision: the resourceVersion of the change.
        at_ns: the wall clock at the change, nanoseconds since the epoch.
        entry: the new version, None if the object was deleted.
        previous: the old version, None if the object was created.
        frames: cache of encoded watch events, which `storage.watching` fills; None before the event is appended to the
            log, and once `_EVENTS_WITH_FRAMES_MAX` newer ones were.
    """

    __slots__ = ("_tombstone", "at_ns", "entry", "frames", "previous", "revision")

    def __init__(self, revision: int, at_ns: int, entry: Entry | None, previous: Entry | None) -> None:
        self.revision = revision
        self.at_ns = at_ns
        self.entry = entry
        self.previous = previous
        self.frames: dict[Hashable, bytes] | None = None
        self._tombstone: Entry | None = None

    @property
    def subject(self) -> Entry:
        """The new version, or for a deletion the last one. Raises AssertionError for an event without either."""
        subject = self.entry or self.previous
        if subject is None:
            raise AssertionError("an event without any version")
        return subject

    def tombstone(self) -> Entry:
        """The entry of a DELETED event: the previous version with the revision of this event.

        Raises AssertionError for a creation.
        """
        if self._tombstone is None:
            if self.previous is None:
                raise AssertionError("a creation has no tombstone")
            self._tombstone = entries.at_revision(self.previous, self.revision)
        return self._tombstone


class _KindEvents:
    """The retained events of one resource; dropping the oldest and finding a revision are cheap.

    Attributes:
        events, revisions: in order; those before `first_index` are dropped.
        compacted_revision: of the newest dropped event; 0 if there is none.
    """

    __slots__ = ("compacted_revision", "events", "first_index", "revisions")

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.revisions: list[int] = []
        self.first_index = 0
        self.compacted_revision = 0

    def append(self, event: StoreEvent) -> None:
        """Append the newest event."""
        self.events.append(event)
        self.revisions.append(event.revision)

    def drop_first(self) -> None:
        """Drop the oldest event; the lists are cut in blocks, as each deletion at their start moves all later items."""
        self.compacted_revision = self.revisions[self.first_index]
        self.first_index += 1
        if self.first_index > _MIN_DROPPED_EVENTS and self.first_index * _DROPPED_SHARE_DIVISOR > len(self.events):
            del self.events[: self.first_index], self.revisions[: self.first_index]
            self.first_index = 0

    def after(self, revision: int, limit: int) -> list[StoreEvent]:
        """At most `limit` retained events after `revision`, oldest first."""
        start = bisect_right(self.revisions, revision, self.first_index)
        return self.events[start : start + limit]


class EventLog:
    """The retained events of all kinds; `resource` arguments are `Resource.key` (`pods`, `deployments.apps`).

    Args:
        compacted_revision: the newest revision whose events were dropped.
        retention: the bounds of the log.
    """

    def __init__(self, compacted_revision: int, retention: Retention) -> None:
        self.compacted_revision = compacted_revision
        self._retention = retention
        self._events_by_kind: dict[str, _KindEvents] = {}
        self._all_events: deque[StoreEvent] = deque()
        self._events_with_frames: deque[StoreEvent] = deque()
        self._superseded_bytes = 0

    def __len__(self) -> int:
        """The number of retained events."""
        return len(self._all_events)

    def append(self, event: StoreEvent) -> None:
        """Append an event; its revision is higher than all before."""
        resource = event.subject.resource
        kind_events = self._events_by_kind.get(resource)
        if kind_events is None:
            kind_events = self._events_by_kind[resource] = _KindEvents()
        kind_events.append(event)
        self._all_events.append(event)
        self._superseded_bytes += _superseded_bytes(event)
        event.frames = {}
        self._events_with_frames.append(event)
        if len(self._events_with_frames) > _EVENTS_WITH_FRAMES_MAX:
            self._events_with_frames.popleft().frames = None

    def after(self, resource: str, revision: int, limit: int = _NO_LIMIT) -> Sequence[StoreEvent]:
        """At most `limit` events of `resource` after `revision`, oldest first; complete if not `is_behind`."""
        kind_events = self._events_by_kind.get(resource)
        return kind_events.after(revision, limit) if kind_events else ()

    def is_behind(self, resource: str, revision: int) -> bool:
        """Whether events of `resource` after `revision` were dropped."""
        kind_events = self._events_by_kind.get(resource)
        return kind_events is not None and revision < kind_events.compacted_revision

    def trim(self, now_ns: int) -> list[int]:
        """Drop events beyond the retention; returns the revisions whose rows in the database are obsolete."""
        oldest_ns = now_ns - round(self._retention.age_s * NANOSECONDS)
        obsolete: list[int] = []
        while self._all_events and self._exceeds_retention(oldest_ns):
            obsolete += self._drop_first()
        return obsolete

    def clear(self, compacted_revision: int) -> list[int]:
        """Drop all events and set the compacted revision; returns as `trim`."""
        obsolete: list[int] = []
        while self._all_events:
            obsolete += self._drop_first()
        self.compacted_revision = compacted_revision
        return obsolete

    def _exceeds_retention(self, oldest_ns: int) -> bool:
        """Whether the log exceeds its retention; events before `oldest_ns` (since the epoch) are too old."""
        return (
            len(self._all_events) > self._retention.count
            or self._superseded_bytes > self._retention.superseded_bytes
            or self._all_events[0].at_ns < oldest_ns
        )

    def _drop_first(self) -> list[int]:
        """Drop the oldest event; returns the obsolete revisions: the replaced version, and a deletion itself."""
        event = self._all_events.popleft()
        self._events_by_kind[event.subject.resource].drop_first()
        self._superseded_bytes -= _superseded_bytes(event)
        self.compacted_revision = event.revision
        obsolete = [event.previous.revision] if event.previous else []
        return obsolete if event.entry else [*obsolete, event.revision]


def _superseded_bytes(event: StoreEvent) -> int:
    """The size of the old version, 0 for a new object."""
    return len(event.previous.body) if event.previous else 0
