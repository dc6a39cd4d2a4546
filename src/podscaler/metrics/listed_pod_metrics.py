"""Requests the resource metrics of all pods of a namespace with one list, if that costs less than single queries.

A tick is the time for which responses are reused (`ControllerSettings.tick_s`). ListedMetricsSource wraps a
`SharedMetricsSource`, which stores responses for a tick; other queries are passed on. Rules:

1. In each namespace and tick the costs are compared: a request costs as much as REQUEST_PODS pods in a response. If in
   the ticks before a list would have cost less than the single queries, the first query sends a list; otherwise a list
   is sent as soon as the tick's single queries have cost as much.
2. The controller's cache of pods tells which pods of a list match a selector: not every metrics server fills in labels.
3. If a list fails, single queries are sent, and the namespace is not listed for `pause_s`: users see the errors of
   single queries.

Differs: kube-controller-manager sends a query for each autoscaler and metric. A pod that the metrics server has, but
the cache of pods has not (yet, or any more), is not in the response.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.metrics import PodMetrics, PodMetricsList
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.base.lru import LRU
from podscaler.metrics.queries import MetricQuery, MetricsSource, R, ResourceMetricsQuery

log = logging.getLogger(__name__)

REQUEST_PODS = 50
"""How many pods in a response cost as much as an empty request: CPU time of client, API server and metrics server."""
NAMESPACES = 16_384
"""The number of namespaces whose costs are remembered."""
LATEST_TICK_WEIGHT = 0.5
"""The weight of the latest tick in the expected cost."""


@dataclass(frozen=True, slots=True)
class KnownPods:
    """Functions that read the controller's cache of pods.

    Attributes:
        count: the number of pods of a namespace.
        names: the names of the pods of a namespace that a selector matches.
    """

    count: Callable[[str], int]
    names: Callable[[str, Selector], Sequence[str]]


@dataclass(slots=True)
class _Tick:
    """The queries about a namespace in this tick, and the cost expected from the ticks before.

    Attributes:
        began_s: the instant of the first query, by the monotonic clock.
        queries, pods: the number of queries, and of all pods in their responses.
        cost: the cost of the queries that were sent singly, in pods.
        expected_cost: the cost of a tick's queries if all are sent singly, a mean of the ticks before.
        paused_until_s: until when no list is sent, as one failed.
    """

    began_s: float
    queries: int = 0
    pods: int = 0
    cost: int = 0
    expected_cost: float = 0.0
    paused_until_s: float = 0.0

    def renew(self, now_s: float) -> None:
        """Update the expected cost by the tick that is over, and begin the next."""
        latest_cost = REQUEST_PODS * self.queries + self.pods
        self.expected_cost += LATEST_TICK_WEIGHT * (latest_cost - self.expected_cost)  # an exponential mean
        self.began_s = now_s
        self.queries = self.pods = self.cost = 0


@dataclass(frozen=True, slots=True)
class _Index:
    """A list of a namespace: when it was indexed (monotonic clock), the response, and its items by pod name."""

    indexed_at_s: float
    listed: PodMetricsList
    by_name: dict[str, PodMetrics]


class ListedMetricsSource:
    """Wraps a MetricsSource: one list of a namespace in place of many queries, by the module's rules.

    Args:
        source: executes the queries, and stores responses for `tick_s`.
        pods: the pods of the cluster.
        clock: for ticks.
        tick_s: the length of a tick.
        pause_s: the delay before a failed list is tried again.
    """

    def __init__(self, source: MetricsSource, pods: KnownPods, clock: Clock, *, tick_s: float, pause_s: float) -> None:
        self._source = source
        self._pods = pods
        self._clock = clock
        self._tick_s = tick_s
        self._pause_s = pause_s
        self._ticks: LRU[str, _Tick] = LRU(NAMESPACES)
        self._indexes: OrderedDict[str, _Index] = OrderedDict()

    async def query(self, query: MetricQuery[R]) -> R:
        """As the wrapped source. Raises StatusError."""
        if isinstance(query, ResourceMetricsQuery):
            response: Any = await self._from_list(query.namespace, query.selector)
            if response is not None:
                return response  # type: ignore[no-any-return]  # R is PodMetricsList; mypy does not narrow it
        return await self._source.query(query)

    async def _from_list(self, namespace: str, selector: Selector) -> PodMetricsList | None:
        """The items of the namespace's list that the selector matches; None if a single query is to be sent."""
        names = self._pods.names(namespace, selector)
        tick = self._tick(namespace)
        tick.queries += 1
        tick.pods += len(names)
        if self._is_list_cheaper(tick, namespace):
            usage = await self._list_namespace(namespace, tick)
            if usage is not None:
                return PodMetricsList(items=tuple([usage[name] for name in names if name in usage]))
        tick.cost += REQUEST_PODS + len(names)
        return None

    def _tick(self, namespace: str) -> _Tick:
        """The current tick of a namespace, begun now if the last one is over."""
        now_s = self._clock.monotonic_s()
        tick = self._ticks.find(namespace)
        if tick is None:
            tick = _Tick(now_s)
            self._ticks.put(namespace, tick)
        elif now_s - tick.began_s >= self._tick_s:
            tick.renew(now_s)
        return tick

    def _is_list_cheaper(self, tick: _Tick, namespace: str) -> bool:
        list_cost = REQUEST_PODS + self._pods.count(namespace)
        return max(tick.cost, tick.expected_cost) > list_cost and tick.began_s >= tick.paused_until_s

    async def _list_namespace(self, namespace: str, tick: _Tick) -> dict[str, PodMetrics] | None:
        """All usage of the namespace by pod name; None if it cannot be listed."""
        try:
            pod_metrics = await self._source.query(ResourceMetricsQuery(namespace, selectors.EVERYTHING))
        except StatusError as error:
            log.debug("the pods of %s cannot be listed in metrics.k8s.io: %s", namespace, error)
            tick.paused_until_s = self._clock.monotonic_s() + self._pause_s
            return None
        index = self._indexes.get(namespace)
        if index is None or index.listed is not pod_metrics:
            index = self._index(namespace, pod_metrics)
        return index.by_name

    def _index(self, namespace: str, pod_metrics: PodMetricsList) -> _Index:
        """The index of a new list; drops the indexes of earlier ticks, of all namespaces."""
        now_s = self._clock.monotonic_s()
        while self._indexes and next(iter(self._indexes.values())).indexed_at_s <= now_s - self._tick_s:
            self._indexes.popitem(last=False)
        index = _Index(now_s, pod_metrics, {item.metadata.name: item for item in pod_metrics.items or ()})
        self._indexes[namespace] = index
        self._indexes.move_to_end(namespace)
        return index
