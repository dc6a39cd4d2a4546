"""Checks the metrics of an autoscaler: the API behind each, whether it answers, and how old its values are.

`podscaler.cli.diagnosis.examination` wraps the metrics source of `podscaler explain` in a QueryRecorder, so that the
queries are those of the controller and each is sent once, and calls `check`, which is pure. A new kind of query needs
its API group in `group_of`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.machinery import duration
from podscaler.api.typed import metrics
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.cli.diagnosis import events
from podscaler.cli.diagnosis.autoscaler_objects import JsonObject
from podscaler.cli.diagnosis.findings import Area, CheckResult, DoctorFinding, FindingLevel, section
from podscaler.core.model.trace import Group, MetricStep, PerPod, PodRule, Trace
from podscaler.explain import advice, metric_words, wording
from podscaler.lint.rules import served_metrics
from podscaler.metrics import metrics_apis
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricQuery,
    MetricsResponse,
    MetricsSource,
    R,
    ResourceMetricsQuery,
)

STALE_NS = 150 * NANOSECONDS
"""Values that are older are a finding: servers of metrics renew them each 15 to 60 s, and average over 1 min or so."""
AHEAD_NS = 30 * NANOSECONDS
"""Values that are newer than this machine's clock by more are a finding about the clocks."""


@dataclass(slots=True)
class RecordedQuery:
    """One query and its result.

    Attributes:
        response: None if the query failed.
        error: the failure, else empty.
        took_s: seconds until the response or the failure.
    """

    query: MetricQuery[Any]
    response: MetricsResponse | None
    error: str
    took_s: float

    @property
    def group(self) -> str:
        """The API group that serves the query."""
        return group_of(self.query)


def group_of(query: MetricQuery[Any]) -> str:
    """The API group that serves a query."""
    if isinstance(query, ResourceMetricsQuery):
        return metrics_apis.RESOURCE_GROUP
    return metrics_apis.EXTERNAL_GROUP if isinstance(query, ExternalMetricQuery) else metrics_apis.CUSTOM_GROUP


