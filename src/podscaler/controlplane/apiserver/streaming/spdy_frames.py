"""Encodes and decodes frames of SPDY/3.1, the protocol in which kubectl multiplexes forwarded connections.

`spdy_session` calls it. A frame is one message of a connection: data of a stream, or a control frame that opens or ends
one. Both begin with eight bytes:

    data     0 | stream id (31)                 flags (8) | length (24)
    control  1 | version (15) | type (16)       flags (8) | length (24)

Header blocks stay compressed here, as their compression depends on the order of frames (`spdy_headers`).

A new control frame: a class, and a case in `encode` and in `_parse_control_frame`.

Source: SPDY Protocol, draft 3.1, section 2.2 (Framing) and 2.6 (Control frames).
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VERSION: Final = 3
FLAG_FIN: Final = 1
HEAD_BYTES: Final = 8
FRAME_MAX_BYTES: Final = 1 << 20
"""The most bytes of a received frame; the protocol allows sixteen times as much, clients send 32 KiB."""

_CONTROL_BIT: Final = 0x8000_0000
_ID_MASK: Final = 0x7FFF_FFFF
_TYPE_MASK: Final = 0xFFFF
_LENGTH_MASK: Final = 0xFF_FFFF
_VERSION_SHIFT: Final = 16
_FLAGS_SHIFT: Final = 24
"""Where the fields are in the two words that a frame begins with (see the table above)."""
SYN_STREAM, SYN_REPLY, RST_STREAM, PING, GOAWAY, HEADERS = 1, 2, 3, 6, 7, 8
"""Types of control frames."""

# status codes of RST_STREAM
PROTOCOL_ERROR: Final = 1
INVALID_STREAM: Final = 2
REFUSED_STREAM: Final = 3
CANCEL: Final = 5


class SPDYProtocolError(Exception):
    """The client violates the protocol; the connection is to be closed."""


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; with `is_last` its sender sends no more."""

    stream_id: int
    data: bytes
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class _HeaderFrame:
    """A frame with a compressed header block; with `is_last` its sender sends no data."""

    stream_id: int
    block: bytes
    is_last: bool = False


class SynStream(_HeaderFrame):
    """Opens a stream, with its compressed headers."""


class SynReply(_HeaderFrame):
    """Accepts a stream."""


class HeadersFrame(_HeaderFrame):
    """Further headers of a stream."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Ends a stream in both directions."""

    stream_id: int
    status: int


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping; the receiver sends it back."""

    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The sender opens no more streams."""

    last_stream_id: int
    status: int = 0


_HEADER_FRAMES: Final[Mapping[int, tuple[type[SynStream | SynReply | HeadersFrame], int]]] = {
    SYN_STREAM: (SynStream, 10),
    SYN_REPLY: (SynReply, 4),
    HEADERS: (HeadersFrame, 4),
}
"""The class of each type of frame with headers, and the offset of its header block."""

_FRAMES_WITH_NUMBER: Final = frozenset({*_HEADER_FRAMES, RST_STREAM, PING, GOAWAY})
"""The types of the control frames that are parsed; their content begins with the number of a stream or ping."""

Frame = Data | SynStream | SynReply | HeadersFrame | Reset | Ping | GoAway


def encode(frame: Frame) -> bytes:
    """The bytes of a frame."""
    match frame:
        case Data(stream_id, data, is_last):
            return struct.pack(">II", stream_id, _flags_and_length(data, is_last=is_last)) + data
        case SynStream(stream_id, block, is_last):
            head = struct.pack(">IIH", stream_id, 0, 0)  # no associated stream, the default priority
            return _encode_control(SYN_STREAM, head + block, is_last=is_last)
        case SynReply(stream_id, block, is_last) | HeadersFrame(stream_id, block, is_last):
            frame_type = SYN_REPLY if isinstance(frame, SynReply) else HEADERS
            return _encode_control(frame_type, struct.pack(">I", stream_id) + block, is_last=is_last)
        case Reset(stream_id, status):
            return _encode_control(RST_STREAM, struct.pack(">II", stream_id, status))
        case Ping(number):
            return _encode_control(PING, struct.pack(">I", number))
        case GoAway(last_stream_id, status):
            return _encode_control(GOAWAY, struct.pack(">II", last_stream_id, status))


def _flags_and_length(content: bytes, *, is_last: bool) -> int:
    """The second word of a frame with this content."""
    flags = FLAG_FIN if is_last else 0
    return flags << _FLAGS_SHIFT | len(content)


def _encode_control(frame_type: int, content: bytes, *, is_last: bool = False) -> bytes:
    """The bytes of a control frame: its eight bytes and its content."""
    first_word = _CONTROL_BIT | VERSION << _VERSION_SHIFT | frame_type
    return struct.pack(">II", first_word, _flags_and_length(content, is_last=is_last)) + content


class FrameReader:
    """Splits received bytes into frames."""

    def __init__(self) -> None:
        self._unparsed = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data`, a piece of any size, completes; frames of unused types are left out.

        Raises SPDYProtocolError if a frame has another version, is too short or too long.
        """
        self._unparsed += data
        frames: list[Frame] = []
        offset = 0
        while len(self._unparsed) - offset >= HEAD_BYTES:
            first_word, second_word = struct.unpack_from(">II", self._unparsed, offset)
            end = offset + HEAD_BYTES + (second_word & _LENGTH_MASK)
            if end - offset > FRAME_MAX_BYTES:
                raise SPDYProtocolError(f"a frame is longer than {FRAME_MAX_BYTES} bytes")
            if end > len(self._unparsed):
                break
            content = bytes(self._unparsed[offset + HEAD_BYTES : end])
            frame = _parse_frame(first_word, second_word >> _FLAGS_SHIFT, content)
            if frame is not None:
                frames.append(frame)
            offset = end
        del self._unparsed[:offset]
        return frames


def _parse_frame(first_word: int, flags: int, content: bytes) -> Frame | None:
    """The frame with these parts, None for a type that is not used. Raises SPDYProtocolError."""
    is_last = bool(flags & FLAG_FIN)
    if not first_word & _CONTROL_BIT:
        return Data(first_word, content, is_last)
    version, frame_type = (first_word & _ID_MASK) >> _VERSION_SHIFT, first_word & _TYPE_MASK
    if version != VERSION:
        raise SPDYProtocolError(f"a frame of version {version}")
    try:
        return _parse_control_frame(frame_type, content, is_last)
    except struct.error:
        raise SPDYProtocolError(f"a frame of type {frame_type} is too short") from None


def _parse_control_frame(frame_type: int, content: bytes, is_last: bool) -> Frame | None:
    """The frame of its content; None for frames without meaning here. Raises struct.error for a short one."""
    if frame_type not in _FRAMES_WITH_NUMBER:
        return None  # settings and windows, which these clients do not observe
    (number,) = struct.unpack_from(">I", content)
    if frame_type == PING:
        return Ping(number)
    stream_id = number & _ID_MASK
    if frame_type in (RST_STREAM, GOAWAY):
        (status,) = struct.unpack_from(">I", content, 4)
        return Reset(stream_id, status) if frame_type == RST_STREAM else GoAway(stream_id, status)
    frame_class, block_offset = _HEADER_FRAMES[frame_type]
    if len(content) < block_offset:
        raise struct.error
    return frame_class(stream_id, content[block_offset:], is_last)
