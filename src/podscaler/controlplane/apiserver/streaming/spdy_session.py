"""Implements the server side of one SPDY connection, without sockets: multiplexes the streams that the client opens.

`spdy_ports` passes received bytes to `SPDYSession.feed`; `on_stream` is called for each new stream. Rules:

1. Frames are handled in order; as there are no windows, a slow reader of one stream delays all streams.
2. A stream is removed when both sides have ended it, or one has reset it.
3. A stream with an invalid id, or above the limit, is reset; the connection stays open.

A new frame of `spdy_frames`: a case in `SPDYSession._handle`.

Source: SPDY Protocol, draft 3.1, section 2.3 (Streams).
Differs: the server opens no streams and has no flow control by windows, as the clients of this protocol have none.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from podscaler.controlplane.apiserver.streaming import spdy_frames
from podscaler.controlplane.apiserver.streaming.spdy_headers import HeaderReader, HeaderWriter

UNREAD_MAX_BYTES: Final = 256 * 1024
"""The most bytes of one stream that were received but not read (rule 1)."""

STREAMS_MAX: Final = 2000
"""The most open streams of a connection; further ones are refused."""
DATA_FRAME_MAX_BYTES: Final = 32 * 1024
"""The most bytes of a sent frame."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends bytes to the client; waits while its buffer is full."""


class StreamReset(ConnectionError):
    """The stream was reset."""


class SPDYStream:
    """One stream, which the client opened; the session calls `append` and `mark_reset`, the user of it the others.

    Attributes:
        stream_id: the number of the stream in its connection.
        headers: the headers of SYN_STREAM, by name in lower case.
    """

    def __init__(self, stream_id: int, headers: Mapping[str, str], session: "SPDYSession") -> None:
        self.stream_id = stream_id
        self.headers = headers
        self._session = session
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._readable = asyncio.Event()
        self._has_room = asyncio.Event()
        self._was_reset = asyncio.Event()
        self._client_ended = False
        self._server_ended = False

    async def received(self) -> AsyncIterator[bytes]:
        """The data of the client, until it ends or resets the stream. To be called once."""
        while True:
            while self._unread:
                data = self._unread.popleft()
                yield data
                self._unread_bytes -= len(data)
                self._has_room.set()
            if self._client_ended or self._was_reset.is_set():
                return
            self._readable.clear()
            await self._readable.wait()

    async def write(self, data: bytes) -> None:
        """Send `data` to the client. Raises StreamReset."""
        for start in range(0, len(data), DATA_FRAME_MAX_BYTES):
            if self._was_reset.is_set():
                raise StreamReset("the stream was reset")
            await self._session.send(spdy_frames.Data(self.stream_id, data[start : start + DATA_FRAME_MAX_BYTES]))

    async def end(self) -> None:
        """End the server's side of the stream; does nothing the second time."""
        if not self._server_ended and not self._was_reset.is_set():
            self._server_ended = True
            await self._session.send(spdy_frames.Data(self.stream_id, b"", is_last=True))
            self._remove_if_ended()

    async def reset(self, status: int = spdy_frames.CANCEL) -> None:
        """Reset the stream; does nothing the second time."""
        if not self._was_reset.is_set():
            self.mark_reset()
            await self._session.send(spdy_frames.Reset(self.stream_id, status))

    async def wait_reset(self) -> None:
        """Return when the stream has been reset."""
        await self._was_reset.wait()

    async def append(self, frame: spdy_frames.Data) -> None:
        """Append data of the client; returns when there is room for more (rule 1)."""
        if self._client_ended or self._was_reset.is_set():
            return
        if frame.data:
            self._unread.append(frame.data)
            self._unread_bytes += len(frame.data)
        self._client_ended = frame.is_last
        self._readable.set()
        self._remove_if_ended()
        while self._unread_bytes >= UNREAD_MAX_BYTES and not self._was_reset.is_set():
            self._has_room.clear()
            await self._has_room.wait()

    def mark_reset(self) -> None:
        """Mark the stream as reset and wake everything that waits for it."""
        self._was_reset.set()
        self._unread.clear()
        self._unread_bytes = 0
        self._readable.set()
        self._has_room.set()
        self._session.remove(self.stream_id)

    def _remove_if_ended(self) -> None:
        """Remove the stream from the session once both sides have ended it (rule 2)."""
        if self._client_ended and self._server_ended:
            self._session.remove(self.stream_id)


class SPDYSession:
    """One SPDY connection.

    Args:
        send: sends the encoded frames.
        on_stream: called with each new stream, before its first data.
    """

    def __init__(self, send: Send, on_stream: Callable[[SPDYStream], None]) -> None:
        self._send_bytes = send
        self._on_stream = on_stream
        self._frame_reader = spdy_frames.FrameReader()
        self._header_reader = HeaderReader()
        self._header_writer = HeaderWriter()
        self._streams: dict[int, SPDYStream] = {}
        self._last_stream_id = 0

    async def feed(self, data: bytes) -> None:
        """Handle received bytes. Raises SPDYProtocolError if the connection is to be closed, and errors of `send`."""
        for frame in self._frame_reader.feed(data):
            await self._handle(frame)

    async def send(self, frame: spdy_frames.Frame) -> None:
        """Send one frame. Called by the streams."""
        await self._send_bytes(spdy_frames.encode(frame))

    def remove(self, stream_id: int) -> None:
        """Remove a stream that has ended (rule 2). Called by the stream."""
        self._streams.pop(stream_id, None)

    def close(self) -> None:
        """Reset all streams, as the connection is closed."""
        for stream in list(self._streams.values()):
            stream.mark_reset()

    async def _handle(self, frame: spdy_frames.Frame) -> None:
        """Handle one frame; those of unknown streams are ignored."""
        match frame:
            case spdy_frames.SynStream():
                await self._open_stream(frame)
            case spdy_frames.Data(stream_id=stream_id):
                stream = self._streams.get(stream_id)
                if stream is not None:
                    await stream.append(frame)
            case spdy_frames.Reset(stream_id=stream_id):
                stream = self._streams.get(stream_id)
                if stream is not None:
                    stream.mark_reset()
            case spdy_frames.HeadersFrame(block=block) | spdy_frames.SynReply(block=block):
                self._header_reader.read(block)  # later blocks are compressed with it
            case spdy_frames.Ping():
                await self.send(frame)
            case spdy_frames.GoAway():
                return

    async def _open_stream(self, frame: spdy_frames.SynStream) -> None:
        """Open a stream of the client; its number is odd and larger than all before, else it is refused."""
        headers = self._header_reader.read(frame.block)
        if frame.stream_id % 2 == 0 or frame.stream_id <= self._last_stream_id:
            await self.send(spdy_frames.Reset(frame.stream_id, spdy_frames.PROTOCOL_ERROR))
            return
        self._last_stream_id = frame.stream_id
        if len(self._streams) >= STREAMS_MAX:
            await self.send(spdy_frames.Reset(frame.stream_id, spdy_frames.REFUSED_STREAM))
            return
        stream = SPDYStream(frame.stream_id, headers, self)
        self._streams[frame.stream_id] = stream
        # Each reply is compressed with the earlier ones: they must be sent in the order in which they are encoded.
        await self.send(spdy_frames.SynReply(frame.stream_id, self._header_writer.write({})))
        self._on_stream(stream)
        if frame.is_last:
            await stream.append(spdy_frames.Data(frame.stream_id, b"", is_last=True))
