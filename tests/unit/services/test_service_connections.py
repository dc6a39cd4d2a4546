"""Proxied connections, over real sockets of the loopback interface, on both event loops that podscaler runs on."""

import asyncio
import contextlib
import hashlib
import socket
import struct
import threading

import pytest

from own_ports import own_place
from patience import WITHIN_S
from podscaler.base.clock import SystemClock
from podscaler.controlplane.network import port_listener as listening
from podscaler.controlplane.network import proxied_connection
from podscaler.controlplane.network.balancer import Backends
from podscaler.controlplane.network.proxied_connection import ProxiedConnections
from tcp_server import serving

HOST = "127.0.0.1"


class Bench:
    """A listener with endpoints, each a small server of the test."""

    def __init__(self, limit=1000):
        self.connections = ProxiedConnections(limit)
        self.servers = contextlib.AsyncExitStack()

    async def __aenter__(self):
        self.listener = await listening.listen((HOST, 0), self.connections, SystemClock())
        self.address = self.listener.server.sockets[0].getsockname()
        return self

    async def __aexit__(self, *_):
        self.listener.close()
        self.connections.abort_all()
        await self.servers.aclose()
        await asyncio.sleep(0.01)

    async def endpoint(self, handler):
        """Start an endpoint; `handler` is given reader and writer, the connection is closed after it."""

        return HOST, await self.servers.enter_async_context(serving(handler))

    def use(self, *ready, draining=()):
        self.listener.balancer.replace(Backends(tuple(ready), tuple(draining)))

    async def ask(self, text=b"hello"):
        """Send, end, and read what comes back."""
        reader, writer = await asyncio.open_connection(*self.address)
        try:
            writer.write(text)
            writer.write_eof()
            return await reader.read()
        finally:
            writer.close()


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


def naming(name):
    """An endpoint that says who it is once the client has ended."""

    async def handler(reader, writer):
        await reader.read()
        writer.write(name)

    return handler


async def dead_address():
    """An address on which nobody listens."""
    return own_place()


def test_bytes_go_both_ways(run):
    """Eight megabytes there and back, unchanged."""

    async def scenario():
        async with Bench() as bench:
            bench.use(await bench.endpoint(echo))
            sent = bytes(range(256)) * 32768
            reader, writer = await asyncio.open_connection(*bench.address)
            writer.write(sent)
            writer.write_eof()
            received = await reader.read()
            writer.close()
            assert hashlib.sha256(received).digest() == hashlib.sha256(sent).digest()

    run(scenario())


def test_half_close_is_passed_on(run):
    """The endpoint answers after the client has ended; the client may send after the endpoint has ended."""

    async def scenario():
        late = asyncio.get_running_loop().create_future()

        async def ends_first(reader, writer):
            writer.write(b"bye")
            writer.write_eof()
            late.set_result(await reader.read())

        async with Bench() as bench:
            bench.use(await bench.endpoint(naming(b"a")))
            assert await bench.ask() == b"a"
            bench.use(await bench.endpoint(ends_first))
            reader, writer = await asyncio.open_connection(*bench.address)
            assert await reader.read() == b"bye"
            writer.write(b"and more")
            writer.write_eof()
            assert await late == b"and more"
            writer.close()

    run(scenario())


def test_endpoints_that_speak_first(run):
    """What they send before the proxy knows that it is connected arrives, and their end, too."""

    def greet(listening_socket):
        with contextlib.suppress(OSError):  # the test closes the socket
            while True:
                connection, _ = listening_socket.accept()
                with connection:
                    connection.sendall(b"welcome")

    async def scenario():
        async with Bench() as bench:
            with socket.create_server((HOST, 0)) as listening_socket:
                endpoint = threading.Thread(target=greet, args=(listening_socket,))
                endpoint.start()
                bench.use(listening_socket.getsockname())
                greetings = []
                for _ in range(100):
                    reader, writer = await asyncio.open_connection(*bench.address)
                    greetings.append(await reader.read())
                    writer.close()
                listening_socket.shutdown(socket.SHUT_RDWR)
            await asyncio.to_thread(endpoint.join)
            assert set(greetings) == {b"welcome"}

    run(scenario())


