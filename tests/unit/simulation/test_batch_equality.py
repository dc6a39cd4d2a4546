"""The batch engine gives the replicas, ready pods and sums of the exact engine at every sync, over random scenarios."""

import msgspec
import numpy as np
import simulated
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from podscaler.api.typed import autoscaling
from podscaler.core.model.settings import Gates, Settings
from podscaler.core.model.spec import Spec
from podscaler.simulation import batch
from podscaler.simulation.batch import BatchResult, Measures
from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import MetricFeed, MetricsServerModel, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, ResourceLoad, WorkloadModel

CORE = simulated.CORE
SECOND_NS = 1_000_000_000
SYNCS = 60

rarely = st.sampled_from([False, False, True])


@st.composite
def series(draw: st.DrawFn, values: st.SearchStrategy[int]) -> StepSeries:
    """Some steps within the time of the syncs, at odd and even instants."""
    instants = st.integers(-10, 90).map(lambda at: at * 10_000) | st.integers(0, 900_000)
    at_ms = sorted(draw(st.lists(instants, min_size=4, max_size=15, unique=True)))
    return StepSeries(tuple(at_ms), tuple(draw(values) for _ in at_ms))


def target(*kinds: str) -> st.SearchStrategy[autoscaling.MetricTarget]:
    """Targets of these types."""
    quantities = st.sampled_from(["50m", "100m", "250m", "1", "3", "20", "1500m", "64Mi", "100M", "1m"])
    choices = {
        "Utilization": st.builds(
            lambda pct: autoscaling.MetricTarget(type="Utilization", average_utilization=pct), st.integers(1, 200)
        ),
        "AverageValue": quantities.map(lambda text: autoscaling.MetricTarget(type="AverageValue", average_value=text)),
        "Value": quantities.map(lambda text: autoscaling.MetricTarget(type="Value", value=text)),
    }
    return st.one_of([choices[kind] for kind in kinds])


resources = st.sampled_from(["cpu", "cpu", "cpu", "memory"])
identifiers = st.sampled_from(["jobs", "load", "own-rate", "own-queue"]).map(
    lambda name: autoscaling.MetricIdentifier(name=name)
)
metric = st.one_of(
    st.builds(
        lambda name, target: autoscaling.MetricSpec(
            type="Resource", resource=autoscaling.ResourceMetricSource(name=name, target=target)
        ),
        resources,
        target("Utilization", "AverageValue"),
    ),
    st.builds(
        lambda name, container, target: autoscaling.MetricSpec(
            type="ContainerResource",
            container_resource=autoscaling.ContainerResourceMetricSource(name=name, container=container, target=target),
        ),
        resources,
        st.sampled_from(["app", "sidecar", "gone"]),
        target("Utilization", "AverageValue"),
    ),
    st.builds(
        lambda name, target: autoscaling.MetricSpec(
            type="Pods",
            pods=autoscaling.PodsMetricSource(metric=autoscaling.MetricIdentifier(name=name), target=target),
        ),
        st.sampled_from(["jobs", "load", "own-rate"]),
        target("AverageValue"),
    ),
    st.builds(
        lambda name, target: autoscaling.MetricSpec(
            type="Object",
            object=autoscaling.ObjectMetricSource(
                metric=autoscaling.MetricIdentifier(name=name),
                described_object=autoscaling.CrossVersionObjectReference(kind="Service", name="web", api_version="v1"),
                target=target,
            ),
        ),
        st.sampled_from(["jobs", "load", "own-queue"]),
        target("AverageValue", "Value"),
    ),
    st.builds(
        lambda name, target: autoscaling.MetricSpec(
            type="External",
            external=autoscaling.ExternalMetricSource(metric=autoscaling.MetricIdentifier(name=name), target=target),
        ),
        st.sampled_from(["jobs", "load", "own-queue"]),
        target("AverageValue", "Value"),
    ),
)