class QueryRecorder:
    """A MetricsSource that passes queries on and keeps their results.

    Args:
        source: responds to the queries.

    Attributes:
        queries: all so far, in the order of their ends.
    """

    def __init__(self, source: MetricsSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self.queries: list[RecordedQuery] = []

    async def query(self, query: MetricQuery[R]) -> R:
        """As the source. Raises StatusError."""
        began_s = self._clock.monotonic_s()
        try:
            response = await self._source.query(query)
        except StatusError as error:
            self.queries.append(RecordedQuery(query, None, str(error), self._clock.monotonic_s() - began_s))
            raise
        self.queries.append(RecordedQuery(query, response, "", self._clock.monotonic_s() - began_s))
        return response


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """The input of `check`.

    Attributes:
        trace: of the decision that sent the queries; None if it could not be decided.
        queries: with their results.
        api_services: the APIService of each API group that the metrics need, by group; None if there is none. Empty
            if APIServices may not be read.
    """

    trace: Trace | None
    queries: Sequence[RecordedQuery]
    api_services: Mapping[str, JsonObject | None] = field(default_factory=dict)

    @property
    def unserved_groups(self) -> frozenset[str]:
        """The groups without an APIService that served no query: an API server may serve a group by itself."""
        responding = {query.group for query in self.queries if query.response is not None}
        return frozenset(group for group, api_service in self.api_services.items() if api_service is None) - responding


def check(facts: MetricFacts, now_ns: int) -> CheckResult:
    """The state of each metric, of the APIs behind them, and the ages of the values.

    The failure of a metric whose API nothing serves is one finding, about the API.
    """
    lines: list[tuple[str, str]] = []
    findings: list[DoctorFinding] = []
    for step in facts.trace.metrics if facts.trace is not None else ():
        lines.append((metric_words.name(step), _metric_text(step)))
        if served_metrics.GROUPS.get(step.type) not in facts.unserved_groups:
            findings += _step_findings(step)
    for group, api_service in facts.api_services.items():
        lines.append((group, _api_service_text(api_service)))
        if api_service is not None:
            findings += _api_service_findings(api_service)
        elif group in facts.unserved_groups:
            findings.append(_unserved_finding(group))
    for recorded_query in facts.queries:
        lines.append((f"query of {_query_subject(recorded_query.query)}", _query_text(recorded_query, now_ns)))
        findings += _age_findings(recorded_query, now_ns)
    return CheckResult(section("Metrics", lines or [("", "none was asked for")]), tuple(findings))


def _metric_text(step: MetricStep) -> str:
    """The value of a metric against its target, or why it cannot be read; without the metric's name."""
    if step.failure is not None:
        return f"cannot be read: {step.failure.message}"
    return metric_words.value_and_target(step).removeprefix(f"{metric_words.name(step)} ")


def _step_findings(step: MetricStep) -> list[DoctorFinding]:
    """The finding about one metric: it cannot be read, or lacks samples of some pods; empty if neither."""
    name = metric_words.name(step)
    if step.failure is not None:
        message = f"{name} cannot be read: {step.failure.message}"
        return [DoctorFinding(FindingLevel.ERROR, Area.METRICS, message, advice.for_error(step.failure.message))]
    if not isinstance(step.calculation, PerPod):
        return []
    missing = [pod.pod for pod in step.calculation.pods if pod.rule is PodRule.NO_SAMPLE]
    if not missing or len(missing) == len(step.calculation.pods):
        return []
    counted = sum(pod.group is Group.COUNTED for pod in step.calculation.pods)
    message = (
        f"{name} has no sample of {wording.count(len(missing), 'pod')} ({wording.listed(missing, 3)}); "
        f"{counted} are counted, and the others are assumed"
    )
    fix = "see whether these pods run, and ask what serves the metric for them; new pods need a moment"
    return [DoctorFinding(FindingLevel.WARNING, Area.METRICS, message, fix)]


def _api_service_text(api_service: JsonObject | None) -> str:
    """What serves the API of an APIService, and whether it is Available."""
    if api_service is None:
        return "no APIService"
    server = _server_name(api_service)
    if is_available(api_service):
        return f"served by {server}, Available"
    condition = _available_condition(api_service)
    reason = condition.get("reason") or "no condition Available"
    return f"served by {server}, not Available: {reason}: {condition.get('message', '')}"


def _server_name(api_service: JsonObject) -> str:
    """The Service behind an APIService: `Service kube-system/metrics-server`; `the API server` where there is none."""
    reference = (api_service.get("spec") or {}).get("service") or {}
    return f"Service {reference.get('namespace')}/{reference.get('name')}" if reference else "the API server"


def _available_condition(api_service: JsonObject) -> Mapping[str, Any]:
    """The condition Available of an APIService as its JSON object; empty if there is none."""
    conditions = (api_service.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == "Available"), {})


def is_available(api_service: JsonObject) -> bool:
    """Whether the condition Available of an APIService is True."""
    return _available_condition(api_service).get("status") == "True"


_INSTALL_ADVICE = {
    metrics_apis.RESOURCE_GROUP: "install metrics-server, or run `podscaler adapter --resource`",
    metrics_apis.CUSTOM_GROUP: "install an adapter that serves it, such as prometheus-adapter or `podscaler adapter`",
    metrics_apis.EXTERNAL_GROUP: "install an adapter that serves it, or name the metric's system in a MetricSource",
}
"""What to do where nothing serves a group."""


def _unserved_finding(group: str) -> DoctorFinding:
    message = f"nothing serves {group}: there is no APIService of that group"
    return DoctorFinding(FindingLevel.ERROR, Area.METRICS, message, _INSTALL_ADVICE[group])


