"""When each autoscaler was synced with good metrics, as a watch of their statuses tells.

`benchmarks.soak` follows it through all faults, past the gate; a restart of the API server ends a watch, and the next
begins where it was. Where the server does not know that place any more, a list shows which statuses were written since.
"""

import asyncio
from bisect import bisect_right
from contextlib import suppress

import msgspec
from benchmarks.cluster_measure import CLOCK, HPAS

from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client

AGAIN_S = 0.2
GONE = 410


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: tuple[_Condition, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)


class _Event(msgspec.Struct):
    type: str
    object: _Object


class _List(msgspec.Struct):
    metadata: _Meta
    items: tuple[_Object, ...]


_EVENT, _LIST = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_List)


class Syncs:
    """Times of syncs, monotonic seconds in ascending order, by autoscaler.

    Args:
        client: of the API server.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._version = ""
        self._seen: dict[str, str] = {}
        self.times_s: dict[str, list[float]] = {}
        self.failed = 0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(map(len, self.times_s.values()))

    async def follow(self) -> None:
        """Follow until cancelled."""
        while True:
            with suppress(StatusError, OSError, TimeoutError):
                await self._follow_once()
            await asyncio.sleep(AGAIN_S)

    async def _follow_once(self) -> None:
        if not self._version:
            found = _LIST.decode(await self._client.get(HPAS, subject=HPAS))
            for each in found.items:
                is_known = each.metadata.name in self._seen
                if is_known and self._seen[each.metadata.name] != each.metadata.resource_version:
                    self._note(each)
                self._seen[each.metadata.name] = each.metadata.resource_version
                self.times_s.setdefault(each.metadata.name, [])
            self._version = found.metadata.resource_version
        async with self._client.watch(HPAS, subject=HPAS, query=[("resourceVersion", self._version)]) as stream:
            async for lines in stream.batches():
                for line in lines:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        if b'"type":"ERROR"' in line[:64]:
            self._version = ""
            return
        event = _EVENT.decode(line)
        self._version = event.object.metadata.resource_version
        self._seen[event.object.metadata.name] = self._version
        self._note(event.object)

    def _note(self, written: _Object) -> None:
        """A status was written."""
        active = [each.status for each in written.status.conditions if each.type == "ScalingActive"]
        if active == ["True"]:
            self.times_s[written.metadata.name].append(CLOCK.monotonic_s())
        else:
            self.failed += 1

    async def all_seen(self, within_s: float) -> None:
        """Return once each was synced. Raises SystemExit where one is not in time."""
        deadline_s = CLOCK.monotonic_s() + within_s
        while not self.times_s or not all(self.times_s.values()):
            if CLOCK.monotonic_s() > deadline_s:
                left = sum(1 for times in self.times_s.values() if not times)
                raise SystemExit(f"{left} autoscalers were not synced within {within_s:.0f} s")
            await asyncio.sleep(0.5)

    def around(self, since_s: float, limit_s: float) -> dict[str, list[float]]:
        """The syncs in the minute around an instant, in seconds from it, of those that waited longer than `limit_s`."""
        late = [name for name, wait_s in zip(self.times_s, self.waits_s(since_s), strict=True) if wait_s > limit_s]
        return {
            name: [round(each - since_s, 2) for each in self.times_s[name] if abs(each - since_s) <= 2 * limit_s]
            for name in late
        }

    def waits_s(self, since_s: float) -> list[float]:
        """How long after an instant each was synced first; infinite for those that were not."""
        found = []
        for times in self.times_s.values():
            index = bisect_right(times, since_s)
            found.append(times[index] - since_s if index < len(times) else float("inf"))
        return found