policy = st.builds(
    autoscaling.HPAScalingPolicy,
    st.sampled_from(["Pods", "Percent"]),
    st.integers(1, 12) | st.sampled_from([50, 100, 900]),
    st.sampled_from([1, 15, 30, 60, 180]),
)
rules = st.none() | st.builds(
    lambda window, select, policies, tolerance: autoscaling.HPAScalingRules(
        stabilization_window_seconds=window, select_policy=select, policies=policies, tolerance=tolerance
    ),
    st.sampled_from([None, 0, 0, 15, 30, 100]),
    st.sampled_from([None, None, "Max", "Min", "Disabled"]),
    st.none() | st.lists(policy, min_size=0, max_size=3).map(tuple),
    st.sampled_from([None, None, "0", "50m", "300m"]),
)
behavior = st.none() | st.builds(
    lambda up, down: autoscaling.HorizontalPodAutoscalerBehavior(scale_up=up, scale_down=down), rules, rules
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """An autoscaler of `default/web`."""
    minimum = draw(st.sampled_from([1, 2, 0]))
    maximum = draw(st.integers(max(minimum, 1), 30))
    metrics = draw(st.lists(metric, min_size=1, max_size=2))
    return simulated.metric_spec(*metrics, maximum=maximum, min_replicas=minimum, behavior=draw(behavior))


@st.composite
def lively_specs(draw: st.DrawFn) -> Spec:
    """An autoscaler of `default/web` that scales often."""
    window = draw(st.sampled_from([0, 20, 45]))
    directions = [draw(rules), draw(rules)]
    hasty = [
        None if each is None else msgspec.structs.replace(each, stabilization_window_seconds=window, tolerance="0")
        for each in directions
    ]
    return simulated.cpu_spec(
        draw(st.integers(10, 90)),
        maximum=draw(st.integers(10, 30)),
        behavior=autoscaling.HorizontalPodAutoscalerBehavior(
            scale_up=hasty[0], scale_down=hasty[1] or autoscaling.HPAScalingRules(stabilization_window_seconds=window)
        ),
    )


@st.composite
def workloads(draw: st.DrawFn) -> WorkloadModel:
    """The workload `default/web`, with requests or with demands."""
    requests = draw(st.sampled_from([{"cpu": 200}, {"cpu": 200, "memory": 10**11}, {}, {"cpu": 0}]))
    limit = draw(st.sampled_from([None, 200, 500, 1000]))
    containers = [
        ContainerModel(
            name="app",
            requests_milli=requests,
            cpu_limit_milli=limit,
            idle_cpu_ucores=draw(st.sampled_from([0, 1_003, 20_000])),
            idle_memory_bytes=draw(st.sampled_from([0, 10_000_001])),
        )
    ]
    if draw(rarely):
        own = draw(st.integers(0, 1000))
        memory = draw(st.none() | st.integers(0, 1000))
        containers[0] = msgspec.structs.replace(
            containers[0], load_permille=1000 - own, memory_permille=None if memory is None else 1000 - memory
        )
        containers.append(
            ContainerModel(
                name="sidecar",
                requests_milli={"cpu": 50},
                cpu_limit_milli=limit,
                load_permille=own,
                memory_permille=memory,
            )
        )
    pod = PodModel(
        containers=tuple(containers),
        launch=fixed(draw(st.sampled_from([0, 1, 2_000, 17_500]))),
        startup=fixed(draw(st.sampled_from([0, 5_000, 33_001, 90_000]))),
        burst_ucores=draw(st.sampled_from([0, 700_000])),
        burst_ms=draw(st.sampled_from([0, 8_000, 60_000])),
    )
    cpu = series(st.integers(0, 4 * CORE) | st.just(0))
    memory = series(st.integers(0, 4 * 10**9))
    demands = [ResourceLoad(resource="memory", total=draw(memory))] if draw(rarely) else []
    load = None
    if draw(st.booleans()):
        load = RequestLoad(
            rate=draw(series(st.integers(0, 400_000))),
            cpu_per_request_us=draw(st.sampled_from([1, 777, 10_000, 50_000])),
            timeout_ms=draw(st.sampled_from([10_000, 60_000, 0, None])),
            latency_ms=draw(st.sampled_from([0, 20])),
            memory_per_request_bytes=draw(st.sampled_from([0, 1_000_000])),
            rate_metric="own-rate",
            queue_metric="own-queue",
        )
    else:
        demands.append(ResourceLoad(resource="cpu", total=draw(cpu)))
    return WorkloadModel(
        key="default/web",
        replicas=draw(st.sampled_from([1, 2, 5, 12, 0])),
        pod=pod,
        requests=load,
        demands=tuple(demands),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> SimulationScenario:
    """A workload without an autoscaler, with values of the metrics `jobs` and `load`."""
    period_ms = draw(st.sampled_from([15_000, 15_000, 15_000, 10_000, 7_001, 60_000]))
    resolution_ms = draw(st.sampled_from([15_000, 15_000, 30_000, 4_000]))
    feeds = (
        MetricFeed(
            metric="jobs",
            values=draw(series(st.integers(-5_000, 90_000))),
            sharing=draw(st.sampled_from(["each", "shared"])),
            lag_ms=draw(st.sampled_from([0, 20_500])),
        ),
        MetricFeed(metric="load", values=draw(series(st.integers(0, 2_000) | st.integers(2**52, 2**60)))),
        MetricFeed(metric="load", values=draw(series(st.integers(0, 900))), object_name="Service/web"),
    )
    return SimulationScenario(
        workloads=(draw(workloads()),),
        autoscalers=(),
        duration_ms=SYNCS * period_ms + draw(st.sampled_from([0, 1, 4_000])),
        feeds=feeds,
        metrics_server=MetricsServerModel(
            resolution_ms=resolution_ms,
            lag_ms=draw(st.sampled_from([0, 5_000, 5_000, 15_000, 40_000])),
            fresh_ms=draw(st.sampled_from([10_000, 10_000, 0, 50_000])),
        ),
        settings=Settings(
            tolerance=draw(st.sampled_from([0.1, 0.1, 0.0, 0.25])),
            downscale_stabilization_ns=draw(st.sampled_from([30, 0, 15, 100, 300])) * SECOND_NS,
            cpu_initialization_period_ns=draw(st.sampled_from([300, 0, 20, 61])) * SECOND_NS,
            initial_readiness_delay_ns=draw(st.sampled_from([30, 0, 5])) * SECOND_NS,
            gates=Gates(scale_to_zero=draw(st.sampled_from([True, True, True, False]))),
        ),
        sync_period_ms=period_ms,
        first_sync_ms=draw(st.sampled_from([0, 0, 3_217, 15_000])),
        actuation_ms=draw(st.sampled_from([1_000, 1_000, 0, 15_000, 33_000])),
    )


def as_lists(result: BatchResult) -> dict[str, object]:
    """The result with lists in place of arrays."""
    assert result.deviations is not None
    fields = msgspec.structs.asdict(result) | msgspec.structs.asdict(result.deviations) | {"deviations": None}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


@settings(max_examples=300)
@given(scenarios(), specs() | lively_specs(), st.data())
def test_a_candidate_has_the_results_of_the_exact_engine(scenario: SimulationScenario, candidate: Spec, data):
    """Replicas and ready pods at every sync, and all sums."""
    compiled = batch.compile_scenario(scenario)
    if batch.find_obstacle(compiled, candidate):
        reject()
    syncs = len(compiled.at_ms)
    needed = data.draw(st.lists(st.integers(0, 12), min_size=syncs, max_size=syncs))
    measures = Measures(needed=needed, slo_ms=200, counted_from_ms=data.draw(st.sampled_from([0, 100_000])))
    assert as_lists(batch.run(compiled, [candidate], measures)) == as_lists(
        batch.run_exactly(scenario, [candidate], measures)
    )