def _api_service_findings(api_service: JsonObject) -> list[DoctorFinding]:
    """A finding if the APIService of a metrics API is not Available; else empty."""
    if is_available(api_service):
        return []
    condition = _available_condition(api_service)
    reference = (api_service.get("spec") or {}).get("service") or {}
    name = str(api_service.get("metadata", {}).get("name", ""))
    fix = f"kubectl describe apiservice {name}"
    if reference:
        namespace, service_name = reference.get("namespace"), reference.get("name")
        fix = f"kubectl -n {namespace} get endpointslices -l kubernetes.io/service-name={service_name}; {fix}"
    reason = condition.get("reason") or "no condition"
    message = f"APIService {name} is not Available ({reason}): {condition.get('message', '')}"
    return [DoctorFinding(FindingLevel.ERROR, Area.METRICS, message, fix)]


def _query_subject(query: MetricQuery[Any]) -> str:
    """What a query asks for, in sentences: the metric's name, or `the usage of pods`."""
    metric_name: str = getattr(query, "metric", "")  # a ResourceMetricsQuery has none: it is about CPU and memory
    return metric_name or "the usage of pods"


def _query_text(query: RecordedQuery, now_ns: int) -> str:
    """What a query to the metrics API returned, after how long, and how old the values are."""
    duration_text = f"{round(query.took_s * 1000)} ms"
    if query.response is None:
        return f"failed after {duration_text}: {query.error}"
    items = query.response.items or ()
    if not items:
        return f"answered in {duration_text}, with no value"
    instants_ns = _instants_ns(query)
    count = wording.count(len(items), "value")
    if not instants_ns:
        return f"answered in {duration_text}: {count}, without time"
    newest, oldest = wording.age(max(instants_ns), now_ns), wording.age(min(instants_ns), now_ns)
    span = newest if newest == oldest else f"{newest} to {oldest}"
    longest_window_ns = max(_windows_ns(query))
    window_text = f", averages over {wording.span(longest_window_ns)}" if longest_window_ns else ""
    return f"answered in {duration_text}: {count}, {span}{window_text}"


def _instants_ns(query: RecordedQuery) -> list[int]:
    """The instants of the values; those without a time are left out."""
    items = query.response.items or () if query.response is not None else ()
    instants_ns = [events.instant_ns(measured.timestamp) for measured in items]
    return [instant_ns for instant_ns in instants_ns if instant_ns is not None and instant_ns > 0]


def _windows_ns(query: RecordedQuery) -> list[int]:
    """The windows of the values in ns; 0 for a value without one."""
    items = query.response.items or () if query.response is not None else ()
    return [_window_ns(measured) for measured in items]


def _window_ns(measured: Any) -> int:
    """The window over which a value was measured, in ns; 0 if it has none."""
    if not isinstance(measured, metrics.PodMetrics):  # a value of custom.metrics.k8s.io or external.metrics.k8s.io
        return (measured.window_s or 0) * NANOSECONDS
    try:
        return duration.parse(measured.window)
    except ValueError:
        return 0


def _age_findings(query: RecordedQuery, now_ns: int) -> list[DoctorFinding]:
    """A finding if values are in the future by this machine's clock, or else old; else empty."""
    instants_ns = _instants_ns(query)
    if not instants_ns:
        return []
    oldest, newest = min(instants_ns), max(instants_ns)
    subject = _query_subject(query.query)
    if newest > now_ns + AHEAD_NS:
        lead_text = wording.span(newest - now_ns)
        message = f"values of {subject} are {lead_text} in the future by this machine's clock"
        return [DoctorFinding(FindingLevel.WARNING, Area.METRICS, message, "synchronize the clocks (NTP) of the nodes")]
    if now_ns - oldest <= STALE_NS:
        return []
    stale_count = sum(now_ns - instant_ns > STALE_NS for instant_ns in instants_ns)
    message = (
        f"{stale_count} of {wording.count(len(instants_ns), 'value')} of {subject} are old, the oldest of "
        f"{wording.age(oldest, now_ns)}: autoscalers use them as if they were new"
    )
    fix = f"see the logs of what serves {query.group}, and whether it reaches its sources"
    return [DoctorFinding(FindingLevel.WARNING, Area.METRICS, message, fix)]
