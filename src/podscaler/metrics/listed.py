"""The resource metrics of a namespace's pods listed once for all who ask within a tick, where that costs less.

Goes around a `SharedMetricsSource`, which keeps answers for a tick; metrics of other kinds are passed on. Rules:

1. Whether lists are made is decided for each namespace and tick: a request costs as much as REQUEST_PODS pods in an
   answer. If the ticks before suggest that a list costs less than single questions, the first question makes one; if
   not, one is made as soon as the tick's single questions have cost as much.
2. What a selector picks out of a list is told by the pods that we know, never by labels in the answer, which not every
   metrics server fills in.
3. Where a list fails, everybody asks for himself, and the namespace is not listed for `pause_s`: failures read as they
   would without lists.

Differs: upstream asks once for each autoscaler and metric. A pod that the metrics server knows and our watch of pods
does not (yet, or any more) is not in the answer.
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
"""How many pods in an answer cost as much as a request without any (client, API server and metrics server together)."""
NAMESPACES = 16_384
"""Of how many namespaces it is remembered what was asked."""
MEMORY = 0.5
"""How much of what was expected the latest tick replaces."""


@dataclass(frozen=True, slots=True)
class KnownPods:
    """What is known of the pods of a cluster.

    Attributes:
        count: how many a namespace has.
        names: of those of a namespace that a selector picks.
    """

    count: Callable[[str], int]
    names: Callable[[str, Selector], Sequence[str]]


@dataclass(slots=True)
class _Tick:
    """What was asked about a namespace in this tick, and what the ticks before suggest.

    Attributes:
        began_s: when its first question came.
        questions, pods: how many there were, about how many pods in all.
        cost: of those that were asked singly, in pods.
        expected_cost: what single questions would cost, going by the ticks before.
        paused_until_s: no list before.
    """

    began_s: float
    questions: int = 0
    pods: int = 0
    cost: int = 0
    expected_cost: float = 0.0
    paused_until_s: float = 0.0

    def renew(self, now_s: float) -> None:
        """Learn from the tick that is over, and begin the next."""
        latest = REQUEST_PODS * self.questions + self.pods
        self.expected_cost += MEMORY * (latest - self.expected_cost)
        self.began_s = now_s
        self.questions = self.pods = self.cost = 0


@dataclass(frozen=True, slots=True)
class _Index:
    """A list by the names of its pods, and when it was made."""

    made_s: float
    listed: PodMetricsList
    by_name: dict[str, PodMetrics]


class ListedMetricsSource:
    """See the module's rules.

    Args:
        source: who is asked, and keeps answers for `tick_s`.
        pods: what is known of pods.
        clock: for ticks.
        tick_s: how long a tick is.
        pause_s: how long a failed list is not tried again.
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
        tick.questions += 1
        tick.pods += len(names)
        if self._pays(tick, namespace):
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

    def _pays(self, tick: _Tick, namespace: str) -> bool:
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
            index = self._made(namespace, listed)
        return index.by_name

    def _made(self, namespace: str, listed: PodMetricsList) -> _Index:
        """The list by names; those of earlier ticks, of any namespace, are dropped."""
        now_s = self._clock.monotonic_s()
        while self._indexes and next(iter(self._indexes.values())).made_s <= now_s - self._tick_s:
            self._indexes.popitem(last=False)
        index = _Index(now_s, listed, {item.metadata.name: item for item in listed.items or ()})
        self._indexes[namespace] = index
        self._indexes.move_to_end(namespace)
        return index
