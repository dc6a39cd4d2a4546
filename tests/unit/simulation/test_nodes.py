"""Room on simulated nodes: first fit, nodes on demand, and the end of idle ones."""

from random import Random

import pytest

from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import ClusterModel
from podscaler.simulation.world.event_queue import EventQueue
from podscaler.simulation.world.nodes import NodeResources, Nodes
from podscaler.simulation.world.pods import VirtualPod

GIB = 1 << 30
MODEL = ClusterModel(
    nodes=1, max_nodes=3, cpu_milli=1000, memory_bytes=GIB, provisioning=fixed(90_000), idle_ms=600_000
)


class Cluster:
    """Nodes with an event queue, and the instants at which pods got their node."""

    def __init__(self) -> None:
        self.event_queue = EventQueue()
        self.nodes = Nodes(MODEL, self.event_queue, "0")
        self.scheduled: dict[str, int] = {}
        self.pods: list[VirtualPod] = []

    def add(self, cpu_milli: int, at_ms: int = 0) -> VirtualPod:
        """A pod with this request."""
        pod = VirtualPod(f"p{len(self.pods)}", len(self.pods), at_ms, 0, Random(0))
        self.pods.append(pod)
        self.nodes.schedule(pod, NodeResources(cpu_milli, 0), self._on_scheduled, at_ms)
        return pod

    def run(self, until_ms: int) -> None:
        """All events up to that instant."""
        while self.event_queue.run_next(until_ms) is not None:
            pass

    def _on_scheduled(self, pod: VirtualPod, at_ms: int) -> None:
        self.scheduled[pod.name] = at_ms


def test_pods_share_a_node_while_there_is_room():
    """Two halves fit; the third pod waits for a node of its own."""
    cluster = Cluster()
    for _ in range(3):
        cluster.add(500)
    cluster.run(100_000)
    assert cluster.scheduled == {"p0": 0, "p1": 0, "p2": 90_000}


def test_one_node_is_ordered_for_all_that_fit_on_it():
    """Two waiting halves need one node, a third half a second one."""
    cluster = Cluster()
    cluster.add(1000)
    for _ in range(3):
        cluster.add(500)
    cluster.run(100_000)
    assert (cluster.nodes.count, set(cluster.scheduled)) == (3, {"p0", "p1", "p2", "p3"})


def test_there_are_no_more_nodes_than_allowed():
    """The fourth whole node's pod waits for ever."""
    cluster = Cluster()
    for _ in range(4):
        cluster.add(1000)
    cluster.run(10_000_000)
    assert (cluster.nodes.count, set(cluster.scheduled)) == (3, {"p0", "p1", "p2"})


def test_a_pod_that_is_gone_takes_no_room():
    """A pod that is removed while it waits gets no node."""
    cluster = Cluster()
    cluster.add(1000)
    cluster.add(1000).is_removed = True
    cluster.run(100_000)
    assert set(cluster.scheduled) == {"p0"}


def test_room_of_a_removed_pod_is_used_again():
    """The pod that waits gets it at once, before the ordered node is ready."""
    cluster = Cluster()
    cluster.add(1000)
    cluster.add(1000)
    cluster.nodes.release(0, NodeResources(1000, 0), 20_000)
    assert cluster.scheduled == {"p0": 0, "p1": 20_000}


def test_an_idle_node_is_removed_down_to_the_first_ones():
    """Ten minutes after its last pod; the nodes of the start stay."""
    cluster = Cluster()
    cluster.add(1000)
    cluster.add(1000)
    cluster.run(100_000)
    cluster.nodes.release(1, NodeResources(1000, 0), 200_000)
    cluster.run(799_999)
    assert cluster.nodes.count == 2
    cluster.run(800_000)
    assert cluster.nodes.count == 1


def test_a_pod_larger_than_a_node():
    """It would wait for ever, so the scenario is refused."""
    with pytest.raises(ValueError, match="pod p0 requests more than a whole node has"):
        Cluster().add(1001)
