"""The load of a workload from Prometheus: queries, what they lack, and the scenario that they become."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

import made_recordings
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.cli.backtest import load_sources, prometheus_source
from podscaler.cli.backtest.load_sources import SourceRequest
from podscaler.cli.backtest.prometheus_source import PrometheusRequest
from podscaler.core.model import spec
from podscaler.simulation.evaluation.monitoring_scenario import DEFAULT_QUERIES
from podscaler.simulation.evaluation.recording_scenario import RecordedWorkload
from podscaler.simulation.files.loads import RangeRequest
from podscaler.simulation.model.step_series import StepSeries

WIRE = msgspec.convert(made_recordings.hpa()["spec"], HorizontalPodAutoscalerSpec)
SPEC = spec.parse("shop", "web", WIRE)
PODS = 'namespace="shop",pod=~"web-[a-z0-9]+(-[a-z0-9]{5})?"'
RATE = f'rate(container_cpu_usage_seconds_total{{{PODS},container!=""}}[1m])'


class Prometheus:
    """A range query with these values, one a minute, by the names of the default queries; None: it has no series."""

    def __init__(self, **values: Sequence[float] | None) -> None:
        self.values = {"usage": [1, 1], "hottest": [0.5, 0.5], "ready": [2, 2], "replicas": [2, 2]} | values
        self.asked: list[str] = []

    def __call__(self, request: RangeRequest) -> Sequence[tuple[float, str]]:
        self.asked.append(request.query)
        name = list(DEFAULT_QUERIES)[len(self.asked) - 1]
        values = self.values.get(name, [0.5])
        if values is None:
            raise UsageError(f"the query {request.query} has no series between then and now")
        return [(request.start_s + 60 * index, str(value)) for index, value in enumerate(values)]


def read(prometheus: Prometheus, **more: object) -> RecordedWorkload:
    """The workload of ten minutes."""
    fields = {"begin": made_recordings.at(0), "end": made_recordings.at(600)} | more
    request = PrometheusRequest(url="http://prometheus:9090", **fields)
    return prometheus_source.read(request, SPEC, WIRE, prometheus)


def test_the_queries_have_the_names_of_the_workload():
    """One for each series, in order."""
    prometheus = Prometheus()
    read(prometheus, queries=["replicas=count(pods{ns='$NAMESPACE',app='$NAME'})"])
    assert prometheus.asked == [
        f"sum({RATE})",
        f"max(sum by (pod) ({RATE}))",
        f'sum(kube_pod_status_ready{{{PODS},condition="true"}})',
        "count(pods{ns='shop',app='web'})",
        f'max(sum by (pod) (kube_pod_container_resource_requests{{{PODS},resource="cpu"}}))',
        f'max(sum by (pod) (kube_pod_container_resource_limits{{{PODS},resource="cpu"}}))',
    ]


def test_the_scenario():
    """The demand begins a minute before the first value; the hottest pod at its limit hides demand."""
    found = read(Prometheus(usage=[0.8, 1.2, 1.0], hottest=[0.4, 0.8, 0.5], replicas=[3], requests=[0.5], limits=[0.8]))
    (workload,) = found.scenario.workloads
    (container,) = workload.pod.containers
    assert workload.demands[0].total == StepSeries((0, 60_000, 120_000), (800_000, 1_200_000, 1_000_000))
    assert (workload.key, workload.replicas, found.scenario.duration_ms) == ("shop/web", 3, 180_000)
    assert (container.requests_milli, container.cpu_limit_milli) == ({"cpu": 500}, 800)
    assert found.assumptions[1].startswith("In 33.3 % of the time pods were at their CPU limit")


def test_without_limits_no_pod_is_limited():
    """A note says so."""
    assert "The query of limits has no series, so no pod is limited." in read(Prometheus(limits=None)).assumptions


def test_a_missing_value_is_a_gap():
    """Never zero."""
    found = read(Prometheus(usage=[1, 1, 1, math.nan, math.nan, 1]))
    assert 0 not in found.reconstruction.demand.values
    assert len(found.reconstruction.gaps) == 1


@pytest.mark.parametrize(
    ("prometheus", "more", "sentence"),
    [
        pytest.param(Prometheus(requests=None), {}, "has no series .*change it with --query requests=", id="lacking"),
        pytest.param(Prometheus(usage=[-1]), {}, "the query of usage has the value -1 at 2026-01-31", id="negative"),
        pytest.param(Prometheus(usage=[math.nan]), {}, "the query of usage has no value", id="no-value"),
        pytest.param(Prometheus(), {"queries": ["cpu=up"]}, "--query cpu=up is not NAME=PROMQL", id="unknown-query"),
        pytest.param(Prometheus(), {"end": ""}, "--to is needed for Prometheus", id="no-end"),
        pytest.param(Prometheus(), {"begin": "noon"}, "--from noon is not an instant", id="no-instant"),
        pytest.param(Prometheus(), {"end": made_recordings.at(0)}, "is not after --from", id="empty-span"),
    ],
)
def test_what_cannot_be_used(prometheus: Prometheus, more: dict[str, object], sentence: str):
    """One sentence names the query or the flag."""
    with pytest.raises(UsageError, match=sentence):
        read(prometheus, **more)


def test_other_metrics_are_not_read():
    """Memory is not."""
    memory = {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    wire = msgspec.convert(made_recordings.hpa(metrics=[memory])["spec"], HorizontalPodAutoscalerSpec)
    request = PrometheusRequest(url="http://p", begin=made_recordings.at(0), end=made_recordings.at(60))
    with pytest.raises(UsageError, match="only the resource cpu of whole pods is"):
        prometheus_source.read(request, spec.parse("shop", "web", wire), wire, Prometheus())


def test_the_manifest_of_the_present_autoscaler_is_needed():
    """The sentence names the flag."""
    with pytest.raises(UsageError, match="--present FILE is needed"):
        load_sources.read(SourceRequest(source="http://prometheus:9090", range_query=Prometheus()))


def test_a_source_is_read_from_prometheus(tmp_path: Path):
    """The manifest names the autoscaler."""
    path = tmp_path / "hpa.json"
    path.write_bytes(msgspec.json.encode(made_recordings.hpa()))
    request = SourceRequest(
        source="http://prometheus:9090",
        begin=made_recordings.at(0),
        end=made_recordings.at(600),
        present=path,
        range_query=Prometheus(),
    )
    found = load_sources.read(request)
    assert (found.wire.max_replicas, found.scenario.autoscalers[0].spec.key) == (10, "default/web")
