"""Parses an HTTP/1.1 response from the bytes of a connection, however they are cut; without input or output.

`transport.connection` makes an HTTPResponse for each request. `httptools` (llhttp, Node's parser) does the syntax; this
module collects the headers and decompresses the body. Bytes that cannot be a response raise ValueError, after which the
connection is of no further use.

Source: RFC 9112; gzip by RFC 1952; docs/decisions/http-client.md for the choice of the parser.
"""

import zlib

import httptools

HEAD_MAX_BYTES = 1 << 16
GZIP_WINDOW_BITS = 31
"""zlib's `wbits` for the largest window (15) with a gzip header (16)."""


class HTTPResponse:
    """One response, complete or still arriving.

    Attributes:
        status: the HTTP status code, 0 while the head has not arrived.
        headers: by names in lower case; the values of a repeated header are joined by commas.
        chunks: the body received so far, without what `take` returned; decompressed.
        is_complete: whether the whole body has arrived.
        keeps_alive: whether the connection may serve another request after this.

    Args:
        body_max_bytes: the longest body, decompressed; None if there is no limit.
    """

    __slots__ = (
        "_body_bytes",
        "_body_max_bytes",
        "_ends_with_connection",
        "_head_bytes",
        "_inflate",
        "_parser",
        "chunks",
        "headers",
        "is_complete",
        "keeps_alive",
        "status",
    )

    def __init__(self, body_max_bytes: int | None = None) -> None:
        self._body_max_bytes = body_max_bytes
        self._body_bytes = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self.is_complete = False
        self.keeps_alive = True
        self._head_bytes = 0
        self._ends_with_connection = False
        self._inflate: zlib._Decompress | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    def body(self) -> bytes:
        """The body received so far, in one piece."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    def take(self) -> list[bytes]:
        """The chunks that arrived since the last call."""
        chunks, self.chunks = self.chunks, []
        return chunks

    def feed(self, received: bytes) -> None:
        """Parse the next bytes of the connection. Raises ValueError; bytes after the end only clear `keeps_alive`."""
        if self._parser is None:
            self.keeps_alive = False
            return
        try:
            self._parser.feed_data(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete:
                raise ValueError(f"malformed HTTP response: {error.__context__ or error}") from error
            self.keeps_alive = False
        if not self.status:
            self._head_bytes += len(received)
            if self._head_bytes > HEAD_MAX_BYTES:
                raise ValueError("the head of the response is too long")

    def feed_end(self) -> None:
        """Note that the connection is closed. Raises EOFError if the response is not complete."""
        if self._ends_with_connection:
            self.is_complete = True
        if not self.is_complete:
            raise EOFError

    def on_message_begin(self) -> None:
        """Called by the parser. Raises ValueError at a second message in the same bytes, which stops the parser."""
        if self.is_complete:
            raise ValueError("a response that was not requested")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser; headers after the body (trailers) are ignored."""
        if not self.status:
            key, header = name.decode("latin-1").lower(), value.decode("latin-1").strip()
            self.headers[key] = f"{self.headers[key]}, {header}" if key in self.headers else header

    def on_headers_complete(self) -> None:
        """Called by the parser; the head of an interim response (1xx) is dropped."""
        status = self._parser.get_status_code() if self._parser is not None else 0
        if status < 200:
            self.headers = {}
            return
        self.status = status
        if self.headers.get("content-encoding", "").lower() == "gzip":
            self._inflate = zlib.decompressobj(GZIP_WINDOW_BITS)
        is_framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        if not is_framed and status not in (204, 304):
            self._ends_with_connection, self.keeps_alive = True, False

    def on_body(self, data: bytes) -> None:
        """Called by the parser with a part of the body. Raises ValueError for one that is too long or no gzip."""
        if self._inflate is None:
            self._append(data)
            return
        while data:  # an API server sends a watch as many gzip members, one after the other
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(GZIP_WINDOW_BITS)
            try:
                # a byte more than allowed is an error, so that no input is left over; 0 is no limit
                inflated = self._inflate.decompress(
                    data, 0 if self._body_max_bytes is None else self._body_max_bytes + 1
                )
            except zlib.error as error:
                raise ValueError(f"gzip: {error}") from error
            if inflated:
                self._append(inflated)
            data = self._inflate.unused_data

    def _append(self, chunk: bytes) -> None:
        """Add a decompressed chunk to the body. Raises ValueError if the body gets too long."""
        self._body_bytes += len(chunk)
        if self._body_max_bytes is not None and self._body_bytes > self._body_max_bytes:
            raise ValueError(f"the body is longer than {self._body_max_bytes} bytes")
        self.chunks.append(chunk)

    def on_message_complete(self) -> None:
        """Called by the parser at the end of a message. Drops the parser, whose references here are a cycle."""
        if self.status and self._parser is not None:
            self.is_complete = True
            self.keeps_alive = self.keeps_alive and self._parser.should_keep_alive()
            self._parser = None
