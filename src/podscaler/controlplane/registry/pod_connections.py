"""Defines the interfaces between the API server and the node agent for exec, attach and port-forward.

`apiserver.streaming` opens sessions and copies bytes between them and clients; the kubelet package implements the
protocols (`kubelet.node_connections`). A session has the standard streams of one process; a port connection is one TCP
connection to a pod. Back-pressure applies in both directions: writes wait for room, output is read only on demand.
"""

import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from podscaler.base.errors import PodscalerError
from podscaler.controlplane.registry.registry import Object


class SessionFailure(PodscalerError):
    """A session with an existing container, or a connection to a pod, could not be opened; the text says why."""


@dataclass(frozen=True, slots=True)
class SessionStreams:
    """Which streams a session has, as in core/v1 PodExecOptions; with `tty` the command runs in a terminal."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class PodSession(Protocol):
    """The streams of a command, or of an attached container's main process."""

    def stdout(self) -> AsyncIterator[bytes]:
        """Standard output until the process ends; with a terminal also standard error. To be read once."""
        ...

    def stderr(self) -> AsyncIterator[bytes]:
        """Standard error until the process ends; empty with a terminal. To be read once."""
        ...

    async def write(self, data: bytes) -> None:
        """Write to standard input; returns when it is written. Input after the process ended is dropped."""
        ...

    async def end_input(self) -> None:
        """Close standard input."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal."""
        ...

    async def wait(self) -> int:
        """The exit status of a command; 0 when an attached session has ended."""
        ...

    async def close(self) -> None:
        """Close the session; a command is killed with its process group, an attached container keeps running."""
        ...


class ContainerSessions(Protocol):
    """A running container."""

    async def execute(self, command: tuple[str, ...], options: SessionStreams) -> PodSession:
        """Run a command in the container. Raises SessionFailure."""
        ...

    async def attach(self, options: SessionStreams) -> PodSession:
        """Attach to the main process, without earlier output. Raises SessionFailure."""
        ...


class PodPortConnection(Protocol):
    """A TCP connection to a port of a pod."""

    def received(self) -> AsyncIterator[bytes]:
        """The bytes that the pod sends, until it closes its side. To be read once. Raises OSError."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes; returns when there is room for more. Raises OSError."""
        ...

    async def end_input(self) -> None:
        """Close the sending side; the pod may still send."""
        ...

    async def close(self) -> None:
        """Abort the connection in both directions."""
        ...


class PodConnections(Protocol):
    """The node, as the API server sees it."""

    def find_container(self, pod: Object, container: str) -> ContainerSessions | None:
        """A container of the pod, None unless it is running."""
        ...

    def is_running(self, pod: Object) -> bool:
        """Whether the pod has an address and a running container."""
        ...

    async def connect(self, pod: Object, port: int) -> PodPortConnection:
        """Connect to a port of the pod, by its number in the manifest. Raises SessionFailure."""
        ...

    def locate(self, pod: Object, port: int) -> tuple[str, int] | None:
        """The IP address that the node gave the pod, and the port at which the process listens that declares `port`.

        None if the pod has no address.
        """
        ...


@dataclass(frozen=True, slots=True)
class NodeEndpoint:
    """The HTTPS endpoint of the node, as the kubelet serves it.

    Attributes:
        node_name: the name of the Node.
        host, port: where it listens.
        make_client_tls: makes the TLS settings of the API server as its client. Blocks. Raises UsageError.
    """

    node_name: str
    host: str
    port: int
    make_client_tls: Callable[[], ssl.SSLContext]
