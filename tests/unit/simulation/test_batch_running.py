"""Runs of many candidates: what is covered, what the exact engine simulates instead, and the sums."""

import msgspec
import pytest
import simulated

from podscaler.api.typed import autoscaling
from podscaler.core.model import failure_policy
from podscaler.core.model.emulation import V1_38
from podscaler.core.model.settings import Settings
from podscaler.simulation import batch
from podscaler.simulation.batch import Measures, NotCovered
from podscaler.simulation.model.distributions import DurationDistribution
from podscaler.simulation.model.scenario import (
    AutoscalerModel,
    ClusterModel,
    MetricsOutage,
    MetricsServerModel,
    RolloutStart,
    SimulationScenario,
)
from podscaler.simulation.model.step_series import constant
from podscaler.simulation.model.workloads import ContainerModel, RequestLoad, ResourceLoad

WEB = simulated.web(simulated.load({0: 0.1, 60: 0.61, 600: 0.1}))
SCENARIO = simulated.scenario(WEB, simulated.cpu_spec(50), seconds=1000)
RANDOM_POD = simulated.pod(launch=DurationDistribution("uniform", 1_000, 2_000))
SLOW_REQUESTS = RequestLoad(rate=constant(100_000), cpu_per_request_us=10_000, timeout_ms=1_000)


def changed(**changes: object) -> SimulationScenario:
    """The scenario with these fields."""
    return msgspec.structs.replace(SCENARIO, **changes)


def workload(**changes: object) -> SimulationScenario:
    """The scenario with these fields of its workload."""
    return changed(workloads=(msgspec.structs.replace(WEB, **changes),))


def test_candidates_have_a_row_each():
    """The walkthrough at a target of 50 %, a target that keeps one pod, and a maximum of two."""
    candidates = [simulated.cpu_spec(50), simulated.cpu_spec(1000), simulated.cpu_spec(50, maximum=2)]
    result = batch.run(batch.compile_scenario(SCENARIO), candidates)
    assert result.replicas[:, 7].tolist() == [7, 1, 2]
    assert result.scale_ups.tolist() == [2, 0, 1]
    assert result.scale_downs.tolist() == [1, 0, 1]
    assert result.fallbacks == {}


def test_sums_of_a_load_that_never_changes():
    """Two pods for 100 s in syncs of 10 s: 22 pods in 11 syncs, each for 10 s; 0.3 cores arrive, 0.2 are served."""
    pod = simulated.pod(limit=100)
    stated = simulated.scenario(
        simulated.web(constant(300_000), replicas=2, pod=pod),
        simulated.cpu_spec(50),
        seconds=100,
        sync_period_ms=10_000,
    )
    result = batch.run(batch.compile_scenario(stated), [simulated.cpu_spec(50, min_replicas=2, maximum=2)])
    assert result.syncs == 11
    assert result.pod_ms.tolist() == [220_000]
    assert result.arrived_work.tolist() == [300_000 * 100_000]
    assert result.lost_work.tolist() == [100_000 * 100_000]


def test_sums_begin_where_they_are_asked_to():
    """The last 400 s have no demand above that of one pod."""
    result = batch.run(batch.compile_scenario(SCENARIO), [simulated.cpu_spec(50)], Measures(counted_from_ms=600_000))
    assert result.syncs == 27
    assert result.scale_ups.tolist() == [0]
    assert result.scale_downs.tolist() == [1]


def test_requests_before_slow_syncs_miss_the_slo():
    """One core of work for a pod of half a core: all requests are slow or lost."""
    pod = simulated.pod(limit=500)
    stated = simulated.scenario(simulated.web(requests=SLOW_REQUESTS, pod=pod), seconds=60)
    result = batch.run(batch.compile_scenario(stated), [simulated.cpu_spec(maximum=1)], Measures(slo_ms=200))
    assert result.slo_missed_work.tolist() == result.arrived_work.tolist()


def test_deviations_from_the_needed_pods():
    """Two pods all the time, where 1, 2, 4, 4 and 0 are needed: one surplus of 1, two times 2 of 4 missing."""
    stated = simulated.scenario(simulated.web(constant(0), replicas=2), seconds=60)
    candidate = simulated.cpu_spec(min_replicas=2, maximum=2)
    measures = Measures(needed=[1, 2, 4, 4, 0], keep_timeline=False)
    result = batch.run(batch.compile_scenario(stated), [candidate], measures)
    assert result.replicas is None
    assert {name: each.tolist() for name, each in msgspec.structs.asdict(result.deviations).items()} == {
        "under": [1.0],
        "over": [1.0],
        "under_syncs": [2],
        "over_syncs": [2],
        "unstable_syncs": [3],
        "supply_changes": [0],
        "demand_changes": [3],
    }


def test_as_many_needed_pods_as_syncs():
    """Other numbers are an error, not a guess."""
    with pytest.raises(ValueError, match="3 numbers of needed pods for 67 syncs"):
        batch.run(batch.compile_scenario(SCENARIO), [simulated.cpu_spec()], Measures(needed=[1, 2, 3]))


