"""HTTP/1.1 responses taken apart as their bytes arrive: no input, no output, no time.

`transport.connection` feeds one Response for each request. Rules:

1. Where the bytes are cut makes no difference.
2. What is complete is taken from one piece in one step: that is how nearly every answer of an API server arrives.
3. What cannot be a response raises ValueError, and the connection is of no further use.

Source: RFC 9112; gzip by RFC 1952.
"""

import zlib
from enum import Enum

HEAD_MAX_BYTES = 1 << 16
LINE_MAX_BYTES = 1 << 12
END_OF_HEAD = b"\r\n\r\n"
GZIP_WINDOW_BITS = 31


class _Stage(Enum):
    HEAD = "head"
    SIZED = "sized"
    UNTIL_CLOSE = "until close"
    CHUNK_SIZE = "chunk size"
    CHUNK = "chunk"
    CHUNK_END = "chunk end"
    TRAILERS = "trailers"
    COMPLETE = "complete"


class HTTPResponse:
    """See the module's rules.

    Attributes:
        status: the HTTP status code, 0 while the head has not arrived.
        headers: by names in lower case; what came more than once is joined by commas.
        chunks: the body so far, without what was taken; decompressed.
        keeps_alive: whether the connection may serve another request after this.
    """

    __slots__ = ("_inflate", "_left_bytes", "_rest", "_stage", "chunks", "headers", "keeps_alive", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self.keeps_alive = True
        self._stage = _Stage.HEAD
        self._rest = b""
        self._left_bytes = 0
        self._inflate: zlib._Decompress | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the whole body is there."""
        return self._stage is _Stage.COMPLETE

    def body(self) -> bytes:
        """The body so far, in one piece."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)

    def take(self) -> list[bytes]:
        """The chunks that arrived since the last call."""
        taken, self.chunks = self.chunks, []
        return taken

    def feed(self, data: bytes) -> None:
        """Some more bytes. Raises ValueError."""
        if self._stage is _Stage.SIZED:
            self._sized(data)
            return
        if self._stage is _Stage.UNTIL_CLOSE:
            self._add(data)
            return
        data = self._rest + data if self._rest else data
        self._rest = b""
        if self._stage is _Stage.HEAD:
            self._head(data)
        else:
            self._chunked(data, 0)

    def feed_end(self) -> None:
        """The connection is closed. Raises EOFError where more should have come."""
        if self._stage is _Stage.UNTIL_CLOSE:
            self._stage = _Stage.COMPLETE
        if self._stage is not _Stage.COMPLETE:
            raise EOFError

    def _head(self, data: bytes) -> None:
        end = data.find(END_OF_HEAD)
        if end < 0:
            if len(data) > HEAD_MAX_BYTES:
                raise ValueError("the head of the response is too long")
            if data[:5] != b"HTTP/"[: len(data)]:
                raise ValueError(f"malformed HTTP response {data[:40]!r}")
            self._rest = data
            return
        self.status, self.headers, is_old = _parse_head(data[:end])
        if 100 <= self.status < 200:
            self.status, self.headers = 0, {}
            self._head(data[end + 4 :]) if len(data) > end + 4 else None
            return
        self.keeps_alive = self.headers.get("connection", "").lower() != "close" and not is_old
        if self.headers.get("content-encoding", "").lower() == "gzip":
            self._inflate = zlib.decompressobj(GZIP_WINDOW_BITS)
        self._begin_body(data, end + len(END_OF_HEAD))

    def _begin_body(self, data: bytes, start: int) -> None:
        length = self.headers.get("content-length")
        if self.status in (204, 304):
            self._finish(data, start)
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._stage = _Stage.CHUNK_SIZE
            self._chunked(data, start)
        elif length is not None:
            self._left_bytes = _decimal(length)
            self._stage = _Stage.SIZED
            self._sized(data[start:] if start < len(data) else b"")
        else:
            self._stage, self.keeps_alive = _Stage.UNTIL_CLOSE, False
            self._add(data[start:])

    def _sized(self, data: bytes) -> None:
        left_bytes = self._left_bytes - len(data)
        if left_bytes > 0:
            self._left_bytes = left_bytes
            self._add(data)
            return
        self._left_bytes = 0
        if left_bytes == 0:
            self._add(data)
            self._stage = _Stage.COMPLETE
            return
        self._add(data[:left_bytes])
        self._finish(data, len(data) + left_bytes)

    def _chunked(self, data: bytes, start: int) -> None:
        """Goes through what is there, part by part; what is no whole part waits for more."""
        while start < len(data):
            if self._stage is _Stage.CHUNK:
                part = data[start : start + self._left_bytes]
                self._add(part)
                start += len(part)
                self._left_bytes -= len(part)
                if not self._left_bytes:
                    self._stage = _Stage.CHUNK_END
                continue
            end = data.find(b"\r\n", start)
            if end < 0:
                if len(data) - start > LINE_MAX_BYTES:
                    raise ValueError("malformed chunked encoding")
                self._rest = data[start:]
                return
            self._line(data[start:end])
            start = end + 2
            if self._stage is _Stage.COMPLETE:
                self._finish(data, start)
                return

    def _line(self, line: bytes) -> None:
        if self._stage is _Stage.CHUNK_SIZE:
            self._left_bytes = _hexadecimal(line.partition(b";")[0].strip())
            self._stage = _Stage.CHUNK if self._left_bytes else _Stage.TRAILERS
        elif self._stage is _Stage.CHUNK_END:
            if line:
                raise ValueError("malformed chunked encoding")
            self._stage = _Stage.CHUNK_SIZE
        elif not line:
            self._stage = _Stage.COMPLETE

    def _finish(self, data: bytes, end: int) -> None:
        """Bytes after the end belong to nothing that we asked for."""
        self._stage = _Stage.COMPLETE
        if end < len(data):
            self.keeps_alive = False

    def _add(self, part: bytes) -> None:
        if self._inflate is not None:
            self._add_inflated(part)
        elif part:
            self.chunks.append(part)

    def _add_inflated(self, part: bytes) -> None:
        """An API server sends a watch as many gzip members, one after the other."""
        while part:
            if self._inflate is None or self._inflate.eof:
                self._inflate = zlib.decompressobj(GZIP_WINDOW_BITS)
            try:
                inflated = self._inflate.decompress(part)
            except zlib.error as error:
                raise ValueError(f"gzip: {error}") from error
            if inflated:
                self.chunks.append(inflated)
            part = self._inflate.unused_data

    def _inflated(self, part: bytes, inflate: "zlib._Decompress") -> bytes:
        """A body may be several gzip files, one after the other."""
        data = inflate.decompress(part)
        while inflate.eof and inflate.unused_data:
            rest = inflate.unused_data
            self._inflate = inflate = zlib.decompressobj(GZIP_WINDOW_BITS)
            data += inflate.decompress(rest)
        return data


def _parse_head(head: bytes) -> tuple[int, dict[str, str], bool]:
    """Status, headers, and whether the server speaks HTTP/1.0."""
    lines = head.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise ValueError(f'malformed HTTP response "{lines[0][:40]}"')
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f'malformed HTTP header "{line[:40]}"')
        name = name.lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return int(rest[:3]), headers, version == "HTTP/1.0"


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'bad Content-Length "{text[:40]}"')
    return int(text)


def _hexadecimal(text: bytes) -> int:
    if not text or len(text) > 15 or text.strip(b"0123456789abcdefABCDEF"):
        raise ValueError("malformed chunked encoding")
    return int(text, 16)
