"""A small HTTP server for the test programs of the built-in images.

`netexec`, `resource_consumer` and the other servers of `kubelet.programs` define a function from request to response,
and call `serve`; `hpa_example` has a server of its own, as it drains requests. A new fact about requests: a field of
`WebRequest`, set in `_make_request`.

Each connection has a thread of its own; at most REQUESTS_AT_ONCE requests are processed at a time. Request bodies above
BODY_BYTES_MAX get status 413. SIGTERM ends the process at once, by Python's default, as it ends a Go program.
"""

import os
import re
import ssl
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

REQUESTS_AT_ONCE: Final = 256
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
LINE_BYTES_MAX: Final = 8192
"""Of a line between the chunks of a body; a longer one is cut."""
IDLE_S: Final = 60
"""The timeout of each read from a client, and each write to it."""
_is_decimal = re.compile(rb"[0-9]+").fullmatch
_is_hexadecimal = re.compile(rb"[0-9A-Fa-f]+").fullmatch


@dataclass(frozen=True, slots=True)
class WebRequest:
    """A request.

    Attributes:
        path: without the query, percent-encoded as it was sent.
        query: as it was sent, without the question mark.
        form: the first value of each parameter of the query, and of a body that is a form, which wins.
        headers: those of the request.
        client: the address and port of the peer.
    """

    method: str
    path: str
    query: str
    form: Mapping[str, str]
    headers: Message
    body: bytes
    client: tuple[str, int]


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A response.

    Attributes:
        text: the body.
        on_sent: called after the response was sent, None if nothing is to be done then.
    """

    text: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    on_sent: Callable[[], None] | None = None


Respond = Callable[[WebRequest], WebResponse]
"""The function by which a program responds to requests; it is called in several threads at a time."""


def error_response(message: str, status: int) -> WebResponse:
    """An error in the form of Go's `http.Error`: the message with a line feed."""
    return WebResponse(f"{message}\n", status)


def listen_address() -> str:
    """The address to listen on: LISTEN_ADDRESS, or else the pod's, or else 127.0.0.1.

    The kubelet sets LISTEN_ADDRESS, to all addresses, in pods with a network namespace of their own.
    """
    return os.environ.get("LISTEN_ADDRESS") or os.environ.get("POD_IP", "127.0.0.1")


def host_name() -> str:
    """The pod's host name; the machine's own one is shared by all pods."""
    return os.environ.get("HOSTNAME", "localhost")


def serve(respond: Respond, port: int, *, tls_context: ssl.SSLContext | None = None) -> int:
    """Serve HTTP, or HTTPS with `tls_context`, until the process ends; returns 1 where the port cannot be bound."""
    try:
        server = new_server(respond, port, tls_context=tls_context)
    except OSError as failure:
        print(f"listen tcp {listen_address()}:{port}: {failure.strerror}", file=sys.stderr, flush=True)
        return 1
    print(f"listening on {listen_address()}:{server.server_address[1]}", flush=True)
    server.serve_forever()
    return 0


def new_server(respond: Respond, port: int, *, tls_context: ssl.SSLContext | None = None) -> ThreadingHTTPServer:
    """A server that is bound, and not yet serving; tests run it in a thread. Raises OSError."""
    handler = type("Handler", (_Handler,), {"respond": staticmethod(respond), "tls_context": tls_context})
    return _Server((listen_address(), port), handler)


class _Server(ThreadingHTTPServer):
    """A server with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Print the error in one line: a client that goes away is no error of the program."""
        print(f"connection from {client_address}: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True)


class _Handler(BaseHTTPRequestHandler):
    """Handles a connection; `new_server` makes a subclass with the `respond` and `tls_context` of a program."""

    protocol_version = "HTTP/1.1"
    server_version = "agnhost"  # the header `Server` of responses
    timeout = IDLE_S
    respond: Respond
    tls_context: ssl.SSLContext | None
    slots = threading.BoundedSemaphore(REQUESTS_AT_ONCE)  # shared by all connections

    def setup(self) -> None:
        """Complete the TLS handshake in the connection's own thread."""
        if self.tls_context is not None:
            self.request.settimeout(IDLE_S)
            self.request = self.tls_context.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self) -> None:
        """Respond to a request with any method: 400 for an invalid body, 413 for one that is too large."""
        try:
            body = self._read_body()
        except ValueError:
            self.close_connection = True
            self._send_response(error_response("invalid body", 400))
            return
        if body is None:
            self.close_connection = True
            self._send_response(error_response("request body too large", 413))
            return
        with self.slots:
            response = type(self).respond(self._make_request(body))
        self._send_response(response)
        if response.on_sent is not None:
            self.wfile.flush()
            response.on_sent()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815 - names of http.server

    def _read_body(self) -> bytes | None:
        """The body of the request, None if it is too large. Raises ValueError for a length that is no number."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = _parse_length(self.headers.get("Content-Length", "0").encode(), _is_decimal, 10)
            return self.rfile.read(length) if length <= BODY_BYTES_MAX else None
        body = b""
        while length := self._read_chunk_length():
            if length > BODY_BYTES_MAX - len(body):
                return None
            body += self.rfile.read(length)
            self.rfile.readline(LINE_BYTES_MAX)  # the line feed after a chunk
        while self.rfile.readline(LINE_BYTES_MAX).strip():
            pass  # trailers
        return body

    def _read_chunk_length(self) -> int:
        """The length of the next chunk, 0 for the last one. Raises ValueError."""
        length_text, _, _extensions = self.rfile.readline(LINE_BYTES_MAX).partition(b";")
        return _parse_length(length_text, _is_hexadecimal, 16)

    def _make_request(self, body: bytes) -> WebRequest:
        """The request; a field of the body replaces one of the query with the same name."""
        url = urlsplit(self.path)
        fields = parse_qs(url.query, keep_blank_values=True)
        if self.headers.get_content_type() == "application/x-www-form-urlencoded":
            fields |= parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
        form = {name: values[0] for name, values in fields.items()}
        host, port = self.client_address[:2]
        return WebRequest(self.command, url.path, url.query, form, self.headers, body, (str(host), int(port)))

    def _send_response(self, response: WebResponse) -> None:
        """Send a response, without its body for HEAD."""
        content = response.text.encode()
        self.send_response(response.status)
        headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in (headers | dict(response.headers)).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print the method, the path without its query, and the status; a request that is not HTTP has no method."""
        request_text = f"{self.command} {urlsplit(self.path).path}" if self.command else "invalid request"
        print(f"{request_text} {code}", flush=True)


def _parse_length(length_text: bytes, is_valid: Callable[[bytes], object], base: int) -> int:
    """A number of bytes; Python's own forms of numbers (`-1`, `1_0`, `0x1`) are rejected. Raises ValueError."""
    if not is_valid(length_text.strip()):
        raise ValueError(f"invalid length {length_text!r}")
    return int(length_text, base)


def lacks_any(form: Mapping[str, str], names: Sequence[str]) -> bool:
    """Whether a parameter of these names is absent or empty."""
    return any(not form.get(name) for name in names)
