"""A watch of the registry that is replaced when it ends with 410: `Registry.watch_renewed`."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

EXPIRED = StatusError("too old", code=410, reason="Expired")
BROKEN = StatusError("no", code=500, reason="InternalError")


def added(name: str) -> ObjectEvent:
    return ObjectEvent("ADDED", {"metadata": {"name": name}})


class ScriptedWatches(Registry):
    """A registry whose n-th watch has the n-th list of events; the timeline shows creations, hook calls and events."""

    def __init__(self, *watches: list[ObjectEvent | StatusError]) -> None:
        self._watches = list(watches)
        self.timeline: list[str] = []

    def watch(self, resource: str, *, initial: bool = True) -> AsyncIterator[ObjectEvent]:
        self.timeline.append(f"watch {resource} {initial}")
        return self._events(self._watches.pop(0))

    async def _events(self, items: list[ObjectEvent | StatusError]) -> AsyncIterator[ObjectEvent]:
        for item in items:
            await asyncio.sleep(0)
            if isinstance(item, StatusError):
                raise item
            yield item

    async def read(self) -> None:
        """Append the events to the timeline until the watch fails."""
        async for event in self.watch_renewed("pods", on_watch=lambda: self.timeline.append("hook")):
            self.timeline.append(event.object["metadata"]["name"])


async def test_an_expired_watch_is_replaced_and_the_hook_precedes_its_events() -> None:
    """The hook is called once for each watch, after its creation and before its first event; other errors escape."""
    registry = ScriptedWatches([added("a"), EXPIRED], [EXPIRED], [added("b"), BROKEN])
    with pytest.raises(StatusError) as escaped:
        await registry.read()
    created = ["watch pods True", "hook"]
    assert (escaped.value.code, registry.timeline) == (500, [*created, "a", *created, *created, "b"])


async def test_an_error_of_the_consumer_is_not_caught() -> None:
    """A 410 that the consumer raises ends its loop: only a 410 of the watch starts a new one."""
    registry = ScriptedWatches([added("a")])

    async def consume() -> None:
        async for _ in registry.watch_renewed("pods"):
            raise EXPIRED

    with pytest.raises(StatusError) as escaped:
        await consume()
    assert (escaped.value.code, registry.timeline) == (410, ["watch pods True"])
