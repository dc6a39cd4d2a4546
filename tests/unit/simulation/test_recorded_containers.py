"""Memory and containers of recordings: what a pod takes without load, the load that pods share, and shares."""

from typing import Any

import pytest

import made_recordings
from podscaler.base.errors import UsageError
from podscaler.simulation import engine
from podscaler.simulation.evaluation import recording_scenario
from podscaler.simulation.evaluation.recording_scenario import RecordedSelection, RecordedWorkload
from podscaler.simulation.model import results
from podscaler.simulation.model.step_series import StepSeries, constant
from podscaler.simulation.model.workloads import ContainerModel, ResourceLoad

MIB = 1 << 20
MEMORY = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
}
OF_APP = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "app",
        "target": {"type": "Utilization", "averageUtilization": 50},
    },
}


def with_proxy(name: str) -> dict[str, Any]:
    """A pod with two containers that request 200m and 50m."""
    pod = made_recordings.pod(name)
    pod["spec"]["containers"].append({"name": "proxy", "resources": {"requests": {"cpu": "50m"}}})
    return pod


def app(cpu: str, memory: str) -> dict[str, dict[str, str]]:
    """The usage of a pod with one container."""
    return {"app": {"cpu": cpu, "memory": memory}}


def read(*usages: dict[str, Any], pods: list[dict[str, Any]], metric: dict[str, Any]) -> RecordedWorkload:
    """The recording of an autoscaler with one metric, with a sync for each usage, which is 5 seconds old."""
    syncs = [
        made_recordings.sync(
            15 * index,
            pods,
            made_recordings.container_usage(15 * index - 5, usage),
            autoscaler=made_recordings.hpa(metrics=[metric]),
        )
        for index, usage in enumerate(usages)
    ]
    return recording_scenario.read(made_recordings.lines(syncs), RecordedSelection())


def of_memory(*usages: dict[str, Any], pods: list[dict[str, Any]] | None = None) -> RecordedWorkload:
    """The recording of an autoscaler over memory, with two ready pods."""
    ready = [made_recordings.pod("web-0"), made_recordings.pod("web-1")]
    return read(*usages, pods=pods or ready, metric=MEMORY)


def memory_load(found: RecordedWorkload) -> StepSeries:
    """The memory of the load, in bytes."""
    return next(each.total for each in found.scenario.workloads[0].demands if each.resource == "memory")


def test_memory_is_the_least_of_each_pod_and_a_load_that_pods_share():
    """90 MiB is the least; 230 MiB are 50 MiB more than two pods of 90 MiB."""
    found = of_memory(
        {"web-0": app("100m", "90Mi"), "web-1": app("100m", "90Mi")},
        {"web-0": app("100m", "100Mi"), "web-1": app("100m", "130Mi")},
    )
    (container,) = found.scenario.workloads[0].pod.containers
    assert container.idle_memory_bytes == 90 * MIB
    assert memory_load(found) == StepSeries((0, 15_000), (0, 50 * MIB))


def test_an_autoscaler_over_memory_shows_the_demand_for_cpu():
    """The metrics API responds with both."""
    found = of_memory({"web-0": app("100m", "90Mi"), "web-1": app("150m", "90Mi")})
    assert found.reconstruction.demand == constant(250_000)


def test_the_simulation_measures_the_recorded_memory():
    """(100 + 130) / 2 MiB is the average of two pods, in the recording as in the simulation."""
    found = of_memory(*[{"web-0": app("100m", "100Mi"), "web-1": app("100m", "130Mi")} for _ in range(5)])
    second = results.row(list(engine.simulate(found.scenario))[1])
    assert [each.current for each in second.metrics] == [115 * MIB * 1000]


def test_pods_that_are_not_ready_do_not_lower_the_least():
    """A pod that starts has not all of its memory yet."""
    starting = made_recordings.pod("web-1")
    starting["status"]["conditions"][0]["status"] = "False"
    usage = {"web-0": app("100m", "90Mi"), "web-1": app("100m", "20Mi")}
    found = of_memory(usage, pods=[made_recordings.pod("web-0"), starting])
    assert found.scenario.workloads[0].pod.containers[0].idle_memory_bytes == 90 * MIB
    assert memory_load(found) == constant(0)


def test_ready_pods_without_usage_count_as_the_average():
    """40 MiB of one pod above the least are 80 MiB of two."""
    found = of_memory({"web-0": app("100m", "60Mi"), "web-1": app("100m", "60Mi")}, {"web-0": app("100m", "100Mi")})
    assert memory_load(found).values == (0, 80 * MIB)


