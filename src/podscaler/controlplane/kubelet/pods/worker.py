"""The interface of pod workers, which `kubelet.node_agent` uses: `PodWorker` and `SimulatedPod` implement it."""

from dataclasses import dataclass
from typing import Protocol

from podscaler.controlplane.registry.registry import Object


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A container's main process, and the commands that clients run in the container.

    Attributes:
        name: the container's name.
        pid: also the id of its session and process group.
        started_ns: nanoseconds since the epoch.
        command_pids: the pids of the commands; each is the leader of a session.
    """

    name: str
    pid: int
    started_ns: int
    command_pids: frozenset[int] = frozenset()


class Worker(Protocol):
    """Runs one pod."""

    def update(self, pod: Object) -> None:
        """Take over a new version of the object, which may be one that is being deleted."""
        ...

    def forget(self) -> None:
        """Stop the containers at once, as the object was deleted."""
        ...

    def shut_down(self) -> None:
        """Stop the containers, as the node stops; the object and its status are kept."""
        ...

    def running_processes(self) -> list[RunningProcess]:
        """The containers that have a process now."""
        ...

    async def run(self) -> None:
        """Run the pod; returns after `forget` or `shut_down`, when no process is left. Called again after an error."""
        ...
