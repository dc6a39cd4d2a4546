"""Reads the values of a metric for objects, by one query for many objects where that costs less than one for each
request.

`providers.custom_metrics` and `providers.resource_metrics` use it. Rules:

1. A batch (`naming.queries.BatchQuery`) serves all requests of a tick once it is there.
2. It is sent as soon as the direct queries of a tick cost more than it does, by the ticks before from the first one on:
   a query costs as much as QUERY_COST_OBJECTS objects in a result.
3. Where a batch fails, direct queries are sent, and no batch for FIRST_PAUSE_S, twice as long after each further
   failure, at most PAUSE_MAX_S: a batch may take too long, or have too many series, where direct queries do not. Where
   Prometheus rejects a batch, or its result has two values for an object, PAUSE_MAX_S passes at once.
4. Where a direct query has no response either, Prometheus is down: for FAILURE_S no direct query is sent in place of
   this batch, and the batch is sent again after it.

Invariant: the values are those of the direct query, which prometheus-adapter sends; `promql.partition` has the reasons.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from podscaler.adapter.naming.queries import BatchQuery, QueryTarget, QueryTemplate
from podscaler.adapter.prometheus.responses import DOWN, REJECTED, PrometheusError, PromSample, QueryResult
from podscaler.adapter.providers.expiring_values import ExpiringValues
from podscaler.adapter.providers.query_cache import FAILURE_S, SAMPLES_MAX, QueryCache
from podscaler.base.clock import Clock
from podscaler.base.lru import LRU

log = logging.getLogger(__name__)

QUERY_COST_OBJECTS = 50
"""The number of objects in a result that cost as much as a query without any."""
FIRST_PAUSE_S, PAUSE_MAX_S = 30.0, 600.0
LATEST_TICK_WEIGHT = 0.5
"""The weight of the latest tick in the expected cost."""
BATCHES_MAX = 4096
"""The number of batches whose cost is kept."""


class Batching(StrEnum):
    """When one query is sent for many objects: where it costs less, always, or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


SamplesByObject = Mapping[tuple[str, str], Sequence[PromSample]]
"""Namespace (empty in a batch of one) and name of an object -> its samples."""


class _DividedResult(NamedTuple):
    """A result, and its samples by object."""

    result: QueryResult
    grouped: SamplesByObject


@dataclass(slots=True)
class _BatchState:
    """What is known of a batch.

    Attributes:
        began_s: when the first request of this tick came.
        cost: the cost of the direct queries that the requests of this tick need, in objects.
        expected_cost: the cost of a tick, by the ticks before; 0 in the first.
        objects: the number of samples in its last result.
        pause_s: the length of the next pause.
        paused_until_s: the end of the latest pause; the batch is not sent in ticks that begin before.
        down_error: the failure of a direct query that had no response, which counts until `down_until_s`, or None.
    """

    began_s: float
    cost: int = 0
    expected_cost: float = 0.0
    objects: int = 0
    pause_s: float = FIRST_PAUSE_S
    paused_until_s: float = 0.0
    down_error: PrometheusError | None = None
    down_until_s: float = 0.0

    def begin_tick(self, now_s: float) -> None:
        """Update the expected cost by the tick that is over."""
        self.expected_cost += LATEST_TICK_WEIGHT * (self.cost - self.expected_cost)
        self.began_s, self.cost = now_s, 0

    def pause(self, now_s: float, error: PrometheusError | None = None) -> None:
        """Begin a pause after a failure of the batch; `error` is None if its result cannot be used."""
        is_final = error is None or error.kind in REJECTED
        pause_s = PAUSE_MAX_S if is_final else self.pause_s
        self.paused_until_s, self.pause_s = now_s + pause_s, min(2 * pause_s, PAUSE_MAX_S)

    def record_down(self, now_s: float, error: PrometheusError) -> None:
        """End the pause after FAILURE_S, and let the failure count for so long."""
        self.down_error = PrometheusError(error.kind, error.message)
        self.down_until_s = self.paused_until_s = now_s + FAILURE_S
        self.pause_s = FIRST_PAUSE_S


