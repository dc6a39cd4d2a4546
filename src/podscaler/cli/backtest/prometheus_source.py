"""Reads the load of a workload from Prometheus, for a backtest.

Called by `podscaler.cli.backtest.load_sources`. One range query for each series; `--query NAME=PROMQL` replaces one. A
new series is an entry of `podscaler.simulation.evaluation.monitoring_scenario.DEFAULT_QUERIES`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from podscaler.api.machinery import instants
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.core.model.spec import Spec
from podscaler.simulation.evaluation import monitoring_scenario
from podscaler.simulation.evaluation.monitoring_scenario import (
    DEFAULT_QUERIES,
    OPTIONAL_QUERIES,
    MonitoredSeries,
    Series,
)
from podscaler.simulation.evaluation.recording_scenario import RecordedWorkload
from podscaler.simulation.files.loads import RangeQuery, RangeRequest

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRequest:
    """The values of the flags.

    Attributes:
        url: of Prometheus.
        begin, end: RFC 3339; empty if not given, which is an error.
        step_s: the distance of values.
        queries: `NAME=PROMQL` in place of those of DEFAULT_QUERIES.
        token_file, ca_file: for the connection; None: no token, and the authorities of the machine.
    """

    url: str
    begin: str
    end: str
    step_s: float = 60
    queries: Sequence[str] = ()
    token_file: Path | None = None
    ca_file: Path | None = None


def read(
    request: PrometheusRequest, spec: Spec, wire: HorizontalPodAutoscalerSpec, range_query: RangeQuery
) -> RecordedWorkload:
    """The workload of an autoscaler. Raises UsageError, naming the query that has no series or fails."""
    begin_s, end_s = _instant_s(request.begin, "--from"), _instant_s(request.end, "--to")
    if end_s <= begin_s:
        raise UsageError(f"--to {request.end} is not after --from {request.begin}")
    base_request = RangeRequest(
        url=request.url,
        query="",
        start_s=begin_s,
        end_s=end_s,
        step_s=request.step_s,
        token_file=request.token_file,
        ca_file=request.ca_file,
    )
    series_by_name: dict[str, Series] = {}
    for name, query in _queries(request.queries, spec).items():
        try:
            series_by_name[name] = _parse_values(range_query(replace(base_request, query=query)), name)
        except UsageError as error:
            # the words of `podscaler.cli.simulate.range_queries` for a query without a result
            if name not in OPTIONAL_QUERIES or "has no series" not in str(error):
                raise UsageError(f"{error} (change it with --query {name}=PROMQL)") from None
            series_by_name[name] = ()
    return monitoring_scenario.recorded_workload(msgspec.convert(series_by_name, MonitoredSeries), spec, wire)


def _parse_values(points: Sequence[tuple[float, str]], name: str) -> Series:
    """The points of a series with their values as numbers; times in seconds. Raises UsageError."""
    try:
        return [(at_s, float(sample)) for at_s, sample in points]
    except ValueError as error:
        raise UsageError(f"the query of {name} has a value that is no number: {error}") from None


def _queries(changed_queries: Sequence[str], spec: Spec) -> Mapping[str, str]:
    """All queries by name, with `$NAMESPACE` and `$NAME` of the workload filled in. Raises UsageError."""
    queries = dict(DEFAULT_QUERIES)
    for changed_query in changed_queries:
        name, equals, query = changed_query.partition("=")
        if name not in DEFAULT_QUERIES or not equals or not query:
            raise UsageError(
                f"--query {changed_query} is not NAME=PROMQL with one of the names {', '.join(DEFAULT_QUERIES)}"
            )
        queries[name] = query
    workload = spec.reference.rpartition("/")[2]
    return {
        name: query.replace("$NAMESPACE", spec.namespace).replace("$NAME", workload) for name, query in queries.items()
    }


def _instant_s(flag_value: str, flag: str) -> float:
    """The instant of a flag in seconds since the epoch. Raises UsageError."""
    if not flag_value:
        raise UsageError(f"{flag} is needed for Prometheus: an instant such as 2026-01-31T12:00:00Z")
    try:
        return instants.parse(flag_value) / _SECOND_NS
    except ValueError:
        raise UsageError(f"{flag} {flag_value} is not an instant such as 2026-01-31T12:00:00Z") from None
