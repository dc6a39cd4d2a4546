"""exec, attach, port-forward and logs over WebSockets, with the node played: what clients send and get."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from server_under_test import ADMIN_TOKEN, Running, running_server

from patience import WITHIN_S
from podscaler.controlplane.apiserver.http.open_sessions import IDLE_TIMEOUT_S
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.apiserver.streaming import spdy_frames
from podscaler.controlplane.apiserver.streaming.spdy_frames import Data, FrameReader, SynReply, SynStream
from podscaler.controlplane.apiserver.streaming.spdy_headers import HeaderWriter
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams
from podscaler.controlplane.registry.providers import LogOptions

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
TUNNEL = "SPDY/3.1+portforward.k8s.io"


class Shell:
    """A command that repeats its input, or says `ready`; ends with 7 once there is no more."""

    def __init__(self, options: SessionStreams) -> None:
        self.options = options
        self.sizes: list[tuple[int, int]] = []
        self.closed = asyncio.Event()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        if not options.stdin:
            self._lines.put_nowait(b"ready")
            self._lines.put_nowait(b"")

    async def stdout(self) -> AsyncIterator[bytes]:
        """What came in."""
        while line := await self._lines.get():
            yield line

    async def stderr(self) -> AsyncIterator[bytes]:
        """One complaint."""
        yield b"oh"

    async def write(self, data: bytes) -> None:
        """Keep it."""
        await self._lines.put(data)

    async def end_input(self) -> None:
        """The end."""
        await self._lines.put(b"")

    def resize(self, columns: int, rows: int) -> None:
        """Remember."""
        self.sizes.append((columns, rows))

    async def wait(self) -> int:
        """Its exit status."""
        return 7

    async def close(self) -> None:
        """Remember."""
        self.closed.set()


class Line:
    """A connection that answers each message in capitals."""

    def __init__(self) -> None:
        self._given: asyncio.Queue[bytes] = asyncio.Queue()

    async def received(self) -> AsyncIterator[bytes]:
        """The answers."""
        while data := await self._given.get():
            yield data.upper()

    async def write(self, data: bytes) -> None:
        """A message."""
        await self._given.put(data)

    async def end_input(self) -> None:
        """The end."""
        await self._given.put(b"")

    async def close(self) -> None:
        """Nothing to let go of."""


class Node:
    """Runs the container `c`; nobody listens on port 81."""

    def __init__(self) -> None:
        self.sessions: list[Shell] = []
        self.commands: list[tuple[str, ...]] = []

    def find_container(self, pod: Object, container: str) -> "Node | None":
        """Only c runs."""
        return self if container == "c" else None

    def is_running(self, pod: Object) -> bool:
        """Every pod but `two`."""
        return bool(pod["metadata"]["name"] != "two")

    async def execute(self, command: tuple[str, ...], options: SessionStreams) -> Shell:
        """A shell."""
        if command == ("nope",):
            raise SessionFailure('exec: "nope": executable file not found in $PATH')
        self.commands.append(command)
        return await self.attach(options)

    async def attach(self, options: SessionStreams) -> Shell:
        """A shell."""
        self.sessions.append(Shell(options))
        return self.sessions[-1]

    async def connect(self, pod: Object, port: int) -> Line:
        """A line."""
        if port == 81:
            raise SessionFailure("connection refused")
        return Line()

    async def stream(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """A log."""
        yield b"first\n"
        yield b"second\n"


@pytest.fixture
def node() -> Node:
    """The played node."""
    return Node()


@pytest.fixture
async def server(tmp_path: Path, node: Node) -> AsyncIterator[Running]:
    """A server with the pods `one` (container c), `two` (c, d, and init), `unbound` and `astray`."""
    async with running_server(tmp_path / "data", ServerParts(logs=node, connections=node)) as running:
        await running.create("/api/v1/nodes", {"metadata": {"name": "node"}})
        for name, containers, extra in (
            ("one", ["c"], {"nodeName": "node"}),
            ("two", ["c", "d"], {"nodeName": "node", "initContainers": [{"name": "init", "image": "x"}]}),
            ("unbound", ["c"], {}),
            ("astray", ["c"], {"nodeName": "nowhere"}),
        ):
            spec = {"containers": [{"name": each, "image": "x"} for each in containers], **extra}
            await running.create(PODS, {"kind": "Pod", "metadata": {"name": name}, "spec": spec})
        yield running


def path_of(what: str) -> Callable[[Running], str]:
    """The WebSocket's address."""
    return lambda server: f"{server.url}{PODS}/{what}"


