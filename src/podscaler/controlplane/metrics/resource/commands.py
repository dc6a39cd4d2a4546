"""What commands beside a container's process use (`kubectl exec`), counted as the container's own.

The `sampler` keeps one `CommandUsage`. Commands come and go, their CPU time must not: what one had used when it was
last seen stays in its container's sum, so that the sum never steps down because a command has ended.
"""

from collections.abc import Iterable, Mapping

from podscaler.controlplane.metrics.resource.processes import TreeReading


class CommandUsage:
    """See the module."""

    def __init__(self) -> None:
        self._seen_s: dict[int, dict[int, float]] = {}
        self._ended_s: dict[int, float] = {}

    def added(
        self, readings: Mapping[int, TreeReading], commands: Mapping[int, frozenset[int]]
    ) -> dict[int, TreeReading]:
        """The readings of containers, with what their commands use and have used.

        Args:
            readings: by root pid, of containers and commands.
            commands: for each container's root pid the commands that run now.
        """
        result = {}
        for root, pids in commands.items():
            now = {pid: readings[pid] for pid in pids if pid in readings}
            before_s = self._seen_s.get(root, {})
            gone_s = sum(cpu_s for pid, cpu_s in before_s.items() if pid not in now)
            ended_s = self._ended_s.get(root, 0.0) + gone_s
            self._note(root, {pid: reading.cpu_s for pid, reading in now.items()}, ended_s)
            if root in readings:
                result[root] = _sum(readings[root], now.values(), ended_s)
        self._forget_others(commands)
        return result

    def _note(self, root: int, seen_s: dict[int, float], ended_s: float) -> None:
        if seen_s or ended_s:
            self._seen_s[root], self._ended_s[root] = seen_s, ended_s

    def _forget_others(self, roots: Mapping[int, frozenset[int]]) -> None:
        for root in self._seen_s.keys() - roots.keys():
            del self._seen_s[root], self._ended_s[root]


def _sum(own: TreeReading, commands: Iterable[TreeReading], ended_s: float) -> TreeReading:
    cpu_s, memory_bytes = own.cpu_s + ended_s, own.memory_bytes
    for reading in commands:
        cpu_s += reading.cpu_s
        memory_bytes += reading.memory_bytes
    return TreeReading(cpu_s, memory_bytes)
