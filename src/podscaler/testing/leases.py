"""Leases in memory, as several processes see them through transports of their own: for tests of elections.

Each process has a `LeaseTransport` to the LeaseServer, which a test cuts, or holds for as long as the process is to
stand still. Versions, conflicts, preconditions and watches are as an API server has them; events are kept. Nothing is
validated.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs

import msgspec

from podscaler.api.machinery import selectors
from podscaler.base.clock import NANOSECONDS
from podscaler.kube.transport.transport import Request, Response, ResponseStream, TransportError
from podscaler.testing.clock import VirtualClock
from podscaler.testing.cluster import Object, conflict, refusal
from podscaler.testing.transport import Feed, ScriptedStream, json_answer

RESOURCE = "leases.coordination.k8s.io"
REFUSED = "dial tcp 10.0.0.1:443: connect: connection refused"


class LeaseServer:
    """See the module.

    Attributes:
        leases: by name, as they are now.
        events: the messages of all events, in order.
        requests: the method and the last part of the path of each request, in order.
    """

    def __init__(self) -> None:
        self.leases: dict[str, Object] = {}
        self.events: list[str] = []
        self.requests: list[tuple[str, str]] = []
        self._feeds: list[tuple[Feed, selectors.Selector]] = []
        self._version = 0

    def line(self) -> "LeaseTransport":
        """The way of one more process to this server."""
        return LeaseTransport(self)

    def holder(self, name: str) -> str:
        """Who holds a Lease; empty: nobody, or there is none."""
        found: str = self.leases.get(name, {"spec": {}})["spec"].get("holderIdentity", "")
        return found

    def edit(self, name: str, **spec: object) -> None:
        """Somebody changes fields of a Lease's spec."""
        known = self.leases[name]
        self._store("MODIFIED", known | {"spec": known["spec"] | spec}, uid=known["metadata"]["uid"])

    def answer(self, request: Request) -> Response:
        """What the server answers at once."""
        name = request.path.rpartition("/")[2]
        self.requests.append((request.method, name))
        body = msgspec.json.decode(request.body or b"{}")
        if name == "events":
            self.events.append(body["message"])
            return json_answer(body, 201)
        if request.method == "GET" and name == "leases":
            return json_answer({"metadata": {"resourceVersion": str(self._version)}, "items": self._listed(request)})
        if request.method == "POST":
            return self.create(body)
        if name not in self.leases:
            return refusal(404, "NotFound", f'{RESOURCE} "{name}" not found')
        return self._change(request.method, name, body)

    def watch(self, request: Request) -> Feed:
        """The events from now on."""
        feed = Feed()
        self._feeds.append((feed, _selector(request)))
        known = int(parse_qs(request.query).get("resourceVersion", ["0"])[0] or 0)
        for obj in self._listed(request):
            if int(obj["metadata"]["resourceVersion"]) > known:
                feed.send(msgspec.json.encode({"type": "MODIFIED", "object": obj}))
        return feed

    def _listed(self, request: Request) -> list[Object]:
        selector = _selector(request)
        return [each for each in self.leases.values() if selector.matches(each["metadata"].get("labels") or {})]

    def create(self, body: Object) -> Response:
        """Somebody makes a Lease."""
        name = body["metadata"]["name"]
        if name in self.leases:
            return refusal(409, "AlreadyExists", f'{RESOURCE} "{name}" already exists')
        return json_answer(self._store("ADDED", body, uid=f"uid-of-{name}"), 201)

    def _change(self, method: str, name: str, body: Object) -> Response:
        known = self.leases[name]
        version = known["metadata"]["resourceVersion"]
        if method == "PUT":
            if body["metadata"]["resourceVersion"] != version:
                return conflict(RESOURCE, name)
            return json_answer(self._store("MODIFIED", body, uid=known["metadata"]["uid"]))
        if method == "DELETE":
            if body.get("preconditions", {}).get("resourceVersion", version) != version:
                return conflict(RESOURCE, name)
            self._tell("DELETED", self.leases.pop(name))
        return json_answer(known)

    def _store(self, kind: str, body: Object, *, uid: str) -> Object:
        self._version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self._version), "uid": uid}
        stored = self.leases[metadata["name"]] = body | {"metadata": metadata}
        self._tell(kind, stored)
        return stored

    def _tell(self, kind: str, obj: Object) -> None:
        line = msgspec.json.encode({"type": kind, "object": obj})
        for feed, selector in self._feeds:
            if selector.matches(obj["metadata"].get("labels") or {}):
                feed.send(line)


class LeaseTransport:
    """The transport of one process to a LeaseServer.

    Attributes:
        is_cut: whether requests fail.
        moves: cleared while the process stands still: nothing of it goes on.
    """

    server = "https://10.0.0.1:443"

    def __init__(self, server: LeaseServer) -> None:
        self._server = server
        self.is_cut = False
        self.moves = asyncio.Event()
        self.moves.set()

    async def request(self, request: Request) -> Response:
        """As a Transport: the server acts at once, the process hears of it when it moves. Raises TransportError."""
        await asyncio.sleep(0)
        await self.moves.wait()
        if self.is_cut:
            raise TransportError(request, server=self.server, cause=REFUSED)
        answer = self._server.answer(request)
        await asyncio.sleep(0)
        await self.moves.wait()
        return answer

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """As a Transport. Raises TransportError."""
        await self.moves.wait()
        if self.is_cut:
            raise TransportError(request, server=self.server, cause=REFUSED)
        yield _HeldStream(ScriptedStream(self.server, request, self._server.watch(request)), self)

    async def close(self) -> None:
        """Nothing is open."""


class _HeldStream:
    """A stream that a process reads only while it moves and is not cut off."""

    def __init__(self, stream: ScriptedStream, line: LeaseTransport) -> None:
        self._stream = stream
        self._line = line
        self.status = stream.status
        self.headers = stream.headers

    async def read(self) -> bytes:
        """As Stream."""
        return await self._stream.read()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """As Stream; what arrives while the process is cut off is not seen, as little as afterwards."""
        async for batch in self._stream.batches():
            await self._line.moves.wait()
            if not self._line.is_cut:
                yield batch


class OwnClock:
    """The clock of one process among others in virtual time: its wall clock is off, and it may stand still.

    Args:
        clock: the time of all.
        line: tells whether the process moves.
        skew_s: by how much its wall clock is ahead.
    """

    def __init__(self, clock: VirtualClock, line: LeaseTransport, *, skew_s: float = 0.0) -> None:
        self._clock = clock
        self._line = line
        self.skew_s = skew_s
        self._origin_s = abs(skew_s) * 3

    def now_ns(self) -> int:
        """The wall clock, as this process has it."""
        return self._clock.now_ns() + round(self.skew_s * NANOSECONDS)

    def monotonic_s(self) -> float:
        """The monotonic clock, which has an origin of its own."""
        return self._clock.monotonic_s() + self._origin_s

    async def sleep(self, delay_s: float) -> None:
        """Return after the delay, or when the process moves again."""
        await self._clock.sleep(delay_s)
        await self._line.moves.wait()


def _selector(request: Request) -> selectors.Selector:
    return selectors.parse(parse_qs(request.query).get("labelSelector", [""])[0])
