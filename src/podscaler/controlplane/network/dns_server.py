"""Serves the cluster DNS over UDP and TCP: answers names of the cluster, forwards others to the machine's resolvers.

`cluster_dns` opens the sockets before the node starts, as the resolv.conf of pods names the server only where there is
one, and runs `NameServer`. `dns_zone` has the answers, `dns_messages` the encoding, `dns_forwarding` the queries to
other resolvers.

Source: RFC 1035; CoreDNS' answers for the cluster's zone.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast

from podscaler.controlplane.network import dns_forwarding, dns_messages
from podscaler.controlplane.network.dns_messages import Malformed, Question, ResourceRecord
from podscaler.controlplane.network.dns_zone import NameAnswer, Zone

PORT: Final = 53
TTL_S: Final = 5
"""The default of CoreDNS' plugin `kubernetes`."""
FORWARDED_QUERIES_MAX: Final = 200
"""The most queries that wait for the machine's resolvers; further ones get SERVFAIL."""

STREAMS_MAX: Final = 100
"""The most open TCP connections of clients."""
STREAM_IDLE_S: Final = 10.0
"""The timeout of one query of a TCP connection, from waiting for it to its response."""
_FREE_PORT_RETRIES: Final = 10
"""How often port 0 is tried again: the port that is free for UDP may be taken for TCP."""
Address = tuple[str, int]
"""IP address and port number."""
_NO_SUCH_NAME: Final = NameAnswer(exists=False)


