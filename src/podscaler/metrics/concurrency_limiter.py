"""Limits how many requests each of the three metrics APIs handles at once.

A LimitedMetricsSource has one limiter for each API, so that a slow or dead API delays no queries of another. Few are
allowed while answers are fast, and more if the API takes its
time by nature: up to what makes RATE_PER_S answers a second. Rules:

1. On a machine that is busy each of many requests waits for the others, and more of them make all slower. So more are
   allowed step by step, and only while the fastest answer of each step takes no longer than it did with few; otherwise
   few are allowed again, and the next trial comes after RETRY_S. Only requests that take the last place count, and
   what is slow for less than SLOW_S is a moment in which the machine did something else.
2. Who waits for a place gets it in order.
3. A request that has waited PATIENCE_S for its answer makes room for another, up to MANY in all: some queries that
   hang do not hold up those of the same API that do not.

Why few: between its requests the API server keeps 25 connections to a metrics server that speaks HTTP/1.1 (client-go's
idle connections for each host); each request beyond opens one of its own, with a TLS handshake on both sides that
costs more than the request. So a second of delay made all later answers slow.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podscaler.base.clock import Clock
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery, MetricsSource, R, ResourceMetricsQuery

FEW = 12
"""Two APIs behind one server stay below the 25."""
MANY = 72
"""5,000 autoscalers with a query of their own each, answered in 200 ms, need 67 for a period of 15 s.

With three APIs it leaves some of the pool's 256 connections for everything else, however slow all three are.
"""
RATE_PER_S = 1000.0
PATIENCE_S = 1.0
RETRY_S = 10.0
STEP_ANSWERS = 24
SLOWER_RATIO = 1.5
SLOW_S = 2.0


class ConcurrencyLimiter:
    """See the module's rules.

    Args:
        clock: for how long answers take.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limit = FEW
        self._begun: dict[object, tuple[float, bool]] = {}
        self._young: set[object] = set()
        self._waiters: dict[object, asyncio.Future[None]] = {}
        self._patrol: asyncio.Task[None] | None = None
        self._step_began_s = self._retry_at_s = clock.monotonic_s()
        self._answers = 0
        self._fastest_s = self._usual_s = float("inf")

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """What to be in while a request is answered; one that raises tells nothing about speed."""
        request = object()
        if self._waiters or not self._has_room:
            await self._wait(request)
        else:
            self._enter(request)
        began_s, is_last = self._begun[request]
        try:
            yield
            if is_last and began_s >= self._step_began_s:
                self._learn(self._clock.monotonic_s(), began_s)
        finally:
            self._leave(request)

    @property
    def _has_room(self) -> bool:
        return len(self._young) < self._limit and len(self._begun) < MANY

    def _enter(self, request: object) -> None:
        self._young.add(request)
        self._begun[request] = self._clock.monotonic_s(), len(self._young) >= self._limit

    async def _wait(self, request: object) -> None:
        """Return once the request has a place."""
        waiter = self._waiters[request] = asyncio.get_running_loop().create_future()
        if self._patrol is None or self._patrol.done():
            self._patrol = asyncio.get_running_loop().create_task(self._excuse_the_old())
        try:
            await waiter
        except asyncio.CancelledError:
            self._waiters.pop(request, None)
            self._leave(request)
            raise

    def _leave(self, request: object) -> None:
        self._begun.pop(request, None)
        self._young.discard(request)
        self._hand_on()

    def _hand_on(self) -> None:
        """Give free places to those who wait."""
        while self._waiters and self._has_room:
            request = next(iter(self._waiters))
            waiter = self._waiters.pop(request)
            if not waiter.done():
                self._enter(request)
                waiter.set_result(None)

    async def _excuse_the_old(self) -> None:
        while self._waiters:
            await self._clock.sleep(PATIENCE_S)
            oldest_s = self._clock.monotonic_s() - PATIENCE_S
            self._young.difference_update([each for each, (began_s, _) in self._begun.items() if began_s <= oldest_s])
            self._hand_on()

    def _learn(self, now_s: float, began_s: float) -> None:
        """A request that began in this step is answered."""
        self._fastest_s = min(self._fastest_s, now_s - began_s)
        self._answers += 1
        if self._answers >= STEP_ANSWERS and not (self._is_slow and now_s - self._step_began_s < SLOW_S):
            self._step(now_s)
            self._step_began_s, self._answers, self._fastest_s = now_s, 0, float("inf")

    @property
    def _is_slow(self) -> bool:
        """Whether more than few are allowed, and every answer took longer than it would with few."""
        return self._limit > FEW and self._fastest_s > self._usual_s * SLOWER_RATIO

    def _step(self, now_s: float) -> None:
        if self._limit == FEW:
            self._usual_s = self._fastest_s
        elif self._is_slow:
            self._limit, self._retry_at_s = FEW, now_s + RETRY_S
        if now_s >= self._retry_at_s:
            self._usual_s = min(self._usual_s, self._fastest_s)
            self._limit = max(FEW, min(2 * self._limit, round(self._usual_s * RATE_PER_S), MANY))


class LimitedMetricsSource:
    """Wraps the MetricsSource that makes the requests; a query waits in order for a place at its API.

    Args:
        source: executes the queries.
        clock: for how long responses take.
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
            case _:
                limiter = self._custom
        async with limiter.place():
            return await self._source.query(query)
