"""Stores the two latest points of each node and container in memory, and computes their usage.

A point is the CPU time and memory at one instant. `scraping` stores the points of each scrape; `kubelet_usage` reads
usages. Example: CPU times of 10 s and 13 s, measured 15 s apart, are a usage of 0.2 cores. Rules:

1. CPU usage is the increase of the CPU time between the two points, by the time between them; memory is that of the
   later point. A point that is not newer than the last one replaces nothing.
2. A container that was started again between two points has no usage until the next point, unless rule 3 applies.
3. A container that runs for at least FRESH_MIN_NS, and for less than the resolution, has the usage since its start, so
   that new pods have metrics after one scrape.
4. A pod has usage once all its containers have one, with the time and the window of the one that was measured first.
5. The points of a node that could not be scraped stay, and are dropped once they are older than STALE_RESOLUTIONS
   resolutions: one lost scrape takes no metrics away.

Memory is bounded by what the nodes report: two points for each container of the latest scrapes.

Source: metrics-server v0.9 (its storage). Differs: rule 5; metrics-server drops the pods of a node at the first scrape
that fails. A pod whose CPU time has decreased is left out, where metrics-server serves it without containers and time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from podscaler.adapter.resource.kubelet_points import NodePoints, PodKey, UsagePoint
from podscaler.base.clock import NANOSECONDS

FRESH_MIN_NS: Final = 10 * NANOSECONDS
STALE_RESOLUTIONS: Final = 3

Points = Mapping[str, UsagePoint]
"""The points of a pod's containers, by container name."""


@dataclass(frozen=True, slots=True)
class MeasuredUsage:
    """Usage over a window that ends at `at_ns`; CPU in nanocores (10^9 = one core)."""

    cpu_nanocores: int
    memory_bytes: int
    at_ns: int
    window_ns: int


@dataclass(frozen=True, slots=True)
class _LatestPoints:
    """The latest points of a node's pods and of the node, and those at which their usage starts.

    Attributes:
        stored_ns: the time of the scrape.
        last: the points of that scrape.
        starts: the points before, or made-up ones at the start of a container (rule 3).
    """

    stored_ns: int
    last: NodePoints
    starts: NodePoints


class UsageStorage:
    """The two latest points of each node and container of the cluster.

    Args:
        resolution_ns: the time between two scrapes.
    """

    def __init__(self, resolution_ns: int) -> None:
        self._resolution_ns = resolution_ns
        self._nodes: dict[str, _LatestPoints] = {}
        self._node_by_pod: dict[PodKey, str] = {}

    def store(self, node: str, points: NodePoints, now_ns: int) -> None:
        """Add the points that a node's kubelet reported at this time."""
        earlier = self._nodes.get(node, _LatestPoints(0, NodePoints(), NodePoints()))
        starts = NodePoints(
            _start_point(points.node, earlier.last.node, earlier.starts.node),
            {key: self._start_points_of_pod(key, containers, earlier) for key, containers in points.pods.items()},
        )
        self._remove_pods(node, keep=points.pods.keys())
        self._nodes[node] = _LatestPoints(now_ns, points, starts)
        self._node_by_pod.update(dict.fromkeys(points.pods, node))

    def drop_stale(self, now_ns: int, nodes: Iterable[str]) -> None:
        """Drop the nodes that are not in `nodes`, and those whose latest scrape is too old."""
        existing_nodes, oldest_ns = set(nodes), now_ns - STALE_RESOLUTIONS * self._resolution_ns
        for node in [
            name for name, stored in self._nodes.items() if name not in existing_nodes or stored.stored_ns < oldest_ns
        ]:
            self._remove_pods(node, keep=())
            del self._nodes[node]

    def find_node(self, name: str) -> MeasuredUsage | None:
        """The usage of a node; None if it is not known."""
        stored = self._nodes.get(name)
        return _usage(stored.last.node, stored.starts.node) if stored is not None else None

    def find_pod(self, namespace: str, name: str) -> dict[str, MeasuredUsage] | None:
        """The usage of a pod's containers, in the order of their names; None if it is not known of all."""
        key = (namespace, name)
        node = self._node_by_pod.get(key)
        if node is None:
            return None
        stored, usages = self._nodes[node], {}
        starts = stored.starts.pods.get(key, {})
        for container, point in sorted(stored.last.pods[key].items()):
            usage = _usage(point, starts.get(container))
            if usage is None:
                return None
            usages[container] = usage
        return usages

    def __len__(self) -> int:
        """The number of pods."""
        return len(self._node_by_pod)

    def _remove_pods(self, node: str, *, keep: Iterable[PodKey]) -> None:
        """Remove the pods of a node from the index, but for some, unless another node has them by now."""
        stored, kept_pods = self._nodes.get(node), set(keep)
        for key in stored.last.pods if stored is not None else ():
            if key not in kept_pods and self._node_by_pod.get(key) == node:
                del self._node_by_pod[key]

    def _start_points_of_pod(self, key: PodKey, points: Points, earlier: _LatestPoints) -> dict[str, UsagePoint]:
        """The point of each container from which its usage is computed (rules 1 to 3); without usage it has none."""
        last_points, earlier_starts = earlier.last.pods.get(key, {}), earlier.starts.pods.get(key, {})
        starts = {}
        for name, point in points.items():
            if FRESH_MIN_NS <= point.at_ns - point.started_ns < self._resolution_ns:
                starts[name] = replace(point, at_ns=point.started_ns, cpu_ns=0)
                continue
            last_point = last_points.get(name)
            is_same_run = last_point is not None and point.started_ns < last_point.at_ns
            start = _start_point(point, last_point, earlier_starts.get(name)) if is_same_run else None
            if start is not None:
                starts[name] = start
        return starts


def _start_point(point: UsagePoint | None, last: UsagePoint | None, previous: UsagePoint | None) -> UsagePoint | None:
    """The latest point that is older than a new one, the last or the one before it; None if there is none."""
    if point is None or last is None:
        return None
    if point.at_ns > last.at_ns:
        return last
    return previous if previous is not None and previous.at_ns < point.at_ns else None


def _usage(last: UsagePoint | None, start: UsagePoint | None) -> MeasuredUsage | None:
    """The usage between two points; None if one is missing, or the CPU time has decreased."""
    if last is None or start is None or last.cpu_ns < start.cpu_ns or last.started_ns < start.started_ns:
        return None
    window_ns = last.at_ns - start.at_ns  # positive, see `_start_point`
    nanocores = (last.cpu_ns - start.cpu_ns) * NANOSECONDS // window_ns
    return MeasuredUsage(nanocores, last.memory_bytes, last.at_ns, window_ns)
