"""Deletes Events that were last observed an hour ago.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop` with one worker, which pauses after each
deletion, so that a backlog after the machine was suspended does not delay other writes. `_last_observed_ns` decides
which time of an Event that is.

Source: kube-apiserver's --event-ttl (one hour). Differs: upstream counts from the last write of an Event; this
controller counts from the last observation that the Event states.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

EVENTS = "events"
TTL_S = 3600
PAUSE_S = 0.02
"""How long the worker pauses after a deletion."""
FIRST_CHECK_S = 60.0
"""How long a new Event waits for its first check."""


class EventExpiry(Reconciler[Key]):
    """Deletes Events `ttl_s` seconds, by `clock`, after they were last observed. Keys are their namespace and name."""

    name = "event-expiry"

    def __init__(self, registry: Registry, clock: Clock, *, ttl_s: int = TTL_S) -> None:
        self._registry = registry
        self._clock = clock
        self._ttl_s = ttl_s

    def watches(self) -> Sequence[Watched[Key]]:
        """Events, of which new ones are checked after FIRST_CHECK_S."""
        return [Watched(EVENTS, _keys_of_new, get_delay_s=lambda _key: min(FIRST_CHECK_S, self._ttl_s))]

    async def sync(self, key: Key) -> float | None:
        """Delete the Event if it has expired (returns None), or return the seconds left. Raises StatusError."""
        event = self._registry.find(EVENTS, *key)
        if event is None:
            return None
        left_s = (_last_observed_ns(event) - self._clock.now_ns()) / NANOSECONDS + self._ttl_s
        if left_s > 0:
            return left_s
        await write_errors.ignoring_gone(self._registry.delete(EVENTS, *key))
        await self._clock.sleep(PAUSE_S)
        return None


def _keys_of_new(event: ObjectEvent) -> Iterable[Key]:
    """The key of a new Event; one that is counted again is found at its next check."""
    return [selection.key_of(event.object)] if event.type == "ADDED" else []


def _last_observed_ns(event: Object) -> int:
    """When an Event was last observed (nanoseconds since the epoch): the latest of its times; an absent one is 0."""
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return max(instants.parse_optional(time) for time in times)
