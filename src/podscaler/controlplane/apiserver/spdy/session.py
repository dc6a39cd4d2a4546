"""The server's side of one SPDY connection: streams that the client begins.

`streaming.spdy_ports` feeds what arrives and is called for each new stream. Rules:

1. Frames are handled in their order; a stream whose reader is slow makes all others wait, as there are no windows.
2. A stream is gone once both sides have ended it, or one has reset it.
3. A stream that cannot be had (its id is no client's, or there are too many) is reset; the connection goes on.

Source: SPDY Protocol, draft 3.1, section 2.3.
Differs: the server begins no streams, and does not limit by windows: neither do the clients that speak this.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from podscaler.controlplane.apiserver.spdy import frames
from podscaler.controlplane.apiserver.spdy.frames import (
    Data,
    Frame,
    FrameReader,
    GoAway,
    HeadersFrame,
    Ping,
    Reset,
    SynReply,
    SynStream,
)
from podscaler.controlplane.apiserver.spdy.headers import HeaderReader, HeaderWriter

PENDING_MAX_BYTES: Final = 256 * 1024
"""Of what a stream has received and nobody has read."""

STREAMS_MAX: Final = 2000
DATA_MAX_BYTES: Final = 32 * 1024

Send = Callable[[bytes], Awaitable[None]]


class StreamReset(ConnectionError):
    """The client has given the stream up."""


class SPDYStream:
    """One stream; made by `SPDYSession`."""

    def __init__(self, stream_id: int, headers: Mapping[str, str], session: "SPDYSession") -> None:
        self.stream_id = stream_id
        self.headers = headers
        self._session = session
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._was_reset = asyncio.Event()
        self._client_ended = False
        self._we_ended = False

    async def received(self) -> AsyncIterator[bytes]:
        """What the client sends, until it ends or resets the stream. To be read once."""
        while True:
            while self._pending:
                data = self._pending.popleft()
                yield data
                self._pending_bytes -= len(data)
                self._room.set()
            if self._client_ended or self._was_reset.is_set():
                return
            self._changed.clear()
            await self._changed.wait()

    async def write(self, data: bytes) -> None:
        """Send. Raises StreamReset."""
        for start in range(0, len(data), DATA_MAX_BYTES):
            if self._was_reset.is_set():
                raise StreamReset("the client has given the stream up")
            await self._session.send(Data(self.stream_id, data[start : start + DATA_MAX_BYTES]))

    async def end(self) -> None:
        """There is no more to send."""
        if not self._we_ended and not self._was_reset.is_set():
            self._we_ended = True
            await self._session.send(Data(self.stream_id, b"", is_last=True))
            self._forget_if_over()

    async def reset(self, status: int = frames.CANCEL) -> None:
        """Give the stream up."""
        if not self._was_reset.is_set():
            self.note_reset()
            await self._session.send(Reset(self.stream_id, status))

    async def wait_reset(self) -> None:
        """Return when the stream was given up."""
        await self._was_reset.wait()

    async def take(self, frame: Data) -> None:
        """The client has sent that; returns when there is room for more (rule 1)."""
        if self._client_ended or self._was_reset.is_set():
            return
        if frame.data:
            self._pending.append(frame.data)
            self._pending_bytes += len(frame.data)
        self._client_ended = frame.is_last
        self._changed.set()
        self._forget_if_over()
        while self._pending_bytes >= PENDING_MAX_BYTES and not self._was_reset.is_set():
            self._room.clear()
            await self._room.wait()

    def note_reset(self) -> None:
        """The stream is over; who waits is told."""
        self._was_reset.set()
        self._pending.clear()
        self._pending_bytes = 0
        self._changed.set()
        self._room.set()
        self._session.forget(self.stream_id)

    def _forget_if_over(self) -> None:
        if self._client_ended and self._we_ended:
            self._session.forget(self.stream_id)


class SPDYSession:
    """See the module.

    Args:
        send: takes bytes for the client; waits for room.
        on_stream: called with each new stream, before its first data.
    """

    def __init__(self, send: Send, on_stream: Callable[[SPDYStream], None]) -> None:
        self._send_bytes = send
        self._on_stream = on_stream
        self._reader = FrameReader()
        self._headers = HeaderReader()
        self._replies = HeaderWriter()
        self._streams: dict[int, SPDYStream] = {}
        self._last_id = 0

    async def feed(self, data: bytes) -> None:
        """Handle what has arrived.

        Raises:
            Violation: the connection is to be closed.
        """
        for frame in self._reader.feed(data):
            await self._handle(frame)

    async def send(self, frame: Frame) -> None:
        """Send one frame; streams do."""
        await self._send_bytes(frames.encode(frame))

    def forget(self, stream_id: int) -> None:
        """The stream is over (rule 2)."""
        self._streams.pop(stream_id, None)

    def close(self) -> None:
        """The connection is gone: so are its streams."""
        for stream in list(self._streams.values()):
            stream.note_reset()

    async def _handle(self, frame: Frame) -> None:
        match frame:
            case SynStream():
                await self._begin(frame)
            case Data(stream_id=stream_id):
                stream = self._streams.get(stream_id)
                if stream is not None:
                    await stream.take(frame)
            case Reset(stream_id=stream_id):
                stream = self._streams.get(stream_id)
                if stream is not None:
                    stream.note_reset()
            case HeadersFrame(block=block) | SynReply(block=block):
                self._headers.read(block)  # what comes later is compressed with it
            case Ping():
                await self.send(frame)
            case GoAway():
                return

    async def _begin(self, frame: SynStream) -> None:
        headers = self._headers.read(frame.block)
        if frame.stream_id % 2 == 0 or frame.stream_id <= self._last_id:
            await self.send(Reset(frame.stream_id, frames.PROTOCOL_ERROR))
            return
        self._last_id = frame.stream_id
        if len(self._streams) >= STREAMS_MAX:
            await self.send(Reset(frame.stream_id, frames.REFUSED_STREAM))
            return
        stream = SPDYStream(frame.stream_id, headers, self)
        self._streams[frame.stream_id] = stream
        # Replies are compressed with each other: nothing may come between making one and sending it.
        await self.send(SynReply(frame.stream_id, self._replies.write({})))
        self._on_stream(stream)
        if frame.is_last:
            await stream.take(Data(frame.stream_id, b"", is_last=True))
