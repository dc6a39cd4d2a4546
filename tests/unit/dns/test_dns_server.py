"""The name server over real sockets, with a played resolver for what is not the cluster's."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from own_ports import own_place
from podscaler.controlplane.network import dns_forwarding, dns_messages, dns_server
from podscaler.controlplane.network.dns_server import NameServer
from podscaler.controlplane.network.dns_zone import Zone

A = dns_messages.A
SERVICE = "php-apache.default.svc.cluster.local"


class Resolver(asyncio.DatagramProtocol):
    """Says 1.2.3.4 to everything but `broken.example.org`, to which it says something long that is no DNS message."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A question."""
        question = dns_messages.read_question(data)
        answer = dns_messages.encode_response(question, [dns_messages.a_record("1.2.3.4")], ttl_s=60)
        garbage = data[: dns_forwarding.ID_BYTES] + b"\xff" * dns_messages.UDP_MAX_BYTES
        self._transport.sendto(garbage if question.name == "broken.example.org" else answer, addr)


@asynccontextmanager
async def played_resolver() -> AsyncIterator[int]:
    """Its port."""
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Resolver, local_addr=("127.0.0.1", 0))
    yield transport.get_extra_info("sockname")[1]
    transport.close()


@pytest.fixture
async def port(zone: Zone) -> AsyncIterator[int]:
    """The port of a running name server."""
    sockets = dns_server.open_sockets("127.0.0.1", 0)
    async with played_resolver() as resolver:
        names = NameServer(zone, sockets, forward_to=("127.0.0.1",), forward_port=resolver)
        running = asyncio.ensure_future(names.run())
        yield int(sockets.datagrams.getsockname()[1])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    sockets.close()


def addresses(answer: bytes) -> tuple[int, list[str]]:
    """Status and addresses of an answer."""
    return answer[3] & 15, [socket.inet_ntoa(data) for data in dns_messages.read_records(answer, A)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(SERVICE, (dns_messages.NO_ERROR, ["127.7.224.1"]), id="service"),
        pytest.param("no.default.svc.cluster.local", (dns_messages.NO_SUCH_NAME, []), id="no such name"),
        pytest.param("default.svc.cluster.local", (dns_messages.NO_ERROR, []), id="no address"),
        pytest.param("example.org", (dns_messages.NO_ERROR, ["1.2.3.4"]), id="outside"),
        pytest.param("elsewhere.default.svc.cluster.local", (dns_messages.NO_ERROR, ["1.2.3.4"]), id="another word"),
    ],
)
async def test_answers(port: int, name: str, expected: tuple[int, list[str]]) -> None:
    """The cluster's names are answered, others by the machine's resolvers."""
    asked = dns_messages.encode_query(name, A, 5)
    assert addresses(await dns_forwarding.query_by_udp(asked, ("127.0.0.1",), port=port)) == expected


async def test_a_long_response_that_cannot_be_truncated_fails(port: int) -> None:
    """The client gets SERVFAIL at once."""
    asked = dns_messages.encode_query("broken.example.org", A, 5)
    answer = await dns_forwarding.query_by_udp(asked, ("127.0.0.1",), port=port)
    assert addresses(answer) == (dns_messages.SERVER_FAILURE, [])


async def test_answers_over_a_stream(port: int) -> None:
    """The same over TCP."""
    asked = dns_messages.encode_query(SERVICE, A, 5)
    answer = await dns_forwarding.query_by_tcp(asked, ("127.0.0.1",), port=port)
    assert addresses(answer) == (dns_messages.NO_ERROR, ["127.7.224.1"])


async def test_resolver_that_is_not_there(zone: Zone) -> None:
    """Where no resolver answers, the client hears of a failure, not of a name that there is not."""
    host, nowhere = own_place()
    sockets = dns_server.open_sockets("127.0.0.1", 0)
    running = asyncio.ensure_future(NameServer(zone, sockets, forward_to=(host,), forward_port=nowhere).run())
    asked = dns_messages.encode_query("example.org", A, 5)
    answer = await dns_forwarding.query_by_udp(asked, ("127.0.0.1",), port=sockets.datagrams.getsockname()[1])
    assert addresses(answer) == (dns_messages.SERVER_FAILURE, [])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    sockets.close()
