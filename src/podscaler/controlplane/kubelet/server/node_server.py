"""Serves the node's endpoints over HTTPS on the node's address, on port 10250 where that is free.

`podscaler.cli.up.machine` makes one `NodeServer` with its pages; `kubelet.node_agent` starts it before it registers the
Node, whose `status.daemonEndpoints.kubeletEndpoint.Port` is the port. Another endpoint is another entry of `pages`, and
of `node_access.SUBRESOURCES` if it has a subresource of its own. A request without permission gets the same response
whether the page exists or not.

Source: the kubelet's server (Kubernetes documentation, Kubelet authentication/authorization).
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from podscaler.base import http_server
from podscaler.controlplane.kubelet.server.node_access import NodeAccess

PORT: Final = 10250
STOP_TIMEOUT_S: Final = 1.0
BACKLOG: Final = 128
_READ_METHODS: Final = ("GET", "HEAD")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodePage:
    """One endpoint.

    Attributes:
        content_type: that of the response.
        render: returns the body; called for each GET or HEAD request.
    """

    content_type: str
    render: Callable[[], Awaitable[bytes]]


class NodeServer:
    """The HTTPS server of one node: started once, with a fixed table of endpoints.

    Args:
        address: the address of the node.
        pages: the endpoints by path.
        access: decides about requests.
        make_tls_context: returns the TLS settings for a node of this name; called in a thread. Raises UsageError.
    """

    def __init__(
        self,
        address: str,
        pages: Mapping[str, NodePage],
        access: NodeAccess,
        *,
        make_tls_context: Callable[[str], ssl.SSLContext],
    ) -> None:
        self._address = address
        self._pages = pages
        self._access = access
        self._make_tls_context = make_tls_context
        self._node_name = ""
        self._runner: web.ServerRunner | None = None
        self._port = 0

    async def start(self, node_name: str) -> int:
        """Listen, unless it listens already; returns the port. Raises OSError, UsageError.

        Args:
            node_name: the name of the Node, for certificate and authorization.
        """
        if self._runner is None:
            self._node_name = node_name
            context = await asyncio.to_thread(self._make_tls_context, node_name)
            listener = _open_listener(self._address)
            self._runner = web.ServerRunner(http_server.Server(self._respond), shutdown_timeout=STOP_TIMEOUT_S)
            await self._runner.setup()
            await http_server.Site(self._runner, listener, context, backlog=BACKLOG).start()
            self._port = listener.getsockname()[1]
        return self._port

    @property
    def bound(self) -> tuple[str, int] | None:
        """The name of the Node and the port, for `podscaler.cli.up.machine`; None while the server does not listen."""
        return (self._node_name, self._port) if self._runner is not None and self._port else None

    async def stop(self) -> None:
        """Stop listening; may precede `start`."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        """The page of a path, if the user may read it; else 401, 403, 404 or 405."""
        rejection = self._access.rejection(request, self._node_name)
        if rejection is not None:
            return web.Response(text=rejection.text, status=rejection.status)
        page = self._pages.get(request.path)
        if page is None:
            return web.Response(text="404 page not found\n", status=404)
        if request.method not in _READ_METHODS:
            return web.Response(text="405: Method Not Allowed", status=405, headers={"Allow": "GET,HEAD"})
        return web.Response(body=await page.render(), headers={"Content-Type": page.content_type})


def _open_listener(address: str) -> socket.socket:
    """A listening socket on PORT of the address, or on a free port if PORT is in use. Raises OSError."""
    try:
        return socket.create_server((address, PORT), backlog=BACKLOG)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    listener = socket.create_server((address, 0), backlog=BACKLOG)
    _log.info("port %d of %s is in use; the node's endpoints have port %d", PORT, address, listener.getsockname()[1])
    return listener
