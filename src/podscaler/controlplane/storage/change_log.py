"""Change log in memory: the events since the last compaction, so that watches resume and lists stay consistent.

`store` appends durable changes; `watching` and `listing` read. The log is bounded by count, age and the bytes of old
versions; dropping events raises the compacted revision. Bodies are shared with the current entries.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry

_FRESH = 256
"""How many of the newest events cache their encoded frames for all watchers; slower watchers encode again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much history is kept: a watcher may resume after ten minutes, as with etcd's compaction every five.

    `superseded_bytes` limits the size of old versions in memory and on disk.
    """

    count: int = 20_000
    age_s: float = 600.0
    superseded_bytes: int = 32 * 1024 * 1024


class StoreEvent:
    """One change: `entry` is the new version (None: deleted), `previous` the old one (None: created).

    `frames` caches encoded watch events, None once the event is no longer fresh.
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
        """The new version, or for a deletion the last one."""
        subject = self.entry or self.previous
        if subject is None:
            raise AssertionError("an event without any version")
        return subject

    def tombstone(self) -> Entry:
        """The entry of a DELETED event: the previous version with the revision of this event."""
        if self._tombstone is None:
            if self.previous is None:
                raise AssertionError("a creation has no tombstone")
            self._tombstone = entries.at_revision(self.previous, self.revision)
        return self._tombstone


class _Ring:
    """The retained events of one resource; dropping the oldest and finding a revision are cheap."""

    __slots__ = ("compacted_revision", "events", "first", "revisions")

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.revisions: list[int] = []
        self.first = 0
        self.compacted_revision = 0

    def append(self, event: StoreEvent) -> None:
        self.events.append(event)
        self.revisions.append(event.revision)

    def drop_first(self) -> None:
        self.compacted_revision = self.revisions[self.first]
        self.first += 1
        if self.first > 64 and self.first * 8 > len(self.events):
            del self.events[: self.first], self.revisions[: self.first]
            self.first = 0

    def after(self, revision: int, limit: int) -> list[StoreEvent]:
        start = bisect_right(self.revisions, revision, self.first)
        return self.events[start : start + limit]


class EventLog:
    """All retained events.

    Args:
        compacted_revision: the newest revision whose events were dropped.
        retention: how many events are kept.
    """

    def __init__(self, compacted_revision: int, retention: Retention) -> None:
        self.compacted_revision = compacted_revision
        self._retention = retention
        self._rings: dict[str, _Ring] = {}
        self._order: deque[StoreEvent] = deque()
        self._fresh: deque[StoreEvent] = deque()
        self._superseded_bytes = 0

    def __len__(self) -> int:
        """The number of retained events."""
        return len(self._order)

    def append(self, event: StoreEvent) -> None:
        """Append an event; its revision is higher than all before."""
        resource = event.subject.resource
        ring = self._rings.get(resource)
        if ring is None:
            ring = self._rings[resource] = _Ring()
        ring.append(event)
        self._order.append(event)
        self._superseded_bytes += _superseded_bytes(event)
        event.frames = {}
        self._fresh.append(event)
        if len(self._fresh) > _FRESH:
            self._fresh.popleft().frames = None

    def after(self, resource: str, revision: int, limit: int = 1 << 62) -> Sequence[StoreEvent]:
        """At most `limit` events of `resource` after `revision`, oldest first; complete if not `is_behind`."""
        ring = self._rings.get(resource)
        return ring.after(revision, limit) if ring else ()

    def is_behind(self, resource: str, revision: int) -> bool:
        """Whether events of `resource` after `revision` were dropped."""
        ring = self._rings.get(resource)
        return ring is not None and revision < ring.compacted_revision

    def trim(self, now_ns: int) -> list[int]:
        """Drop events beyond the retention; returns the revisions whose stored versions are obsolete."""
        oldest_ns = now_ns - round(self._retention.age_s * NANOSECONDS)
        obsolete: list[int] = []
        while self._order and self._is_over(oldest_ns):
            obsolete += self._drop_first()
        return obsolete

    def clear(self, compacted_revision: int) -> list[int]:
        """Drop all events and set the compacted revision; returns as `trim`."""
        obsolete: list[int] = []
        while self._order:
            obsolete += self._drop_first()
        self.compacted_revision = compacted_revision
        return obsolete

    def _is_over(self, oldest_ns: int) -> bool:
        return (
            len(self._order) > self._retention.count
            or self._superseded_bytes > self._retention.superseded_bytes
            or self._order[0].at_ns < oldest_ns
        )

    def _drop_first(self) -> list[int]:
        event = self._order.popleft()
        self._rings[event.subject.resource].drop_first()
        self._superseded_bytes -= _superseded_bytes(event)
        self.compacted_revision = event.revision
        obsolete = [event.previous.revision] if event.previous else []
        return obsolete if event.entry else [*obsolete, event.revision]


def _superseded_bytes(event: StoreEvent) -> int:
    return len(event.previous.body) if event.previous else 0
