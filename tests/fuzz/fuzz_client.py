"""Sends what no proper client would send: any bytes as method, target, headers and body; reads what comes back.

Called by the tests of this folder. One connection is kept as long as the server keeps it. Streams (watches, sessions)
are left at once: their head is all that is read.
"""

import gzip
import http.client
import socket
from contextlib import closing
from dataclasses import dataclass, field

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Request:
    """One request, as bytes would have it.

    Attributes:
        target: path and query as they stand in the request line.
        headers: besides Host, Authorization and Content-Length.
        token: the bearer token, empty for none.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    token: str = "admin-token"

    def __str__(self) -> str:
        body = b"" if self.body is None else self.body
        more = f" ... ({len(body)} bytes)" if len(body) > 2000 else ""
        return f"{self.method} {self.target[:1000]} {list(self.headers)} as {self.token}\n{body[:2000]!r}{more}"


@dataclass(frozen=True)
class Answer:
    """What came back; `content` is None where it is a stream that was not read."""

    status: int
    headers: http.client.HTTPMessage
    content: bytes | None

    @property
    def media_type(self) -> str:
        """`application/json`."""
        return self.headers.get_content_type() if "Content-Type" in self.headers else ""


@dataclass
class Client:
    """Talks to the server on a port of this machine."""

    port: int
    _socket: socket.socket | None = field(default=None, init=False)

    def send(self, request: Request) -> Answer:
        """The answer. Raises OSError or HTTPException where there is none."""
        if self._socket is not None:
            try:
                return self._exchange(self._socket, request)
            except (ConnectionError, http.client.BadStatusLine):
                self.close()  # the server had closed it meanwhile: as any client, try once more
        self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._exchange(self._socket, request)

    def close(self) -> None:
        """Leave."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, connection: socket.socket, request: Request) -> Answer:
        connection.sendall(_head(request) + (request.body or b""))
        with closing(http.client.HTTPResponse(connection, method=request.method)) as response:
            response.begin()
            is_stream = response.status == 101 or response.getheader("Transfer-Encoding") == "chunked"
            content = None if is_stream else response.read()
            if is_stream or response.will_close:
                self.close()
        if content and response.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        return Answer(response.status, response.headers, content)


def _head(request: Request) -> bytes:
    lines = [f"{request.method} {request.target} HTTP/1.1", "Host: fuzz"]
    if request.token:
        lines.append(f"Authorization: Bearer {request.token}")
    lines += [f"{name}: {value}" for name, value in request.headers]
    if request.body is not None:
        lines.append(f"Content-Length: {len(request.body)}")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass")
