"""Serves Heapster's API over HTTP on the node's address, on Heapster's port 8082 where that is free.

`podscaler.cli.up.machine` starts a `HeapsterEndpoint` with `--serve-heapster`. As Heapster, it authenticates nobody:
whoever may connect to the loopback addresses of the machine may read the usage of its pods.
"""

import errno
import logging
import socket
from typing import Final

import msgspec
from aiohttp import web

from podscaler.base import http_server
from podscaler.controlplane.metrics.heapster.model import HeapsterError, HeapsterModel, HeapsterRequest

PORT: Final = 8082
BACKLOG: Final = 128
STOP_TIMEOUT_S: Final = 1.0
HEALTH_PATH: Final = "/healthz"

_log = logging.getLogger(__name__)


class HeapsterEndpoint:
    """The HTTP server of Heapster's API on one address.

    Args:
        model: computes the responses.
    """

    def __init__(self, model: HeapsterModel) -> None:
        self._model = model
        self._runner: web.ServerRunner | None = None

    async def start(self, address: str) -> int:
        """Listen on an address; returns the port. Raises OSError."""
        listener = _open_listener(address)
        self._runner = web.ServerRunner(http_server.Server(self._respond), shutdown_timeout=STOP_TIMEOUT_S)
        await self._runner.setup()
        await http_server.Site(self._runner, listener, None, backlog=BACKLOG).start()
        port: int = listener.getsockname()[1]
        return port

    async def stop(self) -> None:
        """Stop listening; may precede `start`."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        """The response to a request; 405 for other methods than GET and HEAD."""
        if request.method not in ("GET", "HEAD"):
            return web.Response(text="405: Method Not Allowed", status=405, headers={"Allow": "GET,HEAD"})
        if request.path == HEALTH_PATH:
            return web.Response(text="ok")
        parts = tuple(filter(None, request.path.split("/")))
        try:
            body = self._model.respond(HeapsterRequest(parts, dict(request.query)))
        except HeapsterError as error:
            return web.Response(text=f"{error}\n", status=error.status)
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _open_listener(address: str) -> socket.socket:
    """A listener on PORT of the address, or on a free port. Raises OSError."""
    try:
        return socket.create_server((address, PORT), backlog=BACKLOG)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    _log.info("port %d of %s is in use; Heapster's API gets another one", PORT, address)
    return socket.create_server((address, 0), backlog=BACKLOG)
