"""Responses are the same however their bytes are cut."""

import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.kube.transport.http_response import HTTPResponse

BODY = b'{"a":1}\n{"b":2}\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nWarning: one\r\nwarning: two\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n3;x=y\r\n" + BODY[:3] + b"\r\nD\r\n" + BODY[3:] + b"\r\n0\r\nT: x\r\n\r\n"
ZIPPED = gzip.compress(BODY, mtime=0)
TWICE = gzip.compress(BODY[:5], mtime=0) + gzip.compress(BODY[5:], mtime=0)
RESPONSES = {
    "sized": HEAD + b"Content-Length: 16\r\n\r\n" + BODY,
    "chunked": HEAD + CHUNKED,
    "until close": HEAD + b"\r\n" + BODY,
    "after 100": b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 16\r\n\r\n" + BODY,
    "compressed in two": HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(TWICE) + TWICE,
    "compressed": HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED,
}


def _read(pieces: list[bytes]) -> tuple[object, ...]:
    response = HTTPResponse()
    for piece in pieces:
        response.feed(piece)
    response.feed_end()
    shown = (response.headers["content-type"], response.headers["warning"])
    return response.status, shown, response.body(), response.is_complete


@pytest.mark.parametrize("name", RESPONSES)
def test_cut_at_every_byte(name: str) -> None:
    """One cut anywhere, and a cut after every byte, change nothing."""
    data = RESPONSES[name]
    ways = [[data[:place], data[place:]] for place in range(1, len(data))]
    ways.append([data[place : place + 1] for place in range(len(data))])
    expected = (200, ("application/json", "one, two"), BODY, True)
    assert [way for way in ways if _read(way) != expected] == []


@given(st.sampled_from(sorted(RESPONSES)), st.lists(st.integers(1, 400)))
def test_cut_anywhere(name: str, places: list[int]) -> None:
    """Any cuts change nothing."""
    data = RESPONSES[name]
    edges = sorted({0, len(data), *(place for place in places if place < len(data))})
    pieces = [data[start:end] for start, end in itertools.pairwise(edges)]
    assert _read(pieces) == (200, ("application/json", "one, two"), BODY, True)


@pytest.mark.parametrize("name", ["sized", "chunked", "after 100", "compressed"])
def test_an_early_end_is_noticed(name: str) -> None:
    """A response that ends before its end raises EOFError, wherever it ends."""
    data = RESPONSES[name]

    def ends_well(place: int) -> bool:
        response = HTTPResponse()
        response.feed(data[:place])
        try:
            response.feed_end()
        except EOFError:
            return False
        return True

    assert [place for place in range(len(data)) if ends_well(place)] == []


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\n" + b"a" * (1 << 17),
    ],
)
def test_what_is_no_response(data: bytes) -> None:
    """Nonsense is a ValueError, whole or byte by byte."""
    with pytest.raises(ValueError):  # noqa: PT011 - the words differ
        HTTPResponse().feed(data)
    with pytest.raises(ValueError):  # noqa: PT011 - the words differ
        _read([data[place : place + 1] for place in range(len(data))])


@pytest.mark.parametrize("rest", [b"HTTP/1.1 200 OK", b"HTTP/1.1 404 Gone\r\nContent-Length: 1\r\n\r\nx", b"SSH"])
def test_what_comes_after_the_end_ends_the_connection(rest: bytes) -> None:
    """Bytes that nobody asked for make the connection useless for another request, and change nothing else."""
    whole, in_pieces = HTTPResponse(), HTTPResponse()
    whole.feed(RESPONSES["sized"] + rest)
    in_pieces.feed(RESPONSES["sized"])
    assert in_pieces.keeps_alive
    in_pieces.feed(rest)
    for response in (whole, in_pieces):
        found = (response.status, response.headers["warning"], response.body(), response.is_complete)
        assert (*found, response.keeps_alive) == (200, "one, two", BODY, True, False)


@pytest.mark.parametrize(
    ("data", "keeps_alive"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
    ],
    ids=["no content", "not modified", "close", "HTTP/1.0"],
)
def test_responses_without_a_body(data: bytes, keeps_alive: bool) -> None:
    """They are complete with their head; the connection is kept unless the server closes it."""
    response = HTTPResponse()
    response.feed(data)
    assert (response.is_complete, response.body(), response.keeps_alive) == (True, b"", keeps_alive)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Whatever arrives is a response, the beginning of one, or a ValueError."""
    response = HTTPResponse()
    try:
        response.feed(b"HTTP/1.1 200 OK\r\n" + data)
    except ValueError:
        return
    assert response.status in (0, 200) or 200 <= response.status <= 999