async def open_socket(server: Running, what: str, *protocols: str) -> aiohttp.ClientWebSocketResponse:
    """A WebSocket to what is below the pods."""
    return await server.client.ws_connect(path_of(what)(server), protocols=protocols)


async def messages(socket: aiohttp.ClientWebSocketResponse) -> list[Any]:
    """Everything until the server closes."""
    return [message.data async for message in socket]


async def test_command_with_output(server: Running, node: Node) -> None:
    """An empty message says that it runs; output and the exit status follow, then the server closes."""
    socket = await open_socket(server, "one/exec?command=sh&command=-c&stdout=1", "v4.channel.k8s.io")
    got = await messages(socket)
    assert socket.protocol == "v4.channel.k8s.io"
    assert got[:2] == [b"\x01", b"\x01ready"]
    assert (got[2][0], json.loads(got[2][1:])["details"]) == (3, {"causes": [{"reason": "ExitCode", "message": "7"}]})
    assert node.commands == [("sh", "-c")]
    assert socket.close_code == 1000


async def test_input_and_half_close(server: Running, node: Node) -> None:
    """Input comes back; the half-close of v5 ends it, and with it the command."""
    socket = await open_socket(server, "one/exec?command=cat&stdin=1&stdout=1&tty=1", "v5.channel.k8s.io")
    await socket.send_bytes(b'\x04{"Width":90,"Height":30}')
    for nonsense in (b"nonsense", b'{"Width":1}', b"[" * 100_000, b'{"Width":1e999,"Height":1}'):
        await socket.send_bytes(b"\x04" + nonsense)
    await socket.send_bytes(b"\x00hello")
    await socket.send_bytes(b"\xff\x00")
    got = await messages(socket)
    assert got[:2] == [b"\x01", b"\x01hello"]
    assert json.loads(got[2][1:])["message"].endswith("command terminated with exit code 7")
    assert node.sessions[0].sizes == [(90, 30)]
    assert node.sessions[0].options == SessionStreams(stdin=True, stdout=True, tty=True)


async def test_attach_as_text(server: Running) -> None:
    """The base64 protocol carries the same as text; standard error has a channel of its own."""
    socket = await open_socket(server, "one/attach?stdout=1&stderr=1", "v4.base64.channel.k8s.io")
    got = await messages(socket)
    assert got[0] == "1"
    assert sorted(got[1:3]) == ["1cmVhZHk=", "2b2g="]


async def test_command_that_cannot_start(server: Running) -> None:
    """What cannot be started is told on the error channel."""
    got = await messages(await open_socket(server, "one/exec?command=nope&stdout=1", "v4.channel.k8s.io"))
    assert json.loads(got[1][1:]) == {
        "metadata": {},
        "status": "Failure",
        "message": "Internal error occurred: error executing command in container: "
        'exec: "nope": executable file not found in $PATH',
        "reason": "InternalError",
        "details": {
            "causes": [
                {"message": 'error executing command in container: exec: "nope": executable file not found in $PATH'}
            ]
        },
        "code": 500,
    }


async def test_client_that_leaves(server: Running, node: Node) -> None:
    """A client that leaves takes its command along."""
    socket = await open_socket(server, "one/exec?command=cat&stdin=1&stdout=1", "v4.channel.k8s.io")
    await socket.receive()
    await socket.close()
    async with asyncio.timeout(WITHIN_S):
        await node.sessions[0].closed.wait()


async def test_idle_session_ends(server: Running, node: Node) -> None:
    """After four hours without a byte a session is closed."""
    socket = await open_socket(server, "one/exec?command=cat&stdin=1&stdout=1", "v4.channel.k8s.io")
    await socket.receive()
    await server.clock.advance(IDLE_TIMEOUT_S + 1)
    async with asyncio.timeout(WITHIN_S):
        await node.sessions[0].closed.wait()
        await messages(socket)


async def test_sessions_end_with_the_server(server: Running, node: Node) -> None:
    """A server that stops ends its sessions at once."""
    socket = await open_socket(server, "one/exec?command=cat&stdin=1&stdout=1", "v4.channel.k8s.io")
    await socket.receive()
    async with asyncio.timeout(WITHIN_S):
        await server.server.stop()
        await messages(socket)
    assert node.sessions[0].closed.is_set()


