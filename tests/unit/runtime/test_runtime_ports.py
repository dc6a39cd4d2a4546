"""Connections to ports of pods, with real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from own_ports import own_place
from podscaler.controlplane.pod_connections import SessionFailure
from podscaler.controlplane.runtime.node_connections import NodeConnections

NODE = NodeConnections(lambda uid, name: None, lambda uid: uid == "runs")


def pod(port_map: str = "", ip: str = "127.0.0.1", uid: str = "runs") -> dict[str, Any]:
    """A pod at an address."""
    annotations = {"podscaler.dev/port-map": port_map} if port_map else {}
    return {"metadata": {"name": "p", "uid": uid, "annotations": annotations}, "status": {"podIP": ip}}


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Where somebody gives back, in capitals, everything that came before the end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write((await reader.read()).upper())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def test_both_ways_and_half_close(port: int) -> None:
    """Bytes arrive, the end of input too; the answer comes until the pod has ended."""
    connection = await NODE.connect(pod(), port)
    await connection.write(b"hello")
    await connection.end_input()
    received = [chunk async for chunk in connection.received()]
    await connection.close()
    assert received == [b"HELLO"]


async def test_port_that_was_moved(port: int) -> None:
    """A port of the manifest leads to where it really is."""
    connection = await NODE.connect(pod(f'{{"80": {port}}}'), 80)
    await connection.end_input()
    assert [chunk async for chunk in connection.received()] == []
    await connection.close()


async def test_what_cannot_be_reached() -> None:
    """A port that nobody listens on, and a pod without an address, are failures with the reason."""
    host, port = own_place()
    with pytest.raises(SessionFailure, match=f"dial tcp4 {host}:{port}: connect: connection refused"):
        await NODE.connect(pod(ip=host), port)
    with pytest.raises(SessionFailure, match="no address"):
        await NODE.connect(pod(ip=""), 80)


def test_what_runs() -> None:
    """A pod without processes has no containers and is not running."""
    assert NODE.find_container(pod(uid="gone"), "c") is None
    assert (NODE.is_running(pod()), NODE.is_running(pod(uid="gone"))) == (True, False)
