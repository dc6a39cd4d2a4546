"""Compressed bodies of several gzip members, as API servers send watches."""

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
