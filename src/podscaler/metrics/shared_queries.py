"""Sends equal queries for metrics as one request, and reuses its response for a short time.

`podscaler.controller.assembly` wraps another MetricsSource in a SharedMetricsSource. Equal queries come from
autoscalers with the same target, from the cpu and memory metrics of one autoscaler, and from autoscalers of the same
queue. A query that is made while the response to an equal one is pending gets that response; so does a query that is
made within `fresh_s` of the request. A failure is shared while the request is pending, and not reused later.

Differs: kube-controller-manager sends each query by itself. Responses are at most `fresh_s` older here.
"""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NamedTuple

from podscaler.base.clock import Clock
from podscaler.kube.transport.single_flight import SingleFlight
from podscaler.metrics.queries import MetricQuery, MetricsSource, R


class _StoredResponse(NamedTuple):
    """A response, and when it was requested, by the monotonic clock."""

    requested_at_s: float
    response: Any


class SharedMetricsSource:
    """Wraps a MetricsSource: equal queries share one request, by the module's rules.

    Args:
        source: executes the queries.
        clock: for the age of responses.
        fresh_s: how old a response may be, in seconds since its request; 0 if no response is to be stored.
        without_slot: returns a context that is entered while a query waits for a response: the controller's returns
            the concurrency slot of the sync in the meantime.
    """

    def __init__(
        self,
        source: MetricsSource,
        clock: Clock,
        *,
        fresh_s: float = 0.0,
        without_slot: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._source = source
        self._clock = clock
        self._fresh_s = fresh_s
        self._without_slot = without_slot
        self._flights: SingleFlight[MetricQuery[Any], Any] = SingleFlight()
        self._responses: OrderedDict[MetricQuery[Any], _StoredResponse] = OrderedDict()  # the latest one last

    async def query(self, query: MetricQuery[R]) -> R:
        """As the wrapped source, or an equal query's response. Raises StatusError."""
        stored = self._responses.get(query)
        if stored is not None and self._clock.monotonic_s() - stored.requested_at_s < self._fresh_s:
            response: R = stored.response
        else:
            async with self._without_slot():
                response = await self._flights.run(query, lambda: self._request(query))
        return response

    async def _request(self, query: MetricQuery[R]) -> R:
        """Query the wrapped source, and store its response. Raises StatusError."""
        requested_at_s = self._clock.monotonic_s()
        response = await self._source.query(query)
        if self._fresh_s > 0:
            self._responses[query] = _StoredResponse(requested_at_s, response)
            self._responses.move_to_end(query)
            self._drop_stale()
        return response

    def _drop_stale(self) -> None:
        """Drop stored responses that are too old; a response behind a slower one may stay a little longer."""
        oldest_s = self._clock.monotonic_s() - self._fresh_s
        while self._responses and next(iter(self._responses.values())).requested_at_s <= oldest_s:
            self._responses.popitem(last=False)
