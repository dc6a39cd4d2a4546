"""Events are news: one that was last counted an hour ago is deleted.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop` with one worker, which pauses after each
deletion, so that a backlog after a long sleep of the machine does not crowd out other writes.

Source: kube-apiserver's --event-ttl (one hour).
"""

from collections.abc import Iterable, Sequence

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

EVENTS = "events"
TTL_S = 3600
PAUSE_S = 0.02
NEW_AFTER_S = 60.0
"""How soon a change is looked at: nothing about it is urgent."""


class EventExpiry:
    """See the module. Keys are namespace and name of Events."""

    name = "event-expiry"

    def __init__(self, registry: Registry, clock: Clock, *, ttl_s: int = TTL_S) -> None:
        self._registry = registry
        self._clock = clock
        self._ttl_s = ttl_s

    def watches(self) -> Sequence[Watched[Key]]:
        """Events."""
        return [Watched(EVENTS, self._of_event, self._soon_s)]

    def prime(self) -> Iterable[Key]:
        """Nothing: the watch brings all there are."""
        return []

    async def sync(self, key: Key) -> float | None:
        """Delete it, or say when it is due."""
        event = self._registry.find(EVENTS, *key)
        if event is None:
            return None
        left_s = (last_seen_at(event) - self._clock.now_ns()) / NANOSECONDS + self._ttl_s
        if left_s > 0:
            return left_s
        await write_errors.ignoring_gone(self._registry.delete(EVENTS, *key))
        await self._clock.sleep(PAUSE_S)
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more than the log."""

    def _of_event(self, change: ObjectEvent) -> Iterable[Key]:
        return [selection.key_of(change.object)] if change.type == "ADDED" else []

    def _soon_s(self, key: Key) -> float:
        del key
        return min(NEW_AFTER_S, self._ttl_s)


def last_seen_at(event: Object) -> int:
    """When an Event was last counted (nanoseconds), by the newest of its times."""
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return max(instants.parse_optional(time) for time in times)
