"""A recording becomes a scenario: demand, workload, pipeline, and what is not known."""

import pytest

import made_recordings
from podscaler.base.errors import UsageError
from podscaler.simulation import engine
from podscaler.simulation.evaluation import demand_reconstruction, recording_scenario
from podscaler.simulation.evaluation.demand_reconstruction import Reconstruction, UnknownPeriod, UsageObservation
from podscaler.simulation.evaluation.recording_scenario import RecordedSelection
from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import MetricsServerModel
from podscaler.simulation.model.step_series import StepSeries, constant
from podscaler.simulation.model.workloads import ContainerModel

ANY = RecordedSelection()

LIMITED = {"name": "app", "resources": {"limits": {"cpu": "300m"}}}
SIDECAR = {"name": "proxy", "restartPolicy": "Always", "resources": {"limits": {"cpu": "300m"}}}


def seen(at_ms: int, used_milli: int, *, measured: int = 2, ready: int = 2, limited: int = 0) -> UsageObservation:
    """One observation."""
    return UsageObservation(at_ms=at_ms, used_milli=used_milli, measured=measured, ready=ready, limited=limited)


def test_demand_is_the_sum_of_usage_from_the_begin_of_each_window():
    """At the first sync samples are from 20 to 5 seconds before it."""
    found = recording_scenario.read(made_recordings.steady([100, 100, 250]), ANY).reconstruction
    assert found.demand == StepSeries((0, 30_000), (100_000, 250_000))
    assert (found.end_ms - found.start_ms, found.sentences()) == (50_000, ())


def test_the_scenario_has_what_was_observed():
    """Periods, windows and lag, requests and limits, the median start-up, the replicas of the first sync."""
    found = recording_scenario.read(made_recordings.steady([100, 100, 250], limit="500m"), ANY).scenario
    (workload,) = found.workloads
    container = ContainerModel(name="app", requests_milli={"cpu": 200}, cpu_limit_milli=500, memory_permille=1000)
    assert (workload.key, workload.kind, workload.replicas) == ("default/web", "Deployment", 2)
    assert (workload.pod.containers, workload.pod.startup) == ((container,), fixed(10_000))
    assert (found.sync_period_ms, found.metrics_server) == (15_000, MetricsServerModel(lag_ms=5_000))
    assert len(list(engine.simulate(found))) == 4


def test_pods_at_their_limit_hide_demand():
    """475m of 500m and more is at the limit: 30 of 65 seconds."""
    found = recording_scenario.read(made_recordings.steady([100, 950, 1000, 400], limit="500m"), ANY)
    begin, end = "2026-01-31T11:59:55Z", "2026-01-31T12:00:25Z"
    assert found.reconstruction.sentences() == (
        "In 46.2 % of the time pods were at their CPU limit, so the demand is only a lower bound then: "
        f"{begin} to {end}.",
    )


def test_a_ready_pod_without_a_sample_counts_as_the_average():
    """150m of two measured pods are 225m of three."""
    found = demand_reconstruction.reconstruct([seen(0, 150, ready=3), seen(10, 150)], 20)
    assert (found.demand.values, found.extrapolated_pct) == ((225_000, 150_000), 50.0)
    assert "some ready pods had no sample" in found.sentences()[0]


def test_a_gap_is_reported():
    """More than 2.5 usual distances."""
    found = demand_reconstruction.reconstruct([seen(at_ms, 100) for at_ms in (0, 15_000, 30_000, 68_000)], 83_000)
    assert found.gaps == (UnknownPeriod(30_000, 68_000),)
    assert found.sentences() == (
        "Nothing was measured, and the demand before is assumed to last: 1970-01-01T00:00:30Z to 1970-01-01T00:01:08Z.",
    )


def test_many_periods_are_counted():
    """Five are listed."""
    found = demand_reconstruction.reconstruct([seen(at_ms, 100, limited=at_ms % 2) for at_ms in range(13)], 13)
    assert found.sentences()[0].endswith(", and 1 more.")


def test_no_observation():
    """A sentence says so."""
    with pytest.raises(ValueError, match="the demand is unknown"):
        demand_reconstruction.reconstruct([], 0)


def test_a_reconstruction_of_no_time_is_not_censored():
    """Nothing is divided by 0."""
    found = Reconstruction(demand=constant(1), start_ms=0, end_ms=0, censored=(), extrapolated_pct=0)
    assert found.censored_pct == 0.0


