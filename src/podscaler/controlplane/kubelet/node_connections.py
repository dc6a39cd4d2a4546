"""Exec, attach and port-forward on the node: implements `pod_connections.PodConnections` for its pods.

`kubelet.node_agent` makes one `NodeConnections`, which `podscaler.cli.up.machine` passes to the API server; the scraper
of `podscaler.controlplane.metrics` uses `locate`. Ports are connected at the address that the node gave the pod, never
at the address in its status, which a client may have written. A declared port that is not bound itself is connected at
the port that replaces it (`podscaler.api.port_map`).
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

from podscaler.api import port_map
from podscaler.controlplane.kubelet.containers.container_run import ContainerRun
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.pod_networks import PodNetworks
from podscaler.controlplane.registry.pod_connections import (
    ContainerSessions,
    PodPortConnection,
    SessionFailure,
)
from podscaler.controlplane.registry.registry import Object

CONNECT_WITHIN_S: Final = 10.0
CLOSE_WITHIN_S: Final = 1.0
READ_BYTES: Final = 32 * 1024
BUFFER_BYTES: Final = 64 * 1024
"""The `limit` of the stream reader: from twice so many unread bytes on, the connection to the pod is not read."""
LOCALHOST: Final = "127.0.0.1"


class PortConnection:
    """A TCP connection to a port of a pod. Implements `PodPortConnection`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def received(self) -> AsyncIterator[bytes]:
        """Yield data from the pod until it half-closes the connection. Raises OSError."""
        while data := await self._reader.read(READ_BYTES):
            yield data

    async def write(self, data: bytes) -> None:
        """Send data; returns when the send buffer has room again. Raises OSError."""
        self._writer.write(data)
        await self._writer.drain()

    async def end_input(self) -> None:
        """Half-close the connection: there is no more data to send."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def close(self) -> None:
        """Close the connection after sending what is buffered, for CLOSE_WITHIN_S seconds at most."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._writer.wait_closed()
        self._writer.transport.abort()


class NodeConnections:
    """Opens exec and attach sessions, and connections to ports, in the pods of this node.

    Args:
        find_run: a pod's uid and a container's name -> the running container, or None.
        has_processes: whether a container of the pod with this uid has a process.
        addresses: the addresses of the node and its pods.
        get_networks: returns the network namespaces of pods, None if they have none.
    """

    def __init__(
        self,
        find_run: Callable[[str, str], ContainerRun | None],
        has_processes: Callable[[str], bool],
        addresses: AddressBlock,
        get_networks: Callable[[], PodNetworks | None] = lambda: None,
    ) -> None:
        self._find_run = find_run
        self._has_processes = has_processes
        self._addresses = addresses
        self._get_networks = get_networks

    def find_container(self, pod: Object, container: str) -> ContainerSessions | None:
        """The container, None unless it runs."""
        return self._find_run(pod["metadata"]["uid"], container)

    def is_running(self, pod: Object) -> bool:
        """Whether a container of the pod runs."""
        return self._has_processes(pod["metadata"]["uid"])

    async def connect(self, pod: Object, port: int) -> PodPortConnection:
        """Connect to a port of the pod, which is numbered as in its manifest. Raises SessionFailure."""
        location = self.locate(pod, port)
        if location is None:
            raise SessionFailure("the pod has no address")
        host, real_port = location
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                reader, writer = await self._open_connection(host, real_port)
        except TimeoutError:
            raise SessionFailure(f"dial tcp4 {host}:{real_port}: i/o timeout") from None
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise SessionFailure(f"dial tcp4 {host}:{real_port}: connect: {reason}") from error
        return PortConnection(reader, writer)

    async def _open_connection(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the pod at the address `host`. Raises OSError.

        A pod with a network namespace is connected at its localhost, as kubelet does it, or else at its address.
        """
        networks = self._get_networks()
        if networks is not None and networks.namespace_path(host):
            pod_socket = await asyncio.to_thread(networks.open_socket, host)
            try:
                pod_socket.setblocking(False)
                await asyncio.get_running_loop().sock_connect(pod_socket, (LOCALHOST, port))
                return await asyncio.open_connection(sock=pod_socket, limit=BUFFER_BYTES)
            except ConnectionRefusedError:  # the program may listen on the pod's address alone
                pod_socket.close()
            except BaseException:
                pod_socket.close()
                raise
        return await asyncio.open_connection(host, port, limit=BUFFER_BYTES)

    def locate(self, pod: Object, port: int) -> tuple[str, int] | None:
        """The address that the node gave the pod, and the port that is bound in place of `port` of the manifest.

        None for a pod that has no address.
        """
        is_on_host = bool(pod["spec"].get("hostNetwork"))
        host = self._addresses.node_address if is_on_host else self._addresses.find_pod(pod["metadata"]["uid"])
        return None if host is None else (host, port_map.of(pod).get(port, port))
