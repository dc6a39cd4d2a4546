"""Equal queries within a tick are one request.

Goes around another MetricsSource. Autoscalers with the same target, the cpu and memory metrics of one autoscaler, and
autoscalers that look at the same queue ask the same question within a moment. Who asks while the answer is on its way
gets that answer, and who asks while it is fresh (by the instant at which it was asked for) gets it too. Failures are
shared while the request lasts, and never kept.

Differs: upstream sends each query by itself. The answers are the same, and at most `fresh_s` older.
"""

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import ExternalMetricValueList, MetricValueList, PodMetricsList
from podscaler.base.clock import Clock
from podscaler.kube.transport.sharing import SingleFlight
from podscaler.metrics.source import MetricsSource

Query = tuple[str, ...]


class SharedMetricsSource:
    """See the module.

    Args:
        source: who is asked.
        clock: for the age of answers.
        fresh_s: how old an answer may be, from when it was asked for; 0 keeps none.
        away: what to be in while waiting for an answer.
    """

    def __init__(
        self,
        source: MetricsSource,
        clock: Clock,
        *,
        fresh_s: float = 0.0,
        away: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._source = source
        self._clock = clock
        self._fresh_s = fresh_s
        self._away = away
        self._flights: SingleFlight[Query, Any] = SingleFlight()
        self._kept: OrderedDict[Query, tuple[float, Any]] = OrderedDict()

    async def resource_metrics(self, namespace: str, selector: Selector) -> PodMetricsList:
        """As the source. Raises StatusError."""
        key = ("resource", namespace, str(selector))
        found: PodMetricsList = await self._share(key, lambda: self._source.resource_metrics(namespace, selector))
        return found

    async def pods_metric(
        self, namespace: str, metric: str, *, selector: Selector, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        key = ("pods", namespace, metric, str(selector), str(metric_selector))
        found: MetricValueList = await self._share(
            key,
            lambda: self._source.pods_metric(namespace, metric, selector=selector, metric_selector=metric_selector),
        )
        return found

    async def object_metric(
        self, namespace: str, metric: str, *, described: CrossVersionObjectReference, metric_selector: Selector
    ) -> MetricValueList:
        """As the source. Raises StatusError."""
        named = (described.api_version, described.kind, described.name)
        found: MetricValueList = await self._share(
            ("object", namespace, metric, *named, str(metric_selector)),
            lambda: self._source.object_metric(namespace, metric, described=described, metric_selector=metric_selector),
        )
        return found

    async def external_metric(
        self, namespace: str, metric: str, *, metric_selector: Selector
    ) -> ExternalMetricValueList:
        """As the source. Raises StatusError."""
        found: ExternalMetricValueList = await self._share(
            ("external", namespace, metric, str(metric_selector)),
            lambda: self._source.external_metric(namespace, metric, metric_selector=metric_selector),
        )
        return found

    async def _share(self, key: Query, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic_s() - kept[0] < self._fresh_s:
            return kept[1]
        async with self._away():
            return await self._flights.run(key, lambda: self._ask(key, ask))

    async def _ask(self, key: Query, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        asked_at_s = self._clock.monotonic_s()
        answer = await ask()
        if self._fresh_s > 0:
            self._kept[key] = (asked_at_s, answer)
            self._kept.move_to_end(key)
            self._forget_stale()
        return answer

    def _forget_stale(self) -> None:
        """Drop what nobody will be given any more; slow answers may keep some of it for a little longer."""
        oldest_s = self._clock.monotonic_s() - self._fresh_s
        while self._kept and next(iter(self._kept.values()))[0] <= oldest_s:
            self._kept.popitem(last=False)