def test_pods_of_other_workloads_do_not_count():
    """A recording has the pods of the namespace; the selector of the scale picks those of the workload."""
    other = made_recordings.pod("db-0", limit="2", ready_after_s=300)
    other["metadata"]["labels"] = {"app": "db"}
    other["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    own = made_recordings.pod("web-0")
    line = made_recordings.sync(0, [other, own], made_recordings.usage(-5, {"web-0": 100}))
    found = recording_scenario.read(made_recordings.lines([line]), ANY)
    (workload,) = found.scenario.workloads
    assert workload.pod.containers == (ContainerModel(name="app", requests_milli={"cpu": 200}, memory_permille=1000),)
    assert (workload.pod.startup, found.reconstruction.demand) == (fixed(9_000), constant(100_000))


def test_pods_without_containers_have_no_limit():
    """Null stands for an empty list."""
    bare = made_recordings.pod("web-1") | {"spec": {"containers": None}}
    lines = [made_recordings.sync(0, [bare], made_recordings.usage(-5, {"web-1": 100}))]
    assert (
        recording_scenario.read(made_recordings.lines(lines), ANY)
        .scenario.workloads[0]
        .pod.containers[0]
        .requests_milli
        == {}
    )


@pytest.mark.parametrize(
    ("spec", "limit_milli"),
    [
        pytest.param({"containers": [LIMITED, LIMITED | {"name": "b"}]}, 600, id="the sum of containers"),
        pytest.param({"containers": [LIMITED, {"name": "b"}]}, None, id="one without"),
        pytest.param({"containers": [LIMITED], "initContainers": [{"name": "once"}]}, 300, id="init container"),
        pytest.param({"containers": [LIMITED], "initContainers": [SIDECAR]}, 600, id="sidecar"),
        pytest.param({"containers": [{"name": "a"}], "resources": {"limits": {"cpu": "1"}}}, 1000, id="whole pod"),
    ],
)
def test_the_limit_of_a_pod(spec, limit_milli):
    """What a pod as a whole may use, where its containers have the same shares."""
    names = [each["name"] for each in (*spec["containers"], *spec.get("initContainers", ())) if each["name"] != "once"]
    usage = {"web-0": {name: {"cpu": "100m"} for name in names}}
    line = made_recordings.sync(
        0, [made_recordings.pod("web-0") | {"spec": spec}], made_recordings.container_usage(-5, usage)
    )
    found = recording_scenario.read(made_recordings.lines([line]), ANY)
    capacity_ucores = found.scenario.workloads[0].cpu_capacity_ucores
    assert capacity_ucores == (None if limit_milli is None else limit_milli * 1000)


def test_a_limit_may_change():
    """240m is at the limit of 250m, and not at that of 500m."""
    syncs = [
        made_recordings.sync(
            15 * index,
            [made_recordings.pod("web-0", limit=limit)],
            made_recordings.usage(15 * index - 5, {"web-0": 240}),
        )
        for index, limit in enumerate(["250m", "500m", "500m"])
    ]
    found = recording_scenario.read(made_recordings.lines(syncs), ANY)
    hidden = [each.end_ms - each.begin_ms for each in found.reconstruction.censored]
    assert (hidden, found.scenario.workloads[0].pod.containers[0].cpu_limit_milli) == ([15_000], 500)


def test_a_stated_limit_is_used():
    """Older recordings have none."""
    found = recording_scenario.read(made_recordings.steady([100, 400]), RecordedSelection(cpu_limit_milli=200))
    assert found.scenario.workloads[0].pod.containers[0].cpu_limit_milli == 200
    assert found.assumptions[0] == "A new pod is ready after 10 s, the median of 2 pods."


def test_assumptions_without_limits():
    """The sentence names the flag."""
    found = recording_scenario.read(made_recordings.steady([100, 400]), ANY).assumptions
    assert found[0] == "The recording has no CPU limits, so no pod is limited; --cpu-limit states one."


def test_other_metrics_stay_as_recorded():
    """An External metric is a feed of the scenario."""
    jobs = {
        "type": "External",
        "external": {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "5"}},
    }
    cpu = made_recordings.hpa()["spec"]["metrics"][0]
    autoscaler = made_recordings.hpa(metrics=[cpu, jobs])
    pods = [made_recordings.pod("web-0")]
    value = {"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1"}
    text = made_recordings.lines(
        made_recordings.sync(
            second,
            pods,
            made_recordings.usage(second - 5, {"web-0": 100}),
            value | {"items": [{"metricName": "jobs", "timestamp": made_recordings.at(second), "value": amount}]},
            autoscaler=autoscaler,
        )
        for second, amount in ((0, "7"), (15, "9"))
    )
    found = recording_scenario.read(text, ANY)
    (feed,) = found.scenario.feeds
    assert (feed.metric, feed.values) == ("jobs", StepSeries((20_000, 35_000), (7_000, 9_000)))
    assert "The values of the metric jobs stay as recorded, whatever the replicas are." in found.assumptions


MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}


@pytest.mark.parametrize(
    ("text", "selection", "sentence"),
    [
        pytest.param([], ANY, "line 1: the recording is empty", id="empty"),
        pytest.param([b"{}"], ANY, "line 1: not the header of a recording", id="no-header"),
        pytest.param([*made_recordings.steady([1]), b"{"], ANY, "line 3: ", id="broken-line"),
        pytest.param(made_recordings.lines([]), ANY, "no sync in the time", id="no-sync"),
        pytest.param(
            made_recordings.steady([1]),
            RecordedSelection(autoscaler="default/other"),
            "no sync of default/other; it has default/web",
            id="other-autoscaler",
        ),
        pytest.param(
            made_recordings.steady([1]), RecordedSelection(from_ns=1 << 62), "no sync in the time", id="after-the-end"
        ),
        pytest.param(
            [
                *made_recordings.steady([1]),
                *made_recordings.lines([made_recordings.sync(15, [], autoscaler=made_recordings.hpa("b"))])[1:],
            ],
            ANY,
            "the recording has 2 autoscalers; choose one with --hpa, such as default/web or default/b",
            id="two-autoscalers",
        ),
        pytest.param(
            made_recordings.lines([made_recordings.sync(0, [], autoscaler=made_recordings.hpa(metrics=[MEMORY]))]),
            ANY,
            "no CPU usage of the pods of default/web",
            id="no-cpu",
        ),
    ],
)
def test_a_recording_that_cannot_be_used(text: list[bytes], selection: RecordedSelection, sentence: str):
    """One sentence names the line, or what is lacking."""
    with pytest.raises(UsageError, match=sentence):
        recording_scenario.read(text, selection)
