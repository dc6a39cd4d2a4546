"""Port-forwarding as kubectl does it: SPDY inside a WebSocket, two streams for each connection.

Called by `pod_ports`. The client begins an error stream and a data stream for every local connection; both carry the
port and the number of their pair. Bytes go both ways on the data stream; the error stream says what went wrong, or
just ends.

Source: KEP-4006 (`SPDY/3.1+portforward.k8s.io`), the kubelet's port forwarding server.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Final

from aiohttp import WSMsgType, web

from podscaler.api.machinery import numbers
from podscaler.base.clock import Clock
from podscaler.controlplane.apiserver.http.open_sessions import Activity
from podscaler.controlplane.apiserver.spdy.frames import PROTOCOL_ERROR
from podscaler.controlplane.apiserver.spdy.session import SPDYSession, SPDYStream
from podscaler.controlplane.apiserver.spdy.violations import SPDYProtocolError
from podscaler.controlplane.apiserver.streaming import port_relay
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.registry import Object

PROTOCOL: Final = "SPDY/3.1+portforward.k8s.io"
PAIR_WITHIN_S: Final = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Single:
    """A stream whose partner has not come yet."""

    stream: SPDYStream
    giving_up: "asyncio.Task[None]"


class PortForwardTunnel:
    """All connections of one client.

    Args:
        pod: whose ports they lead to.
    """

    def __init__(
        self,
        socket: web.WebSocketResponse,
        connections: PodConnections,
        pod: Object,
        *,
        clock: Clock,
        activity: Activity,
    ) -> None:
        self._socket = socket
        self._connections = connections
        self._pod = pod
        self._clock = clock
        self._activity = activity
        self._session = SPDYSession(self._send, self._begin)
        self._waiting: dict[str, _Single] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client leaves."""
        try:
            async for message in self._socket:
                self._activity.note()
                if message.type is WSMsgType.BINARY:
                    await self._session.feed(message.data)
        except SPDYProtocolError as violation:
            _log.info("a port-forward was closed: %s", violation)
        except ConnectionError:
            return  # the client has gone
        finally:
            self._session.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._socket.close()

    async def _send(self, data: bytes) -> None:
        await self._socket.send_bytes(data)
        self._activity.note()

    def _begin(self, stream: SPDYStream) -> None:
        """A stream is there: begin, once its partner is."""
        kind, port = stream.headers.get("streamtype"), _find_port(stream.headers.get("port", ""))
        if kind not in ("data", "error") or port is None:
            self._start(stream.reset(PROTOCOL_ERROR))
            return
        number = stream.headers.get("requestid") or str(stream.stream_id - (2 if kind == "data" else 0))
        other = self._waiting.get(number)
        if other is None:
            self._waiting[number] = _Single(stream, self._start(self._give_up(number, stream)))
        elif other.stream.headers["streamtype"] == kind:
            self._start(stream.reset(PROTOCOL_ERROR))
        else:
            other.giving_up.cancel()
            del self._waiting[number]
            data, error = (stream, other.stream) if kind == "data" else (other.stream, stream)
            self._start(self._forward(data, error, port))

    def _start(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            _log.error("a forwarded connection failed", exc_info=error)

    async def _give_up(self, number: str, stream: SPDYStream) -> None:
        """End a stream whose partner does not come."""
        await self._clock.sleep(PAIR_WITHIN_S)
        del self._waiting[number]
        if stream.headers["streamtype"] == "error":
            await stream.write(f"(conn=0, request={number}) timed out waiting for streams".encode())
        await stream.end()

    async def _forward(self, data: SPDYStream, error: SPDYStream, port: int) -> None:
        async def relay() -> None:
            fault = await port_relay.relay(self._connections, self._pod, port, data.received(), data.write)
            if fault:
                await error.write(fault.encode())

        try:
            await port_relay.first_of(relay(), data.wait_reset())
        finally:
            await data.end()
            await error.end()


def _find_port(text: str) -> int | None:
    try:
        return numbers.parse_uint(text, 16) or None
    except ValueError:
        return None
