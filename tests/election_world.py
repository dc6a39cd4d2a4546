"""Several processes that share work by leases, in virtual time: each writes once a second about what it looks after.

Used by the tests of elections. A write passes the fence, and is noted with its instant.
"""

import asyncio
import itertools
import random
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from podscaler.controller.leaderelection import fence, timeouts
from podscaler.controller.leaderelection.election import Election, Timing
from podscaler.controller.leaderelection.fence import FencedTransport, LeadershipLost
from podscaler.controller.leaderelection.leadership import Leadership
from podscaler.controller.leaderelection.shard_ownership import KeyFilter
from podscaler.controller.leaderelection.sharding import Sharding
from podscaler.controller.leaderelection.telemetry import ElectionMetrics, ShardMetrics
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing import VirtualClock
from podscaler.testing.leases import LeaseServer, LeaseTransport, OwnClock

PERIOD_S = 1.0
WRITING_S = 0.1
"""How long a write is on its way."""


class Write(NamedTuple):
    """One write about an autoscaler."""

    at_s: float
    process: str
    key: Key


class Process:
    """One of them: the LeaderCallbacks of its election, too.

    Args:
        world: where it is.
        name: its identity.
        shards: as the flag; 0: a leader is elected.
        skew_s: of its wall clock.
    """

    def __init__(self, world: "ElectionWorld", name: str, *, shards: int, skew_s: float = 0.0) -> None:
        self.name = name
        self.line = world.server.line()
        self.clock = OwnClock(world.clock, self.line, skew_s=skew_s)
        self.registry = CollectorRegistry()
        self._world = world
        client, rng = Client(self.line, self.clock), random.Random(name)
        election = Election(timing=world.timing, shards=shards, identity=name)
        telemetry = ElectionMetrics(self.registry)
        self.share: Leadership | Sharding
        if shards:
            shard_metrics = ShardMetrics(self.registry)
            self.share = Sharding(
                client, election, clock=self.clock, rng=rng, telemetry=telemetry, shard_metrics=shard_metrics
            )
        else:
            self.share = Leadership(client, election, clock=self.clock, rng=rng, telemetry=telemetry)
        self._fenced = FencedTransport(_Notes(world, name, self.line), self.share.weakest)
        self._syncs: dict[Key, asyncio.Task[None]] = {}
        self.told: list[str] = []
        self.task = asyncio.ensure_future(self.share.run(self))

    def keys(self) -> list[Key]:
        """What it looks after."""
        return [key for key in self._world.keys if self.share.find(key) is not None]

    async def wait_listed(self) -> None:
        """As LeaderCallbacks."""

    def on_started_leading(self, belongs: KeyFilter) -> None:
        """As LeaderCallbacks: begin to write once a period."""
        self.told.append("take up")
        for key in filter(belongs, self._world.keys):
            self._syncs[key] = asyncio.ensure_future(self._sync(key))

    async def on_stopped_leading(self, belongs: KeyFilter) -> None:
        """As LeaderCallbacks: the writes on their way end."""
        self.told.append("lay down")
        await self.clock.sleep(WRITING_S)
        await self._end(belongs)

    async def on_lost_lease(self, belongs: KeyFilter) -> None:
        """As LeaderCallbacks."""
        self.told.append("drop")
        await self._end(belongs)

    async def kill(self) -> None:
        """End it without a last word."""
        self.line.is_cut = True
        self.line.moves.set()
        self._world.processes.pop(self.name, None)
        await timeouts.end(self.task, *self._syncs.values())

    def pause(self) -> None:
        """Let nothing of it go on."""
        self.line.moves.clear()

    def resume(self) -> None:
        """Let it go on."""
        self.line.moves.set()

    async def _end(self, belongs: KeyFilter) -> None:
        await timeouts.end(*(self._syncs.pop(key) for key in list(self._syncs) if belongs(key)))

    async def _sync(self, key: Key) -> None:
        while True:
            write_lease = self.share.find(key)
            if write_lease is None:
                return
            await self._write(key, write_lease)
            await self.clock.sleep(PERIOD_S)

    async def _write(self, key: Key, write_lease: WriteLease) -> None:
        fence.enter(write_lease)
        await self.line.moves.wait()
        try:
            await self._fenced.request(Request("PUT", "/".join(key), timeout_s=60))
        except LeadershipLost:
            self.told.append("refused")


class _Notes:
    """A transport that notes writes, if its process moves and its server is there."""

    server = ""

    def __init__(self, world: "ElectionWorld", name: str, line: LeaseTransport) -> None:
        self._world = world
        self._name = name
        self._line = line

    async def request(self, request: Request) -> Response:
        namespace, name = request.path.split("/")
        self._world.note(Write(self._world.clock.monotonic_s(), self._name, (namespace, name)))
        return Response(200, {}, b"{}")

    def stream(self, request: Request):  # type: ignore[no-untyped-def]  # never called
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


class ElectionWorld:
    """See the module.

    Args:
        timing: of all elections.
        namespaces: how many there are, with one autoscaler each.

    Attributes:
        writes: all of them, in order.
        overlaps: those that came while another process, too, might have written about the same autoscaler.
        processes: those that have not been killed.
    """

    def __init__(self, timing: Timing | None = None, *, namespaces: int = 1) -> None:
        self.clock = VirtualClock()
        self.server = LeaseServer()
        self.timing = timing or Timing()
        self.keys: list[Key] = [(f"n{number}", "web") for number in range(namespaces)]
        self.writes: list[Write] = []
        self.overlaps: list[Write] = []
        self.processes: dict[str, Process] = {}

    def start(self, name: str, *, shards: int = 0, skew_s: float = 0.0) -> Process:
        """One more process."""
        process = self.processes[name] = Process(self, name, shards=shards, skew_s=skew_s)
        return process

    def note(self, write: Write) -> None:
        """A write arrives; it is an overlap if another process may write about the same autoscaler now."""
        self.writes.append(write)
        others = (each.share.find(write.key) for name, each in self.processes.items() if name != write.process)
        if any(write_lease is not None and write_lease.remaining_s() > 0 for write_lease in others):
            self.overlaps.append(write)

    async def advance(self, span_s: float) -> None:
        """Let time pass."""
        await self.clock.advance(span_s, turns=60)

    async def close(self) -> None:
        """End all."""
        for process in list(self.processes.values()):
            await process.kill()

    def writers(self, *, after_s: float = 0.0) -> set[str]:
        """Who has written since."""
        return {write.process for write in self.writes if write.at_s > after_s}

    def gaps_s(self, until_s: float) -> dict[Key, float]:
        """The longest time without a write, for each autoscaler, from its first write on."""
        return {
            key: longest_gap_s([write.at_s for write in self.writes if write.key == key], until_s) for key in self.keys
        }

    def changes(self) -> dict[Key, list[tuple[float, str, float, str]]]:
        """For each autoscaler the changes of its writer: last write of one, first of the next."""
        found: dict[Key, list[tuple[float, str, float, str]]] = {}
        for key in self.keys:
            own = [write for write in self.writes if write.key == key]
            pairs = itertools.pairwise(own)
            found[key] = [(a.at_s, a.process, b.at_s, b.process) for a, b in pairs if a.process != b.process]
        return found


def longest_gap_s(times_s: Iterable[float], until_s: float) -> float:
    """Between neighbours, and from the last to the end."""
    times = [*times_s, until_s]
    return max((b - a for a, b in itertools.pairwise(times)), default=until_s)