class ForwardQuery(Protocol):
    """`dns_forwarding.query_by_udp` or `dns_forwarding.query_by_tcp`."""

    async def __call__(self, message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
        """The first response of a resolver, empty if none responds."""
        ...


@dataclass(frozen=True, slots=True)
class Sockets:
    """The bound sockets of the DNS server, for UDP (`datagrams`) and TCP (`streams`)."""

    datagrams: socket.socket
    streams: socket.socket

    def close(self) -> None:
        """Close both."""
        self.datagrams.close()
        self.streams.close()


def open_sockets(host: str, port: int = PORT) -> Sockets:
    """Bind UDP and TCP; port 0 for any that is free for both. Raises OSError if the port is taken or not allowed."""
    retries = _FREE_PORT_RETRIES if port == 0 else 0
    for _ in range(retries):
        with suppress(OSError):
            return _bind_both(host, port)
    return _bind_both(host, port)


def _bind_both(host: str, port: int) -> Sockets:
    """A UDP and a TCP socket with the same port. Raises OSError."""
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        datagrams.setblocking(False)
        datagrams.bind((host, port))
        return Sockets(datagrams, socket.create_server((host, datagrams.getsockname()[1])))
    except OSError:
        datagrams.close()
        raise


class NameServer:
    """The DNS server of a cluster.

    Args:
        zone: the names of the cluster.
        sockets: they stay open when `run` ends, so that it can run again; the caller closes them.
        forward_to: the IP addresses of the resolvers for names outside the cluster; if empty, such queries fail.
        forward_port: the port of these resolvers.
    """

    def __init__(self, zone: Zone, sockets: Sockets, *, forward_to: Sequence[str], forward_port: int = PORT) -> None:
        self._zone = zone
        self._sockets = sockets
        self._forward_to = tuple(forward_to)
        self._forward_port = forward_port
        self._forwarding: set[asyncio.Task[None]] = set()
        self._open_streams = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _DatagramProtocol(self._answer_datagram), sock=self._sockets.datagrams.dup()
        )
        server = await asyncio.start_server(self._serve_stream, sock=self._sockets.streams.dup())
        try:
            await server.serve_forever()
        finally:
            transport.close()
            for task in list(self._forwarding):
                task.cancel()

    def _answer_datagram(self, message: bytes, client: Address, transport: asyncio.DatagramTransport) -> None:
        """Answer a query over UDP: at once, unless it has to be forwarded."""
        try:
            question = dns_messages.read_question(message)
        except Malformed:
            return
        zone_answer = self._find_in_zone(question)
        if zone_answer is not None and not zone_answer.alias:
            _send_datagram(transport, _zone_response(question, zone_answer), client)
        elif len(self._forwarding) >= FORWARDED_QUERIES_MAX:
            _send_datagram(transport, _failure_response(question), client)
        else:
            task = asyncio.ensure_future(self._answer_forwarded(message, question, zone_answer, client, transport))
            self._forwarding.add(task)
            task.add_done_callback(self._forwarding.discard)

    async def _answer_forwarded(
        self,
        message: bytes,
        question: Question,
        zone_answer: NameAnswer | None,
        client: Address,
        transport: asyncio.DatagramTransport,
    ) -> None:
        """Answer a query over UDP that has to be forwarded."""
        response = await self._respond(message, question, zone_answer, dns_forwarding.query_by_udp)
        try:
            _send_datagram(transport, response, client)
        except Malformed:
            _send_datagram(transport, _failure_response(question), client)

    async def _respond(
        self, message: bytes, question: Question, zone_answer: NameAnswer | None, forward: ForwardQuery
    ) -> bytes:
        """The encoded response to a query.

        Args:
            message: the encoded query, whose question is `question`.
            zone_answer: the answer of the cluster's zone, None for a name outside of it.
            forward: sends queries to the machine's resolvers, over the transport of the client.
        """
        if zone_answer is None:
            return await forward(message, self._forward_to, port=self._forward_port) or _failure_response(question)
        if not zone_answer.alias:
            return _zone_response(question, zone_answer)
        return await self._alias_response(question, zone_answer.alias, forward)

    def _find_in_zone(self, question: Question) -> NameAnswer | None:
        """The answer of the cluster's zone, _NO_SUCH_NAME for a name that it lacks, None for names outside of it."""
        if not self._zone.contains(question.name):
            return None
        return self._zone.find(question.name, question.type) or _NO_SUCH_NAME

    async def _alias_response(self, question: Question, alias: str, forward: ForwardQuery) -> bytes:
        """The response with a CNAME record and the addresses of its target, as clients do not query for them.

        A server failure for a target that DNS cannot encode: the API allows labels of more than 63 bytes.
        """
        try:
            records = [dns_messages.cname_record(alias)]
            query = dns_messages.encode_query(alias, question.type, question.query_id)
        except Malformed:
            return _failure_response(question)
        if question.type in (dns_messages.A, dns_messages.AAAA):
            if self._zone.contains(alias):
                zone_answer = self._zone.find(alias, question.type) or NameAnswer()
                records += [replace(record, owner=alias) for record in zone_answer.records]
            else:
                response = await forward(query, self._forward_to, port=self._forward_port)
                records += [
                    ResourceRecord(question.type, data, alias) for data in _record_data(response, question.type)
                ]
        return dns_messages.encode_response(question, records, ttl_s=TTL_S)

    async def _serve_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the queries of a TCP connection, one after the other."""
        self._open_streams += 1
        try:
            while self._open_streams <= STREAMS_MAX:  # with more, each connection ends after its present query
                async with asyncio.timeout(STREAM_IDLE_S):
                    length = int.from_bytes(await reader.readexactly(dns_forwarding.LENGTH_BYTES), "big")
                    message = await reader.readexactly(length)
                    question = dns_messages.read_question(message)
                    zone_answer = self._find_in_zone(question)
                    response = await self._respond(message, question, zone_answer, dns_forwarding.query_by_tcp)
                    writer.write(len(response).to_bytes(dns_forwarding.LENGTH_BYTES, "big") + response)
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, Malformed):
            return  # the client reconnects for further queries
        finally:
            self._open_streams -= 1
            writer.close()


class _DatagramProtocol(asyncio.DatagramProtocol):
    """Passes each datagram to `on_query`, with the client's address and the transport for the response."""

    def __init__(self, on_query: Callable[[bytes, Address, asyncio.DatagramTransport], None]) -> None:
        self._on_query = on_query
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Pass a query on."""
        if self._transport is not None:
            self._on_query(data, addr, self._transport)


def _zone_response(question: Question, zone_answer: NameAnswer) -> bytes:
    """The encoded response with an answer of the cluster's zone."""
    response_code = dns_messages.NO_ERROR if zone_answer.exists else dns_messages.NO_SUCH_NAME
    return dns_messages.encode_response(question, zone_answer.records, ttl_s=TTL_S, response_code=response_code)


def _failure_response(question: Question) -> bytes:
    """The encoded response SERVFAIL."""
    return dns_messages.encode_response(question, (), ttl_s=0, response_code=dns_messages.SERVER_FAILURE)


def _record_data(response: bytes, record_type: int) -> list[bytes]:
    """The data of the records of one type in a resolver's response; none if it is empty or not valid."""
    try:
        return dns_messages.read_records(response, record_type) if response else []
    except Malformed:
        return []


def _send_datagram(transport: asyncio.DatagramTransport, response: bytes, client: Address) -> None:
    """Send a response, truncated if it is too long for clients without EDNS. Raises Malformed if that is impossible."""
    if not transport.is_closing():
        is_long = len(response) > dns_messages.UDP_MAX_BYTES
        transport.sendto(dns_messages.truncate(response) if is_long else response, client)
