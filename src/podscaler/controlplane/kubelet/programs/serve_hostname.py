"""`agnhost serve-hostname`, `test-webserver` and `liveness`: serve the pod's name, files, or a health check that fails.

`programs.agnhost` calls `main`, `web_server_main` and `liveness_main`. `serve-hostname` continues for a minute after
SIGTERM, until the pod's grace period is over.

Source: test/images/agnhost/serve-hostname and test-webserver of Kubernetes v1.37 (flags and defaults).
Differs: `test-webserver` serves the container's own folder, as containers share the machine's root folder, with one
file of the image: /localhost.crt, which probes request.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser
from podscaler.controlplane.kubelet.programs.web_server import (
    WebRequest,
    WebResponse,
    error_response,
    host_name,
    listen_address,
    serve,
)

ENDING_S: Final = 60.0
"""How long `serve-hostname` serves after SIGTERM."""
HEALTHY_S: Final = 10.0
"""How long `liveness` is healthy."""
LIVENESS_PORT: Final = 8080
DATAGRAM_BYTES: Final = 16
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
IMAGE_FILE: Final = "localhost.crt"
IMAGE_FILE_TEXT: Final = "no certificate: this file is only served\n"


def end_on_signal() -> None:
    """Make SIGTERM end the process after ENDING_S; it serves until then."""

    def start_timer(*_: object) -> None:
        timer = threading.Timer(ENDING_S, os._exit, (0,))
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGTERM, start_timer)


def serve_streams(port: int) -> None:
    """Send the host name to every TCP connection, until the process ends. Raises OSError."""
    with socket.create_server((listen_address(), port)) as server:
        while True:
            connection, _ = server.accept()
            with connection:
                connection.sendall(host_name().encode())


def serve_datagrams(port: int) -> None:
    """Send the host name for every UDP datagram, until the process ends. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((listen_address(), port))
        while True:
            _, client = server.recvfrom(DATAGRAM_BYTES)
            server.sendto(host_name().encode(), client)


def main(args: Sequence[str]) -> int:
    """Serve the host name by HTTP, or by TCP and UDP; returns the exit status, 1 for flags that exclude each other."""
    parser = ArgumentParser(prog="serve-hostname")
    for name, default in {"tcp": False, "udp": False, "http": True, "close": False}.items():
        parser.add_flag(name, default)
    parser.add_flag("port", 9376)
    options = parser.parse_args(args)
    if options.http and (options.tcp or options.udp):
        print("Can't server TCP/UDP mode and HTTP mode at the same time", flush=True)
        return 1
    end_on_signal()
    for is_requested, serve_protocol in ((options.tcp, serve_streams), (options.udp, serve_datagrams)):
        if is_requested:
            threading.Thread(target=serve_protocol, args=(options.port,), daemon=True).start()
    if options.http:
        headers = {"Connection": "close"} if options.close else {}
        return serve(lambda _: WebResponse(host_name(), headers=headers), options.port)
    while True:
        time.sleep(ENDING_S)


def file_response(root: Path, request: WebRequest) -> WebResponse:
    """The response with a file below `root`, or with links to the entries of a folder there; 404 outside of it."""
    path = (root / unquote(request.path).lstrip("/")).resolve()
    if not path.is_relative_to(root.resolve()):
        return error_response("404 page not found", 404)
    try:
        if path.is_dir():
            names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in path.iterdir())
            lines = (f'<a href="{escape(name)}">{escape(name)}</a>\n' for name in names)
            headers = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "private"}
            return WebResponse(f"<pre>\n{''.join(lines)}</pre>\n", headers=headers)
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError:
        return error_response("404 page not found", 404)
    if len(content) > FILE_BYTES_MAX:
        return error_response("file too large", 500)
    return WebResponse(content.decode("utf-8", "replace"), headers={"Cache-Control": "private"})


def web_server_main(args: Sequence[str]) -> int:
    """Write IMAGE_FILE into the current folder, and serve its files; returns the exit status. Raises OSError."""
    parser = ArgumentParser(prog="test-webserver")
    parser.add_flag("port", 80)
    options = parser.parse_args(args)
    folder = Path.cwd()
    (folder / IMAGE_FILE).write_text(IMAGE_FILE_TEXT, encoding="utf-8")
    return serve(lambda request: file_response(folder, request), options.port)


def liveness_main(args: Sequence[str]) -> int:
    """Respond 200 for HEALTHY_S seconds, and then 500 with the age; returns the exit status."""
    started_s = time.monotonic()

    def respond(request: WebRequest) -> WebResponse:
        """The response of /started, /redirect or /healthz."""
        age_s = time.monotonic() - started_s
        if request.path == "/started":
            return WebResponse(f"{age_s}s")
        if request.path == "/redirect":
            location = quote(unquote(request.form.get("loc", "")), safe=":/?#[]@!$&'()*+,;=%-._~")
            return WebResponse("", 302, {"Location": location})
        if request.path != "/healthz":
            return error_response("404 page not found", 404)
        return WebResponse("ok") if age_s <= HEALTHY_S else WebResponse(f"error: {age_s}", 500)

    ArgumentParser(prog="liveness").parse_args(args)
    return serve(respond, LIVENESS_PORT)