@pytest.mark.parametrize(
    ("what", "headers", "status", "message"),
    [
        pytest.param("zero/exec?command=a", UPGRADE, 404, 'pods "zero" not found', id="no such pod"),
        pytest.param(
            "two/exec?command=a",
            UPGRADE,
            400,
            "a container name must be specified for pod two, choose one of: [init c d]",
            id="several containers",
        ),
        pytest.param(
            "one/attach?container=x", UPGRADE, 400, "container x is not valid for pod one", id="no such container"
        ),
        pytest.param("unbound/exec?command=a", UPGRADE, 400, "pod unbound does not have a host assigned", id="no node"),
        pytest.param("astray/exec?command=a", UPGRADE, 404, 'nodes "nowhere" not found', id="no such node"),
        pytest.param("one/exec?command=a&stdout=1", {}, 400, "Upgrade request required", id="no upgrade"),
        pytest.param("one/portforward", {}, 400, "Upgrade request required", id="no upgrade of port-forward"),
    ],
)
async def test_refusals_of_the_server(
    server: Running, what: str, headers: dict[str, str], status: int, message: str
) -> None:
    """What the API server refuses is a Status, in upstream's words and order, by GET and by POST."""
    for method in ("GET", "POST"):
        reply = await server.request(method, f"{PODS}/{what}", headers=headers)
        assert (reply.status, reply.body["message"]) == (status, message)


def _no_port(text: str, why: str) -> str:
    return f'unable to parse "{text}" as a port: strconv.ParseUint: parsing "{text}": {why}'


@pytest.mark.parametrize(
    ("what", "status", "text"),
    [
        pytest.param(
            "one/exec?command=a", 400, "you must specify at least 1 of stdin, stdout, stderr", id="no streams"
        ),
        pytest.param("two/exec?command=a&stdout=1&container=d", 500, 'container not found ("d")', id="not running"),
        pytest.param(
            "two/attach?stdout=1&container=d", 500, "container d not found in pod two_default", id="not running: attach"
        ),
        pytest.param("two/portforward?ports=80", 500, 'pod not found ("two_default")', id="no process"),
        pytest.param("one/portforward", 400, 'query parameter "port" is required', id="no ports"),
        pytest.param(
            "one/portforward?ports=x",
            400,
            _no_port("x", "invalid syntax"),
            id="no number",
        ),
        pytest.param("one/portforward?ports=0", 400, 'port "0" must be > 0', id="no port"),
        pytest.param("one/portforward?ports=70000", 400, _no_port("70000", "value out of range"), id="port too large"),
        pytest.param("one/portforward?ports=-1", 400, _no_port("-1", "invalid syntax"), id="negative port"),
        pytest.param("one/portforward?ports=1_0", 400, _no_port("1_0", "invalid syntax"), id="underscore in a port"),
        pytest.param("one/portforward?ports=%2B80", 400, _no_port("+80", "invalid syntax"), id="plus before a port"),
    ],
)
async def test_refusals_of_the_node(server: Running, what: str, status: int, text: str) -> None:
    """What the node refuses is a plain text, which clients show behind `unable to upgrade connection`."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
        await open_socket(server, what, "v4.channel.k8s.io")
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    reply = await server.get(f"{PODS}/{what}", headers=headers)
    assert (raised.value.status, reply.status, reply.body) == (status, status, text)


async def test_spdy_is_not_spoken(server: Running) -> None:
    """The protocol of old clients is refused with a sentence that helps."""
    reply = await server.request("POST", f"{PODS}/one/exec?command=a&stdout=1", headers=UPGRADE)
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert "only WebSocket streams are served" in reply.body["message"]


async def test_protocols_in_common(server: Running) -> None:
    """A client that speaks none of ours gets 403, one that names none the oldest."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
        await open_socket(server, "one/exec?command=a&stdout=1", "v9.channel.k8s.io")
    got = await messages(await open_socket(server, "one/exec?command=a&stdout=1"))
    assert raised.value.status == 403
    assert got[-1] == b"\x03command terminated with non-zero exit code: error executing command [a], exit code 7"


async def test_ports_as_channels(server: Running) -> None:
    """Each port has two channels, which begin with its number; bytes go both ways, faults on the second."""
    socket = await open_socket(server, "one/portforward?ports=80&ports=81", "v4.channel.k8s.io")
    got = [(await socket.receive()).data for _ in range(4)]
    assert got == [b"\x00P\x00", b"\x01P\x00", b"\x02Q\x00", b"\x03Q\x00"]
    fault = (await socket.receive()).data
    assert fault.startswith(b"\x03error forwarding port 81 to pod one, uid ")
    assert fault.endswith(b": failed to connect: connection refused")
    for nowhere in (b"\x04x", b"\xfex", b"\x01x", b""):
        await socket.send_bytes(nowhere)
    await socket.send_bytes(b"\x00hello")
    assert (await socket.receive()).data == b"\x00HELLO"
    await socket.close()


