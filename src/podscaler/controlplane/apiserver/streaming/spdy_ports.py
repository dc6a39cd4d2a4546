"""Forwards ports in the tunnelling protocol of kubectl: SPDY inside a WebSocket, two streams for each connection.

`pod_ports` creates a `PortForwardTunnel` for each client. For every local connection the client opens an error stream
and a data stream, both with the port and a common request id. The data stream carries bytes both ways; the error stream
an error text, or nothing.

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
from podscaler.controlplane.apiserver.streaming import port_relay
from podscaler.controlplane.apiserver.streaming.spdy_frames import PROTOCOL_ERROR, SPDYProtocolError
from podscaler.controlplane.apiserver.streaming.spdy_session import SPDYSession, SPDYStream
from podscaler.controlplane.registry.pod_connections import PodConnections
from podscaler.controlplane.registry.registry import Object

PROTOCOL: Final = "SPDY/3.1+portforward.k8s.io"
_PORT_BITS: Final = 16
PAIR_TIMEOUT_S: Final = 30.0
"""How long the first stream of a pair waits for the second one."""
_STREAM_ID_STEP: Final = 2
"""The difference of the ids of an error stream and of the data stream that the client opens after it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _UnpairedStream:
    """A stream whose pair is not open yet, and the task that ends it after `PAIR_TIMEOUT_S`."""

    stream: SPDYStream
    expiry: "asyncio.Task[None]"


class PortForwardTunnel:
    """All forwarded connections of one client to ports of one pod.

    Args:
        socket: the accepted WebSocket.
        connections: connects to pods.
        pod: the pod.
        clock: measures `PAIR_TIMEOUT_S`.
        activity: records that the session is in use.
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
        self._session = SPDYSession(self._send, self._on_new_stream)
        self._unpaired: dict[str, _UnpairedStream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Forward until the client disconnects or violates the protocol."""
        try:
            async for message in self._socket:
                self._activity.touch()
                if message.type is WSMsgType.BINARY:
                    await self._session.feed(message.data)
        except SPDYProtocolError as error:
            _log.info("a port-forward was closed: %s", error)
        except ConnectionError:
            return  # the client has disconnected
        finally:
            self._session.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._socket.close()

    async def _send(self, data: bytes) -> None:
        """Send encoded frames to the client."""
        await self._socket.send_bytes(data)
        self._activity.touch()

    def _on_new_stream(self, stream: SPDYStream) -> None:
        """Handle a new stream: start to forward once both streams of the pair are open; reset an invalid stream."""
        stream_type, port = stream.headers.get("streamtype"), _parse_port(stream.headers.get("port", ""))
        if stream_type not in ("data", "error") or port is None:
            self._start_task(stream.reset(PROTOCOL_ERROR))
            return
        is_data = stream_type == "data"
        error_stream_id = stream.stream_id - _STREAM_ID_STEP if is_data else stream.stream_id
        request_id = stream.headers.get("requestid") or str(error_stream_id)
        earlier = self._unpaired.get(request_id)
        if earlier is None:
            self._unpaired[request_id] = _UnpairedStream(
                stream, self._start_task(self._end_unpaired(request_id, stream))
            )
        elif earlier.stream.headers["streamtype"] == stream_type:
            self._start_task(stream.reset(PROTOCOL_ERROR))
        else:
            earlier.expiry.cancel()
            del self._unpaired[request_id]
            data_stream, error_stream = (stream, earlier.stream) if is_data else (earlier.stream, stream)
            self._start_task(self._forward(data_stream, error_stream, port))

    def _start_task(self, coroutine: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Run a coroutine as a task of this tunnel, which is cancelled when the tunnel ends."""
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        """Forget a task that has ended, and log its error unless the client has disconnected."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ConnectionError):
            _log.error("a forwarded connection failed", exc_info=error)

    async def _end_unpaired(self, request_id: str, stream: SPDYStream) -> None:
        """End a stream whose pair was not opened in time."""
        await self._clock.sleep(PAIR_TIMEOUT_S)
        del self._unpaired[request_id]
        if stream.headers["streamtype"] == "error":
            await stream.write(f"(conn=0, request={request_id}) timed out waiting for streams".encode())
        await stream.end()

    async def _forward(self, data_stream: SPDYStream, error_stream: SPDYStream, port: int) -> None:
        """Relay one connection, until one side ends it; its failure goes to the error stream."""

        async def relay() -> None:
            client_data, send = data_stream.received(), data_stream.write
            error_message = await port_relay.relay(self._connections, self._pod, port, client_data, send)
            if error_message:
                await error_stream.write(error_message.encode())

        try:
            await port_relay.run_until_first(relay(), data_stream.wait_reset())
        finally:
            await data_stream.end()
            await error_stream.end()


def _parse_port(port_text: str) -> int | None:
    """A port number; None for a text that is not one, and for 0."""
    try:
        return numbers.parse_uint(port_text, _PORT_BITS) or None
    except ValueError:
        return None
