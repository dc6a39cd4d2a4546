"""A fake API server of Leases in memory, for tests of leader election with several processes.

Each process has a `LeaseTransport` to the `LeaseServer` and an `OwnClock`. A test can cut the transport (`is_cut`), or
suspend the process (`moves`). Resource versions, conflicts, preconditions and watches are those of an API server;
events are recorded. Nothing is validated.
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
    """The Leases and Events of a fake API server, which several transports share.

    Attributes:
        leases: the stored Leases, by name.
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
        """A transport for one more process."""
        return LeaseTransport(self)

    def holder(self, name: str) -> str:
        """The holderIdentity of a Lease; empty if it has none, or does not exist."""
        identity: str = self.leases.get(name, {"spec": {}})["spec"].get("holderIdentity", "")
        return identity

    def edit(self, name: str, **spec: object) -> None:
        """Change fields of a Lease's spec, as another client does. Raises KeyError if there is no such Lease."""
        stored_lease = self.leases[name]
        self._store(
            "MODIFIED", stored_lease | {"spec": stored_lease["spec"] | spec}, uid=stored_lease["metadata"]["uid"]
        )

    def answer(self, request: Request) -> Response:
        """The response to a request other than a watch: to all verbs for Leases but PATCH, and to a new event."""
        name = request.path.rpartition("/")[2]
        self.requests.append((request.method, name))
        body = msgspec.json.decode(request.body or b"{}")
        if name == "events":
            self.events.append(body["message"])
            return json_answer(body, 201)
        if request.method == "GET" and name == "leases":
            return json_answer(
                {"metadata": {"resourceVersion": str(self._version)}, "items": self._selected_leases(request)}
            )
        if request.method == "POST":
            return self.create(body)
        if name not in self.leases:
            return refusal(404, "NotFound", f'{RESOURCE} "{name}" not found')
        return self._change(request.method, name, body)

    def watch(self, request: Request) -> Feed:
        """Start a watch of the selected Leases, from those on that changed after the request's resourceVersion."""
        feed = Feed()
        self._feeds.append((feed, _selector(request)))
        start_version = int(parse_qs(request.query).get("resourceVersion", ["0"])[0] or 0)
        for lease in self._selected_leases(request):
            if int(lease["metadata"]["resourceVersion"]) > start_version:
                feed.send(msgspec.json.encode({"type": "MODIFIED", "object": lease}))
        return feed

    def _selected_leases(self, request: Request) -> list[Object]:
        selector = _selector(request)
        return [lease for lease in self.leases.values() if selector.matches(lease["metadata"].get("labels") or {})]

    def create(self, body: Object) -> Response:
        """Create a Lease; the response is 409 if it exists."""
        name = body["metadata"]["name"]
        if name in self.leases:
            return refusal(409, "AlreadyExists", f'{RESOURCE} "{name}" already exists')
        return json_answer(self._store("ADDED", body, uid=f"uid-of-{name}"), 201)

    def _change(self, method: str, name: str, body: Object) -> Response:
        """Update (PUT) or delete a Lease that exists, or leave it (GET); 409 if it has another resourceVersion."""
        stored_lease = self.leases[name]
        version = stored_lease["metadata"]["resourceVersion"]
        if method == "PUT":
            if body["metadata"]["resourceVersion"] != version:
                return conflict(RESOURCE, name)
            return json_answer(self._store("MODIFIED", body, uid=stored_lease["metadata"]["uid"]))
        if method == "DELETE":
            if body.get("preconditions", {}).get("resourceVersion", version) != version:
                return conflict(RESOURCE, name)
            self._announce("DELETED", self.leases.pop(name))
        return json_answer(stored_lease)

    def _store(self, event_type: str, body: Object, *, uid: str) -> Object:
        """Store a Lease with a new resourceVersion, send a watch event (ADDED or MODIFIED), and return the Lease."""
        self._version += 1
        metadata = body["metadata"] | {"resourceVersion": str(self._version), "uid": uid}
        stored_lease = self.leases[metadata["name"]] = body | {"metadata": metadata}
        self._announce(event_type, stored_lease)
        return stored_lease

    def _announce(self, event_type: str, lease: Object) -> None:
        line = msgspec.json.encode({"type": event_type, "object": lease})
        for feed, selector in self._feeds:
            if selector.matches(lease["metadata"].get("labels") or {}):
                feed.send(line)


class LeaseTransport:
    """The transport of one process to a LeaseServer.

    Attributes:
        is_cut: whether requests fail, and lines of open watches are lost.
        moves: an event that is set while the process runs; a test clears it to suspend the process.
    """

    server = "https://10.0.0.1:443"

    def __init__(self, server: LeaseServer) -> None:
        self._server = server
        self.is_cut = False
        self.moves = asyncio.Event()
        self.moves.set()

    async def request(self, request: Request) -> Response:
        """Send the request, and return the response, each while the process runs. Raises TransportError if it is cut.

        A process that is suspended between both has changed the server without knowing it.
        """
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
        """Open a watch. Raises TransportError if the transport is cut."""
        await self.moves.wait()
        if self.is_cut:
            raise TransportError(request, server=self.server, cause=REFUSED)
        yield _HeldStream(ScriptedStream(self.server, request, self._server.watch(request)), self)

    async def close(self) -> None:
        """Do nothing: there are no connections."""


class _HeldStream:
    """A stream that a process reads only while it runs and is not cut off."""

    def __init__(self, stream: ScriptedStream, transport: LeaseTransport) -> None:
        self._stream = stream
        self._transport = transport
        self.status = stream.status
        self.headers = stream.headers

    async def read(self) -> bytes:
        """The body of the response."""
        return await self._stream.read()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield lines as they arrive; lines that arrive while the process is cut off are lost."""
        async for batch in self._stream.batches():
            await self._transport.moves.wait()
            if not self._transport.is_cut:
                yield batch


class OwnClock:
    """The clock of one of several processes in virtual time: its wall clock is skewed, and its sleep can be suspended.

    Args:
        clock: the clock that all processes share.
        line: the process' transport, which knows whether the process is suspended.
        skew_s: by how much its wall clock is ahead.
    """

    def __init__(self, clock: VirtualClock, line: LeaseTransport, *, skew_s: float = 0.0) -> None:
        self._clock = clock
        self._line = line
        self.skew_s = skew_s
        self._origin_s = abs(skew_s) * 3  # any origin, so that the monotonic clocks of processes differ

    def now_ns(self) -> int:
        """The process' wall clock, nanoseconds since the epoch."""
        return self._clock.now_ns() + round(self.skew_s * NANOSECONDS)

    def monotonic_s(self) -> float:
        """The process' monotonic clock, which has an origin of its own."""
        return self._clock.monotonic_s() + self._origin_s

    async def sleep(self, delay_s: float) -> None:
        """Return after the delay, and not while the process is suspended."""
        await self._clock.sleep(delay_s)
        await self._line.moves.wait()


def _selector(request: Request) -> selectors.Selector:
    return selectors.parse(parse_qs(request.query).get("labelSelector", [""])[0])
