"""Requests the resource metrics of all pods of a namespace with one list, if that costs less than single queries.

`podscaler.controller.assembly` wraps a `SharedMetricsSource` in a ListedMetricsSource. A tick is the time for which the
former stores responses; queries of other metrics are passed on. Rules:

1. Costs are counted in pods of responses; the request itself costs REQUEST_COST_PODS. A list is sent if it costs less
   than the single queries of a tick are expected to cost (a mean of the namespace's earlier ticks), or than those of
   this tick have cost so far. The other queries of the tick then get items of the same list.
2. Which pods of a list match a selector is found in the controller's cache of pods: not every metrics server fills in
   labels.
3. If a list fails, single queries are sent, so that users see the errors of those; the namespace is listed again in
   the first tick that begins after `pause_s`.

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

REQUEST_COST_PODS = 50
"""How many pods in a response cost as much as an empty request: CPU time of client, API server and metrics server."""
NAMESPACES_MAX = 16_384
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
class _NamespaceCosts:
    """The costs of the single queries about a namespace, in pods: of the current tick, and expected from earlier ones.

    Attributes:
        tick_began_s: the instant of the tick's first query, by the monotonic clock.
        queries, pods: the number of queries of the tick, and of all pods in their responses, also of those from a list.
        spent_cost: the cost of the tick's queries that were sent singly.
        expected_cost: the cost of a tick's queries if all are sent singly, a mean of the ticks before.
        paused_until_s: ticks that begin before this instant send no list, as one failed.
    """

    tick_began_s: float
    queries: int = 0
    pods: int = 0
    spent_cost: int = 0
    expected_cost: float = 0.0
    paused_until_s: float = 0.0

    def begin_tick(self, now_s: float) -> None:
        """Update the expected cost by the tick that is over, and begin the next."""
        latest_cost = REQUEST_COST_PODS * self.queries + self.pods
        self.expected_cost += LATEST_TICK_WEIGHT * (latest_cost - self.expected_cost)  # an exponential mean
        self.tick_began_s = now_s
        self.queries = self.pods = self.spent_cost = 0


@dataclass(frozen=True, slots=True)
class _IndexedList:
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
        pause_s: how long a namespace is not listed after a failed list (rule 3).
    """

    def __init__(self, source: MetricsSource, pods: KnownPods, clock: Clock, *, tick_s: float, pause_s: float) -> None:
        self._source = source
        self._pods = pods
        self._clock = clock
        self._tick_s = tick_s
        self._pause_s = pause_s
        # both by namespace; the lists in the order of their instants
        self._costs: LRU[str, _NamespaceCosts] = LRU(NAMESPACES_MAX)
        self._indexed_lists: OrderedDict[str, _IndexedList] = OrderedDict()

    async def query(self, query: MetricQuery[R]) -> R:
        """As the wrapped source, without pods that the cache of pods does not have. Raises StatusError."""
        if isinstance(query, ResourceMetricsQuery):
            response: Any = await self._find_in_list(query.namespace, query.selector)
            if response is not None:
                return response  # type: ignore[no-any-return]  # R is PodMetricsList; mypy does not narrow it
        return await self._source.query(query)

    async def _find_in_list(self, namespace: str, selector: Selector) -> PodMetricsList | None:
        """The items of the namespace's list that the selector matches; None if a single query is to be sent.

        Counts the query in the costs of the namespace.
        """
        names = self._pods.names(namespace, selector)
        costs = self._current_costs(namespace)
        costs.queries += 1
        costs.pods += len(names)
        if self._may_list(costs, namespace):
            usage = await self._list_namespace(namespace, costs)
            if usage is not None:
                return PodMetricsList(items=tuple([usage[name] for name in names if name in usage]))
        costs.spent_cost += REQUEST_COST_PODS + len(names)
        return None

    def _current_costs(self, namespace: str) -> _NamespaceCosts:
        """The costs of a namespace; a tick begins now if the last one is over."""
        now_s = self._clock.monotonic_s()
        costs = self._costs.find(namespace)
        if costs is None:
            costs = _NamespaceCosts(now_s)
            self._costs.put(namespace, costs)
        elif now_s - costs.tick_began_s >= self._tick_s:
            costs.begin_tick(now_s)
        return costs

    def _may_list(self, costs: _NamespaceCosts, namespace: str) -> bool:
        """Whether a list costs less than the single queries (rule 1), and none failed lately (rule 3)."""
        list_cost = REQUEST_COST_PODS + self._pods.count(namespace)
        is_cheaper = list_cost < max(costs.spent_cost, costs.expected_cost)
        return is_cheaper and costs.tick_began_s >= costs.paused_until_s

    async def _list_namespace(self, namespace: str, costs: _NamespaceCosts) -> dict[str, PodMetrics] | None:
        """All usage of the namespace by pod name; None if it cannot be listed, and lists are paused then."""
        try:
            pod_metrics = await self._source.query(ResourceMetricsQuery(namespace, selectors.EVERYTHING))
        except StatusError as error:
            log.debug("the pods of %s cannot be listed in metrics.k8s.io: %s", namespace, error)
            costs.paused_until_s = self._clock.monotonic_s() + self._pause_s
            return None
        indexed_list = self._indexed_lists.get(namespace)
        # within a tick the wrapped source returns the same object again, which is not indexed again
        if indexed_list is None or indexed_list.listed is not pod_metrics:
            indexed_list = self._add_index(namespace, pod_metrics)
        return indexed_list.by_name

    def _add_index(self, namespace: str, pod_metrics: PodMetricsList) -> _IndexedList:
        """Index a new list; drops the indexed lists of earlier ticks, of all namespaces."""
        now_s = self._clock.monotonic_s()
        while self._indexed_lists and next(iter(self._indexed_lists.values())).indexed_at_s <= now_s - self._tick_s:
            self._indexed_lists.popitem(last=False)
        by_name = {item.metadata.name: item for item in pod_metrics.items or ()}
        indexed_list = self._indexed_lists[namespace] = _IndexedList(now_s, pod_metrics, by_name)
        self._indexed_lists.move_to_end(namespace)
        return indexed_list
