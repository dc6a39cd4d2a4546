"""What holds for every sequence of SPDY frames."""

from hypothesis import given
from hypothesis import strategies as st

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
from podscaler.controlplane.apiserver.streaming.spdy_headers import HeaderReader, HeaderWriter

IDS = st.integers(1, 0x7FFF_FFFF)
BLOCKS = st.binary(max_size=40)
FRAMES = st.one_of(
    st.builds(Data, IDS, BLOCKS, st.booleans()),
    *(st.builds(kind, IDS, BLOCKS, st.booleans()) for kind in (SynStream, SynReply, HeadersFrame)),
    st.builds(Reset, IDS, st.integers(0, 11)),
    st.builds(Ping, st.integers(0, 0xFFFF_FFFF)),
    st.builds(GoAway, IDS, st.integers(0, 2)),
)


@given(st.lists(FRAMES, max_size=8), st.integers(1, 64))
def test_frames_survive_any_cut(sent: list[Frame], piece_bytes: int) -> None:
    """Frames are read as they were written, in pieces of whatever size they arrive."""
    stream = b"".join(map(spdy_frames.encode, sent))
    reader = FrameReader()
    pieces = [stream[start : start + piece_bytes] for start in range(0, len(stream), piece_bytes)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == sent


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Whatever arrives gives frames or a violation, never another error."""
    reader = FrameReader()
    try:
        reader.feed(data)
    except SPDYProtocolError:
        return


NAMES = st.text("abcdefghij-", min_size=1, max_size=12)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=5))
def test_headers_round_trip(blocks: list[dict[str, str]]) -> None:
    """Blocks of one direction are read as they were written, in their order."""
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.read(writer.write(block)) for block in blocks] == blocks
