"""Builds Events and correlates them: repeats are counted, similar ones combined, floods dropped.

Event recorders (`reconcile.event_recorder` of the controller, `registry.events` of the control plane) pass each event
to `Correlator.correlate`. Steps, in order:

1. Aggregation: a group (one object, type and reason) with 10 or more distinct messages within 10 minutes of one another
   sends one combined event in place of the single ones.
2. Counting: an event that was sent earlier is not created again; its `count` rises.
3. Spam filter: a bucket of 25 tokens for each object and type, refilled by one in 5 minutes. An event without a
   token is dropped after it was counted, so that the next one that is sent has the larger count.

Example: the same event three times is created once with count 1, then patched to 2 and 3. The module neither waits nor
sends; the time is that of the events. Memory is bounded by CACHE_ENTRIES for each step.

Source: docs/spec/controller.md 6 (Events); client-go/tools/record (documentation).
"""

import random
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from podscaler.api.machinery import names
from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.base.lru import LRU

CACHE_ENTRIES = 4096
"""The highest number of groups, of sent Events and of buckets that are remembered."""
GROUP_MESSAGES = 10
"""The number of distinct messages from which on a group is combined."""
GROUP_AGE_MAX_NS = 600 * NANOSECONDS
"""The time after the latest message of a group at which the group is forgotten."""
BURST_TOKENS = 25.0
"""The number of tokens in a full bucket."""
REFILL_NS = 300 * NANOSECONDS
"""The time in which a bucket gets one token."""


@dataclass(frozen=True, slots=True)
class EventDraft:
    """One event before it is written.

    Attributes:
        subject: identifies the object of the event (and its part, where that is known).
        object_name: the object's name, from which the Event's is made.
        type: `Normal` or `Warning`.
        reason, message: the fields of the Event.
        at_ns: the instant of the event, nanoseconds since 1970.
        name: the name of the Event object; set by `Correlator.correlate`, as are the next three.
        first_at_ns: the instant of the first of its repeats.
        count: how often it has happened, this time included.
        is_combined: whether it stands for several similar events.
    """

    subject: Hashable
    object_name: str
    type: str
    reason: str
    message: str
    at_ns: int
    name: str = ""
    first_at_ns: int = 0
    count: int = 1
    is_combined: bool = False


@dataclass(slots=True)
class _Group:
    """The distinct messages of one object, type and reason."""

    messages: set[str] = field(default_factory=set)
    last_at_ns: int = 0


@dataclass(frozen=True, slots=True)
class _Sent:
    """The Event that an event was last written to."""

    name: str
    first_at_ns: int
    count: int


@dataclass(slots=True)
class _Bucket:
    """The tokens of one object and type, as of the last refill."""

    tokens: float
    filled_at_ns: int


class Correlator:
    """Aggregates, counts and limits the events of one recorder; has the state of the three steps.

    Args:
        rng: chooses the message that is dropped from a full group, and names where the object's name is no valid one.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._groups: LRU[tuple[Hashable, str, str], _Group] = LRU(CACHE_ENTRIES)
        self._sent: LRU[tuple[Hashable, str, str, str], _Sent] = LRU(CACHE_ENTRIES)
        self._buckets: LRU[tuple[Hashable, str], _Bucket] = LRU(CACHE_ENTRIES)

    def correlate(self, event: EventDraft) -> EventDraft | None:
        """The event to send, with name and count: to create if its count is 1, else to patch. None: send nothing.

        Each call counts: the steps keep their state.
        """
        event = self._aggregated(replace(event, name=self._event_name(event), first_at_ns=event.at_ns))
        event = self._counted(event)
        return event if self._take_token(event) else None

    def _aggregated(self, event: EventDraft) -> EventDraft:
        """Step 1: in a full group, a random message is dropped (as client-go's string set pops one)."""
        key = (event.subject, event.type, event.reason)
        group = self._groups.find(key)
        if group is None or event.at_ns - group.last_at_ns > GROUP_AGE_MAX_NS:
            self._groups.put(key, group := _Group())
        group.messages.add(event.message)
        group.last_at_ns = event.at_ns
        if len(group.messages) < GROUP_MESSAGES:
            return event
        group.messages.discard(self._rng.choice(sorted(group.messages)))
        return replace(event, message=f"(combined from similar events): {event.message}", is_combined=True)

    def _counted(self, event: EventDraft) -> EventDraft:
        """Step 2: the event with the name and the count of the Event that it repeats, if one was sent."""
        message = "" if event.is_combined else event.message
        key = (event.subject, event.type, event.reason, message)
        earlier = self._sent.find(key)
        if earlier is not None:
            event = replace(event, name=earlier.name, first_at_ns=earlier.first_at_ns, count=earlier.count + 1)
        self._sent.put(key, _Sent(event.name, event.first_at_ns, event.count))
        return event

    def _take_token(self, event: EventDraft) -> bool:
        """Step 3: take a token from the bucket of the event's object and type; False if it has none."""
        key = (event.subject, event.type)
        bucket = self._buckets.find(key)
        if bucket is None:
            self._buckets.put(key, bucket := _Bucket(BURST_TOKENS, event.at_ns))
        refill = (event.at_ns - bucket.filled_at_ns) / REFILL_NS
        refill = max(refill, 0.0)  # below 0 after the clock was set back
        bucket.tokens = min(BURST_TOKENS, bucket.tokens + refill)
        bucket.filled_at_ns = event.at_ns
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _event_name(self, event: EventDraft) -> str:
        """The name of a new Event, `OBJECT.INSTANT` as client-go's; a random one where that is no valid name."""
        name = f"{event.object_name}.{event.at_ns:x}"
        return f"{self._rng.getrandbits(128):032x}" if names.dns_subdomain_errors(name) else name


def core_event(
    event: EventDraft, involved: dict[str, str], *, component: str, host: str = "", reporter: str | None = None
) -> dict[str, Any]:
    """The Event as JSON-ready data.

    Args:
        event: correlated, so that it has a name.
        involved: the fields of `involvedObject`; those that are empty are left out.
        component: `source.component`, the program that reports.
        host: `source.host` and `reportingInstance`; empty: the component belongs to no node.
        reporter: `reportingComponent`; None: equal to `component`.
    """
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": involved.get("namespace") or "default"},
        "involvedObject": _without_empty(involved),
        "reason": event.reason,
        "message": event.message,
        "source": _without_empty({"component": component, "host": host}),
        "firstTimestamp": rfc3339(event.first_at_ns),
        "lastTimestamp": rfc3339(event.at_ns),
        "count": event.count,
        "type": event.type,
        "eventTime": None,
        "reportingComponent": component if reporter is None else reporter,
        "reportingInstance": host,
    }


def _without_empty(values: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}
