"""The simulation beside `podscaler up`: the same load on real processes and in virtual time, compared second by second.

A web service whose requests use a stated CPU time is put under a step, a ramp and a spike, and the syncs are recorded.
The replicas that the real autoscaler wanted are compared with those of the simulation. The load begins with a
measurement of the pods, as the simulation assumes.
"""

import os
import tempfile
from pathlib import Path

from benchmarks.reality_system import (
    CPU_INITIALIZATION_S,
    MAXIMUM,
    METRIC_S,
    PHASES,
    REQUEST_MILLI,
    SYNC_S,
    TARGET_PCT,
    WINDOW_S,
    Costs,
    Point,
    Run,
    measured_costs,
    observe,
    rate_steps,
)
from benchmarks.reality_tables import compare, plot, svg

from podscaler.api.typed import autoscaling
from podscaler.core.model import spec
from podscaler.core.model.settings import SECOND_NS, Settings
from podscaler.simulation import engine
from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import AutoscalerModel, MetricsServerModel, SimulationScenario
from podscaler.simulation.model.step_series import from_steps
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, WorkloadModel


def scenario(costs: Costs, run: Run) -> SimulationScenario:
    """The same system in virtual time."""
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=TARGET_PCT)
    metric = autoscaling.MetricSpec(
        type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu", target=target)
    )
    reference = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")
    wire = autoscaling.HorizontalPodAutoscalerSpec(
        scale_target_ref=reference, min_replicas=1, max_replicas=MAXIMUM, metrics=(metric,)
    )
    rate = from_steps((round(at_s * 1000), round(each * 1000)) for at_s, each in rate_steps())
    pod = PodModel(
        containers=(ContainerModel(name="web", requests_milli={"cpu": REQUEST_MILLI}, idle_cpu_ucores=costs.probe_us),),
        launch=fixed(run.launch_ms),
        startup=fixed(run.startup_ms),
        burst_ucores=1_000_000,
        burst_ms=run.start_us // 1000,
    )
    workload = WorkloadModel(
        key="default/web",
        pod=pod,
        requests=RequestLoad(rate=rate, cpu_per_request_us=costs.request_us),
    )
    return SimulationScenario(
        workloads=(workload,),
        autoscalers=(AutoscalerModel(spec=spec.parse("default", "web", wire), workload="default/web"),),
        duration_ms=round(sum(phase[1] for phase in PHASES) * 1000),
        metrics_server=MetricsServerModel(resolution_ms=METRIC_S * 1000, lag_ms=0, fresh_ms=500),
        sync_period_ms=SYNC_S * 1000,
        first_sync_ms=run.first_sync_ms,
        actuation_ms=0,
        settings=Settings(
            downscale_stabilization_ns=WINDOW_S * SECOND_NS,
            cpu_initialization_period_ns=CPU_INITIALIZATION_S * SECOND_NS,
        ),
    )


def simulated(stated: SimulationScenario) -> list[Point]:
    """The replicas of the simulation, at each sync."""
    points = []
    for sync in engine.simulate(stated):
        replicas = sync.workload.replicas if sync.decision.replicas is None else sync.decision.replicas
        points.append(Point(sync.at_ms / 1000, replicas, sync.workload.ready))
    return points


def main() -> None:
    """Observe, simulate, compare; PICTURE=FILE.svg keeps the picture."""
    costs = measured_costs()
    with tempfile.TemporaryDirectory() as folder:
        run = observe(Path(folder, "syncs.jsonl.gz"))
    virtual = simulated(scenario(costs, run))
    print(f"a request uses {costs.request_us / 1000:.1f} ms of CPU, a probe {costs.probe_us / 1000:.1f} ms;")
    print(f"a pod uses {run.start_us / 1000:.0f} ms of CPU to start, runs after {run.launch_ms} ms,")
    print(f"and is ready {run.startup_ms} ms later\n")
    print("\n".join(compare(run.points, virtual)))
    print("\nreplicas wanted, every 5 s (A is 10):\n")
    print("\n".join(plot(run.points, virtual)))
    if picture := os.environ.get("PICTURE"):
        Path(picture).write_text(svg(run.points, virtual))


if __name__ == "__main__":
    main()
