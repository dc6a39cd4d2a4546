"""Encodes and decodes SPDY header blocks: the headers of a stream, such as {"streamtype": "data", "port": "80"}.

A block has the number of headers, then each name and value with its length in four bytes. It is compressed by zlib with
`DICTIONARY` and with the earlier blocks of the same direction. `spdy_session` calls it; a `HeaderReader` and a
`HeaderWriter` belong to one connection and are used in the order of frames.

Source: SPDY Protocol, draft 3, section 2.6.10 (Name/Value Header Block), with its dictionary (2.6.10.1).
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from podscaler.controlplane.apiserver.streaming.spdy_frames import SPDYProtocolError

HEADER_BLOCK_MAX_BYTES: Final = 64 * 1024
"""The most bytes of a decompressed block; clients send a few short headers."""
_LENGTH_BYTES: Final = 4

_DICTIONARY_NAMES: Final = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age
allow authorization cache-control connection content-base content-encoding content-language content-length
content-location content-md5 content-range content-type date etag expect expires from host if-match
if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
user-agent vary via warning www-authenticate method get status
"""

_DICTIONARY_PHRASES: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")

_DICTIONARY_CODES: Final = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"

_DICTIONARY_REASONS: Final = (
    "203 Non-Authoritative Information",
    "204 No Content",
    "301 Moved Permanently",
    "400 Bad Request",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "500 Internal Server Error",
    "501 Not Implemented",
    "503 Service Unavailable",
)

_DICTIONARY_VALUES: Final = (
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _length_prefixed(text: str) -> bytes:
    """A text as blocks have it: its length in four bytes, then its bytes."""
    encoded = text.encode()
    return struct.pack(">I", len(encoded)) + encoded


DICTIONARY: Final = (
    b"".join(map(_length_prefixed, (*_DICTIONARY_NAMES.split(), *_DICTIONARY_PHRASES)))
    + (_DICTIONARY_CODES + "".join(_DICTIONARY_REASONS) + _DICTIONARY_VALUES).encode()
)
"""The initial dictionary of the compression: names of common headers and methods, each with its length in four bytes,
then common values."""


class HeaderReader:
    """Decodes the blocks of one direction of a connection, in order."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        """The headers of a compressed block: value by name in lower case.

        Raises SPDYProtocolError if the block cannot be decoded, or is too long.
        """
        try:
            plain_block = self._decompressor.decompress(block, HEADER_BLOCK_MAX_BYTES)
        except zlib.error as error:
            raise SPDYProtocolError(f"a header block cannot be decompressed: {error}") from None
        if self._decompressor.unconsumed_tail:
            raise SPDYProtocolError(f"a header block is longer than {HEADER_BLOCK_MAX_BYTES} bytes")
        try:
            return _parse_headers(plain_block)
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            raise SPDYProtocolError(f"a header block cannot be read: {error}") from None


class HeaderWriter:
    """Encodes the blocks of one direction of a connection, in order."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(zdict=DICTIONARY)

    def write(self, headers: Mapping[str, str]) -> bytes:
        """The compressed block of headers, value by name."""
        plain_block = struct.pack(">I", len(headers))
        for name, value in headers.items():
            plain_block += _length_prefixed(name.lower()) + _length_prefixed(value)
        return self._compressor.compress(plain_block) + self._compressor.flush(zlib.Z_SYNC_FLUSH)


def _parse_headers(plain_block: bytes) -> dict[str, str]:
    """The headers of an uncompressed block, with lower-case names; of several values the first.

    Raises ValueError, struct.error or UnicodeDecodeError for a block that is damaged.
    """
    (count,) = struct.unpack_from(">I", plain_block)
    offset, headers = _LENGTH_BYTES, {}
    for _ in range(count):
        name, offset = _parse_text(plain_block, offset)
        values, offset = _parse_text(plain_block, offset)
        first_value, _, _ = values.partition("\0")
        headers[name.lower()] = first_value
    if offset != len(plain_block):
        raise ValueError("there is data after the headers")
    return headers


def _parse_text(plain_block: bytes, offset: int) -> tuple[str, int]:
    """The text at `offset`, behind its length, and the offset after it. Raises as `_parse_headers`."""
    (length,) = struct.unpack_from(">I", plain_block, offset)
    start = offset + _LENGTH_BYTES
    end = start + length
    if end > len(plain_block):
        raise ValueError("a text is longer than its block")
    return plain_block[start:end].decode(), end
