"""The recorder through which controllers and the node report what happened to an object, as core/v1 Events.

Called by every part of the control plane that reports; nobody waits for an event to be written. Reports go through a
bounded buffer (the oldest wait, new ones are dropped when it is full) to one writer per recorder, which runs only while
there is something to write. A write that the registry refuses is logged and dropped: an event is news, not state.
"""

import asyncio
import logging
import random
from collections import deque
from typing import Final, Literal

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.registry import Object, Registry
from podscaler.events.event_correlation import Correlator, EventDraft
from podscaler.events.event_object import core_event

BUFFERED_EVENTS: Final = 5000
WRITTEN_AT_ONCE: Final = 64
"""Writes that go to the registry together, which commits them together."""

_IS_NEW: Final = " new"
"""Key of a mark on an event that is to be created; taken off before it is written."""


_log = logging.getLogger(__name__)


class EventRecorder:
    """Events of one component.

    Args:
        registry: where Events are written.
        component: `source.component` and `reportingComponent`: `kubelet`, `deployment-controller`, ...
        clock: timestamps.
        host: `source.host`, the node's name where the component belongs to one.
    """

    def __init__(self, registry: Registry, component: str, clock: Clock, *, host: str = "") -> None:
        self._registry = registry
        self._component = component
        self._clock = clock
        self._host = host
        self._correlator = Correlator(random.Random())
        self._buffer: deque[tuple[Object, str, EventDraft]] = deque()
        self._last_at_ns = 0
        self._writer: asyncio.Task[None] | None = None
        self._has_dropped = False

    def event(
        self, obj: Object, type: Literal["Normal", "Warning"], reason: str, message: str, *, field_path: str = ""
    ) -> None:
        """Report that `reason` (CamelCase) happened to `obj`; `message` is a sentence for people. Never waits or fails.

        `obj` needs apiVersion, kind and metadata; `field_path` names a part of it (`spec.containers{web}`).
        """
        if len(self._buffer) >= BUFFERED_EVENTS:
            if not self._has_dropped:
                _log.warning("events are dropped, the buffer is full; the first one: %s %s", reason, message)
            self._has_dropped = True
            return
        self._last_at_ns = max(self._clock.now_ns(), self._last_at_ns + 1)  # names must differ within an instant
        event = EventDraft(_subject(obj, field_path), obj["metadata"]["name"], type, reason, message, self._last_at_ns)
        self._buffer.append((obj, field_path, event))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_buffered())

    async def flush(self) -> None:
        """Return once everything reported so far is written or dropped."""
        if self._writer is not None:
            await self._writer

    async def _write_buffered(self) -> None:
        while self._buffer:
            self._has_dropped = False
            batch: dict[str, Object] = {}
            for _ in range(min(len(self._buffer), WRITTEN_AT_ONCE)):
                self._correlate(batch, *self._buffer.popleft())
            await asyncio.gather(*(self._try_to_write(event) for event in batch.values()))

    def _correlate(self, batch: dict[str, Object], obj: Object, field_path: str, reported: EventDraft) -> None:
        """Add to the batch what is to be written for one report; an event twice in a batch is written once."""
        written = self._correlator.correlate(reported)
        if written is None:
            return
        event = self._body(obj, field_path, written)
        event[_IS_NEW] = written.count == 1 or batch.get(written.name, {}).get(_IS_NEW, False)
        batch[written.name] = event

    async def _try_to_write(self, event: Object) -> None:
        try:
            await self._write(event)
        except StatusError as error:
            name = event["involvedObject"]["name"]
            _log.info("event %s of %s not written: %s", event["reason"], name, error.message)

    async def _write(self, event: Object) -> None:
        meta = event["metadata"]
        if not event.pop(_IS_NEW):
            try:
                await self._registry.mutate("events", meta["namespace"], meta["name"], lambda old: _recount(old, event))
            except StatusError as error:
                if error.code != 404:
                    raise
            else:
                return
        await self._registry.create("events", event)

    def _body(self, obj: Object, field_path: str, event: EventDraft) -> Object:
        meta = obj["metadata"]
        involved = {
            "kind": obj.get("kind", ""),
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
            "uid": meta.get("uid", ""),
            "apiVersion": obj.get("apiVersion", ""),
            "resourceVersion": meta.get("resourceVersion", ""),
            "fieldPath": field_path,
        }
        return core_event(event, involved, component=self._component, host=self._host)


def _recount(old: Object, event: Object) -> None:
    for field in ("count", "lastTimestamp", "message"):
        old[field] = event[field]


def _subject(obj: Object, field_path: str) -> tuple[str, ...]:
    meta = obj["metadata"]
    return (obj.get("kind", ""), meta.get("namespace", ""), meta["name"], meta.get("uid", ""), field_path)