NOT_COVERED = {
    "a second workload": (changed(workloads=(WEB, msgspec.structs.replace(WEB, key="default/api"))), "one workload"),
    "an autoscaler of nothing": (
        changed(autoscalers=(AutoscalerModel(spec=simulated.cpu_spec(), workload="default/api"),)),
        "without its workload",
    ),
    "random durations": (workload(pod=RANDOM_POD), "random durations"),
    "crashes": (workload(pod=simulated.pod(crashes_per_hour=1)), "crashes"),
    "an ordered workload": (workload(is_ordered=True), "one after another"),
    "a cluster": (changed(cluster=ClusterModel(nodes=1, max_nodes=2, cpu_milli=1, memory_bytes=1)), "cluster"),
    "a rollout": (changed(events=(RolloutStart(0, "default/web"),)), "rollouts"),
    "an outage": (changed(outages=(MetricsOutage(0, 1),)), "outages"),
    "dropouts": (changed(metrics_server=MetricsServerModel(dropout_ratio=0.1)), "measurements that fail"),
    "an old algorithm": (changed(settings=Settings(algorithm="v1.1")), "today's algorithm"),
    "another version": (changed(settings=Settings(emulation=V1_38)), "1.37"),
    "delays": (changed(settings=Settings(upscale_delay_ns=1)), "delays"),
    "a sync before the start": (changed(first_sync_ms=-1), "negative times"),
    "two demands": (workload(demands=(*WEB.demands, *WEB.demands)), "two demands"),
    "free requests": (
        workload(demands=(), requests=RequestLoad(rate=constant(1), cpu_per_request_us=0)),
        "without CPU time",
    ),
    "a negative load": (workload(demands=(ResourceLoad(resource="cpu", total=constant(-1)),)), "negative loads"),
    "an immense load": (workload(demands=(ResourceLoad(resource="cpu", total=constant(2**50)),)), "61 bits"),
    "two containers of one name": (
        workload(pod=msgspec.structs.replace(WEB.pod, containers=(ContainerModel(name="a"),) * 2)),
        "one name",
    ),
}


@pytest.mark.parametrize(("stated", "reason"), NOT_COVERED.values(), ids=NOT_COVERED)
def test_scenarios_that_are_not_covered_say_why(stated, reason):
    """No result rather than a different one."""
    with pytest.raises(NotCovered, match=reason):
        batch.compile_scenario(stated)


def test_the_exact_engine_takes_what_is_not_covered():
    """A candidate with a failure policy between two without, and the same results for all three."""
    plain = simulated.cpu_spec(50)
    special = msgspec.structs.replace(plain, failure_policy=failure_policy.FailurePolicy(fault="odd"))
    result = batch.evaluate(SCENARIO, [plain, special, plain], Measures(needed=[1] * 67))
    assert result.fallbacks == {1: "a policy for metrics that cannot be read is not covered"}
    assert result.replicas[1].tolist() == result.replicas[0].tolist()
    assert len(set(result.pod_ms.tolist())) == len(set(result.deviations.over.tolist())) == 1


def test_all_candidates_of_a_scenario_that_is_not_covered():
    """All rows are the exact engine's, each with the reason."""
    stated = workload(pod=RANDOM_POD)
    result = batch.evaluate(stated, [simulated.cpu_spec(50), simulated.cpu_spec(1000)])
    assert result.fallbacks == dict.fromkeys((0, 1), "pods with random durations or crashes are not covered")
    assert result.replicas[:, 7].tolist() == [7, 1]


METRICS = {
    "no values": (
        autoscaling.MetricSpec(
            type="Pods",
            pods=autoscaling.PodsMetricSource(
                metric=autoscaling.MetricIdentifier(name="jobs"),
                target=autoscaling.MetricTarget(type="AverageValue", average_value="1"),
            ),
        ),
        "default/web: the scenario has no values of the metric jobs",
    ),
    "a resource that is not simulated": (
        autoscaling.MetricSpec(
            type="Resource",
            resource=autoscaling.ResourceMetricSource(
                name="gpu", target=autoscaling.MetricTarget(type="AverageValue", average_value="1")
            ),
        ),
        "the resource gpu cannot be simulated; cpu and memory can",
    ),
    "an invalid entry": (
        autoscaling.MetricSpec(type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu")),
        "an invalid metric is not covered: invalid resource metric source: neither an average utilization target nor "
        "an average value (usage) target was set",
    ),
}


@pytest.mark.parametrize(("metric", "reason"), METRICS.values(), ids=METRICS)
def test_candidates_that_are_not_covered_say_why(metric, reason):
    """What the scenario cannot feed, and what the API would not admit."""
    compiled = batch.compile_scenario(SCENARIO)
    assert batch.find_obstacle(compiled, simulated.metric_spec(metric)) == reason


def test_a_maximum_beyond_what_can_be_summed_is_not_covered():
    """A billion pods of a core each."""
    pod = simulated.pod(limit=1_000_000)
    compiled = batch.compile_scenario(workload(pod=pod))
    assert batch.find_obstacle(compiled, simulated.cpu_spec(maximum=2**31 - 1)).endswith("than 61 bits can state")
