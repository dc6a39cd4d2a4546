"""Compressed bodies: several gzip members, as API servers send watches, and bodies that are too long."""

import gzip

import pytest

from podscaler.kube.transport.http_response import HTTPResponse

MEMBERS = [b"first\n" * 50, b"second\n", b"third\n" * 9]
COMPRESSED = b"".join(gzip.compress(member) for member in MEMBERS)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(COMPRESSED)


@pytest.mark.parametrize("step", [1, 7, 25, 1000])
def test_all_members_are_read(step: int) -> None:
    """What follows the first member is read too, however the bytes are cut."""
    response = HTTPResponse()
    data = HEAD + COMPRESSED
    for start in range(0, len(data), step):
        response.feed(data[start : start + step])
    assert (response.is_complete, response.body()) == (True, b"".join(MEMBERS))


def test_what_is_no_member_is_refused() -> None:
    """Bytes after a member that are no member cannot be a response."""
    response = HTTPResponse()
    data = gzip.compress(b"first") + b"rest"
    with pytest.raises(ValueError, match="gzip"):
        response.feed(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        pytest.param(b"", b"x" * 1001, id="plain"),
        pytest.param(b"Content-Encoding: gzip\r\n", gzip.compress(bytes(10_000_000)), id="ten megabytes in few bytes"),
    ],
)
def test_a_body_that_is_too_long_is_refused(head: bytes, body: bytes) -> None:
    """No more than the limit is kept in memory, decompressed."""
    response = HTTPResponse(body_max_bytes=1000)
    with pytest.raises(ValueError, match="the body is longer than 1000 bytes"):
        response.feed(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert sum(map(len, response.chunks)) <= 1000


def test_a_body_of_the_longest_length_is_read() -> None:
    """The limit itself is allowed."""
    response = HTTPResponse(body_max_bytes=1000)
    response.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000)
    assert response.is_complete
