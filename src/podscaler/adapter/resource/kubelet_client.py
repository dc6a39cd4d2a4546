"""Reads the metrics of kubelets over HTTPS, with the credentials of the adapter.

`scraping` calls `KubeletClient.read` for each node and round. A response is parsed as it arrives, is limited to
BODY_MAX_BYTES, and must be complete within the time-out. Connections stay open for the next round; those of deleted
nodes are closed.

Source: metrics-server's client of kubelets.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final

from podscaler.adapter.resource.kubelet_points import NodePoints, NodePointsParser
from podscaler.adapter.resource.node_targets import KubeletTarget
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.kube.transport import tls
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.http_transport import HttpTransport
from podscaler.kube.transport.transport import Request, ResponseStream, Transport

BODY_MAX_BYTES: Final = 16 << 20
ACCEPT: Final = "text/plain;version=0.0.4"
_OK: Final = 200

OpenTransport = Callable[[str], Awaitable[Transport]]
"""Opens a transport to `https://HOST:PORT`. Raises UsageError for certificates that cannot be used."""


class KubeletError(Exception):
    """A kubelet that gave no metrics; str() says why, without credentials."""


class KubeletClient:
    """The HTTPS client of all kubelets; the owner calls `close` at the end.

    Args:
        open_transport: opens the connections to one kubelet.
        clock: for the time of samples that have none.
        timeout_s: the limit of one scrape.
    """

    def __init__(self, open_transport: OpenTransport, clock: Clock, *, timeout_s: float) -> None:
        self._open_transport = open_transport
        self._clock = clock
        self._timeout_s = timeout_s
        self._transports: dict[str, Transport] = {}

    async def read(self, target: KubeletTarget) -> NodePoints:
        """Scrape the kubelet; the points that it reports. Raises KubeletError."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._scrape(target)
        except TimeoutError as error:
            raise KubeletError(f"GET {target.server}{target.path}: no response within {self._timeout_s:g} s") from error
        except StatusError as error:
            raise KubeletError(error.message) from error
        except (UsageError, ValueError) as error:
            raise KubeletError(f"GET {target.server}{target.path}: {error}") from error

    async def close_others(self, servers: Iterable[str]) -> None:
        """Close the connections to all servers but these."""
        kept_servers = set(servers)
        for server in [server for server in self._transports if server not in kept_servers]:
            await self._transports.pop(server).close()

    async def close(self) -> None:
        """Close all connections."""
        await self.close_others(())

    async def _scrape(self, target: KubeletTarget) -> NodePoints:
        """The points of one kubelet. Raises KubeletError, and the other errors that `read` converts."""
        transport = self._transports.get(target.server)
        if transport is None:
            transport = self._transports[target.server] = await self._open_transport(target.server)
        parser = NodePointsParser(self._clock.now_ns())
        async with transport.stream(Request("GET", target.path, headers={"Accept": ACCEPT})) as response:
            if response.status != _OK:
                raise KubeletError(f"GET {target.server}{target.path}: status {response.status}")
            await _feed(parser, response)
        return parser.points()


async def _feed(parser: NodePointsParser, response: ResponseStream) -> None:
    """Parse the response. Raises ValueError for one that is too long or invalid, TransportError if it breaks off."""
    size_bytes = 0
    async for lines in response.batches():
        size_bytes += sum(len(line) + 1 for line in lines)
        if size_bytes > BODY_MAX_BYTES:
            raise ValueError(f"the response has more than {BODY_MAX_BYTES} bytes")
        parser.feed(lines)


class KubeletTransports:
    """Opens transports to kubelets with the credentials of a configuration; all share one TLS context.

    Args:
        config: has the credentials and authorities; its server, proxy and headers are not used.
    """

    def __init__(self, config: Config, *, user_agent: str) -> None:
        self._config = replace(config, proxy=None, tls_server_name=None, headers=())
        self._user_agent = user_agent
        self._context: ssl.SSLContext | None = None

    async def open(self, server: str) -> Transport:
        """A transport; no connection is made yet. Raises UsageError for certificates that cannot be used."""
        config = replace(self._config, server=server)
        pem = None
        if config.client_certificate_pem and config.client_key_pem:
            pem = config.client_certificate_pem + b"\n" + config.client_key_pem
        if self._context is None and server.startswith("https:"):
            self._context = await asyncio.to_thread(tls.server_context, config, pem)
        return HttpTransport(config, self._context, user_agent=self._user_agent, pem=pem)
