"""Writes Events about autoscalers in the background, so that no sync waits for them.

The reporter of syncs calls `AutoscalerEventRecorder.record`, the end of the controller or of a lease `flush`; one task
(`run`) correlates and writes in order. When 1000 events wait, more are dropped. An event that the API server rejects is
logged and dropped; one that does not reach it is tried 12 times, 10 s apart.

An event is written by the write lease of the sync that recorded it (`podscaler.controller.leaderelection.fence`): the
handover of one shard neither delays nor drops the events of others. `podscaler.core` decides which events a decision
has; SyncReporter records others.

Source: docs/spec/controller.md 6 (Events).
"""

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from podscaler.base.clock import Clock, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import fence
from podscaler.controller.leaderelection.fence import LeadershipLost
from podscaler.controller.leaderelection.shard_ownership import KeyFilter, every_key
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.controller.options.autoscaler_kinds import HPA, AutoscalerKind
from podscaler.event_correlation import Correlator, EventDraft, core_event
from podscaler.kube.client import urls
from podscaler.kube.client.client import STRATEGIC_MERGE_PATCH, Client, is_not_found

log = logging.getLogger(__name__)

COMPONENT = "horizontal-pod-autoscaler"
BUFFER_EVENTS = 1000
ATTEMPTS = 12
RETRY_DELAY_S = 10.0
"""The wait between two attempts; the first one is a random part of it, as in client-go."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The autoscaler that an event is about, and its resourceVersion when the sync read it."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    kind: AutoscalerKind = HPA

    def make_event(self, draft: EventDraft) -> dict[str, Any]:
        """The core/v1 Event about this autoscaler as JSON-ready data."""
        involved = {
            "kind": self.kind.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.kind.api_version,
            "resourceVersion": self.resource_version,
        }
        reporter = "" if draft.is_combined else COMPONENT  # as client-go, whose combined events lack it
        return core_event(draft, involved, component=COMPONENT, reporter=reporter)


class _WaitingEvent(NamedTuple):
    """An event that is not written yet.

    Attributes:
        write_lease: the write lease of the sync that recorded it; None: the sync had none.
        finished: set when the event is written or dropped.
    """

    subject: Subject
    event: EventDraft
    write_lease: WriteLease | None
    finished: asyncio.Event


class AutoscalerEventRecorder:
    """Writes events about autoscalers in the background, in the order of their syncs.

    Args:
        rng: for the first wait and for the correlation.

    Attributes:
        dropped: how many events were dropped because too many waited.
    """

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._correlator = Correlator(rng)
        self._queue: asyncio.Queue[_WaitingEvent] = asyncio.Queue(BUFFER_EVENTS)
        self._unwritten: dict[int, _WaitingEvent] = {}  # by the instant of the event, which is unique
        self._last_at_ns = 0
        self.dropped = 0

    def record(self, subject: Subject, type_: str, reason: str, message: str) -> None:
        """Have an event written soon. Never waits; drops the event when too many wait."""
        log.debug("event %s/%s: %s %s: %s", subject.namespace, subject.name, type_, reason, message)
        self._last_at_ns = max(self._clock.now_ns(), self._last_at_ns + 1)  # names must differ within an instant
        identity = (subject.namespace, subject.name, subject.uid)
        event = EventDraft(
            subject=identity,
            object_name=subject.name,
            type=type_,
            reason=reason,
            message=message,
            at_ns=self._last_at_ns,
        )
        waiting = _WaitingEvent(subject, event, fence.current_write_lease(), asyncio.Event())
        try:
            self._queue.put_nowait(waiting)
            self._unwritten[event.at_ns] = waiting
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped == 1:
                log.warning("%d events wait to be written; new ones are dropped", BUFFER_EVENTS)

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            waiting = await self._queue.get()
            fence.enter(waiting.write_lease)  # the client sends nothing any more once this lease has ended
            try:
                event = self._correlator.correlate(waiting.event)
                if event is not None:
                    await self._deliver(waiting.subject, event)
            finally:
                del self._unwritten[waiting.event.at_ns]
                waiting.finished.set()

    async def flush(self, belongs: KeyFilter = every_key) -> None:
        """Return once every event about such autoscalers that was recorded so far is written or dropped."""
        for waiting in list(self._unwritten.values()):
            subject = waiting.subject
            if belongs(subject.kind.key(subject.namespace, subject.name)):
                await waiting.finished.wait()

    async def _deliver(self, subject: Subject, event: EventDraft) -> None:
        """Write one event, by the module's rules for failures; returns when it is written or dropped."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write(subject, event)
                return
            except LeadershipLost as error:
                log.debug("event %s is dropped: %s", event.name, error)  # the lost lease is logged once for all
                return
            except StatusError as error:
                if error.code != 0:
                    level = logging.DEBUG if error.code == 401 else logging.WARNING  # 401 is reported once for all
                    log.log(level, "event %s was rejected and is dropped: %s", event.name, error)
                    return
                log.debug("event %s could not be written (try %d of %d): %s", event.name, attempt, ATTEMPTS, error)
            if attempt < ATTEMPTS:
                await self._clock.sleep(RETRY_DELAY_S * (self._rng.random() if attempt == 1 else 1))
        log.warning("event %s is dropped after %d tries", event.name, ATTEMPTS)

    async def _write(self, subject: Subject, event: EventDraft) -> None:
        """Create the Event, or raise the count of one that was written before. Raises StatusError, LeadershipLost."""
        path = urls.path("api", "v1", "namespaces", subject.namespace, "events")
        if event.count > 1:
            patch = {"count": event.count, "lastTimestamp": rfc3339(event.at_ns), "message": event.message}
            body, event_path = msgspec.json.encode(patch), path + urls.path(event.name)
            try:
                await self._client.patch(event_path, body, subject="events", content_type=STRATEGIC_MERGE_PATCH)
                return
            except StatusError as error:
                if not is_not_found(error):
                    raise
        await self._client.post(path, msgspec.json.encode(subject.make_event(event)), subject="events")
