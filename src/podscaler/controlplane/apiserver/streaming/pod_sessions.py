"""Handles `pods/NAME/exec` and `pods/NAME/attach`: the standard streams of a process over a WebSocket.

`dispatch` calls `execute` and `attach`; the node agent runs the processes (`registry.pod_connections`). Errors come in
kube-apiserver's order: pod, container and host as a Status, then streams and the running container as plain texts. A
new channel: in `channels` and in `_Session`.

Source: core/v1 PodExecOptions and PodAttachOptions; the remote command servers of the kubelet and of container
runtimes; in `v5` failures are wrapped a second time, as kube-apiserver translates it from `v4`.
Differs: no SPDY; a command is killed when its client disconnects.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http import responses, websockets
from podscaler.controlplane.apiserver.http.query_options import Query
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.streaming import channels, pod_targets
from podscaler.controlplane.registry.pod_connections import (
    ContainerSessions,
    PodSession,
    SessionFailure,
    SessionStreams,
)

RESIZE_MAX_BYTES = 1024
"""The most bytes of a message with the size of a terminal; a longer one is ignored."""

_NO_STREAM_TEXT = "you must specify at least 1 of stdin, stdout, stderr"

_log = logging.getLogger(__name__)

StartSession = Callable[[ContainerSessions], Awaitable[PodSession]]
"""Starts a session in a running container. Raises SessionFailure."""


async def execute(server: ServerContext, request: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """Run the command of the query in a container; returns when the session has ended.

    Raises StatusError 400, 403, 404, 405, 429, 503, before the handshake.
    """
    command = tuple(request.query.texts("command"))
    options = _parse_streams(request.query)

    async def start(container: ContainerSessions) -> PodSession:
        if not command:
            raise SessionFailure("exec command cannot be empty")
        return await container.execute(command, options)

    requested = _SessionRequest(
        start,
        options,
        action="executing command in",
        command=command,
        missing_text='container not found ("{name}")',
    )
    return await _serve_session(server, request, requested)


async def attach(server: ServerContext, request: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """Attach to the main process of a container; returns when the session has ended.

    Raises StatusError 400, 403, 404, 405, 429, 503, before the handshake.
    """
    options = _parse_streams(request.query)

    async def start(container: ContainerSessions) -> PodSession:
        return await container.attach(options)

    requested = _SessionRequest(
        start,
        options,
        action="attaching to",
        command=(),
        missing_text="container {name} not found in pod {pod}",
    )
    return await _serve_session(server, request, requested)


@dataclass(frozen=True, slots=True)
class _SessionRequest:
    """A session to start.

    Attributes:
        start: starts it in a container.
        options: its streams.
        action: names the session in messages: `executing command in`, `attaching to`.
        command: the command of exec, empty for attach.
        missing_text: the error if the container does not run, with `{name}` and maybe `{pod}` to fill in.
    """

    start: StartSession
    options: SessionStreams
    action: str
    command: tuple[str, ...]
    missing_text: str


def _parse_streams(query: Query) -> SessionStreams:
    """The streams in the query; a terminal (`tty`) has no stderr, as it mixes both outputs."""
    tty = bool(query.flag("tty"))
    return SessionStreams(
        stdin=bool(query.flag("stdin")),
        stdout=bool(query.flag("stdout")),
        stderr=bool(query.flag("stderr")) and not tty,
        tty=tty,
    )


async def _serve_session(
    server: ServerContext, request: ResourceRequest, requested: _SessionRequest
) -> EncodedResponse | web.StreamResponse:
    """Serve a session until one side ends it; returns the WebSocket, or the plain-text error if there is no session.

    Raises StatusError as `execute`.
    """
    pod = pod_targets.get_pod(server, request)
    container_name = pod_targets.choose_container(request.query.text("container"), pod)
    pod_targets.check_has_node(server, pod)
    pod_targets.check_upgrade(request)
    connections = pod_targets.get_connections(server)
    options = requested.options
    if not (options.stdin or options.stdout or options.stderr):
        return responses.text(_NO_STREAM_TEXT, 400)
    container = connections.find_container(pod, container_name)
    if container is None:
        pod_full_name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}"
        return responses.text(requested.missing_text.format(name=container_name, pod=pod_full_name), 500)
    if not websockets.is_websocket(request.http):
        raise pod_targets.spdy_not_served()
    framing = channels.COMMAND_PROTOCOLS[websockets.choose_protocol(request.http, channels.COMMAND_PROTOCOLS)]
    server.sessions.check_limit()
    socket = await websockets.open_socket(request.http, framing.name)
    await server.sessions.run(
        lambda activity: _Session(channels.ChannelSocket(socket, framing, activity), requested).run(container)
    )
    return socket


class _Session:
    """One session over an open WebSocket."""

    def __init__(self, socket: channels.ChannelSocket, requested: _SessionRequest) -> None:
        self._socket = socket
        self._requested = requested

    async def run(self, container: ContainerSessions) -> None:
        """Start the session, relay its streams until it ends or the client disconnects, close the connection."""
        try:
            await self._socket.send(self._established_channel(), b"")
            try:
                session = await self._requested.start(container)
            except SessionFailure as failure:
                await self._send_status(failed_status(self._requested.action, str(failure), self._socket.framing))
                return
            try:
                await self._relay(session)
            finally:
                await session.close()
        except ConnectionError:
            return  # the client has disconnected
        finally:
            await self._socket.close()

    def _established_channel(self) -> int:
        """The channel of the empty message after which the client takes the connection for established."""
        if self._requested.options.stdout:
            return channels.STDOUT
        return channels.STDERR if self._requested.options.stderr else channels.ERROR

    async def _relay(self, session: PodSession) -> None:
        """Relay the streams until the session has ended or the client disconnects."""
        receiving = asyncio.ensure_future(self._relay_input(session))
        sending = asyncio.ensure_future(self._send_output(session))
        try:
            await asyncio.wait((receiving, sending), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await self._send_status(exit_status(sending.result(), self._requested.command, self._socket.framing))
            else:
                receiving.result()
        finally:
            for task in (receiving, sending):
                task.cancel()
            await asyncio.gather(receiving, sending, return_exceptions=True)

    async def _send_output(self, session: PodSession) -> int:
        """Send all output; returns the exit code. Raises ConnectionResetError if the client has disconnected."""
        is_disconnected = False
        try:
            async with asyncio.TaskGroup() as senders:
                if self._requested.options.stdout:
                    senders.create_task(self._send_chunks(channels.STDOUT, session.stdout()))
                if self._requested.options.stderr:
                    senders.create_task(self._send_chunks(channels.STDERR, session.stderr()))
        except* ConnectionError:  # an error raised here would be wrapped in a group
            is_disconnected = True
        if is_disconnected:
            raise ConnectionResetError("the client has disconnected")
        return await session.wait()

    async def _send_chunks(self, channel: int, chunks: AsyncIterator[bytes]) -> None:
        """Send one output on its channel. Raises ConnectionError if the client has disconnected."""
        async for chunk in chunks:
            await self._socket.send(channel, chunk)

    async def _relay_input(self, session: PodSession) -> None:
        """Relay the input of the client; returns when it closes the connection or violates the protocol."""
        try:
            async for received in self._socket.received_messages():
                await self._handle_message(received, session)
        except channels.ChannelProtocolError as error:
            _log.info("a stream was closed: %s", error)

    async def _handle_message(self, received: channels.ChannelMessage, session: PodSession) -> None:
        """Pass a message of the client to the session: input, its end, or a new size of the terminal."""
        if received.channel == channels.STDIN and self._requested.options.stdin:
            if received.ends:
                await session.end_input()
            else:
                await session.write(received.data)
        elif received.channel == channels.RESIZE and not received.ends:
            size = _parse_terminal_size(received.data)
            if size is not None:
                columns, rows = size
                session.resize(columns, rows)

    async def _send_status(self, status: Object) -> None:
        """Send the result of the session on the error channel."""
        content = status_message(status, self._socket.framing)
        if content:
            await self._socket.send(channels.ERROR, content)


def _parse_terminal_size(message: bytes) -> tuple[int, int] | None:
    """Columns and rows of a terminal, None for an invalid message."""
    if len(message) > RESIZE_MAX_BYTES:
        return None
    try:
        size = json.loads(message)
        return int(size["Width"]), int(size["Height"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


SUCCESS: Object = {"metadata": {}, "status": "Success"}
"""The Status of a command that ended with exit code 0."""


def exit_status(code: int, command: Sequence[str], framing: channels.Framing) -> Object:
    """The Status of a command that ended with exit code `code`."""
    if code == 0:
        return SUCCESS
    if framing.is_translated:  # kube-apiserver's own text
        cause = f"command terminated with exit code {code}"
    else:
        cause = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {cause}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed_status(action: str, failure_message: str, framing: channels.Framing) -> Object:
    """The Status of a session that could not be started; `action` is `executing command in` or `attaching to`."""
    status = _internal_error_status(f"error {action} container: {failure_message}")
    return _internal_error_status(status["message"]) if framing.is_translated else status  # wrapped a second time


def status_message(status: Object, framing: channels.Framing) -> bytes:
    """The data of the error channel; empty for a success in the oldest protocols."""
    if framing.has_status:
        return json_text.encode(status)
    return b"" if status["status"] == "Success" else str(status["message"]).encode()


def _internal_error_status(cause: str) -> Object:
    """The Status of a session that failed for a cause."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {cause}",
        "reason": "InternalError",
        "details": {"causes": [{"message": cause}]},
        "code": 500,
    }
