"""The cluster DNS server: serves the cluster's zone and forwards other queries to the machine's resolvers.

`cluster_names` opens the sockets before the node starts, so that the node knows whether there is a name server, and
runs `NameServer`.


Source: RFC 1035; CoreDNS' answers for the cluster's zone.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast

from podscaler.controlplane.network import messages, resolvers
from podscaler.controlplane.network.messages import Malformed, Question, ResourceRecord
from podscaler.controlplane.network.zone import NameAnswer, Zone

PORT: Final = 53
TTL_S: Final = 5
WAITING_MAX: Final = 200
"""The most queries that wait for the machine's resolvers; further ones get SERVFAIL."""

STREAMS_MAX: Final = 100
STREAM_IDLE_S: Final = 10.0
_FREE_PORT_ATTEMPTS: Final = 10
"""A port that is free for UDP may be taken for TCP."""
Address = tuple[str, int]
_NO_SUCH_NAME: Final = NameAnswer()
"""The answer for a name that does not exist, compared by identity."""


class Ask(Protocol):
    """`resolvers.ask` or `resolvers.ask_by_stream`."""

    async def __call__(self, message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
        """The first response, empty without any."""
        ...


@dataclass(frozen=True, slots=True)
class Sockets:
    """The bound sockets of the name server."""

    datagrams: socket.socket
    streams: socket.socket

    def close(self) -> None:
        """Close both."""
        self.datagrams.close()
        self.streams.close()


def open_sockets(host: str, port: int = PORT) -> Sockets:
    """Bind UDP and TCP; port 0 for any that is free for both. Raises OSError if the port is taken or not allowed."""
    for _ in range(_FREE_PORT_ATTEMPTS if port == 0 else 0):
        with suppress(OSError):
            return _bound(host, port)
    return _bound(host, port)


def _bound(host: str, port: int) -> Sockets:
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        datagrams.setblocking(False)
        datagrams.bind((host, port))
        return Sockets(datagrams, socket.create_server((host, datagrams.getsockname()[1])))
    except OSError:
        datagrams.close()
        raise


class NameServer:
    """See the module.

    Args:
        zone: the names of the cluster.
        sockets: they stay open when `run` ends, so that it can run again; the caller closes them.
        forward_to: the IP addresses of the resolvers for other names.
        forward_port: their port.
    """

    def __init__(self, zone: Zone, sockets: Sockets, *, forward_to: Sequence[str], forward_port: int = PORT) -> None:
        self._zone = zone
        self._sockets = sockets
        self._forward_to = tuple(forward_to)
        self._forward_port = forward_port
        self._waiting: set[asyncio.Task[None]] = set()
        self._streams = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self._asked), sock=self._sockets.datagrams.dup()
        )
        server = await asyncio.start_server(self._serve_stream, sock=self._sockets.streams.dup())
        try:
            await server.serve_forever()
        finally:
            transport.close()
            for task in list(self._waiting):
                task.cancel()

    def _asked(self, message: bytes, client: Address, transport: asyncio.DatagramTransport) -> None:
        """Answer a query over UDP: at once, unless it has to be forwarded."""
        try:
            question = messages.read_question(message)
        except Malformed:
            return
        found = self._own(question)
        if found is not None and not found.alias:
            _send(transport, _own_answer(question, found), client)
        elif len(self._waiting) >= WAITING_MAX:
            _send(transport, _failure(question), client)
        else:
            task = asyncio.ensure_future(self._answer_later(message, question, found, client, transport))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _answer_later(
        self,
        message: bytes,
        question: Question,
        found: NameAnswer | None,
        client: Address,
        transport: asyncio.DatagramTransport,
    ) -> None:
        _send(transport, await self._answer(message, question, found, resolvers.ask), client)

    async def _answer(self, message: bytes, question: Question, found: NameAnswer | None, ask: Ask) -> bytes:
        if found is None:
            return await ask(message, self._forward_to, port=self._forward_port) or _failure(question)
        if not found.alias:
            return _own_answer(question, found)
        return await self._aliased(question, found.alias, ask)

    def _own(self, question: Question) -> NameAnswer | None:
        """The answer of the cluster's zone, None for names outside of it."""
        if not self._zone.is_mine(question.name):
            return None
        return self._zone.find(question.name, question.type) or _NO_SUCH_NAME

    async def _aliased(self, question: Question, alias: str, ask: Ask) -> bytes:
        """A CNAME record and the addresses of its target, as clients do not query for them."""
        records = [messages.canonical(alias)]
        if question.type in (messages.A, messages.AAAA):
            asked = messages.question_for(alias, question.type, question.number)
            if self._zone.is_mine(alias):
                found = self._zone.find(alias, question.type) or NameAnswer()
                records += [replace(record, owner=alias) for record in found.records]
            else:
                answer = await ask(asked, self._forward_to, port=self._forward_port)
                records += [ResourceRecord(question.type, data, alias) for data in _data(answer, question.type)]
        return messages.answer(question, records, ttl_s=TTL_S)

    async def _serve_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the queries of a TCP connection, one after the other."""
        self._streams += 1
        try:
            while self._streams <= STREAMS_MAX:
                async with asyncio.timeout(STREAM_IDLE_S):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    message = await reader.readexactly(length)
                    question = messages.read_question(message)
                    answer = await self._answer(message, question, self._own(question), resolvers.ask_by_stream)
                    writer.write(len(answer).to_bytes(2, "big") + answer)
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, Malformed):
            return  # the client reconnects for further queries
        finally:
            self._streams -= 1
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    """Passes received datagrams to `asked`."""

    def __init__(self, asked: Callable[[bytes, Address, asyncio.DatagramTransport], None]) -> None:
        self._asked = asked
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the transport."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """Pass a query on."""
        if self._transport is not None:
            self._asked(data, addr, self._transport)


def _own_answer(question: Question, found: NameAnswer) -> bytes:
    status = messages.NO_SUCH_NAME if found is _NO_SUCH_NAME else messages.NO_ERROR
    return messages.answer(question, found.records, ttl_s=TTL_S, status=status)


def _failure(question: Question) -> bytes:
    return messages.answer(question, (), ttl_s=0, status=messages.SERVER_FAILURE)


def _data(answer: bytes, kind: int) -> list[bytes]:
    try:
        return messages.read_records(answer, kind) if answer else []
    except Malformed:
        return []


def _send(transport: asyncio.DatagramTransport, answer: bytes, client: Address) -> None:
    """Send a response, truncated if it is too long for clients without EDNS."""
    if not transport.is_closing():
        transport.sendto(answer if len(answer) <= messages.UDP_MAX_BYTES else messages.truncated(answer), client)