def test_containers_have_the_shares_of_the_whole_recording():
    """270m of 300m, and 30 MiB of 40 MiB beyond the least."""
    found = read(
        {"web-0": {"app": {"cpu": "80m", "memory": "50Mi"}, "proxy": {"cpu": "20m", "memory": "10Mi"}}},
        {"web-0": {"app": {"cpu": "190m", "memory": "80Mi"}, "proxy": {"cpu": "10m", "memory": "20Mi"}}},
        pods=[with_proxy("web-0")],
        metric=OF_APP,
    )
    (workload,) = found.scenario.workloads
    assert workload.pod.containers == (
        ContainerModel(
            name="app",
            requests_milli={"cpu": 200},
            idle_memory_bytes=50 * MIB,
            load_permille=900,
            memory_permille=750,
        ),
        ContainerModel(
            name="proxy",
            requests_milli={"cpu": 50},
            idle_memory_bytes=10 * MIB,
            load_permille=100,
            memory_permille=250,
        ),
    )
    assert workload.demands == (
        ResourceLoad(resource="cpu", total=StepSeries((0, 15_000), (100_000, 200_000))),
        ResourceLoad(resource="memory", total=StepSeries((0, 15_000), (0, 40 * MIB))),
    )
    assert found.assumptions[-1] == (
        "Containers share the load as in the whole recording: app 90 % of CPU and 75 % of memory, proxy 10 % of CPU "
        "and 25 % of memory."
    )


def test_the_metric_of_a_container_is_simulated():
    """90 % of 100m are 45 % of the container's request."""
    usage = {"web-0": {"app": {"cpu": "90m"}, "proxy": {"cpu": "10m"}}}
    found = read(*[usage for _ in range(5)], pods=[with_proxy("web-0")], metric=OF_APP)
    second = results.row(list(engine.simulate(found.scenario))[1])
    assert [(each.current, each.unit) for each in second.metrics] == [(45, "percent")]


def test_each_container_has_its_own_limit():
    """The pod carries 333m: 90 % of it are 300m; 285m are at the limit of 300m, although the pod could use 600m."""
    pod = with_proxy("web-0")
    for container in pod["spec"]["containers"]:
        container["resources"]["limits"] = {"cpu": "300m"}
    usages = [{"web-0": {"app": {"cpu": f"{9 * each}m"}, "proxy": {"cpu": f"{each}m"}}} for each in (30, 32)]
    found = read(*usages, pods=[pod], metric=OF_APP)
    assert found.scenario.workloads[0].cpu_capacity_ucores == 333_333
    assert [each.end_ms - each.begin_ms for each in found.reconstruction.censored] == [20_000]


def test_a_container_without_a_limit():
    """The sentence tells it from a recording without limits."""
    pod = with_proxy("web-0")
    pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "300m"}
    found = read({"web-0": {"app": {"cpu": "90m"}, "proxy": {"cpu": "10m"}}}, pods=[pod], metric=OF_APP)
    assert found.assumptions[0] == (
        "The recording has a container without CPU limit, so no pod is limited; --cpu-limit states one."
    )


def test_containers_have_their_shares_of_a_limit_of_the_pod():
    """Such as that of --cpu-limit: they reach their parts of it at the same load."""
    pod = with_proxy("web-0")
    pod["spec"]["resources"] = {"limits": {"cpu": "400m"}}
    found = read({"web-0": {"app": {"cpu": "90m"}, "proxy": {"cpu": "10m"}}}, pods=[pod], metric=OF_APP)
    (workload,) = found.scenario.workloads
    limits = [each.cpu_limit_milli for each in workload.pod.containers]
    assert (limits, workload.cpu_capacity_ucores) == ([360, 40], 400_000)


def test_what_memory_assumes_is_said():
    """Where the autoscaler has a metric for it."""
    found = of_memory({"web-0": app("100m", "90Mi"), "web-1": app("100m", "95Mi")})
    assert found.assumptions[-1] == (
        "A pod takes 90 MiB of memory, the least that ready pods took; the rest stays as recorded in total, and ready "
        "pods share it."
    )


@pytest.mark.parametrize(
    ("usage", "sentence"),
    [
        pytest.param(
            {"app": {"cpu": "100m"}},
            "the recording has no memory usage of the pods of default/web, which its metric memory resource needs",
            id="no-memory",
        ),
        pytest.param({"app": {"memory": "90Mi"}}, "the recording has no CPU usage of the pods", id="no-cpu"),
        pytest.param({"app": {"cpu": "much", "memory": "90Mi"}}, "line 2: ", id="no-quantity"),
    ],
)
def test_usage_that_cannot_be_used(usage: dict[str, dict[str, str]], sentence: str):
    """A sentence, not a zero."""
    with pytest.raises(UsageError, match=sentence):
        of_memory({"web-0": usage})
