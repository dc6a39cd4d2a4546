"""A watch that is cut at any byte, over a real connection: the cache ends up equal to the server."""

import asyncio
import random
from typing import Any

import msgspec
import pytest

import sampling
from patience import WITHIN_S
from podscaler.api.typed.pods import Pod
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Cache
from podscaler.kube.informers.reflector import Reflector, WatchSource
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.testing import VirtualClock
from tcp_server import serving


class Hurried(VirtualClock):
    """Waits are over at once."""

    async def sleep(self, delay_s: float) -> None:
        """One turn of the event loop."""
        await asyncio.sleep(0)


def _pod(name: str, version: int, phase: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)}
    return {"metadata": meta, "status": {"phase": phase}}


HISTORY: list[tuple[str, dict[str, Any]]] = [
    ("ADDED", _pod("a", 11, "Pending")),
    ("ADDED", _pod("b", 12, "Pending")),
    ("MODIFIED", _pod("a", 13, "Running")),
    ("DELETED", _pod("b", 14, "Pending")),
    ("ADDED", _pod("c", 15, "läuft")),
]
INITIAL_END = {"metadata": {"resourceVersion": "10", "annotations": {"k8s.io/initial-events-end": "true"}}}


def _line(kind: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def _answer(target: str) -> bytes:
    """The whole answer to one request, as chunks of one event each."""
    lines = []
    if "sendInitialEvents" in target:
        lines += [_line("ADDED", _pod("old", 9, "Running")), _line("BOOKMARK", INITIAL_END)]
    known = int(target.partition("resourceVersion=")[2].partition("&")[0] or 0) if not lines else 10
    lines += [_line(kind, obj) for kind, obj in HISTORY if int(obj["metadata"]["resourceVersion"]) > known]
    if "watch=true" not in target:
        items = [_pod("old", 9, "Running")]
        lines = [msgspec.json.encode({"metadata": {"resourceVersion": "10"}, "items": items})]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines)
    end = b"" if "watch=true" in target else b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + end


class CutServer:
    """Cuts its first watch after so many bytes, and is whole from then on."""

    def __init__(self) -> None:
        self.cut_after: int | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head.split()[1].decode(), writer)

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        data = _answer(target)
        if self.cut_after is not None and "watch=true" in target:
            data, self.cut_after = data[: self.cut_after], None
            writer.write(data)
            await writer.drain()
            raise ConnectionResetError
        writer.write(data)


async def _converges(port: int, *, streams_lists: bool) -> bool:
    clock = Hurried()
    transport = await http_transport.connect(Config(f"http://127.0.0.1:{port}"), user_agent="test")
    cache: Cache[Pod] = Cache()
    source = WatchSource("/api/v1/pods", "pods", msgspec.json.Decoder(Pod).decode)
    client = Client(transport, clock, streams_lists=streams_lists)
    reflector = Reflector(client, source, cache=cache, clock=clock, rng=random.Random(1))
    task = asyncio.ensure_future(reflector.run())
    expected = {"old": "9", "a": "13", "c": "15"}
    try:
        async with asyncio.timeout(WITHIN_S):
            while {pod.metadata.name: pod.metadata.resource_version for pod in cache} != expected:  # noqa: ASYNC110 - polls real sockets
                await asyncio.sleep(0.0005)
    except TimeoutError:
        return False
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()
    return True


@pytest.mark.parametrize("streams_lists", sampling.one_in(2, [False, True]), ids=["list and watch", "list as events"])
async def test_cut_at_every_byte(streams_lists: bool) -> None:
    """Wherever the connection breaks, nothing is lost, nothing is there twice, and nothing gone stays."""
    served = CutServer()
    target = "/api/v1/pods?watch=true" + ("&sendInitialEvents=true" if streams_lists else "&resourceVersion=10")
    failed = []
    async with serving(served.serve) as port:
        for place in range(len(_answer(target)) + 1):
            served.cut_after = place
            if not await _converges(port, streams_lists=streams_lists):
                failed.append(place)
    assert failed == []
