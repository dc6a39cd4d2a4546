"""Builders of scenarios for the tests of the simulation."""

from typing import Any

from podscaler.api.typed import autoscaling
from podscaler.core.model import spec
from podscaler.core.model.spec import Spec
from podscaler.simulation import engine
from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries, from_steps
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, ResourceLoad, WorkloadModel

CORE = 1_000_000
SECOND_MS = 1_000


def load(steps: dict[float, float], unit: int = CORE) -> StepSeries:
    """The series of values (cores, or another unit) from their seconds on."""
    return from_steps((round(at_s * SECOND_MS), round(value * unit)) for at_s, value in steps.items())


def cpu_spec(utilization: int = 50, *, name: str = "web", maximum: int = 10, **more: Any) -> Spec:
    """An autoscaler of `default/web` over CPU utilization."""
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=utilization)
    metric = autoscaling.MetricSpec(
        type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu", target=target)
    )
    return metric_spec(metric, name=name, maximum=maximum, **more)


def metric_spec(*metrics: autoscaling.MetricSpec, name: str = "web", maximum: int = 10, **more: Any) -> Spec:
    """An autoscaler of `default/web` over these metrics; `more` are fields of its spec."""
    reference = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")
    fields = {"min_replicas": 1} | more
    wire = autoscaling.HorizontalPodAutoscalerSpec(
        scale_target_ref=reference, max_replicas=maximum, metrics=metrics, **fields
    )
    return spec.parse("default", name, wire)


def pod(cpu_milli: int = 200, *, startup_s: float = 5, **more: Any) -> PodModel:
    """A pod with one container that requests this much CPU."""
    container = ContainerModel(name="app", requests_milli={"cpu": cpu_milli}, cpu_limit_milli=more.pop("limit", None))
    return PodModel(containers=(container,), startup=fixed(round(startup_s * SECOND_MS)), **more)


def web(cpu: StepSeries | None = None, *, requests: RequestLoad | None = None, **more: Any) -> WorkloadModel:
    """The workload `default/web`, with a total demand for CPU or with requests."""
    demands = (ResourceLoad(resource="cpu", total=cpu),) if cpu is not None else ()
    fields = {"pod": pod()} | more
    return WorkloadModel(key="default/web", demands=demands, requests=requests, **fields)


def scenario(workload: WorkloadModel, *specs: Spec, seconds: float, **more: Any) -> SimulationScenario:
    """A scenario of one workload."""
    autoscalers = tuple(AutoscalerModel(spec=each, workload=workload.key) for each in specs)
    duration_ms = round(seconds * SECOND_MS)
    return SimulationScenario(workloads=(workload,), autoscalers=autoscalers, duration_ms=duration_ms, **more)


def rescales(stated: SimulationScenario) -> list[tuple[float, int]]:
    """The second and the new replicas of every rescale."""
    return [
        (sync.at_ms / SECOND_MS, sync.decision.replicas)
        for sync in engine.simulate(stated)
        if sync.decision.replicas is not None
    ]
