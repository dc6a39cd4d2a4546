"""Serves resource metrics from one list of all pods of a namespace for each tick, where that costs less.

Wraps a `SharedMetricsSource`, which keeps responses for a tick; other queries are passed on. Rules:

1. Lists are decided on for each namespace and tick: a request costs as much as REQUEST_PODS pods in a response. If by
   the ticks before a list costs less than single queries, the first query makes one; otherwise it is made as soon as
   the tick's single queries have cost as much.
2. The pods of a selector are those of our watch: not every metrics server fills in labels in its response.
3. Where a list fails, single queries are sent, and the namespace is not listed for `pause_s`: users see the errors of
   single queries.

Differs: upstream sends a query for each autoscaler and metric. A pod that the metrics server has and our watch of pods
has not (yet, or any more) is not in the response.
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
"""The number of pods in a response that cost as much as a request without any, on all three sides together."""
NAMESPACES = 16_384
"""The number of namespaces whose costs are kept."""
MEMORY = 0.5
"""The weight of the latest tick in the expected cost."""


@dataclass(frozen=True, slots=True)
class KnownPods:
    """The pods of a cluster, by our watch.

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
        began_s: the instant of its first query.
        queries, pods: the number of queries, and of their pods in all.
        cost: of the queries that were sent singly, in pods.
        expected_cost: of single queries, by the ticks before.
        paused_until_s: there is no list before.
    """

    began_s: float
    queries: int = 0
    pods: int = 0
    cost: int = 0
    expected_cost: float = 0.0
    paused_until_s: float = 0.0

    def renew(self, now_s: float) -> None:
        """Update the expected cost by the tick that is over, and begin the next."""
        latest = REQUEST_PODS * self.queries + self.pods
        self.expected_cost += MEMORY * (latest - self.expected_cost)
        self.began_s = now_s
        self.queries = self.pods = self.cost = 0


@dataclass(frozen=True, slots=True)
class _Index:
    """A list, by the names of its pods, and its instant."""

    made_s: float
    listed: PodMetricsList
    by_name: dict[str, PodMetrics]


class ListedMetricsSource:
    """Wraps a MetricsSource: one list of a namespace in place of many queries, by the module's rules.

    Args:
        source: executes the queries, and keeps responses for `tick_s`.
        pods: those of our watch.
        clock: for ticks.
        tick_s: the length of a tick.
        pause_s: the delay before a failed list is tried again.
    """

    def __init__(self, source: MetricsSource, pods: KnownPods, clock: Clock, *, tick_s: float, pause_s: float) -> None:
        self._source = source
        self._known = pods
        self._clock = clock
        self._tick_s = tick_s
        self._pause_s = pause_s
        self._ticks: LRU[str, _Tick] = LRU(NAMESPACES)
        self._indexes: OrderedDict[str, _Index] = OrderedDict()

    async def query(self, query: MetricQuery[R]) -> R:
        """As the wrapped source. Raises StatusError."""
        if isinstance(query, ResourceMetricsQuery):
            picked: Any = await self._pick(query.namespace, query.selector)
            if picked is not None:
                return picked  # type: ignore[no-any-return]  # R is PodMetricsList; mypy does not narrow it
        return await self._source.query(query)

    async def _pick(self, namespace: str, selector: Selector) -> PodMetricsList | None:
        """What the selector matches of the namespace's list; None where a request of its own is to be made."""
        names = self._known.names(namespace, selector)
        tick = self._tick(namespace)
        tick.queries += 1
        tick.pods += len(names)
        if self._is_list_cheaper(tick, namespace):
            usage = await self._list(namespace, tick)
            if usage is not None:
                return PodMetricsList(items=tuple([usage[name] for name in names if name in usage]))
        tick.cost += REQUEST_PODS + len(names)
        return None

    def _tick(self, namespace: str) -> _Tick:
        now_s = self._clock.monotonic_s()
        tick = self._ticks.find(namespace)
        if tick is None:
            tick = _Tick(now_s)
            self._ticks.put(namespace, tick)
        elif now_s - tick.began_s >= self._tick_s:
            tick.renew(now_s)
        return tick

    def _is_list_cheaper(self, tick: _Tick, namespace: str) -> bool:
        list_cost = REQUEST_PODS + self._known.count(namespace)
        return max(tick.cost, tick.expected_cost) > list_cost and tick.began_s >= tick.paused_until_s

    async def _list(self, namespace: str, tick: _Tick) -> dict[str, PodMetrics] | None:
        """All usage of the namespace by pod name; None where it cannot be listed."""
        try:
            listed = await self._source.query(ResourceMetricsQuery(namespace, selectors.EVERYTHING))
        except StatusError as error:
            log.debug("the pods of %s cannot be listed in metrics.k8s.io: %s", namespace, error)
            tick.paused_until_s = self._clock.monotonic_s() + self._pause_s
            return None
        index = self._indexes.get(namespace)
        if index is None or index.listed is not listed:
            index = self._index(namespace, listed)
        return index.by_name

    def _index(self, namespace: str, listed: PodMetricsList) -> _Index:
        """The index of a new list; drops those of earlier ticks, of any namespace."""
        now_s = self._clock.monotonic_s()
        while self._indexes and next(iter(self._indexes.values())).made_s <= now_s - self._tick_s:
            self._indexes.popitem(last=False)
        index = _Index(now_s, listed, {item.metadata.name: item for item in listed.items or ()})
        self._indexes[namespace] = index
        self._indexes.move_to_end(namespace)
        return index
