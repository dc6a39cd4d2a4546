"""What becomes of one reported event: a new Event object, a higher count of an old one, or nothing.

Called by `events.EventRecorder`. Pure: `now_ns` is an argument. In this order, as client-go's recorder does:

1. Aggregation: ten or more different messages of one object, type and reason within ten minutes become one event whose
   message starts with "(combined from similar events): ".
2. Counting: an event that was reported before raises the count of the Event that stands for it.
3. Spam filter: a burst of 25 events of one object and type, then one every 300 s; the others are dropped, but counted.

Source: k8s.io/client-go/tools/record, EventCorrelator (documentation); ../shared/spec/controller.md 6.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from podscaler.clock import NANOSECONDS

CACHE_ENTRIES: Final = 4096
SIMILAR_MESSAGES: Final = 10
SIMILAR_WINDOW_S: Final = 600
BURST: Final = 25
REFILL_S: Final = 300

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Report:
    """One event as a component reports it.

    Attributes:
        subject: what identifies the object and, where it has one, the part of it (fieldPath).
        object_name: the object's name, from which the Event's name is made.
        type: `Normal` or `Warning`.
    """

    subject: tuple[str, ...]
    object_name: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Written:
    """The Event object that stands for equal reports: its name, count, and first time (nanoseconds)."""

    name: str
    count: int
    first_ns: int
    message: str


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last_ns: int = 0


@dataclass(slots=True)
class _Bucket:
    tokens: float = BURST
    filled_ns: int = 0


class _Recent(Generic[V]):
    """The entries used last, at most CACHE_ENTRIES."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: Hashable, entry: V) -> V:
        self._entries[key] = entry
        if len(self._entries) > CACHE_ENTRIES:
            self._entries.popitem(last=False)
        return entry


class EventCorrelator:
    """The memory of one component's events; see the module's rules."""

    def __init__(self) -> None:
        self._similar: _Recent[_Similar] = _Recent()
        self._written: _Recent[Written] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()
        self._last_stamp = 0

    def correlate(self, report: Report, now_ns: int) -> Written | None:
        """The Event to write for `report` (count 1: create it), None where it is to be dropped."""
        message, identity = self._aggregate(report, now_ns)
        written = self._written.get(identity)
        if written is None:
            name = f"{report.object_name}.{self._stamp(now_ns):x}"
            written = self._written.put(identity, Written(name=name, count=0, first_ns=now_ns, message=message))
        written.count += 1
        written.message = message
        return written if self._passes(report, now_ns) else None

    def _stamp(self, now_ns: int) -> int:
        """`now_ns`, moved on where another event has that name already."""
        self._last_stamp = max(now_ns, self._last_stamp + 1)
        return self._last_stamp

    def _aggregate(self, report: Report, now_ns: int) -> tuple[str, Hashable]:
        group = (report.subject, report.type, report.reason)
        similar = self._similar.get(group) or self._similar.put(group, _Similar())
        if now_ns - similar.last_ns > SIMILAR_WINDOW_S * NANOSECONDS:
            similar.messages.clear()
        similar.last_ns = now_ns
        similar.messages.add(report.message)
        if len(similar.messages) < SIMILAR_MESSAGES:
            return report.message, (group, report.message)
        similar.messages.discard(next(message for message in similar.messages if message != report.message))
        return f"(combined from similar events): {report.message}", group

    def _passes(self, report: Report, now_ns: int) -> bool:
        key = (report.subject, report.type)
        bucket = self._buckets.get(key) or self._buckets.put(key, _Bucket(filled_ns=now_ns))
        refill = (now_ns - bucket.filled_ns) / (REFILL_S * NANOSECONDS)
        bucket.tokens = min(bucket.tokens + refill, BURST)
        bucket.filled_ns = now_ns
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
