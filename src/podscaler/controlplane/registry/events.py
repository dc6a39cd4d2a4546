"""Records core/v1 Events for controllers and node, without waiting for the write (the place of client-go's recorder).

Events go through a bounded buffer (new ones are dropped when it is full) to one writer task per recorder, which runs
only while there are events to write. A repeated event increases the count of the stored one. An event that the registry
refuses is logged and dropped. Controllers and `controlplane.kubelet` call `EventRecorder.event`; `kubelet.node_agent`
calls `flush` when it stops. A new field of Events goes into `podscaler.event_correlation.core_event`.
"""

import asyncio
import logging
import random
from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.registry import Object, Registry
from podscaler.event_correlation import Correlator, EventDraft, core_event

BUFFERED_EVENTS: Final = 5000
BATCH_EVENTS: Final = 64
"""How many events are written concurrently, so that they share a commit."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _BatchedEvent:
    """An Event to write, and whether it is to be created, not updated."""

    event: Object
    is_new: bool


class EventRecorder:
    """Records the Events of one component.

    Args:
        registry: where Events are written.
        component: `source.component` and `reportingComponent`: `kubelet`, `deployment-controller`, ...
        clock: for timestamps.
        host: `source.host`: the node's name for a component of a node.
    """

    def __init__(self, registry: Registry, component: str, clock: Clock, *, host: str = "") -> None:
        self._registry = registry
        self._component = component
        self._clock = clock
        self._host = host
        self._correlator = Correlator(random.Random())
        self._buffer: deque[tuple[Object, str, EventDraft]] = deque()
        self._last_event_ns = 0
        self._writer_task: asyncio.Task[None] | None = None
        self._has_dropped = False

    def event(
        self, obj: Object, type: Literal["Normal", "Warning"], reason: str, message: str, *, field_path: str = ""
    ) -> None:
        """Record an Event about `obj`; never waits or raises.

        Args:
            obj: the object; only its apiVersion, kind and metadata are read.
            type: the type of the Event.
            reason: a short reason in CamelCase, such as `FailedMount`.
            message: a sentence for users.
            field_path: a part of the object (`spec.containers{web}`), empty for the whole object.
        """
        if len(self._buffer) >= BUFFERED_EVENTS:
            if not self._has_dropped:
                _log.warning("events are dropped, as the buffer is full; first: %s %s", reason, message)
            self._has_dropped = True
            return
        # names contain the time and must differ
        self._last_event_ns = max(self._clock.now_ns(), self._last_event_ns + 1)
        event = EventDraft(
            _correlation_subject(obj, field_path), obj["metadata"]["name"], type, reason, message, self._last_event_ns
        )
        self._buffer.append((obj, field_path, event))
        if self._writer_task is None or self._writer_task.done():
            self._writer_task = asyncio.get_running_loop().create_task(self._write_buffered())

    async def flush(self) -> None:
        """Return once all events recorded so far are written or dropped."""
        if self._writer_task is not None:
            await self._writer_task

    async def _write_buffered(self) -> None:
        """Write the buffered events in batches; similar events of a batch become one."""
        while self._buffer:
            self._has_dropped = False
            batch: dict[str, _BatchedEvent] = {}
            for _ in range(min(len(self._buffer), BATCH_EVENTS)):
                self._correlate(batch, *self._buffer.popleft())
            await asyncio.gather(*(self._write_or_log(batched) for batched in batch.values()))

    def _correlate(self, batch: dict[str, _BatchedEvent], obj: Object, field_path: str, recorded: EventDraft) -> None:
        """Add the recorded event to the batch, unless the correlator drops it; a repetition replaces it there."""
        correlated = self._correlator.correlate(recorded)
        if correlated is None:
            return
        earlier = batch.get(correlated.name)
        is_new = correlated.count == 1 or (earlier is not None and earlier.is_new)
        batch[correlated.name] = _BatchedEvent(self._event_object(obj, field_path, correlated), is_new)

    async def _write_or_log(self, batched: _BatchedEvent) -> None:
        """Write an Event; a refused one is logged and dropped."""
        event = batched.event
        try:
            await self._create_or_update(event, is_new=batched.is_new)
        except StatusError as error:
            name = event["involvedObject"]["name"]
            _log.info("event %s of %s was not written: %s", event["reason"], name, error.message)

    async def _create_or_update(self, event: Object, *, is_new: bool) -> None:
        """Create a new Event or update a stored one; if that was deleted meanwhile, it is created again."""
        metadata = event["metadata"]
        if not is_new:
            try:
                await self._registry.mutate(
                    "events", metadata["namespace"], metadata["name"], lambda old: _update_repeated(old, event)
                )
            except StatusError as error:
                if error.code != 404:
                    raise
            else:
                return
        await self._registry.create("events", event)

    def _event_object(self, obj: Object, field_path: str, event: EventDraft) -> Object:
        """The Event of a draft about an object, or about a field of it."""
        metadata = obj["metadata"]
        involved = {
            "kind": obj.get("kind", ""),
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "apiVersion": obj.get("apiVersion", ""),
            "resourceVersion": metadata.get("resourceVersion", ""),
            "fieldPath": field_path,
        }
        return core_event(event, involved, component=self._component, host=self._host)


def _update_repeated(old: Object, event: Object) -> None:
    """Set the fields of a stored Event that a repetition changes, in place."""
    for field in ("count", "lastTimestamp", "message"):
        old[field] = event[field]


def _correlation_subject(obj: Object, field_path: str) -> tuple[str, ...]:
    """Tells the objects of Events apart: repeated Events about one subject are counted, not written again."""
    metadata = obj["metadata"]
    return (obj.get("kind", ""), metadata.get("namespace", ""), metadata["name"], metadata.get("uid", ""), field_path)
