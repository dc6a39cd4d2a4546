"""Header blocks, compressed as Go's spdystream compresses them."""

import zlib

import pytest

from podscaler.controlplane.apiserver.streaming.spdy_frames import SPDYProtocolError
from podscaler.controlplane.apiserver.streaming.spdy_headers import (
    DICTIONARY,
    HEADER_BLOCK_MAX_BYTES,
    HeaderReader,
    HeaderWriter,
)


def test_dictionary() -> None:
    """It is the 1423 bytes of the specification, by their checksum as zlib's header names it."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_blocks_build_on_each_other() -> None:
    """The second block of a direction is read with what the first left; names become lower case."""
    writer, reader = HeaderWriter(), HeaderReader()
    first = {"streamType": "error", "port": "80", "requestID": "0"}
    second = {"streamType": "data", "port": "80", "requestID": "0"}
    blocks = [writer.write(first), writer.write(second)]
    assert [reader.read(block) for block in blocks] == [
        {"streamtype": "error", "port": "80", "requestid": "0"},
        {"streamtype": "data", "port": "80", "requestid": "0"},
    ]
    assert len(blocks[1]) < len(blocks[0])


@pytest.mark.parametrize(
    "plain",
    [
        pytest.param(b"\0\0", id="no count"),
        pytest.param(b"\0\0\0\x01\0\0\0\x09ab", id="a name longer than the block"),
        pytest.param(b"\0\0\0\0x", id="more than the headers"),
        pytest.param(bytes(HEADER_BLOCK_MAX_BYTES + 1), id="a block that swells"),
    ],
)
def test_unreadable_blocks(plain: bytes) -> None:
    """What cannot be read ends the connection, before it takes much memory."""
    packer = zlib.compressobj(zdict=DICTIONARY)
    block = packer.compress(plain) + packer.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(SPDYProtocolError):
        HeaderReader().read(block)


def test_block_that_is_not_compressed() -> None:
    """Bytes that zlib does not know end the connection."""
    with pytest.raises(SPDYProtocolError, match="cannot be decompressed"):
        HeaderReader().read(b"streamtype: data")
