"""Header blocks: names and values, compressed with what came before in the same direction.

Called by `session`; a `HeaderReader` and a `HeaderWriter` live as long as a connection, used in the order of frames.

Source: SPDY Protocol, draft 3, section 2.6.10.
"""

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from podscaler.controlplane.apiserver.spdy.dictionary import DICTIONARY
from podscaler.controlplane.apiserver.spdy.violations import SPDYProtocolError

BLOCK_MAX_BYTES: Final = 64 * 1024
"""Of a block when it is no longer compressed: a few short headers are what anybody sends."""


class HeaderReader:
    """Reads the blocks of one direction."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        """Name (lower case) -> value of a compressed block.

        Raises:
            Violation: it cannot be read, or is too long.
        """
        try:
            plain = self._unpacker.decompress(block, BLOCK_MAX_BYTES)
        except zlib.error as error:
            raise SPDYProtocolError(f"a header block cannot be decompressed: {error}") from None
        if self._unpacker.unconsumed_tail:
            raise SPDYProtocolError(f"a header block is longer than {BLOCK_MAX_BYTES} bytes")
        try:
            return _pairs(plain)
        except (struct.error, UnicodeDecodeError, ValueError) as error:
            raise SPDYProtocolError(f"a header block cannot be read: {error}") from None


class HeaderWriter:
    """Writes the blocks of one direction."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(zdict=DICTIONARY)

    def write(self, headers: Mapping[str, str]) -> bytes:
        """The compressed block."""
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            plain += _text(name.lower()) + _text(value)
        return self._packer.compress(plain) + self._packer.flush(zlib.Z_SYNC_FLUSH)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">I", len(encoded)) + encoded


def _pairs(plain: bytes) -> dict[str, str]:
    (count,) = struct.unpack_from(">I", plain)
    offset, found = 4, {}
    for _ in range(count):
        name, offset = _take(plain, offset)
        value, offset = _take(plain, offset)
        found[name.lower()] = value.partition("\0")[0]
    if offset != len(plain):
        raise ValueError("there is more than the headers")
    return found


def _take(plain: bytes, offset: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", plain, offset)
    end = offset + 4 + length
    if end > len(plain):
        raise ValueError("a text is longer than its block")
    return plain[offset + 4 : end].decode(), end