def told(token: str) -> str:
    """A token as a sub-protocol."""
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().strip("=")


async def test_token_among_the_protocols(server: Running) -> None:
    """A browser's token is one of the sub-protocols; another one is spoken. A wrong token is nobody's."""
    path = path_of("one/exec?command=a&stdout=1")(server)
    async with aiohttp.ClientSession() as browser:
        socket = await browser.ws_connect(path, protocols=(told(ADMIN_TOKEN), "v4.channel.k8s.io"))
        assert (socket.protocol, len(await messages(socket))) == ("v4.channel.k8s.io", 3)
        with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
            await browser.ws_connect(path, protocols=(told("wrong"), "v4.channel.k8s.io"))
    assert raised.value.status == 401


class TunnelClient:
    """kubectl's side of a tunnel."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._headers = HeaderWriter()
        self._reader = FrameReader()

    async def connect(self, number: int, port: int) -> None:
        """Begin the two streams of a connection."""
        for offset, kind in ((0, "error"), (2, "data")):
            headers = {"streamtype": kind, "port": str(port), "requestid": str(number)}
            await self.send(SynStream(4 * number + 1 + offset, self._headers.write(headers)))

    async def send(self, frame: spdy_frames.Frame) -> None:
        """One frame."""
        await self._socket.send_bytes(spdy_frames.encode(frame))

    async def answers(self, count: int) -> list[spdy_frames.Frame]:
        """The next frames, replies to new streams left out."""
        found: list[spdy_frames.Frame] = []
        while len(found) < count:
            message = await self._socket.receive(timeout=WITHIN_S)
            found += [frame for frame in self._reader.feed(message.data) if not isinstance(frame, SynReply)]
        return found


async def test_ports_by_tunnel(server: Running) -> None:
    """Two streams make a connection: data both ways, and an error stream that ends with it."""
    socket = await open_socket(server, "one/portforward", TUNNEL)
    client = TunnelClient(socket)
    await client.connect(0, 80)
    await client.send(Data(1, b"", is_last=True))
    await client.send(Data(3, b"hello"))
    await client.send(Data(3, b"", is_last=True))
    assert await client.answers(3) == [Data(3, b"HELLO"), Data(3, b"", is_last=True), Data(1, b"", is_last=True)]
    assert socket.protocol == TUNNEL
    await socket.close()


async def test_port_that_nobody_listens_on(server: Running) -> None:
    """The error stream says why; other connections of the tunnel work."""
    socket = await open_socket(server, "one/portforward", TUNNEL)
    client = TunnelClient(socket)
    await client.connect(0, 81)
    said, *ends = await client.answers(3)
    assert isinstance(said, Data)
    assert said.data.endswith(b": failed to connect: connection refused")
    assert ends == [Data(3, b"", is_last=True), Data(1, b"", is_last=True)]
    await client.connect(1, 80)
    await client.send(Data(7, b"x"))
    assert await client.answers(1) == [Data(7, b"X")]
    await socket.close()


async def test_stream_without_partner(server: Running) -> None:
    """A stream whose partner does not come within 30 s is ended."""
    socket = await open_socket(server, "one/portforward", TUNNEL)
    client = TunnelClient(socket)
    await client.send(SynStream(1, HeaderWriter().write({"streamtype": "error", "port": "80", "requestid": "0"})))
    await socket.receive()
    await server.clock.advance(31)
    assert await client.answers(2) == [
        Data(1, b"(conn=0, request=0) timed out waiting for streams"),
        Data(1, b"", is_last=True),
    ]
    await socket.close()


@pytest.mark.parametrize(
    ("protocols", "expected"),
    [
        pytest.param((), [b"", b"first\n", b"second\n"], id="binary"),
        pytest.param(("base64.binary.k8s.io",), ["", "Zmlyc3QK", "c2Vjb25kCg=="], id="base64"),
    ],
)
async def test_log_over_a_socket(server: Running, protocols: tuple[str, ...], expected: list[Any]) -> None:
    """A log comes in messages, behind an empty one."""
    assert await messages(await open_socket(server, "one/log?container=c", *protocols)) == expected
