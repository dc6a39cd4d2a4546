"""Proxied UDP flows, over real sockets of the loopback interface, on both event loops that podscaler runs on."""

import asyncio
import socket

from podscaler.base.clock import SystemClock
from podscaler.controlplane.network import datagram_listener
from podscaler.controlplane.network.balancer import Backends
from podscaler.controlplane.network.proxied_connection import ProxiedConnections

HOST = "127.0.0.1"


async def until(condition):
    """Return when the condition holds; the scenario has a deadline."""
    while not condition():  # noqa: ASYNC110 - sockets are real, and nothing tells of them
        await asyncio.sleep(0.005)


class Endpoint(asyncio.DatagramProtocol):
    """Answers each datagram with its own name and the text."""

    def __init__(self, name):
        self.name = name

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.transport.sendto(self.name + b":" + data, addr)


class Client(asyncio.DatagramProtocol):
    """Asks the listener from one port."""

    def __init__(self):
        self.received = asyncio.Queue()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.received.put_nowait(data)

    async def ask(self, text):
        self.transport.sendto(text)
        return await self.received.get()


class Bench:
    """A listener with endpoints and clients."""

    def __init__(self, limit=1000):
        self.connections = ProxiedConnections(limit)
        self.transports = []

    async def __aenter__(self):
        self.listener = await datagram_listener.listen((HOST, 0), self.connections, SystemClock())
        self.address = self.listener._transport.get_extra_info("sockname")
        return self

    async def __aexit__(self, *_):
        self.listener.close()
        for transport in self.transports:
            transport.close()
        await asyncio.sleep(0)

    async def endpoint(self, name):
        """Start an endpoint; its address."""
        made = await asyncio.get_running_loop().create_datagram_endpoint(lambda: Endpoint(name), (HOST, 0))
        self.transports.append(made[0])
        return made[0].get_extra_info("sockname")

    async def client(self):
        """A client with a port of its own."""
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_datagram_endpoint(Client, remote_addr=self.address)
        self.transports.append(transport)
        return client

    def use(self, *ready, affinity_s=None):
        """Replace the endpoints."""
        self.listener.balancer.replace(Backends(ready), affinity_s)


def test_a_flow_stays_with_its_endpoint(run):
    """Clients take turns at the endpoints; the datagrams of one client go to one endpoint."""

    async def scenario():
        async with Bench() as bench:
            bench.use(await bench.endpoint(b"a"), await bench.endpoint(b"b"))
            first, second = await bench.client(), await bench.client()
            answers = [await first.ask(b"1"), await second.ask(b"1")]
            assert sorted(answer[:1] for answer in answers) == [b"a", b"b"]
            assert [await first.ask(b"2"), await second.ask(b"2")] == [answers[0][:2] + b"2", answers[1][:2] + b"2"]
            assert len(bench.connections) == 2
        assert len(bench.connections) == 0

    run(scenario())


def test_a_flow_leaves_an_endpoint_that_is_no_candidate(run):
    """The next datagram goes to another one."""

    async def scenario():
        async with Bench() as bench:
            one, two = await bench.endpoint(b"one"), await bench.endpoint(b"two")
            bench.use(one)
            client = await bench.client()
            assert await client.ask(b"x") == b"one:x"
            bench.use(two)
            assert await client.ask(b"y") == b"two:y"
            assert bench.listener.balancer.connections == {two: 1}

    run(scenario())


def test_an_endpoint_that_refuses_ends_the_flow(run):
    """Nothing listens on its port: the flow ends, and so does its count."""

    async def scenario():
        async with Bench() as bench:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reserved:
                reserved.bind((HOST, 0))
                gone = reserved.getsockname()
            bench.use(gone)
            client = await bench.client()
            client.transport.sendto(b"x")
            await until(lambda: bench.listener.balancer.connections == {})
            assert len(bench.connections) == 0

    run(scenario())


def test_flows_are_limited(run):
    """A client beyond the limit gets no answer, until another flow has ended."""

    async def scenario():
        async with Bench(limit=1) as bench:
            bench.use(await bench.endpoint(b"a"))
            first, second = await bench.client(), await bench.client()
            assert await first.ask(b"1") == b"a:1"
            second.transport.sendto(b"dropped")
            await until(lambda: bench.connections.refused == 1)
            bench.connections.abort_all()
            assert await second.ask(b"2") == b"a:2"

    run(scenario())


def test_idle_flows_end(run, monkeypatch):
    """When the idle time has passed since the last datagram, not before."""

    async def scenario():
        async with Bench() as bench:
            bench.use(await bench.endpoint(b"a"))
            client = await bench.client()
            assert await client.ask(b"1") == b"a:1"
            (flow,) = bench.listener._flows.values()
            flow._end_if_idle()
            assert len(bench.connections) == 1
            with monkeypatch.context() as patched:
                patched.setattr(datagram_listener, "FLOW_IDLE_S", 0.0)
                flow._end_if_idle()
            assert len(bench.connections) == 0
            assert await client.ask(b"2") == b"a:2"

    run(scenario())


def test_without_endpoints_datagrams_are_dropped(run):
    """As kube-proxy has no rule for them."""

    async def scenario():
        async with Bench() as bench:
            client = await bench.client()
            client.transport.sendto(b"dropped")
            await asyncio.sleep(0.01)
            bench.use(await bench.endpoint(b"a"))
            assert await client.ask(b"2") == b"a:2"
            assert bench.connections.refused == 0

    run(scenario())
