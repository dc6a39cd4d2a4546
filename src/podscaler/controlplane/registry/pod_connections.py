"""The seam between the API server and the node for what is interactive: exec, attach and port-forward.

`server` opens sessions and moves their bytes to and from clients; the node implements the protocols. Whoever is slow
slows the other side down: writes wait for room, output is read only when somebody asks for it.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from podscaler.base.errors import PodscalerError
from podscaler.controlplane.registry.registry import Object


class SessionFailure(PodscalerError):
    """A session that the container exists for could not be begun; the text says why."""


@dataclass(frozen=True, slots=True)
class SessionStreams:
    """Which streams a session has; names as in core/v1 PodExecOptions."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class PodSession(Protocol):
    """A process whose streams a client has."""

    def stdout(self) -> AsyncIterator[bytes]:
        """What it prints, until it has ended; everything, where there is a terminal. To be read once."""
        ...

    def stderr(self) -> AsyncIterator[bytes]:
        """What it prints to standard error; nothing where there is a terminal. To be read once."""
        ...

    async def write(self, data: bytes) -> None:
        """Give it input; returns when it is taken. Input that nobody will read any more is dropped."""
        ...

    async def end_input(self) -> None:
        """There will be no more input."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """The client's terminal has another size now."""
        ...

    async def wait(self) -> int:
        """The exit status of a command; 0 where an attached session has ended."""
        ...

    async def close(self) -> None:
        """Let go of everything; a command is killed with its process group, an attached container goes on."""
        ...


class ContainerSessions(Protocol):
    """A running container."""

    async def execute(self, command: tuple[str, ...], options: SessionStreams) -> PodSession:
        """Run a command beside its main process. Raises SessionFailure."""
        ...

    async def attach(self, options: SessionStreams) -> PodSession:
        """Follow its main process from now on. Raises SessionFailure."""
        ...


class PodPortConnection(Protocol):
    """A TCP connection to a port of a pod."""

    def received(self) -> AsyncIterator[bytes]:
        """What the pod sends, until it has ended that. To be read once. Raises OSError."""
        ...

    async def write(self, data: bytes) -> None:
        """Send; returns when there is room for more. Raises OSError."""
        ...

    async def end_input(self) -> None:
        """There will be no more to send."""
        ...

    async def close(self) -> None:
        """Cut it."""
        ...


class PodConnections(Protocol):
    """The node, as the API server sees it."""

    def find_container(self, pod: Object, container: str) -> ContainerSessions | None:
        """The container, None unless it runs."""
        ...

    def is_running(self, pod: Object) -> bool:
        """Whether the pod has an address and something that may listen there."""
        ...

    async def connect(self, pod: Object, port: int) -> PodPortConnection:
        """Connect to a port of the pod, as its manifest numbers it. Raises SessionFailure."""
        ...
