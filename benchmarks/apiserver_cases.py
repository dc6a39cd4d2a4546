"""What the API servers are asked in the benchmark, and what is counted meanwhile.

`benchmarks.apiserver` runs every case on every server. Bodies are those of `benchmarks.store`: pods as a ReplicaSet
makes them, statuses as a node writes them.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks import apiserver_load, store
from benchmarks.apiserver_load import Measured
from benchmarks.apiserver_sides import Side

NAMESPACE = "bench"
CROWD = "crowd"
CONNECTIONS = 8
CREATORS = 32
LISTED = 1000
MANY = 10_000
LOAD_S = 2.0
WARM_S = 0.3
FOR_EVER_S = 600.0
WATCHERS = 1000
WATCHERS_AT_ONCE = 25
CHANGES = 20
TOLD_WITHIN_S = 60.0


@dataclass(frozen=True)
class Result:
    """What one case cost one server.

    Attributes:
        count: of requests (or events told).
        rate: of them in a second.
        p99_ms: of how long one takes.
        cpu_s: the server's, for 1,000 of them.
    """

    count: int
    rate: float
    p99_ms: float
    cpu_s: float


def pods(namespace: str) -> str:
    """The path of a namespace's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


def pod_body(namespace: str, name: str) -> bytes:
    """A new pod."""
    made = store.pod(name)
    made["metadata"]["namespace"] = namespace
    return json.dumps({"apiVersion": "v1", "kind": "Pod", **made}, separators=(",", ":")).encode()


def status_body(namespace: str, name: str, turn: int) -> bytes:
    """The pod with a status that no other turn has."""
    made = json.loads(pod_body(namespace, name))
    return json.dumps(store.running({**made, "status": {}}, turn), separators=(",", ":")).encode()


async def create_namespaces(side: Side) -> None:
    """Make the namespaces that the cases use."""
    bodies = [json.dumps({"metadata": {"name": name}}).encode() for name in (NAMESPACE, CROWD)]
    requests = iter([side.address.request("POST", "/api/v1/namespaces", body) for body in bodies])
    await apiserver_load.run(side.address, [requests], limit_s=FOR_EVER_S, expected=201)


async def create(side: Side, namespace: str, count: int) -> Result:
    """Create pods p0, p1, ... over some connections."""

    def requests(first: int) -> Iterator[bytes]:
        for index in range(first, count, CREATORS):
            yield side.address.request("POST", pods(namespace), pod_body(namespace, f"p{index}"))

    return await _measured(side, [requests(first) for first in range(CREATORS)], limit_s=FOR_EVER_S, expected=201)


async def get(side: Side) -> Result:
    """GET of pods, one after the other."""

    def requests(first: int) -> Iterator[bytes]:
        ready = [
            side.address.request("GET", f"{pods(NAMESPACE)}/p{index}") for index in range(first, LISTED, CONNECTIONS)
        ]
        return itertools.cycle(ready)

    return await _loaded(side, [requests(first) for first in range(CONNECTIONS)])


async def list_pods(side: Side) -> Result:
    """LIST of 1,000 pods."""
    request = side.address.request("GET", pods(NAMESPACE))
    return await _loaded(side, [itertools.repeat(request)] * CONNECTIONS)


async def put_status(side: Side) -> Result:
    """PUT of a pod's status that changes it."""
    return await _loaded(side, [_puts(side, first) for first in range(CONNECTIONS)])


def _puts(side: Side, first: int) -> Iterator[bytes]:
    for turn in itertools.count():
        for index in range(first, LISTED, CONNECTIONS):
            name = f"p{index}"
            path = f"{pods(NAMESPACE)}/{name}/status"
            yield side.address.request("PUT", path, status_body(NAMESPACE, name, turn))


async def fan_out(side: Side) -> Result:
    """Changes of pods, each told to 1,000 watchers before the next one is made; counts events."""
    crowd = _Crowd(WATCHERS)
    path = f"{pods(NAMESPACE)}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    watches = await _watch_all(side, path, crowd)
    writer = await apiserver_load.connect(side.address)
    requests = _puts(side, 0)
    begun_cpu_s, begun_s = side.cpu_s(), time.perf_counter()
    for _ in range(CHANGES):
        crowd.expect()
        assert await writer.exchange(_fresh(next(requests))) == 200
        async with asyncio.timeout(TOLD_WITHIN_S):
            await crowd.told.wait()
    wall_s, cpu_s = time.perf_counter() - begun_s, side.cpu_s() - begun_cpu_s
    for each in (*watches, writer):
        each.close()
    count = CHANGES * WATCHERS
    measured = Measured(crowd.spans_s, wall_s)
    return Result(count, count / wall_s, measured.quantile_ms(0.99), cpu_s / count * 1000)


def _fresh(request: bytes) -> bytes:
    """A status that none of the load before has written, of the same length."""
    return request.replace(b'"podIP":"127.1.0.9"', b'"podIP":"127.1.1.9"')


async def _watch_all(side: Side, path: str, crowd: "_Crowd") -> list[apiserver_load.Watch]:
    watches: list[apiserver_load.Watch] = []
    for _ in range(0, WATCHERS, WATCHERS_AT_ONCE):
        joining = (apiserver_load.watch(side.address, path, crowd.tell) for _ in range(WATCHERS_AT_ONCE))
        watches += await asyncio.gather(*joining)
    return watches


class _Crowd:
    """Watchers that wait for a change together."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._missing = 0
        self._since_s = 0.0
        self.told = asyncio.Event()
        self.spans_s: list[float] = []

    def expect(self) -> None:
        """A change is made now."""
        self._missing = self._size
        self._since_s = time.perf_counter()
        self.told.clear()

    def tell(self, count: int) -> None:
        """One of them was told."""
        self._missing -= count
        self.spans_s.append(time.perf_counter() - self._since_s)
        if self._missing <= 0:
            self.told.set()


async def _loaded(side: Side, streams: Sequence[Iterator[bytes]]) -> Result:
    await apiserver_load.run(side.address, streams, limit_s=WARM_S, expected=200)
    return await _measured(side, streams, limit_s=LOAD_S, expected=200)


async def _measured(side: Side, streams: Sequence[Iterator[bytes]], *, limit_s: float, expected: int) -> Result:
    before_s = side.cpu_s()
    measured = await apiserver_load.run(side.address, streams, limit_s=limit_s, expected=expected)
    cpu_s = side.cpu_s() - before_s
    count = measured.count
    return Result(count, count / measured.wall_s, measured.quantile_ms(0.99), cpu_s / count * 1000)
