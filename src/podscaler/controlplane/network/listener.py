"""Listening sockets of the Service proxy on clusterIPs.

`proxy.ServiceProxy` opens and closes listeners. Closing a listener does not close its connections.

Differs: for a port below 1024 that this user may not bind, port + 20000 is used (+ 21000, ... if that is taken); the
Service gets an annotation.
"""

import asyncio
import contextlib
import errno
import resource
from dataclasses import dataclass

from podscaler.base.clock import Clock
from podscaler.controlplane.network.balancer import Address, Balancer
from podscaler.controlplane.network.proxied_connection import ClientSide, ProxiedConnections

BACKLOG = 1024
LOW_PORT_OFFSETS = range(20_000, 30_000, 1000)
LOW_PORTS = range(1, 1024)
RESERVED_FILES = 256
"""Open files that are reserved for everything else in this process."""
WANTED_FILES = 65_536


def raise_connection_limit() -> int:
    """Raise the limit of open files; returns how many connections may be proxied, with two open files each.

    The soft limit is raised to the hard limit, at most to `WANTED_FILES`; the processes of pods inherit it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    return max((files - RESERVED_FILES) // 2, 16)


@dataclass(slots=True)
class PortListener:
    """One listening port.

    Attributes:
        balancer: chooses the endpoints of its connections.
        port: the actual port number, which may differ from the Service's.
        server: the listening socket.
    """

    balancer: Balancer
    port: int
    server: asyncio.Server

    def close(self) -> None:
        """Accept no more connections."""
        self.server.close()


async def listen(address: Address, connections: ProxiedConnections, clock: Clock) -> PortListener:
    """Listen on `address`, or on a high port in place of a low one that this user may not bind. Raises OSError."""
    host, port = address
    balancer = Balancer(clock)
    try:
        server = await _serve(balancer, connections, host, port)
    except PermissionError:
        if port not in LOW_PORTS:
            raise
        port, server = await _serve_high(balancer, connections, host, port)
    return PortListener(balancer, port, server)


async def _serve_high(
    balancer: Balancer, connections: ProxiedConnections, host: str, low_port: int
) -> tuple[int, asyncio.Server]:
    """Listen on the first free one of the high ports for a low port."""
    *tried, last = (low_port + offset for offset in LOW_PORT_OFFSETS)
    for port in tried:
        try:
            return port, await _serve(balancer, connections, host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return last, await _serve(balancer, connections, host, last)


async def _serve(balancer: Balancer, connections: ProxiedConnections, host: str, port: int) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: ClientSide(balancer, connections), host, port, backlog=BACKLOG)
