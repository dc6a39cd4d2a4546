"""Sends equal queries within a tick as one request.

Wraps another MetricsSource. Autoscalers with the same target, the cpu and memory metrics of one autoscaler, and
autoscalers of the same queue make equal queries within a moment. A query that is made while the response to an equal
one is pending gets that response; so does one that is made while the response is fresh, counted from when it was
requested. Failures are shared while the request is pending, and never kept.

Differs: upstream sends each query by itself. The responses are the same, and at most `fresh_s` older.
"""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from podscaler.base.clock import Clock
from podscaler.kube.transport.single_flight import SingleFlight
from podscaler.metrics.queries import MetricQuery, MetricsSource, R


class SharedMetricsSource:
    """Wraps a MetricsSource: equal queries within a tick share one request.

    Args:
        source: executes the queries.
        clock: for the age of responses.
        fresh_s: how old a response may be, in seconds since its request; 0 keeps none.
        away: the context to wait for a response in.
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
        self._flights: SingleFlight[MetricQuery[Any], Any] = SingleFlight()
        self._kept: OrderedDict[MetricQuery[Any], tuple[float, Any]] = OrderedDict()

    async def query(self, query: MetricQuery[R]) -> R:
        """As the wrapped source, or an equal query's response. Raises StatusError."""
        kept = self._kept.get(query)
        if kept is not None and self._clock.monotonic_s() - kept[0] < self._fresh_s:
            shared: R = kept[1]
        else:
            async with self._away():
                shared = await self._flights.run(query, lambda: self._request(query))
        return shared

    async def _request(self, query: MetricQuery[R]) -> R:
        requested_at_s = self._clock.monotonic_s()
        response = await self._source.query(query)
        if self._fresh_s > 0:
            self._kept[query] = (requested_at_s, response)
            self._kept.move_to_end(query)
            self._drop_stale()
        return response

    def _drop_stale(self) -> None:
        """Drop responses that are no longer fresh; one after a slow response may stay a little longer."""
        oldest_s = self._clock.monotonic_s() - self._fresh_s
        while self._kept and next(iter(self._kept.values()))[0] <= oldest_s:
            self._kept.popitem(last=False)
