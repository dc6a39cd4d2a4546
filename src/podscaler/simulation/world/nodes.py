"""The nodes of a simulated cluster: room for pods, and nodes that are added and removed as a cluster autoscaler does.

Pods are placed on the first node with room for their requests, in the order in which they were made. While pods find no
room, as many nodes are ordered as they need, and each is ready after the provisioning delay. A node that is empty for
`idle_ms` is removed, down to the number at the start.
"""

from collections.abc import Callable
from random import Random

from podscaler.simulation.model.scenario import ClusterModel
from podscaler.simulation.world.agenda import Agenda, EventPriority
from podscaler.simulation.world.pods import VirtualPod

Requests = tuple[int, int]
"""CPU in thousandths of a core, and memory in bytes."""

OnScheduled = Callable[[VirtualPod, int], None]
"""Called with a pod that has got a node, and the instant in ms."""


class Nodes:
    """The nodes of a scenario.

    Args:
        seed: of the provisioning delays.
    """

    def __init__(self, model: ClusterModel, agenda: Agenda, seed: str) -> None:
        self._model = model
        self._agenda = agenda
        self._random = Random(f"{seed}/nodes")
        self._free: dict[int, Requests] = {}
        self._empty_since_ms: dict[int, int] = {}
        self._made = 0
        self._ordered = 0
        self._waiting: list[tuple[VirtualPod, Requests, OnScheduled]] = []
        for _ in range(model.nodes):
            self._add_node()

    @property
    def count(self) -> int:
        """The number of nodes that are ready."""
        return len(self._free)

    def schedule(self, pod: VirtualPod, requests: Requests, on_scheduled: OnScheduled, at_ms: int) -> None:
        """Call `on_scheduled` now, or once there is room, unless the pod is removed before.

        Raises ValueError if no node can ever hold the pod.
        """
        if requests[0] > self._model.cpu_milli or requests[1] > self._model.memory_bytes:
            raise ValueError(f"pod {pod.name} requests more than a whole node has")
        self._waiting.append((pod, requests, on_scheduled))
        self._place_waiting_pods(at_ms)

    def release(self, node: int, requests: Requests, at_ms: int) -> None:
        """Free the room of a pod that is gone."""
        cpu_milli, memory_bytes = self._free[node]
        self._free[node] = (cpu_milli + requests[0], memory_bytes + requests[1])
        if self._is_empty(node):
            self._empty_since_ms[node] = at_ms
            self._agenda.add(at_ms + self._model.idle_ms, EventPriority.POD, lambda now_ms: self._remove(node, now_ms))
        self._place_waiting_pods(at_ms)

    def _add_node(self) -> None:
        self._free[self._made] = (self._model.cpu_milli, self._model.memory_bytes)
        self._made += 1

    def _is_empty(self, node: int) -> bool:
        return self._free[node] == (self._model.cpu_milli, self._model.memory_bytes)

    def _place_waiting_pods(self, at_ms: int) -> None:
        """Place the waiting pods that fit, in their order, and order nodes for the others."""
        waiting, self._waiting = self._waiting, []
        for pod, requests, on_scheduled in waiting:
            if pod.is_removed:
                continue
            node = self._find_node(requests)
            if node is None:
                self._waiting.append((pod, requests, on_scheduled))
                continue
            cpu_milli, memory_bytes = self._free[node]
            self._free[node] = (cpu_milli - requests[0], memory_bytes - requests[1])
            self._empty_since_ms.pop(node, None)
            pod.node = node
            on_scheduled(pod, at_ms)
        self._order_nodes(at_ms)

    def _find_node(self, requests: Requests) -> int | None:
        return next((node for node, free in self._free.items() if all(map(int.__le__, requests, free))), None)

    def _order_nodes(self, at_ms: int) -> None:
        """Order as many nodes as the pods that wait need beyond those that are ordered already."""
        needed = _nodes_for([requests for pod, requests, _ in self._waiting if not pod.is_removed], self._model)
        possible = self._model.max_nodes - self.count
        while self._ordered < min(needed, possible):
            self._ordered += 1
            ready_ms = at_ms + self._model.provisioning.draw_ms(self._random)
            self._agenda.add(ready_ms, EventPriority.POD, self._provisioned)

    def _provisioned(self, at_ms: int) -> None:
        self._ordered -= 1
        self._add_node()
        node = self._made - 1
        self._empty_since_ms[node] = at_ms
        self._agenda.add(at_ms + self._model.idle_ms, EventPriority.POD, lambda now_ms: self._remove(node, now_ms))
        self._place_waiting_pods(at_ms)

    def _remove(self, node: int, at_ms: int) -> None:
        """Remove a node that has been empty since it was last looked at."""
        since_ms = self._empty_since_ms.get(node)
        if since_ms is not None and at_ms - since_ms >= self._model.idle_ms and self.count > self._model.nodes:
            del self._free[node]
            del self._empty_since_ms[node]


def _nodes_for(pods: list[Requests], model: ClusterModel) -> int:
    """How many empty nodes hold these pods, each placed on the first node with room."""
    free: list[Requests] = []
    for cpu_milli, memory_bytes in pods:
        for index, (free_cpu_milli, free_bytes) in enumerate(free):
            if cpu_milli <= free_cpu_milli and memory_bytes <= free_bytes:
                free[index] = (free_cpu_milli - cpu_milli, free_bytes - memory_bytes)
                break
        else:
            free.append((model.cpu_milli - cpu_milli, model.memory_bytes - memory_bytes))
    return len(free)