def test_connections_are_spread(run):
    """Over all ready endpoints alike."""

    async def scenario():
        async with Bench() as bench:
            bench.use(*[await bench.endpoint(naming(name)) for name in (b"a", b"b", b"c")])
            answers = [await bench.ask() for _ in range(9)]
            assert sorted(answers) == [b"a"] * 3 + [b"b"] * 3 + [b"c"] * 3

    run(scenario())


def test_a_dead_endpoint_is_passed_over(run):
    """Nothing was sent yet, so the next one is tried: no request fails."""

    async def scenario():
        async with Bench() as bench:
            bench.use(await dead_address(), await bench.endpoint(naming(b"alive")))
            assert [await bench.ask() for _ in range(4)] == [b"alive"] * 4
            assert bench.listener.balancer.connections == {}

    run(scenario())


def test_without_endpoints_the_connection_is_reset(run):
    """Accepted, then reset: the client sees an error, not an empty answer."""

    async def scenario():
        async with Bench() as bench:
            with pytest.raises(ConnectionError):
                await bench.ask()

    run(scenario())


def test_all_endpoints_dead_is_a_reset_after_a_while(run, monkeypatch):
    """The wait for others is bounded."""
    monkeypatch.setattr(proxied_connection, "ENDPOINT_WAIT_S", 0.05)

    async def scenario():
        async with Bench() as bench:
            bench.use(await dead_address())
            with pytest.raises(ConnectionError):
                await bench.ask()
            assert (bench.listener.balancer.connections, len(bench.connections)) == ({}, 0)

    run(scenario())


def test_a_client_waits_for_the_endpoints_of_moments_later(run, monkeypatch):
    """In a rolling update the old endpoint is gone a moment before the slices name the new one."""
    monkeypatch.setattr(proxied_connection, "ENDPOINT_WAIT_S", WITHIN_S)

    async def scenario():
        async with Bench() as bench:
            bench.use(await dead_address())
            asked = asyncio.create_task(bench.ask())
            await asyncio.sleep(0.05)
            bench.use(await bench.endpoint(naming(b"new")))
            assert await asked == b"new"

    run(scenario())


def test_an_endpoint_that_leaves_keeps_its_connections(run):
    """Existing ones live on, new ones go elsewhere."""

    async def scenario():
        async with Bench() as bench:
            old = await bench.endpoint(echo)
            bench.use(old)
            reader, writer = await asyncio.open_connection(*bench.address)
            writer.write(b"1")
            assert await reader.readexactly(1) == b"1"
            bench.use(await bench.endpoint(naming(b"new")))
            assert await bench.ask() == b"new"
            writer.write(b"2")
            assert await reader.readexactly(1) == b"2"
            writer.close()

    run(scenario())


def test_a_listener_that_closes_keeps_its_connections(run):
    """A Service that is deleted cuts nobody off."""

    async def scenario():
        async with Bench() as bench:
            bench.use(await bench.endpoint(echo))
            reader, writer = await asyncio.open_connection(*bench.address)
            writer.write(b"1")
            assert await reader.readexactly(1) == b"1"
            bench.listener.close()
            writer.write(b"2")
            assert await reader.readexactly(1) == b"2"
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*bench.address)
            writer.close()

    run(scenario())


async def until(condition):
    """Return when it holds; the deadline is that of `run`."""
    while not condition():  # noqa: ASYNC110 - what is waited for happens in the kernel and in the proxy
        await asyncio.sleep(0.01)


async def send_much(writer):
    for _ in range(512):
        writer.write(b"x" * 262_144)
        await writer.drain()


