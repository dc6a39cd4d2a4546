"""The recent past: every change since a floor, in order, so that watches resume and lists stay consistent.

`store` appends what became durable; `watching` and `listing` read. Bounded by count, age and the bytes of versions that
only the log still holds; what is dropped moves the floor. Bodies are shared with the current entries.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.entries import Entry

_FRESH = 256
"""How many of the newest events keep their encoded frames: watchers that keep up share them, others encode again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much past is kept: a watcher may be away for ten minutes, as with etcd's compaction every five.

    `superseded_bytes` bounds what old versions of changed objects cost in memory and on disk.
    """

    count: int = 20_000
    age_s: float = 600.0
    superseded_bytes: int = 32 * 1024 * 1024


class StoreEvent:
    """One change: `entry` is the object since then (None: deleted), `previous` what it was before (None: created)."""

    __slots__ = ("_departed", "at_ns", "entry", "frames", "previous", "revision")

    def __init__(self, revision: int, at_ns: int, entry: Entry | None, previous: Entry | None) -> None:
        self.revision = revision
        self.at_ns = at_ns
        self.entry = entry
        self.previous = previous
        self.frames: dict[Hashable, bytes] | None = None
        self._departed: Entry | None = None

    @property
    def subject(self) -> Entry:
        """The newest version that there is of the object."""
        subject = self.entry or self.previous
        if subject is None:
            raise AssertionError("an event without any version")
        return subject

    def departed(self) -> Entry:
        """What a watcher is shown when the object is gone for it: the previous version as of this revision."""
        if self._departed is None:
            if self.previous is None:
                raise AssertionError("nothing departs with a creation")
            self._departed = entries.at_revision(self.previous, self.revision)
        return self._departed


class _Ring:
    """The retained events of one resource; dropping from the front is cheap, so is the search for a revision."""

    __slots__ = ("events", "first", "floor", "revisions")

    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.revisions: list[int] = []
        self.first = 0
        self.floor = 0

    def append(self, event: StoreEvent) -> None:
        self.events.append(event)
        self.revisions.append(event.revision)

    def drop_first(self) -> None:
        self.floor = self.revisions[self.first]
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
        floor: the revision up to which history is gone.
        retention: what is kept.
    """

    def __init__(self, floor: int, retention: Retention) -> None:
        self.floor = floor
        self._retention = retention
        self._rings: dict[str, _Ring] = {}
        self._order: deque[StoreEvent] = deque()
        self._fresh: deque[StoreEvent] = deque()
        self._superseded_bytes = 0

    def __len__(self) -> int:
        """How many events are retained."""
        return len(self._order)

    def append(self, event: StoreEvent) -> None:
        """Take the next event; revisions only rise."""
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
        """Whether events of `resource` after `revision` were dropped already."""
        ring = self._rings.get(resource)
        return ring is not None and revision < ring.floor

    def trim(self, now_ns: int) -> list[int]:
        """Drop what is no longer retained; returns the revisions whose versions nobody needs any more."""
        oldest_ns = now_ns - round(self._retention.age_s * NANOSECONDS)
        obsolete: list[int] = []
        while self._order and self._is_over(oldest_ns):
            obsolete += self._drop_first()
        return obsolete

    def clear(self, floor: int) -> list[int]:
        """Drop everything: history begins after `floor`; returns as `trim`."""
        obsolete: list[int] = []
        while self._order:
            obsolete += self._drop_first()
        self.floor = floor
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
        self.floor = event.revision
        obsolete = [event.previous.revision] if event.previous else []
        return obsolete if event.entry else [*obsolete, event.revision]


def _superseded_bytes(event: StoreEvent) -> int:
    return len(event.previous.body) if event.previous else 0
