"""What runs in a pod, as its worker tells the node."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A container's main process, and what clients run beside it.

    Attributes:
        name: the container.
        pid: also the id of its session and process group.
        commands: pids of commands, each a session of its own.
    """

    name: str
    pid: int
    started_ns: int
    commands: frozenset[int] = frozenset()
