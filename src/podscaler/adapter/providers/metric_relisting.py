"""Lists the series of Prometheus periodically, and keeps the registry of metrics up to date.

`adapter.assembly` runs it. Behaviour:

1. Rules of the configuration with the same `seriesQuery` share one request.
2. Where a request fails, the series of that query stay as they were listed last; the others are renewed.
3. The resources of the API server are read again every DISCOVERY_S, and in each period while a rule cannot be used;
   where that changes them, rules are compiled again. A failed reading is repeated in the next period.
4. A new error is logged as ERROR, and as DEBUG while it lasts. Until the first list has succeeded, a list is tried
   again with back-off.

Source: prometheus-adapter v0.12.0. Differs: there, one query that fails leaves all series as they were.
"""

import asyncio
import logging
import random
from collections.abc import Sequence

from podscaler.adapter.cluster.rest_mapper import RESTMapper, ServedResources
from podscaler.adapter.config.rules import AdapterConfig, DiscoveryRule
from podscaler.adapter.naming import rule_naming, series
from podscaler.adapter.naming.rule_naming import RuleNaming
from podscaler.adapter.naming.series import SeriesKind
from podscaler.adapter.prometheus.client import MetricsDatabase
from podscaler.adapter.prometheus.responses import REJECTED, PrometheusError
from podscaler.adapter.providers import metric_registry
from podscaler.adapter.providers.metric_registry import MetricRegistry
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.kube.transport.backoff import Backoff

log = logging.getLogger(__name__)

DISCOVERY_S = 600.0
"""How often the resources of the API server are read again; at each list while a rule cannot be used."""


class MetricRelisting:
    """The periodic list of series and the registry of metrics that it fills.

    Args:
        config: has the rules.
        database: the client of Prometheus.
        mapper: maps names of resources.
        clock: for the period.
        interval_s: the period.
        max_age_s: how old the last sample of a series may be.

    Attributes:
        registry: of the last list.
        errors: of rules and of the last list, as sentences.
        has_tried: whether a list has ended, also with errors.
        has_listed: whether a list has ever been complete: the resources were read, and no query failed but those that
            Prometheus rejects.
    """

    def __init__(
        self,
        config: AdapterConfig,
        database: MetricsDatabase,
        mapper: RESTMapper,
        clock: Clock,
        *,
        interval_s: float,
        max_age_s: float,
    ) -> None:
        self._config = config
        self._database = database
        self._mapper = mapper
        self._clock = clock
        self._interval_s = interval_s
        self._max_age_s = max_age_s
        self._compiled_mapping: ServedResources | None = None
        self._rules: Sequence[RuleNaming] = ()
        self._external_rules: Sequence[RuleNaming] = ()
        self._rule_errors: list[str] = []
        self._kinds_by_query: dict[str, list[SeriesKind]] = {}
        self._discovered_s = float("-inf")
        self.registry = MetricRegistry()
        self.errors: list[str] = []
        self.has_tried = self.has_listed = False

    async def run(self) -> None:
        """List until cancelled, in each period; before the first complete list after a back-off, at most a period."""
        backoff = Backoff(random.Random())
        while True:
            await self.update()
            await self._clock.sleep(self._interval_s if self.has_listed else min(backoff.next_s(), self._interval_s))

    async def update(self) -> None:
        """List once, and renew `registry` and `errors`; failures are reported there, nothing is raised."""
        discovery_errors = await self._refresh_resources()
        self._compile_if_changed()
        queries = dict.fromkeys(rule.rule.series_query for rule in (*self._rules, *self._external_rules))
        outcomes = await asyncio.gather(*(self._list_series(query) for query in queries))
        failures = {query: error for query, error in zip(queries, outcomes, strict=True) if error is not None}
        self._kinds_by_query = {query: kinds for query, kinds in self._kinds_by_query.items() if query in queries}
        self.registry = metric_registry.build(self._with_series(self._rules), self._with_series(self._external_rules))
        is_complete = not discovery_errors and all(error.kind in REJECTED for error in failures.values())
        self.has_tried, self.has_listed = True, self.has_listed or is_complete
        list_errors = [f"the series of {query} cannot be listed: {error}" for query, error in failures.items()]
        self._report([*discovery_errors, *self._rule_errors, *list_errors])

    async def _refresh_resources(self) -> list[str]:
        """Read the resources of the API server again, if that is due; returns the error, if there is one."""
        now_s = self._clock.monotonic_s()
        if now_s - self._discovered_s < DISCOVERY_S and not self._rule_errors:
            return []
        try:
            await self._mapper.refresh()
        except StatusError as error:
            return [f"the resources of the API server cannot be read: {error}"]
        self._discovered_s = now_s
        return []

    def _compile_if_changed(self) -> None:
        """Compile the rules for the resources of the API server, if these have changed."""
        if self._compiled_mapping == self._mapper.mapping:
            return
        self._compiled_mapping = self._mapper.mapping
        self._rules, errors = self._compile_rules(self._config.rules)
        self._external_rules, external_errors = self._compile_rules(self._config.external_rules)
        self._rule_errors = [*errors, *external_errors]

    def _compile_rules(self, rules: Sequence[DiscoveryRule]) -> tuple[Sequence[RuleNaming], Sequence[str]]:
        """The rules that can be used, and the errors of the others."""
        return rule_naming.compile_rules(rules, self._mapper.mapping)

    async def _list_series(self, query: str) -> PrometheusError | None:
        """Renew the series of a query; the error if that fails."""
        try:
            listed_series = await self._database.series(query, max_age_s=self._max_age_s)
        except PrometheusError as error:
            return error
        self._kinds_by_query[query] = series.distinct(listed_series)
        return None

    def _with_series(self, rules: Sequence[RuleNaming]) -> list[tuple[RuleNaming, Sequence[SeriesKind]]]:
        """The rules with the series that each selected in its latest list; empty before the first."""
        return [(rule, self._kinds_by_query.get(rule.rule.series_query, [])) for rule in rules]

    def _report(self, errors: list[str]) -> None:
        """Log the errors of this list: new ones as ERROR, those of the list before as DEBUG."""
        for error in errors:
            log.log(logging.DEBUG if error in self.errors else logging.ERROR, "%s", error)
        if self.errors and not errors:
            log.info("all rules are listed")
        self.errors = errors
