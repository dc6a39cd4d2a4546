"""Opens the listening TCP sockets of the Service proxy: one for each port of a clusterIP or of the node.

`service_proxy.ServiceProxy` opens and closes listeners; `controller_manager` calls `raise_connection_limit`. Closing a
listener does not close its connections.

Differs from kube-proxy: for a port below 1024 that this user may not bind, port + 20000 is used (80 becomes 20080; +
21000 and so on if that is taken). `PortListener.port` is the actual number; the proxy writes it to an annotation.
"""

import asyncio
import contextlib
import errno
import resource
from dataclasses import dataclass

from podscaler.base.clock import Clock
from podscaler.controlplane.network.balancer import Address, Balancer
from podscaler.controlplane.network.proxied_connection import ClientSide, ProxiedConnections

ACCEPT_BACKLOG = 1024
SUBSTITUTE_OFFSETS = range(20_000, 30_000, 1000)
"""What is added to the number of a privileged port, in the order of the attempts."""
PRIVILEGED_PORTS = range(1, 1024)
RESERVED_OPEN_FILES = 256
"""The open files of this process that are not for proxied connections (logs, the store, API connections)."""
MAX_OPEN_FILES = 65_536
OPEN_FILES_PER_CONNECTION = 2
MIN_CONNECTIONS = 16
"""The limit of connections even where the limit of open files is very low."""


def raise_connection_limit() -> int:
    """Raise this process's limit of open files (RLIMIT_NOFILE); returns how many connections may be proxied with it.

    The soft limit is raised to the hard limit, at most to `MAX_OPEN_FILES`; the processes of pods inherit it. If the
    system refuses, the present limit counts. Each connection takes two open files: 65536 allow 32640 connections. To
    be called once, at the start.
    """
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    desired_limit = MAX_OPEN_FILES if hard_limit == resource.RLIM_INFINITY else min(hard_limit, MAX_OPEN_FILES)
    if soft_limit != resource.RLIM_INFINITY and soft_limit < desired_limit:
        with contextlib.suppress(OSError, ValueError):  # some systems have a lower limit of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (desired_limit, hard_limit))
        soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = MAX_OPEN_FILES if soft_limit == resource.RLIM_INFINITY else soft_limit
    return max((open_files - RESERVED_OPEN_FILES) // OPEN_FILES_PER_CONNECTION, MIN_CONNECTIONS)


@dataclass(slots=True)
class PortListener:
    """One listening port.

    Attributes:
        balancer: chooses the endpoint for each accepted connection.
        port: the actual port number, which may differ from the Service's.
        server: owns the listening socket.
    """

    balancer: Balancer
    port: int
    server: asyncio.Server

    def close(self) -> None:
        """Accept no more connections."""
        self.server.close()


async def listen(address: Address, connections: ProxiedConnections, clock: Clock) -> PortListener:
    """Listen on `address`, or on a substitute for a port below 1024 that this user may not bind.

    Every accepted connection is counted in `connections`. Raises OSError if the port is in use or not allowed.
    """
    host, port = address
    balancer = Balancer(clock)
    try:
        server = await _serve_at(balancer, connections, host, port)
    except PermissionError:
        if port not in PRIVILEGED_PORTS:
            raise
        port, server = await _serve_at_substitute(balancer, connections, host, port)
    return PortListener(balancer, port, server)


async def _serve_at_substitute(
    balancer: Balancer, connections: ProxiedConnections, host: str, low_port: int
) -> tuple[int, asyncio.Server]:
    """Listen on the first free substitute of a port below 1024; returns its number. Raises OSError if none is free."""
    *first_ports, last_port = (low_port + offset for offset in SUBSTITUTE_OFFSETS)
    for port in first_ports:
        try:
            return port, await _serve_at(balancer, connections, host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return last_port, await _serve_at(balancer, connections, host, last_port)


async def _serve_at(balancer: Balancer, connections: ProxiedConnections, host: str, port: int) -> asyncio.Server:
    """Listen on exactly this address and port; each accepted connection is a `ClientSide`. Raises OSError."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: ClientSide(balancer, connections), host, port, backlog=ACCEPT_BACKLOG)
