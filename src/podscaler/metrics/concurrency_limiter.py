"""Limits the number of concurrent requests to each of the three metrics APIs.

`podscaler.controller.assembly` wraps the MetricsSource that makes the requests in a LimitedMetricsSource. It has one
limiter for each API, so that a slow or dead API delays no queries of another. The limit is LIMIT_MIN while responses
are fast. It rises with the latency to LIMIT_MAX at most, so that RATE_PER_S responses a second are possible. Rules:

1. On a busy machine concurrent requests slow each other down. So the limit rises step by step, and only while the
   fastest response of each step takes at most SLOWDOWN_RATIO times as long as that with LIMIT_MIN; otherwise it is
   LIMIT_MIN again, and is raised no sooner than RETRY_S later. Only requests that reach the limit are measured. A step
   in which all responses are slow lasts at least SLOWDOWN_MIN_S, so that a short delay changes nothing.
2. Requests above the limit wait in the order of their arrival.
3. A request without a response after COUNTED_S does not count any more, up to LIMIT_MAX in all: queries that hang do
   not block others of the same API.

The limit is low because an API server keeps only 25 idle connections to a metrics server that speaks HTTP/1.1
(client-go's limit for each host); each further request opens a connection, with a TLS handshake that costs more than
the request. Without the limit a delay of a second made all later responses slow.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podscaler.base.clock import Clock
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery, MetricsSource, R, ResourceMetricsQuery

LIMIT_MIN = 12
"""The lowest limit: two APIs behind one server stay below the 25 connections."""
LIMIT_MAX = 72
"""The highest limit: 5,000 autoscalers with a query of 200 ms each need 67 for a period of 15 s.

