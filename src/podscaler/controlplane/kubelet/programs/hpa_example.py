"""The image `hpa-example`: a web server that uses CPU time for each request and responds with `OK!`.

`kubelet.launching.images` has its command line. It runs as a process of a pod and imports the standard library only.
Every request, whatever its path, sums a million square roots, as in the image of that name, which takes some 50 ms of
one core. On SIGTERM the server accepts connections for another half second, completes the requests that it has, and
exits.

Environment: LISTEN_ADDRESS or POD_IP (the address to listen on), PORT (default 80), ITERATIONS (square roots for each
request).
"""

import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import sqrt

DRAIN_DELAY_S = 0.5
"""How long new connections are accepted after SIGTERM: clients may not know yet that the pod ends."""
KEEP_ALIVE_S = 60
"""The timeout of an idle connection."""
BUSY_POLL_S = 0.02
"""The delay between two checks for requests in progress, once the server is stopping."""


def burn(iterations: int) -> float:
    """Use CPU time; returns the sum of `iterations` square roots."""
    total = 0.0001  # as the program of that image begins: from 0 the sum would stay 0
    for _ in range(iterations):
        total += sqrt(total)
    return total


class LoadHandler(BaseHTTPRequestHandler):
    """Responds to every GET, HEAD and POST with `OK!` after using CPU time.

    Attributes:
        iterations: the square roots for each request.
        draining: set when the server is stopping.
        busy: how many requests are in progress, changed with `lock` only.
    """

    protocol_version = "HTTP/1.1"
    server_version = "hpa-example"
    timeout = KEEP_ALIVE_S
    iterations = 1_000_000
    draining = threading.Event()
    busy = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        """Use CPU time, then respond; for GET, HEAD and POST."""
        with LoadHandler.lock:
            LoadHandler.busy += 1
        try:
            burn(self.iterations)
            self.respond(b"OK!")
        finally:
            with LoadHandler.lock:
                LoadHandler.busy -= 1

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for
    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def respond(self, body: bytes) -> None:
        """Send 200 with `body`; close the connection if the server is stopping."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        if LoadHandler.draining.is_set():
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print one line for each request, as in a web server's access log."""
        print(f'{self.client_address[0]} "{self.requestline}" {code} {size}', flush=True)


class ExampleServer(ThreadingHTTPServer):
    """A server with a thread for each connection; idle keep-alive connections do not delay the exit."""

    daemon_threads = True
    request_queue_size = 128


def drain(server: ExampleServer) -> None:
    """Complete the requests in progress, then make `serve_forever` return."""
    LoadHandler.draining.set()
    pause = threading.Event()
    pause.wait(DRAIN_DELAY_S)
    while LoadHandler.busy:
        pause.wait(BUSY_POLL_S)
    server.shutdown()


def main() -> int:
    """Serve until SIGTERM; returns the exit status, 1 if the address cannot be bound.

    Raises ValueError for ITERATIONS or PORT that is no number.
    """
    LoadHandler.iterations = int(os.environ.get("ITERATIONS", LoadHandler.iterations))
    host = os.environ.get("LISTEN_ADDRESS") or os.environ.get("POD_IP", "127.0.0.1")
    port = int(os.environ.get("PORT", "80"))
    try:
        server = ExampleServer((host, port), LoadHandler)
    except OSError as error:
        print(f"cannot listen on {host}:{port}: {error.strerror}", file=sys.stderr, flush=True)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=drain, args=(server,)).start())
    print(f"listening on {host}:{port}", flush=True)
    server.serve_forever(poll_interval=0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
