"""The server's side of a SPDY connection, with the client played by frames."""

import asyncio

from podscaler.controlplane.apiserver.streaming import spdy_frames
from podscaler.controlplane.apiserver.streaming.spdy_frames import (
    Data,
    Frame,
    FrameReader,
    Ping,
    Reset,
    SynReply,
    SynStream,
)
from podscaler.controlplane.apiserver.streaming.spdy_headers import HeaderWriter
from podscaler.controlplane.apiserver.streaming.spdy_session import UNREAD_MAX_BYTES, SPDYSession, SPDYStream


class Client:
    """What the other side sends, and what it got."""

    def __init__(self) -> None:
        self.got: list[Frame] = []
        self.streams: list[SPDYStream] = []
        self._headers = HeaderWriter()
        self._reader = FrameReader()
        self.session = SPDYSession(self._take, self.streams.append)

    async def _take(self, data: bytes) -> None:
        self.got += self._reader.feed(data)

    async def send(self, frame: Frame) -> None:
        """Send one frame."""
        await self.session.feed(spdy_frames.encode(frame))

    async def begin(self, stream_id: int, **headers: str) -> SPDYStream:
        """Begin a stream, which the server must accept."""
        await self.send(SynStream(stream_id, self._headers.write(headers)))
        return self.streams[-1]

    def answers(self) -> list[Frame]:
        """What came since the last call, replies to new streams left out."""
        found = [frame for frame in self.got if not isinstance(frame, SynReply)]
        self.got.clear()
        return found


async def test_stream_from_beginning_to_end() -> None:
    """A stream is replied to; bytes go both ways until each side has ended its own."""
    client = Client()
    stream = await client.begin(1, port="80")
    assert [type(frame) for frame in client.got] == [SynReply]
    await client.send(Data(1, b"question", is_last=True))
    received = [chunk async for chunk in stream.received()]
    await stream.write(b"answer")
    await stream.end()
    assert (stream.headers, received) == ({"port": "80"}, [b"question"])
    assert client.answers() == [Data(1, b"answer"), Data(1, b"", is_last=True)]


async def test_reader_that_is_slow() -> None:
    """A stream that nobody reads makes the connection wait, and goes on once it is read."""
    client = Client()
    stream = await client.begin(1)
    feeding = asyncio.ensure_future(client.send(Data(1, bytes(UNREAD_MAX_BYTES))))
    await asyncio.sleep(0)
    assert not feeding.done()
    chunks = stream.received()
    await anext(chunks)
    more = asyncio.ensure_future(anext(chunks))
    await feeding
    await client.send(Data(1, b"x"))
    assert await more == b"x"


async def test_reset_wakes_everyone() -> None:
    """A reset ends reading, fails writing, and lets a connection that waited for the stream go on."""
    client = Client()
    stream = await client.begin(1)
    feeding = asyncio.ensure_future(client.send(Data(1, bytes(UNREAD_MAX_BYTES))))
    await asyncio.sleep(0)
    await client.send(Reset(1, spdy_frames.CANCEL))
    await feeding
    await stream.wait_reset()
    assert [chunk async for chunk in stream.received()] == []
    try:
        await stream.write(b"x")
    except ConnectionError:
        await stream.end()
    assert client.answers() == []


async def test_ping_is_answered() -> None:
    """A ping comes back as it is."""
    client = Client()
    await client.send(Ping(7))
    assert client.answers() == [Ping(7)]


async def test_streams_that_cannot_be() -> None:
    """An even id, and one that is not above the last, are reset; the connection goes on."""
    client = Client()
    await client.begin(3)
    await client.begin(2)
    await client.begin(3)
    await client.begin(5)
    assert client.answers() == [Reset(2, spdy_frames.PROTOCOL_ERROR), Reset(3, spdy_frames.PROTOCOL_ERROR)]
    assert [stream.stream_id for stream in client.streams] == [3, 5]


async def test_data_of_nobody() -> None:
    """Data and resets of streams that are over are passed over."""
    client = Client()
    await client.send(Data(9, b"x"))
    await client.send(Reset(9, spdy_frames.CANCEL))
    assert client.got == []


async def test_long_data_is_cut() -> None:
    """What is written goes out in pieces that clients take."""
    client = Client()
    stream = await client.begin(1)
    await stream.write(bytes(40_000))
    assert [len(frame.data) for frame in client.answers() if isinstance(frame, Data)] == [32_768, 7_232]
