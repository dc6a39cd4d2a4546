"""The name server of the control plane: a resolver that pods ask, on an address of the block.

`up.machine` opens the sockets before anything runs, so that the node knows whether there is a name server, and runs
`NameServer`. What is not the cluster's is asked of the machine's resolvers.

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
"""Questions that wait for the machine's resolvers; what comes on top is told that there is no answer."""

STREAMS_MAX: Final = 100
STREAM_IDLE_S: Final = 10.0
_FREE_PORT_ATTEMPTS: Final = 10
"""A port that is free for datagrams may be taken for streams."""

Address = tuple[str, int]
_NO_SUCH_NAME: Final = NameAnswer()
"""This very value, other than one like it, says that there is no such name."""


class Ask(Protocol):
    """`resolvers.ask`, or the same over TCP."""

    async def __call__(self, message: bytes, resolvers: Sequence[str], *, port: int = PORT) -> bytes:
        """The first answer, empty where nobody answers."""
        ...


@dataclass(frozen=True, slots=True)
class Sockets:
    """What the name server listens on, bound and not yet served."""

    datagrams: socket.socket
    streams: socket.socket

    def close(self) -> None:
        """Let go of the address."""
        self.datagrams.close()
        self.streams.close()


def open_sockets(host: str, port: int = PORT) -> Sockets:
    """Bind both; port 0: any that is free for both. Raises OSError where that is not allowed or the port is taken."""
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
        sockets: stay open when `run` ends, so that it can run again; the caller closes them.
        forward_to: the resolvers for everything else, as addresses.
    """

    def __init__(self, zone: Zone, sockets: Sockets, *, forward_to: Sequence[str], forward_port: int = PORT) -> None:
        self._zone = zone
        self._sockets = sockets
        self._forward_to = tuple(forward_to)
        self._forward_port = forward_port
        self._waiting: set[asyncio.Task[None]] = set()
        self._streams = 0

    async def run(self) -> None:
        """Answer until cancelled."""
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
        """A question over UDP: answered at once, unless others have to be asked."""
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
        """What the cluster says, None for names of others."""
        if not self._zone.is_mine(question.name):
            return None
        return self._zone.find(question.name, question.type) or _NO_SUCH_NAME

    async def _aliased(self, question: Question, alias: str, ask: Ask) -> bytes:
        """The other name, and its addresses, which the client does not ask for by itself."""
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
        """Questions over TCP, one after the other."""
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
            return  # what was answered is answered; the client may ask again
        finally:
            self._streams -= 1
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    """Hands questions over."""

    def __init__(self, asked: Callable[[bytes, Address, asyncio.DatagramTransport], None]) -> None:
        self._asked = asked
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """A question."""
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
    """Send, or say that it is too long for UDP: small answers are all that clients without EDNS take."""
    if not transport.is_closing():
        transport.sendto(answer if len(answer) <= messages.UDP_MAX_BYTES else messages.truncated(answer), client)
