"""Metrics for `podscaler doctor`: failures, the API behind them, the ages of values, and pods without samples."""

from typing import Any

import pytest

from podscaler.api.machinery import instants, selectors
from podscaler.api.typed.metrics import ExternalMetricValue, ExternalMetricValueList, PodMetrics, PodMetricsList
from podscaler.base.errors import StatusError
from podscaler.cli.diagnosis import metric_checks
from podscaler.cli.diagnosis.findings import Area, DoctorFinding, FindingLevel
from podscaler.cli.diagnosis.metric_checks import MetricFacts, QueryRecorder, RecordedQuery
from podscaler.core.model.trace import Trace
from podscaler.metrics import metrics_apis
from podscaler.metrics.queries import ExternalMetricQuery, MetricQuery, R, ResourceMetricsQuery
from podscaler.testing.clock import VirtualClock
from podscaler.testing.decisions import DOWN, decided, external_metric, observed, resource, sampled, scaler, values

Json = dict[str, Any]
NOW = instants.parse("2026-03-03T10:30:00Z")
USAGE = ResourceMetricsQuery("shop", selectors.parse("app=web"))
QUEUE = ExternalMetricQuery("shop", "queue", selectors.parse(""))


def trace(*answers: Any, metric: Json | None = None, replicas: int = 3) -> Trace:
    """The trace of a decision with these answers."""
    spec = scaler(resource(utilization=50) if metric is None else metric)
    return decided(spec, observed(*answers, replicas=replicas)).trace


def service(status: str, **more: str) -> Json:
    """The APIService of the resource metrics, with the condition Available."""
    spec = {"group": metrics_apis.RESOURCE_GROUP, "service": {"namespace": "kube-system", "name": "metrics-server"}}
    condition = {"type": "Available", "status": status} | more
    return {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec, "status": {"conditions": [condition]}}


def usage(*times: str) -> RecordedQuery:
    """An answer with a pod for each time of 2026-03-03."""
    items = tuple([PodMetrics(timestamp=f"2026-03-03T{each}Z", window="30s") for each in times])
    return RecordedQuery(USAGE, PodMetricsList(items=items), "", 0.012)


def finding(level: FindingLevel, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(level, Area.METRICS, message, fix)


FAILED = (
    "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
    f"{DOWN.message}"
)
OLD = "see the logs of what serves metrics.k8s.io, and whether it reaches its sources"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(MetricFacts(None, []), (), id="nothing is known"),
        pytest.param(
            MetricFacts(
                trace(sampled(500, 500, 500)), [usage("10:29:30")], {metrics_apis.RESOURCE_GROUP: service("True")}
            ),
            (),
            id="all is well",
        ),
        pytest.param(
            MetricFacts(trace(DOWN, metric=external_metric(average="1")), []),
            (
                finding(
                    FindingLevel.ERROR,
                    f"external metric queue cannot be read: {FAILED}",
                    "the external metrics API did not answer: see `kubectl get apiservice "
                    "v1beta1.external.metrics.k8s.io` and the adapter that serves it",
                ),
            ),
            id="it fails",
        ),
        pytest.param(
            MetricFacts(trace(DOWN, metric=external_metric(average="1")), [], {metrics_apis.EXTERNAL_GROUP: None}),
            (
                finding(
                    FindingLevel.ERROR,
                    "nothing serves external.metrics.k8s.io: there is no APIService of that group",
                    "install an adapter that serves it, or name the metric's system in a MetricSource",
                ),
            ),
            id="nothing serves it",
        ),
        pytest.param(
            MetricFacts(
                trace(sampled(500, 500, 500)),
                [],
                {metrics_apis.RESOURCE_GROUP: service("False", reason="MissingEndpoints", message="no endpoints")},
            ),
            (
                finding(
                    FindingLevel.ERROR,
                    "APIService v1beta1.metrics.k8s.io is not Available (MissingEndpoints): no endpoints",
                    "kubectl -n kube-system get endpointslices -l kubernetes.io/service-name=metrics-server; "
                    "kubectl describe apiservice v1beta1.metrics.k8s.io",
                ),
            ),
            id="its server is gone",
        ),
        pytest.param(
            MetricFacts(trace(sampled(500, 500, None)), []),
            (
                finding(
                    FindingLevel.WARNING,
                    "cpu has no sample of 1 pod (p2); 2 are counted, and the others are assumed",
                    "see whether these pods run, and ask what serves the metric for them; new pods need a moment",
                ),
            ),
            id="a pod without a sample",
        ),
        pytest.param(
            MetricFacts(None, [usage("10:29:30")], {metrics_apis.RESOURCE_GROUP: None}),
            (),
            id="no APIService, but an answer",
        ),
        pytest.param(MetricFacts(None, [usage("10:27:30")]), (), id="just young enough"),
        pytest.param(
            MetricFacts(None, [usage("10:29:30", "10:27:29")]),
            (
                finding(
                    FindingLevel.WARNING,
                    "1 of 2 values of the usage of pods are old, the oldest of 2 min 31 s ago: autoscalers use them as "
                    "if they were new",
                    OLD,
                ),
            ),
            id="too old",
        ),
        pytest.param(
            MetricFacts(None, [usage("10:31:00")]),
            (
                finding(
                    FindingLevel.WARNING,
                    "values of the usage of pods are 1 min in the future by this machine's clock",
                    "synchronize the clocks (NTP) of the nodes",
                ),
            ),
            id="clocks differ",
        ),
    ],
)
def test_findings(facts: MetricFacts, expected: tuple[DoctorFinding, ...]) -> None:
    """Each with what to do."""
    assert metric_checks.check(facts, NOW).findings == expected


def test_the_section_has_values_services_and_ages() -> None:
    """One line for the metric, for its API and for the query."""
    external = ExternalMetricValueList(items=(ExternalMetricValue(value="5", window_s=60),))
    facts = MetricFacts(
        trace(values(5000), metric=external_metric(average="2")),
        [usage("10:29:50", "10:29:30"), RecordedQuery(QUEUE, external, "", 2.5), RecordedQuery(QUEUE, None, "no", 0.1)],
        {metrics_apis.RESOURCE_GROUP: service("True"), metrics_apis.EXTERNAL_GROUP: None},
    )
    lines = metric_checks.check(facts, NOW).section.lines
    assert [(each.label, each.text) for each in lines] == [
        ("external metric queue", "is 5 in total, target 2 a pod"),
        ("metrics.k8s.io", "served by Service kube-system/metrics-server, Available"),
        ("external.metrics.k8s.io", "no APIService"),
        ("query of the usage of pods", "answered in 12 ms: 2 values, 10 s ago to 30 s ago, averages over 30 s"),
        ("query of queue", "answered in 2500 ms: 1 value, without time"),
        ("query of queue", "failed after 100 ms: no"),
    ]


class _Source:
    """Answers one query, and refuses the next after a second."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._is_first = True

    async def query(self, query: MetricQuery[R]) -> R:
        if self._is_first:
            self._is_first = False
            return PodMetricsList()  # type: ignore[return-value]  # the type of R for the query of the test
        await self._clock.advance(1.0)
        raise StatusError("it is gone", code=503)


async def test_queries_are_recorded() -> None:
    """With what came of them; failures are passed on."""
    clock = VirtualClock()
    recorder = QueryRecorder(_Source(clock), clock)
    await recorder.query(USAGE)
    with pytest.raises(StatusError):
        await recorder.query(QUEUE)
    assert recorder.queries == [
        RecordedQuery(USAGE, PodMetricsList(), "", 0.0),
        RecordedQuery(QUEUE, None, "it is gone", 1.0),
    ]
