"""Exec, attach and port-forward as the node does them: `pod_connections.PodConnections` for the pods that run here.

The API server is given it by `up`; `node_agent` makes it. Ports lead to the address that the node gave the pod, never
to what its status says (whoever may write a status could name any address); those that may not be bound on this machine
lead to where they really are (`port_map`).
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from podscaler.api import port_map
from podscaler.controlplane.kubelet.containers.container_run import ContainerRun
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.registry.pod_connections import (
    ContainerSessions,
    PodPortConnection,
    PodSession,
    SessionFailure,
    SessionStreams,
)
from podscaler.controlplane.registry.registry import Object

CONNECT_WITHIN_S: Final = 10.0
CLOSE_WITHIN_S: Final = 1.0
READ_BYTES: Final = 32 * 1024
BUFFER_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class RunningContainerSessions:
    """A container that runs now. Implements `ContainerSessions`."""

    run: ContainerRun

    async def execute(self, command: tuple[str, ...], options: SessionStreams) -> PodSession:
        """Run a command beside its main process. Raises SessionFailure."""
        return await self.run.open_session(command, options)

    async def attach(self, options: SessionStreams) -> PodSession:
        """Follow its main process. Raises SessionFailure."""
        return self.run.attach(options)


class PortConnection:
    """A TCP connection to a pod. Implements `PodPortConnection`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def received(self) -> AsyncIterator[bytes]:
        """What the pod sends."""
        while data := await self._reader.read(READ_BYTES):
            yield data

    async def write(self, data: bytes) -> None:
        """Send; waits for room."""
        self._writer.write(data)
        await self._writer.drain()

    async def end_input(self) -> None:
        """Half-close."""
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def close(self) -> None:
        """Send what is on its way, if the pod takes it soon, and cut."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._writer.wait_closed()
        self._writer.transport.abort()


class NodeConnections:
    """See the module.

    Args:
        find_run: the running container with this name of the pod with this uid.
        is_running: whether the pod with this uid has running containers.
        addresses: of this node.
    """

    def __init__(
        self,
        find_run: Callable[[str, str], ContainerRun | None],
        is_running: Callable[[str], bool],
        addresses: AddressBlock,
    ) -> None:
        self._find_run = find_run
        self._is_running = is_running
        self._addresses = addresses

    def find_container(self, pod: Object, container: str) -> ContainerSessions | None:
        """The container, None unless it runs."""
        run = self._find_run(pod["metadata"]["uid"], container)
        return None if run is None else RunningContainerSessions(run)

    def is_running(self, pod: Object) -> bool:
        """Whether something of the pod runs."""
        return self._is_running(pod["metadata"]["uid"])

    async def connect(self, pod: Object, port: int) -> PodPortConnection:
        """Connect to a port of the pod. Raises SessionFailure."""
        place = self.locate(pod, port)
        if place is None:
            raise SessionFailure("the pod has no address")
        host, real = place
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                reader, writer = await asyncio.open_connection(host, real, limit=BUFFER_BYTES)
        except TimeoutError:
            raise SessionFailure(f"dial tcp4 {host}:{real}: i/o timeout") from None
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise SessionFailure(f"dial tcp4 {host}:{real}: connect: {reason}") from error
        return PortConnection(reader, writer)

    def locate(self, pod: Object, port: int) -> tuple[str, int] | None:
        """The address that the node gave the pod and where `port` of the manifest really is; None without address."""
        is_on_host = bool(pod["spec"].get("hostNetwork"))
        host = self._addresses.node_address if is_on_host else self._addresses.find_pod(pod["metadata"]["uid"])
        return None if host is None else (host, port_map.of(pod).get(port, port))
