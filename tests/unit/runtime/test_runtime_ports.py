"""Connections to ports of pods, with real sockets."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from podscaler.controlplane.kubelet.node_connections import NodeConnections
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.pod_connections import SessionFailure
from tcp_server import serving


def node(addresses: AddressBlock | None = None) -> NodeConnections:
    """A node all of whose pods have the address 127.0.0.1, if nothing else is said."""
    return NodeConnections(
        lambda uid, name: None, lambda uid: uid == "runs", addresses or AddressBlock(0, is_shared=True)
    )


def pod(port_map: str = "", uid: str = "runs", status: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod."""
    annotations = {"podscaler.dev/port-map": port_map} if port_map else {}
    return {"metadata": {"name": "p", "uid": uid, "annotations": annotations}, "spec": spec, "status": status or {}}


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Where somebody gives back, in capitals, everything that came before the end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write((await reader.read()).upper())
            await writer.drain()

    async with serving(serve) as port:
        yield port


@contextlib.contextmanager
def closed(address: str) -> Iterator[int]:
    """A port of `address` that is taken, though nobody listens."""
    with socket.socket() as taken:
        taken.bind((address, 0))
        yield taken.getsockname()[1]


async def test_both_ways_and_half_close(port: int) -> None:
    """Bytes arrive, the end of input too; the answer comes until the pod has ended."""
    connection = await node().connect(pod(), port)
    await connection.write(b"hello")
    await connection.end_input()
    received = [chunk async for chunk in connection.received()]
    await connection.close()
    assert received == [b"HELLO"]


async def test_port_that_was_moved(port: int) -> None:
    """A port of the manifest leads to where it really is."""
    connection = await node().connect(pod(f'{{"80": {port}}}'), 80)
    await connection.end_input()
    assert [chunk async for chunk in connection.received()] == []
    await connection.close()


async def test_what_cannot_be_reached() -> None:
    """A port that nobody listens on, and a pod without an address, are failures with the reason."""
    message = "dial tcp4 127.0.0.1:.*: connect: connection refused"
    with closed("127.0.0.1") as number, pytest.raises(SessionFailure, match=message):
        await node().connect(pod(), number)
    with pytest.raises(SessionFailure, match="no address"):
        await node(AddressBlock(7)).connect(pod(), 80)


async def test_the_status_names_no_address(port: int) -> None:
    """Whoever may write a pod's status leads nobody elsewhere: the node knows which address it gave the pod."""
    block = AddressBlock(7)
    block.allocate_pod("runs")
    forged = pod(status={"podIP": "127.0.0.1"})
    with closed("127.7.1.1") as number, pytest.raises(SessionFailure, match=f"dial tcp4 127.7.1.1:{number}: connect"):
        await node(block).connect(forged, number)
    connection = await node().connect(pod(status={"podIP": "192.0.2.1"}), port)
    await connection.close()


async def test_a_pod_of_the_hosts_network() -> None:
    """It has the node's address."""
    with closed("127.7.0.1") as number, pytest.raises(SessionFailure, match=f"dial tcp4 127.7.0.1:{number}: connect"):
        await node(AddressBlock(7)).connect(pod(hostNetwork=True), number)


async def test_a_port_that_there_cannot_be(port: int) -> None:
    """A forged note of moved ports is no port."""
    connection = await node().connect(pod(f'{{"{port}": 70000}}'), port)
    await connection.close()


def test_what_runs() -> None:
    """A pod without processes has no containers and is not running."""
    assert node().find_container(pod(uid="gone"), "c") is None
    assert (node().is_running(pod()), node().is_running(pod(uid="gone"))) == (True, False)
