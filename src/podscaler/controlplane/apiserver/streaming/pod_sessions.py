"""`pods/NAME/exec` and `pods/NAME/attach`: a process' streams over a WebSocket.

Called by `dispatch`; the processes are the node's (`pod_connections`). The order of refusals is upstream's: pod,
container and host by the API server, streams and the running container by the node, as plain texts.

Source: core/v1 PodExecOptions and PodAttachOptions; the kubelet's remote command server.
Differs: no SPDY; a command is killed when its client leaves.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from aiohttp import WSMsgType, web

from podscaler.controlplane.apiserver.http import websockets
from podscaler.controlplane.apiserver.http.open_sessions import Activity
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.streaming import channels, pod_targets, session_status
from podscaler.controlplane.apiserver.streaming.channels import ChannelMessage, ChannelProtocolError, Framing
from podscaler.controlplane.registry.pod_connections import (
    ContainerSessions,
    PodSession,
    SessionFailure,
    SessionStreams,
)

SIZE_MAX_BYTES = 1024
"""Of a message with a terminal's size."""

NO_STREAM = "you must specify at least 1 of stdin, stdout, stderr"

_log = logging.getLogger(__name__)

Begin = Callable[[ContainerSessions], Awaitable[PodSession]]


async def execute(plane: Plane, call: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """Run the command of the query in a container.

    Raises:
        StatusError: 400, 403, 404, 429, 503, before the WebSocket is open.
    """
    command = tuple(call.query.texts("command"))
    options = _options(call.query)

    async def begin(container: ContainerSessions) -> PodSession:
        if not command:
            raise SessionFailure("exec command cannot be empty")
        return await container.execute(command, options)

    wanted = _Wanted(begin, options, "executing command in", command, missing='container not found ("{name}")')
    return await _serve(plane, call, wanted)


async def attach(plane: Plane, call: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """Follow a container's main process.

    Raises:
        StatusError: 400, 403, 404, 429, 503, before the WebSocket is open.
    """
    options = _options(call.query)

    async def begin(container: ContainerSessions) -> PodSession:
        return await container.attach(options)

    wanted = _Wanted(begin, options, "attaching to", (), missing="container {name} not found in pod {pod}")
    return await _serve(plane, call, wanted)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a client asks for; `what` is the word for it in a failure, `missing` the text where nothing runs."""

    begin: Begin
    options: SessionStreams
    what: str
    command: tuple[str, ...]
    missing: str


def _options(query: Query) -> SessionStreams:
    tty = bool(query.flag("tty"))
    return SessionStreams(
        stdin=bool(query.flag("stdin")),
        stdout=bool(query.flag("stdout")),
        stderr=bool(query.flag("stderr")) and not tty,
        tty=tty,
    )


async def _serve(plane: Plane, call: ResourceRequest, wanted: _Wanted) -> EncodedResponse | web.StreamResponse:
    pod = pod_targets.pod_of(plane, call)
    name = pod_targets.container_of(call.query.text("container"), pod)
    pod_targets.check_host(plane, pod)
    pod_targets.check_upgrade(call)
    if plane.connections is None:
        raise pod_targets.no_pods_run()
    options = wanted.options
    if not (options.stdin or options.stdout or options.stderr):
        return pod_targets.said_by_node(NO_STREAM, 400)
    container = plane.connections.find_container(pod, name)
    if container is None:
        full_name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"
        return pod_targets.said_by_node(wanted.missing.format(name=name, pod=full_name), 500)
    if not websockets.is_websocket(call.request):
        raise pod_targets.not_spoken()
    framing = channels.COMMAND_PROTOCOLS[websockets.choose_protocol(call.request, channels.COMMAND_PROTOCOLS)]
    plane.sessions.check_room()
    socket = await websockets.open_socket(call.request, framing.name)
    await plane.sessions.hold(lambda activity: _Conversation(socket, framing, wanted, activity).run(container))
    return socket


class _Conversation:
    """One session over an open WebSocket."""

    def __init__(self, socket: web.WebSocketResponse, framing: Framing, wanted: _Wanted, activity: Activity) -> None:
        self._socket = socket
        self._framing = framing
        self._wanted = wanted
        self._activity = activity

    async def run(self, container: ContainerSessions) -> None:
        """From the first message to the last."""
        try:
            await self._send(self._first_channel(), b"")
            try:
                session = await self._wanted.begin(container)
            except SessionFailure as failure:
                await self._report(session_status.failed(self._wanted.what, str(failure), self._framing))
                return
            try:
                await self._converse(session)
            finally:
                await session.close()
        except ConnectionError:
            return  # the client has gone
        finally:
            await self._socket.close()

    def _first_channel(self) -> int:
        """Where an empty message tells the client that the connection is established."""
        if self._wanted.options.stdout:
            return channels.STDOUT
        return channels.STDERR if self._wanted.options.stderr else channels.ERROR

    async def _converse(self, session: PodSession) -> None:
        """Until the session has ended, or the client has."""
        taking = asyncio.ensure_future(self._take_input(session))
        giving = asyncio.ensure_future(self._give_output(session))
        try:
            await asyncio.wait((taking, giving), return_when=asyncio.FIRST_COMPLETED)
            if giving.done():
                await self._report(session_status.ended(giving.result(), self._wanted.command, self._framing))
            else:
                taking.result()
        finally:
            for task in (taking, giving):
                task.cancel()
            await asyncio.gather(taking, giving, return_exceptions=True)

    async def _give_output(self, session: PodSession) -> int:
        """Send all output; returns the exit status."""
        is_gone = False
        try:
            async with asyncio.TaskGroup() as pumps:
                if self._wanted.options.stdout:
                    pumps.create_task(self._pump(channels.STDOUT, session.stdout()))
                if self._wanted.options.stderr:
                    pumps.create_task(self._pump(channels.STDERR, session.stderr()))
        except* ConnectionError:
            is_gone = True
        if is_gone:
            raise ConnectionResetError("the client has gone")
        return await session.wait()

    async def _pump(self, channel: int, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            await self._send(channel, chunk)

    async def _take_input(self, session: PodSession) -> None:
        """Pass on what the client sends; returns when it has closed the connection."""
        async for message in self._socket:
            self._activity.note()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                continue
            try:
                received = self._framing.decode(message.data)
            except ChannelProtocolError as violation:
                _log.info("a stream was closed: %s", violation)
                return
            if received is not None:
                await self._take(received, session)

    async def _take(self, received: ChannelMessage, session: PodSession) -> None:
        if received.channel == channels.STDIN and self._wanted.options.stdin:
            if received.ends:
                await session.end_input()
            else:
                await session.write(received.data)
        elif received.channel == channels.RESIZE and not received.ends:
            size = _size(received.data)
            if size is not None:
                session.resize(*size)

    async def _report(self, status: dict[str, object]) -> None:
        content = session_status.message(status, self._framing)
        if content:
            await self._send(channels.ERROR, content)

    async def _send(self, channel: int, data: bytes) -> None:
        message = self._framing.encode(channel, data)
        if isinstance(message, str):
            await self._socket.send_str(message)
        else:
            await self._socket.send_bytes(message)
        self._activity.note()


def _size(data: bytes) -> tuple[int, int] | None:
    """Columns and rows of a terminal, None for what cannot be read."""
    if len(data) > SIZE_MAX_BYTES:
        return None
    try:
        size = json.loads(data)
        return int(size["Width"]), int(size["Height"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