Three slow APIs leave some of the pool's 256 connections for other requests.
"""
RATE_PER_S = 1000.0
"""The responses a second for which the limit is computed: latency times rate."""
COUNTED_S = 1.0
"""How long a request without a response counts (rule 3)."""
RETRY_S = 10.0
"""How long the limit stays LIMIT_MIN after raising it made responses slower (rule 1)."""
STEP_RESPONSES = 24
"""The number of measured responses after which the limit is computed again."""
SLOWDOWN_RATIO = 1.5
"""How many times longer than with LIMIT_MIN a response may take before the limit is LIMIT_MIN again."""
SLOWDOWN_MIN_S = 2.0
"""A slowdown that is shorter than this is ignored (rule 1)."""


class ConcurrencyLimiter:
    """Limits the concurrent requests to one API, by the module's rules.

    Args:
        clock: measures latencies.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limit = LIMIT_MIN
        # by request: when it began (monotonic clock), and whether it reached the limit
        self._begun: dict[object, tuple[float, bool]] = {}
        self._counted_requests: set[object] = set()  # those of `_begun` that still count (rule 3)
        self._waiters: dict[object, asyncio.Future[None]] = {}
        self._release_task: asyncio.Task[None] | None = None
        self._step_began_s = self._retry_at_s = clock.monotonic_s()
        # of this step: the number of measured responses, and the latency of the fastest one
        self._responses = 0
        self._fastest_s = float("inf")
        self._fastest_at_min_s = float("inf")  # the fastest response with LIMIT_MIN, or a faster one since

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """The context of a request; entering waits while the limit is reached. A failed request is not measured."""
        request = object()
        if self._waiters or not self._has_free_slot:
            await self._wait_for_slot(request)
        else:
            self._enter(request)
        began_s, reached_limit = self._begun[request]
        try:
            yield
            if reached_limit and began_s >= self._step_began_s:
                self._measure(self._clock.monotonic_s(), began_s)
        finally:
            self._leave(request)

    @property
    def _has_free_slot(self) -> bool:
        """Whether a request may begin: below the limit, and below LIMIT_MAX with those that no longer count."""
        return len(self._counted_requests) < self._limit and len(self._begun) < LIMIT_MAX

    def _enter(self, request: object) -> None:
        """Count a request that begins now; it is measured if it reaches the limit."""
        self._counted_requests.add(request)
        self._begun[request] = self._clock.monotonic_s(), len(self._counted_requests) >= self._limit

    async def _wait_for_slot(self, request: object) -> None:
        """Return once the request has a slot."""
        waiter = self._waiters[request] = asyncio.get_running_loop().create_future()
        if self._release_task is None or self._release_task.done():
            self._release_task = asyncio.get_running_loop().create_task(self._release_slow())
        try:
            await waiter
        except asyncio.CancelledError:
            self._waiters.pop(request, None)
            self._leave(request)  # it may have been given a slot just before
            raise

    def _leave(self, request: object) -> None:
        """Release the slot of a request, if it has one, to a waiting request."""
        self._begun.pop(request, None)
        self._counted_requests.discard(request)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        """Grant free slots to waiting requests."""
        while self._waiters and self._has_free_slot:
            request = next(iter(self._waiters))
            waiter = self._waiters.pop(request)
            if not waiter.done():
                self._enter(request)
                waiter.set_result(None)

    async def _release_slow(self) -> None:
        """While requests wait, stop counting those that have been without a response for COUNTED_S (rule 3)."""
        while self._waiters:
            await self._clock.sleep(COUNTED_S)
            oldest_s = self._clock.monotonic_s() - COUNTED_S
            slow_requests = [request for request, (began_s, _) in self._begun.items() if began_s <= oldest_s]
            self._counted_requests.difference_update(slow_requests)
            self._admit_waiting()

    def _measure(self, now_s: float, began_s: float) -> None:
        """Measure a request that began in this step and ended now; the step ends after STEP_RESPONSES of them."""
        self._fastest_s = min(self._fastest_s, now_s - began_s)
        self._responses += 1
        if self._responses >= STEP_RESPONSES and not (
            self._is_slowed_down and now_s - self._step_began_s < SLOWDOWN_MIN_S
        ):
            self._adjust_limit(now_s)
            self._step_began_s, self._responses, self._fastest_s = now_s, 0, float("inf")

    @property
    def _is_slowed_down(self) -> bool:
        """Whether the limit is raised, and every response of the step took longer than with LIMIT_MIN."""
        return self._limit > LIMIT_MIN and self._fastest_s > self._fastest_at_min_s * SLOWDOWN_RATIO

    def _adjust_limit(self, now_s: float) -> None:
        """Raise the limit, twofold at most, or lower it to LIMIT_MIN, by the fastest response of the step that ends."""
        if self._limit == LIMIT_MIN:
            self._fastest_at_min_s = self._fastest_s
        elif self._is_slowed_down:
            self._limit, self._retry_at_s = LIMIT_MIN, now_s + RETRY_S
        if now_s >= self._retry_at_s:
            # a faster response with a raised limit counts too: the API has become faster
            self._fastest_at_min_s = min(self._fastest_at_min_s, self._fastest_s)
            needed = round(self._fastest_at_min_s * RATE_PER_S)
            self._limit = max(LIMIT_MIN, min(2 * self._limit, needed, LIMIT_MAX))


class LimitedMetricsSource:
    """Wraps the MetricsSource that makes the requests; a query waits while the limit of its API is reached.

    Args:
        source: executes the queries.
        clock: measures latencies.
    """

    def __init__(self, source: MetricsSource, clock: Clock) -> None:
        self._source = source
        self._resource = ConcurrencyLimiter(clock)
        self._custom = ConcurrencyLimiter(clock)
        self._external = ConcurrencyLimiter(clock)

    async def query(self, query: MetricQuery[R]) -> R:
        """As the wrapped source. Raises StatusError."""
        match query:
            case ResourceMetricsQuery():
                limiter = self._resource
            case ExternalMetricQuery():
                limiter = self._external
            case _:  # PodsMetricQuery and ObjectMetricQuery
                limiter = self._custom
        async with limiter.slot():
            return await self._source.query(query)
