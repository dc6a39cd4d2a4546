"""The image `hpa-example`: a web server that burns CPU for each request and answers `OK!`.

Run as a pod's process, on its own: the standard library only. Every request, whatever its path, sums a million square
roots, as the image of the same name does, so that a request costs some 50 ms of one core. On SIGTERM it goes on
accepting for half a second (connections that were already on their way), finishes what it has, and ends.

Environment: POD_IP (address to listen on), PORT (default 80), ITERATIONS (square roots for each request).
"""

import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import sqrt

LAME_DUCK_S = 0.5
KEEP_ALIVE_S = 60


def burn(iterations: int) -> float:
    """A sum that takes time: `iterations` square roots."""
    x = 0.0001
    for _ in range(iterations):
        x += sqrt(x)
    return x


class LoadHandler(BaseHTTPRequestHandler):
    """Answers every GET and HEAD with `OK!` after burning CPU."""

    protocol_version = "HTTP/1.1"
    server_version = "hpa-example"
    timeout = KEEP_ALIVE_S
    iterations = 1_000_000
    draining = threading.Event()
    busy = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        """Burn, then answer."""
        with LoadHandler.lock:
            LoadHandler.busy += 1
        try:
            burn(self.iterations)
            self.answer(b"OK!")
        finally:
            with LoadHandler.lock:
                LoadHandler.busy -= 1

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for
    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def answer(self, body: bytes) -> None:
        """Send 200 with `body`; close the connection once the server is ending."""
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
        """One line a request, as a web server's access log."""
        print(f'{self.client_address[0]} "{self.requestline}" {code} {size}', flush=True)


class ExampleServer(ThreadingHTTPServer):
    """A thread a connection; idle keep-alive connections do not hold up the end."""

    daemon_threads = True
    request_queue_size = 128


def drain(server: ExampleServer) -> None:
    """Finish what is under way, then make `serve_forever` return."""
    LoadHandler.draining.set()
    pause = threading.Event()
    pause.wait(LAME_DUCK_S)
    while LoadHandler.busy:
        pause.wait(0.02)
    server.shutdown()


def main() -> int:
    """Serve until SIGTERM; exit status 1 where the address cannot be had."""
    LoadHandler.iterations = int(os.environ.get("ITERATIONS", LoadHandler.iterations))
    address = (os.environ.get("POD_IP", "127.0.0.1"), int(os.environ.get("PORT", "80")))
    try:
        server = ExampleServer(address, LoadHandler)
    except OSError as error:
        print(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}", file=sys.stderr, flush=True)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=drain, args=(server,)).start())
    print(f"listening on {address[0]}:{address[1]}", flush=True)
    server.serve_forever(poll_interval=0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