class ObjectValues:
    """Queries the values of a metric for objects, by the module's rules.

    Args:
        cache: executes and shares the queries.
        clock: for ticks.
        batching: when batches are used.
        has_several_samples: whether an object may have several samples (containers).
    """

    def __init__(
        self, cache: QueryCache, clock: Clock, *, batching: Batching = Batching.AUTO, has_several_samples: bool = False
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._batching = batching
        self._has_several_samples = has_several_samples
        self._states: LRU[str, _BatchState] = LRU(BATCHES_MAX)
        self._divisions: ExpiringValues[str, _DividedResult] = ExpiringValues(SAMPLES_MAX)

    async def samples(
        self, template: QueryTemplate, target: QueryTarget, namespace: str, names: Sequence[str]
    ) -> Mapping[str, Sequence[PromSample]]:
        """The samples of objects by name, those that have some; at least one name is given.

        Raises PrometheusError, RuleError, SelectorNotSupported.
        """
        batch = template.find_batch(target, namespace) if self._batching is not Batching.NEVER else None
        if batch is not None:
            grouped = await self._try_batch(batch, len(names))
            if grouped is not None:
                namespace_key = namespace if batch.namespace_label else ""
                return {name: grouped[namespace_key, name] for name in names if (namespace_key, name) in grouped}
        direct_result = await self._query_directly(template.direct(target, namespace, names), batch)
        samples_by_name: dict[str, list[PromSample]] = {}
        for sample in direct_result.samples:
            samples_by_name.setdefault(sample.labels.get(target.resource_label, ""), []).append(sample)
        return samples_by_name

    async def _try_batch(self, batch: BatchQuery, name_count: int) -> SamplesByObject | None:
        """The divided result of a batch; None where direct queries are to be sent (rules 2 and 3).

        Counts the request in the costs of the tick, and sends the batch if that is cheaper.
        """
        state = self._get_state(batch.promql)
        state.cost += QUERY_COST_OBJECTS + name_count
        if state.began_s < state.paused_until_s:
            return None
        batch_cost = QUERY_COST_OBJECTS + max(state.objects, name_count)  # of its result, before the first a guess
        is_cheaper = max(state.cost, state.expected_cost) > batch_cost
        if not is_cheaper and self._batching is not Batching.ALWAYS and not self._cache.has(batch.promql):
            return None
        try:
            batch_result = await self._query_vector(batch.promql)
        except PrometheusError as error:
            now_s = self._clock.monotonic_s()
            if now_s >= state.paused_until_s:  # of requests that share the failed query, the first begins the pause
                log.warning("direct queries replace a query for many objects, %s: %s", batch.promql, error)
                state.pause(now_s, error)
            return None
        grouped = self._divide(batch, batch_result)
        state.objects = len(batch_result.samples)
        if not self._has_several_samples and len(grouped) < len(batch_result.samples):  # two values for an object
            state.pause(self._clock.monotonic_s())
            return None
        state.pause_s = FIRST_PAUSE_S
        return grouped

    def _divide(self, batch: BatchQuery, batch_result: QueryResult) -> SamplesByObject:
        """The samples of a result by object, from one division for all requests of a tick."""
        now_s = self._clock.monotonic_s()
        kept_division = self._divisions.find(batch.promql, now_s)
        if kept_division is not None and kept_division.result is batch_result:
            return kept_division.grouped
        grouped, size = _group_by_object(batch, batch_result), len(batch_result.samples) + 1
        division, until_s = _DividedResult(batch_result, grouped), now_s + self._cache.tick_s
        self._divisions.put(batch.promql, division, size=size, now_s=now_s, until_s=until_s)
        return grouped

    async def _query_directly(self, direct_promql: str, batch: BatchQuery | None) -> QueryResult:
        """The result of a direct query, by rule 4 where it replaces a batch. Raises PrometheusError."""
        state = self._get_state(batch.promql) if batch is not None else None
        if state is not None and state.down_error is not None and self._clock.monotonic_s() < state.down_until_s:
            raise state.down_error
        try:
            return await self._query_vector(direct_promql)
        except PrometheusError as error:
            now_s = self._clock.monotonic_s()
            if error.kind == DOWN and state is not None and now_s < state.paused_until_s:  # in place of a batch
                state.record_down(now_s, error)
            raise

    def _get_state(self, promql: str) -> _BatchState:
        """The state of the batch with that expression; a new tick is begun where the last one is over."""
        now_s = self._clock.monotonic_s()
        state = self._states.find(promql)
        if state is None:
            state = _BatchState(now_s)
            self._states.put(promql, state)
        elif now_s - state.began_s >= self._cache.tick_s:
            state.begin_tick(now_s)
        return state

    async def _query_vector(self, promql: str) -> QueryResult:
        """The result, which is a vector. Raises PrometheusError."""
        query_result = await self._cache.query(promql)
        if query_result.kind != "vector":
            raise PrometheusError("unexpected_result", f"{promql} gives a {query_result.kind}, not a vector")
        return query_result


def _group_by_object(batch: BatchQuery, batch_result: QueryResult) -> SamplesByObject:
    """The samples of a batch's result by the namespace and name of their objects."""
    grouped: dict[tuple[str, str], list[PromSample]] = {}
    for sample in batch_result.samples:
        namespace = sample.labels.get(batch.namespace_label, "") if batch.namespace_label else ""
        grouped.setdefault((namespace, sample.labels.get(batch.resource_label, "")), []).append(sample)
    return grouped
