"""Simulates the nodes of a cluster: scheduling of pods, and nodes added and removed as a cluster autoscaler does.

Pods are placed on the first node with room for their requests, in the order in which they were made. While pods find no
room, as many nodes are ordered as they need, and each is ready after the provisioning delay. A node that is empty for
`idle_ms` is removed, down to the number at the start.

Called by `podscaler.simulation.world.workload`; `podscaler.simulation.engine` makes one Nodes for all workloads. A new
resource: an attribute of NodeResources and its term in each of its methods.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from podscaler.simulation.model.scenario import ClusterModel
from podscaler.simulation.world.event_queue import EventPriority, EventQueue
from podscaler.simulation.world.pods import VirtualPod


class NodeResources(NamedTuple):
    """CPU and memory: what a pod requests, or what is free on a node."""

    cpu_milli: int
    memory_bytes: int

    def fits(self, free: "NodeResources") -> bool:
        """Whether these requests find room in what is free."""
        return self.cpu_milli <= free.cpu_milli and self.memory_bytes <= free.memory_bytes

    def plus(self, other: "NodeResources") -> "NodeResources":
        """The sum."""
        return NodeResources(self.cpu_milli + other.cpu_milli, self.memory_bytes + other.memory_bytes)

    def minus(self, other: "NodeResources") -> "NodeResources":
        """The difference."""
        return NodeResources(self.cpu_milli - other.cpu_milli, self.memory_bytes - other.memory_bytes)


OnScheduled = Callable[[VirtualPod, int], None]
"""Called with a pod that has got a node, and the instant in ms."""


class Nodes:
    """The nodes of a scenario, by a number that is not used again.

    Args:
        seed: of the provisioning delays.
    """

    def __init__(self, model: ClusterModel, event_queue: EventQueue, seed: str) -> None:
        self._model = model
        self._capacity = NodeResources(model.cpu_milli, model.memory_bytes)
        self._event_queue = event_queue
        self._delay_random = Random(f"{seed}/nodes")
        self._free_by_node: dict[int, NodeResources] = {}
        self._empty_since_ms: dict[int, int] = {}
        self._created_nodes = 0
        self._ordered_nodes = 0
        self._waiting_pods: list[tuple[VirtualPod, NodeResources, OnScheduled]] = []
        for _ in range(model.nodes):
            self._add_node()

    @property
    def count(self) -> int:
        """The number of nodes that are ready."""
        return len(self._free_by_node)

    def schedule(self, pod: VirtualPod, requests: NodeResources, on_scheduled: OnScheduled, at_ms: int) -> None:
        """Set the pod's `node` and call `on_scheduled`, now or once there is room, unless the pod is removed before.

        Raises ValueError if no node can ever hold the pod.
        """
        if not requests.fits(self._capacity):
            raise ValueError(f"pod {pod.name} requests more than a whole node has")
        self._waiting_pods.append((pod, requests, on_scheduled))
        self._place_waiting_pods(at_ms)

    def release(self, node: int, requests: NodeResources, at_ms: int) -> None:
        """Free the room of a pod that is gone: begins the idle time of an empty node, and places waiting pods."""
        self._free_by_node[node] = self._free_by_node[node].plus(requests)
        if self._free_by_node[node] == self._capacity:
            self._begin_idle_time(node, at_ms)
        self._place_waiting_pods(at_ms)

    def _add_node(self) -> int:
        """Add a ready and empty node; returns its number."""
        node = self._created_nodes
        self._free_by_node[node] = self._capacity
        self._created_nodes += 1
        return node

    def _begin_idle_time(self, node: int, at_ms: int) -> None:
        """Note that a node is empty, and plan its removal."""
        self._empty_since_ms[node] = at_ms
        self._event_queue.add(at_ms + self._model.idle_ms, EventPriority.POD, lambda now_ms: self._remove(node, now_ms))

    def _place_waiting_pods(self, at_ms: int) -> None:
        """Place the waiting pods that fit, in their order, and order nodes for the others."""
        waiting_pods, self._waiting_pods = self._waiting_pods, []
        for pod, requests, on_scheduled in waiting_pods:
            if pod.is_removed:
                continue
            node = self._find_node(requests)
            if node is None:
                self._waiting_pods.append((pod, requests, on_scheduled))
                continue
            self._free_by_node[node] = self._free_by_node[node].minus(requests)
            self._empty_since_ms.pop(node, None)
            pod.node = node
            on_scheduled(pod, at_ms)
        self._order_nodes(at_ms)

    def _find_node(self, requests: NodeResources) -> int | None:
        """The first node with room for these requests; None if there is none."""
        return next((node for node, free in self._free_by_node.items() if requests.fits(free)), None)

    def _order_nodes(self, at_ms: int) -> None:
        """Order as many nodes as the pods that wait need beyond those that are ordered already."""
        waiting_requests = [requests for pod, requests, _ in self._waiting_pods if not pod.is_removed]
        needed_nodes = _count_needed_nodes(waiting_requests, self._capacity)
        possible_nodes = self._model.max_nodes - self.count
        while self._ordered_nodes < min(needed_nodes, possible_nodes):
            self._ordered_nodes += 1
            ready_ms = at_ms + self._model.provisioning.draw_ms(self._delay_random)
            self._event_queue.add(ready_ms, EventPriority.POD, self._add_provisioned_node)

    def _add_provisioned_node(self, at_ms: int) -> None:
        """Add a node that was ordered, and place waiting pods on it."""
        self._ordered_nodes -= 1
        self._begin_idle_time(self._add_node(), at_ms)
        self._place_waiting_pods(at_ms)

    def _remove(self, node: int, at_ms: int) -> None:
        """Remove a node that has been empty since `idle_ms` ago, unless there are no more nodes than at the start."""
        empty_since_ms = self._empty_since_ms.get(node)
        if (
            empty_since_ms is not None
            and at_ms - empty_since_ms >= self._model.idle_ms
            and self.count > self._model.nodes
        ):
            del self._free_by_node[node]
            del self._empty_since_ms[node]


def _count_needed_nodes(pod_requests: list[NodeResources], capacity: NodeResources) -> int:
    """How many empty nodes hold these pods, each placed on the first node with room."""
    free_resources: list[NodeResources] = []
    for requests in pod_requests:
        for index, free in enumerate(free_resources):
            if requests.fits(free):
                free_resources[index] = free.minus(requests)
                break
        else:
            free_resources.append(capacity.minus(requests))
    return len(free_resources)
