"""A gate between a controller and an API server, which delays, refuses and cuts connections when it is told to.

The scenario suite (tests/e2e/planes) and the soak put it in the controller's way. It speaks HTTP to the controller and
TLS to the server, as the user of a kubeconfig. Each connection has one of its own to the server, and no answer is
parsed: without pipelining, what comes back belongs to the last request. It runs on a thread of its own.
"""

import asyncio
import base64
import json
import re
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

LENGTH = re.compile(rb"content-length: *(\d+)", re.I)
READ_BYTES = 1 << 16
SETTLE_S = 0.1
"""Within which transports that were aborted are closed."""
METRICS = re.compile(r"/apis/(custom\.|external\.)?metrics\.k8s\.io(/|$)")
Answerer = Callable[[str, str], tuple[int, Any]]
"""From path and query to status and document."""


class LoopThread:
    """An event loop on a thread, from creation to `stop`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, what: Any) -> Any:
        """What a coroutine returns; its errors escape."""
        future: Future[Any] = asyncio.run_coroutine_threadsafe(what, self.loop)
        return future.result(30)

    def stop(self) -> None:
        """End everything that runs there."""
        self.run(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(SETTLE_S)


class Gate:
    """See the module.

    Args:
        kubeconfig: of the server, with inline data.
        answer: answers requests to metrics APIs in the server's place, if given.

    Attributes:
        delay_s: how long each request is held back.
        refusal: the status that every request gets instead of an answer; 0: none.
        metrics_refusal: the same, for requests to metrics APIs.
    """

    def __init__(self, kubeconfig: Path, answer: Answerer | None = None) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, self._user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        self._place = (host, int(port))
        self._context = client_context(cluster, self._user)
        self._answer = answer
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = LoopThread("gate")
        self._socket = _bound_socket()
        self.port: int = self._socket.getsockname()[1]
        self._server = self._thread.run(self._listen())
        self.delay_s = 0.0
        self.refusal = 0
        self.metrics_refusal = 0

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, sock=self._socket.dup(), limit=1 << 20)

    def write_kubeconfig(self, path: Path) -> Path:
        """A kubeconfig of the same user whose server is the gate; returns `path`."""
        user = {"token": self._user["token"]} if "token" in self._user else {}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "gate",
            "clusters": [{"name": "gate", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "gate", "user": user}],
            "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "gate"}}],
        }
        path.touch(0o600)
        path.write_text(json.dumps(document))
        return path

    def cut(self) -> int:
        """Break every connection that is open now, in the middle of what it says; how many there were."""
        cut: int = self._thread.run(self._cut())
        return cut

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Refuse connections until the block ends, and break those that are open; the port stays reserved."""
        self._thread.run(self._leave())
        try:
            yield
        finally:
            self._server = self._thread.run(self._listen())

    def stop(self) -> None:
        """Close it."""
        self._thread.run(self._close())
        self._thread.stop()

    async def _cut(self) -> int:
        found = list(self._open)
        for writer in found:
            writer.transport.abort()
        return len(found)

    async def _leave(self) -> None:
        self._server.close()
        self._socket.shutdown(socket.SHUT_RDWR)
        await self._cut()

    async def _close(self) -> None:
        self._server.close()
        self._socket.close()
        await self._cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        onward = _Onward(self._place, self._context, writer)
        try:
            while True:
                await self._pass(await _read_request(reader), writer, onward)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two sides is gone, and so is the other then
        finally:
            self._open.discard(writer)
            onward.abort()
            writer.transport.abort()

    async def _pass(self, request: tuple[str, bytes], writer: asyncio.StreamWriter, onward: "_Onward") -> None:
        target, data = request
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        path, _, query = target.partition("?")
        is_metrics = METRICS.match(path) is not None
        if self.refusal:
            writer.write(_response(self.refusal, _status(self.refusal), "Retry-After: 1\r\n"))
        elif is_metrics and self.metrics_refusal:
            writer.write(_response(self.metrics_refusal, _status(self.metrics_refusal)))
        elif is_metrics and self._answer is not None:
            writer.write(_response(*self._answer(unquote(path), query)))
        else:
            await onward.send(data)


class _Onward:
    """The connection to the server that belongs to one of a client, opened by its first request."""

    def __init__(self, place: tuple[str, int], context: ssl.SSLContext, client: asyncio.StreamWriter) -> None:
        self._place = place
        self._context = context
        self._client = client
        self._writer: asyncio.StreamWriter | None = None
        self._pump: asyncio.Task[None] | None = None

    async def send(self, data: bytes) -> None:
        """Pass a request on. Raises OSError."""
        if self._writer is None:
            reader, self._writer = await asyncio.open_connection(*self._place, ssl=self._context)
            self._pump = asyncio.create_task(self._relay(reader))
        self._writer.write(data)
        await self._writer.drain()

    async def _relay(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(READ_BYTES):
                self._client.write(data)
                await self._client.drain()
        except OSError:
            pass  # closed below, which tells the client
        finally:
            self._client.transport.abort()

    def abort(self) -> None:
        """Drop it."""
        if self._pump is not None:
            self._pump.cancel()
        if self._writer is not None:
            self._writer.transport.abort()


def _bound_socket() -> socket.socket:
    """On a free port, which stays its own while nobody listens: only a port that was asked for does."""
    with socket.socket() as first:
        again = socket.socket()
        for each in (first, again):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", 0))
        again.bind(first.getsockname())
    return again


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The target of the next request, and all its bytes."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return head[: head.find(b"\r\n")].decode("latin-1").split(" ")[1], head + body


def _response(status: int, document: Any, more: str = "") -> bytes:
    body = json.dumps(document, separators=(",", ":")).encode()
    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _status(code: int) -> Any:
    reason = {429: "TooManyRequests", 503: "ServiceUnavailable"}.get(code, "InternalError")
    text = {"status": "Failure", "message": "refused by the gate", "reason": reason, "code": code}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}} | text


def client_context(cluster: Any, user: Any) -> ssl.SSLContext:
    """For connections to a kubeconfig's cluster as its user, both with inline data."""
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
    return context
