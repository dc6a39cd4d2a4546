"""Frames of SPDY/3.1 as bytes, and what is wrong with some."""

import pytest

from podscaler.controlplane.apiserver.streaming import spdy_frames
from podscaler.controlplane.apiserver.streaming.spdy_frames import (
    Data,
    Frame,
    FrameReader,
    GoAway,
    HeadersFrame,
    Ping,
    Reset,
    SPDYProtocolError,
    SynReply,
    SynStream,
)

TABLE = [
    pytest.param(Data(1, b"ab"), "00000001 00000002 6162", id="data"),
    pytest.param(Data(3, b"", is_last=True), "00000003 01000000", id="end of data"),
    pytest.param(SynStream(5, b"h"), "80030001 0000000b 00000005 00000000 0000 68", id="new stream"),
    pytest.param(SynReply(5, b"h"), "80030002 00000005 00000005 68", id="reply"),
    pytest.param(Reset(7, spdy_frames.CANCEL), "80030003 00000008 00000007 00000005", id="reset"),
    pytest.param(Ping(9), "80030006 00000004 00000009", id="ping"),
    pytest.param(GoAway(9, 0), "80030007 00000008 00000009 00000000", id="go away"),
    pytest.param(HeadersFrame(5, b"h", is_last=True), "80030008 01000005 00000005 68", id="headers"),
]


@pytest.mark.parametrize(("frame", "written"), TABLE)
def test_bytes_of_a_frame(frame: Frame, written: str) -> None:
    """Every frame has the bytes of the specification, and is read back from them one byte at a time."""
    encoded = bytes.fromhex(written)
    reader = FrameReader()
    read = [found for byte in encoded for found in reader.feed(bytes((byte,)))]
    assert (spdy_frames.encode(frame), read) == (encoded, [frame])


def test_frames_that_say_nothing_are_passed_over() -> None:
    """Settings and window updates are no errors, and what follows them is read."""
    settings, window = "80030004 00000004 00000000", "80030009 00000008 00000001 00001000"
    data = spdy_frames.encode(Data(1, b"x"))
    assert FrameReader().feed(bytes.fromhex(settings + window) + data) == [Data(1, b"x")]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("80020006 00000004 00000009", id="another version"),
        pytest.param("80030006 00000000", id="too short"),
        pytest.param("80030001 00000004 00000005", id="a stream without headers"),
        pytest.param("00000001 00100000", id="too long"),
    ],
)
def test_what_ends_the_connection(written: str) -> None:
    """A frame that cannot be one is a violation, as soon as its head is there."""
    with pytest.raises(SPDYProtocolError):
        FrameReader().feed(bytes.fromhex(written))