def held_bytes(bench):
    """What the proxy holds for the endpoint of its only connection, which may not be there yet."""
    return sum(side.peer.transport.get_write_buffer_size() for side in bench.connections._open if side.peer)


def test_a_slow_reader_stops_the_sender(run):
    """What the proxy holds for an endpoint that does not read is bounded."""

    async def scenario():
        release = asyncio.Event()

        async def stuck(reader, _writer):
            reader._transport.pause_reading()
            await release.wait()

        async with Bench() as bench:
            bench.use(await bench.endpoint(stuck))
            _, writer = await asyncio.open_connection(*bench.address)
            sending = asyncio.create_task(send_much(writer))
            await until(lambda: held_bytes(bench))
            await asyncio.sleep(0.5)
            assert 0 < held_bytes(bench) < 1_000_000
            assert not sending.done()
            sending.cancel()
            release.set()
            writer.transport.abort()

    run(scenario())


def test_a_reset_is_passed_on(run):
    """An endpoint that dies resets its clients: half an answer is not taken for a whole one."""

    async def scenario():
        async def dies(reader, writer):
            await reader.read(1)
            writer.write(b"half")
            await writer.drain()
            await asyncio.sleep(0.05)
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

        async with Bench() as bench:
            bench.use(await bench.endpoint(dies))
            reader, writer = await asyncio.open_connection(*bench.address)
            writer.write(b"x")
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()

    run(scenario())


def test_a_client_that_is_gone_frees_its_endpoint(run):
    """Whether it goes before or after the endpoint was reached."""

    async def scenario():
        async with Bench() as bench:
            bench.use(await bench.endpoint(echo))
            for _ in range(5):
                _, writer = await asyncio.open_connection(*bench.address)
                writer.transport.abort()
            await until(lambda: not bench.connections and not bench.listener.balancer.connections)

    run(scenario())


def test_the_number_of_connections_is_bounded(run):
    """What would take the last file descriptors is reset."""

    async def scenario():
        async with Bench(limit=1) as bench:
            bench.use(await bench.endpoint(echo))
            reader, writer = await asyncio.open_connection(*bench.address)
            writer.write(b"1")
            assert await reader.readexactly(1) == b"1"
            with pytest.raises(ConnectionError):
                await bench.ask()
            assert bench.connections.refused == 1
            writer.close()

    run(scenario())


def test_many_connections_at_once(run):
    """All are answered."""

    async def scenario():
        async with Bench() as bench:
            bench.use(*[await bench.endpoint(echo) for _ in range(4)])
            answers = await asyncio.gather(*(bench.ask(str(n).encode()) for n in range(200)))
            assert answers == [str(n).encode() for n in range(200)]

    run(scenario())


def test_a_low_port_moves_up(monkeypatch):
    """A port that this user may not bind is served at a high one."""
    real = listening._serve_at

    async def serve(balancer, accounts, host, port):
        if port < 1024:
            raise PermissionError(13, "Permission denied")
        return await real(balancer, accounts, host, port)

    async def scenario():
        monkeypatch.setattr(listening, "_serve_at", serve)
        listener = await listening.listen(("127.254.254.253", 80), ProxiedConnections(1), SystemClock())
        assert listener.port == 20080
        listener.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        pytest.param(1024, 4096, (4096, 1920), id="raised to the hard limit"),
        pytest.param(1024, 1 << 20, (65536, 32640), id="not without end"),
        pytest.param(1 << 20, 1 << 20, (1 << 20, 524160), id="never lowered"),
        pytest.param(64, 64, (64, 16), id="a few connections at least"),
    ],
)
def test_how_many_connections_there_may_be(monkeypatch, soft, hard, expected):
    """Two open files each; the soft limit is raised as far as it may be."""
    limits = [(soft, hard)]
    monkeypatch.setattr(listening.resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(listening.resource, "setrlimit", lambda _, new: limits.append(new))
    allowed = listening.raise_connection_limit()
    assert (limits[-1][0], allowed) == expected
