"""The samples of the metrics pipeline: averages of windows, first samples of new pods, lag and failures."""

from random import Random

import msgspec
import pytest
import simulated
from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.core.model.observation import Sample
from podscaler.core.model.trace import Trace
from podscaler.simulation import engine
from podscaler.simulation.model.results import WorkloadState
from podscaler.simulation.model.scenario import DEFAULT_START_NS, ManualScale, MetricsServerModel
from podscaler.simulation.model.workloads import ContainerModel, PodModel
from podscaler.simulation.world.pods import PodObservations, VirtualPod
from podscaler.simulation.world.sampling import ResourceSampling

CPU, MEMORY = ("cpu", ""), ("memory", "")
SECOND_NS = 1_000_000_000
POD = PodModel(
    containers=(
        ContainerModel(name="app", load_permille=800, idle_cpu_ucores=10_000, idle_memory_bytes=1_000),
        ContainerModel(name="proxy", load_permille=200, idle_cpu_ucores=5_000, idle_memory_bytes=500),
    ),
    burst_ucores=1_000_000,
    burst_ms=5_000,
)


def sampling(*resources, pod: PodModel = POD, **model) -> ResourceSampling:
    """The pipeline of a pod with two containers."""
    return ResourceSampling(
        MetricsServerModel(**model), pod, PodObservations("web", pod, DEFAULT_START_NS), resources, "0"
    )


def running(since_ms: int = 0) -> VirtualPod:
    """A pod that is ready since its start."""
    pod = VirtualPod("web-0", 0, since_ms, 0, Random(0))
    pod.is_running, pod.runs_at_ms = True, since_ms
    pod.become_ready(since_ms, 0)
    return pod


def measured(pipeline: ResourceSampling, pod: VirtualPod, at_ms: int, work: int, resource=CPU) -> Sample | None:
    """The pod's sample at an instant, after it has served that much work."""
    samples = pipeline.measure([pod], at_ms, work_of_each=work, bytes_of_each=10_000)
    return samples[resource].samples.get(pod.name)


def test_a_new_pod_is_too_young():
    """Before ten seconds there is no sample."""
    assert measured(sampling(CPU), running(), 9_999, 0) is None


def test_the_first_sample_is_the_average_since_the_start():
    """15 s: 15m idle, 100m of load, and a core for the first five seconds."""
    sample = measured(sampling(CPU), running(), 15_000, 100_000 * 15_000)
    assert sample == Sample(15 + 100 + 334, DEFAULT_START_NS + 15 * SECOND_NS, 15 * SECOND_NS)


def test_later_samples_are_of_the_time_between_two_measurements():
    """The burst of the start is over."""
    pipeline, pod = sampling(CPU), running()
    measured(pipeline, pod, 15_000, 0)
    sample = measured(pipeline, pod, 30_500, 100_000 * 15_500)
    assert sample == Sample(115, DEFAULT_START_NS + 30 * SECOND_NS, 15_500_000_000)


@pytest.mark.parametrize(
    ("resource", "value_milli"),
    [
        pytest.param(("cpu", "app"), 90, id="80 % of 100m and 10m idle"),
        pytest.param(("cpu", "proxy"), 25, id="20 % of 100m and 5m idle"),
        pytest.param(MEMORY, 11_500_000, id="memory now"),
        pytest.param(("memory", "proxy"), 2_500_000, id="memory of a container"),
    ],
)
def test_containers_have_their_shares(resource, value_milli):
    """Load is divided by shares; idle use is each container's own."""
    pipeline, pod = sampling(CPU, resource), running(-60_000)
    measured(pipeline, pod, 0, 0)
    assert measured(pipeline, pod, 10_000, 100_000 * 10_000, resource).value_milli == value_milli


def test_the_share_of_memory_may_be_another_one():
    """50 % of 10 kB and 500 bytes idle, not 20 %."""
    app, proxy = (msgspec.structs.replace(each, memory_permille=500) for each in POD.containers)
    of_proxy = ("memory", "proxy")
    pipeline = sampling(of_proxy, pod=PodModel(containers=(app, proxy)))
    assert measured(pipeline, running(-60_000), 10_000, 0, of_proxy).value_milli == 5_500_000


def test_samples_of_pods_that_are_gone_are_not_shown():
    """Only what was published is shown, and only of pods that exist."""
    pipeline, pod = sampling(CPU), running(-60_000)
    samples = pipeline.measure([pod], 0, work_of_each=0, bytes_of_each=0)
    assert pipeline.published(CPU).is_empty
    pipeline.publish(samples)
    assert not pipeline.published(CPU).is_empty
    pipeline.retain(set())
    assert pipeline.published(CPU).is_empty


def test_a_measurement_that_fails_lengthens_the_next_window():
    """Every measurement fails, so the pod has no sample and none of its past is forgotten."""
    pipeline, pod = sampling(CPU, dropout_ratio=1.0), running(-60_000)
    assert measured(pipeline, pod, 0, 0) is None
    assert pod.measured_at_ms is None


@given(
    burst_ms=st.sampled_from([0, 4_000, 40_000]),
    crashes_per_hour=st.sampled_from([0, 0, 30]),
    by_hand=st.sets(st.integers(0, 600), max_size=4),
    loads=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    maximum=st.integers(2, 12),
)
@settings(max_examples=25, deadline=None)
def test_pods_that_do_not_change_are_measured_as_if_one_by_one(burst_ms, crashes_per_hour, by_hand, loads, maximum):
    """While a measurement may fail, however unlikely, pods are measured one by one: the samples are the same."""
    pod = simulated.pod(limit=400, burst_ms=burst_ms, burst_ucores=300_000, crashes_per_hour=crashes_per_hour)
    cpu = simulated.load({100 * index: cores / 10 for index, cores in enumerate(loads)})
    events = tuple(ManualScale(at_s * 1000, "default/web", 1 + at_s % 5) for at_s in sorted(by_hand))

    def syncs(dropout_ratio: float) -> list[tuple[WorkloadState, Trace]]:
        stated = simulated.scenario(
            simulated.web(cpu, pod=pod),
            simulated.cpu_spec(maximum=maximum),
            seconds=600,
            events=events,
            metrics_server=MetricsServerModel(dropout_ratio=dropout_ratio),
        )
        return [(sync.workload, sync.decision.trace) for sync in engine.simulate(stated)]

    assert syncs(0.0) == syncs(1e-300)
