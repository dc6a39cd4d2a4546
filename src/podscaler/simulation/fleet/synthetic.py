"""Generates a fleet of any size, for benchmarks and trials: each autoscaler has a random load of its own.

A load repeats every day, with a phase, a size and a noise of the autoscaler, and a peak on some days.

`podscaler backtest --fleet` and benchmarks call `partitions`.

Invariant: an autoscaler depends on the seed and its index alone, so that partitions may be cut anywhere.
"""

import math
from collections.abc import Iterator
from random import Random

import msgspec

from podscaler.api.typed import autoscaling
from podscaler.core.model import spec
from podscaler.simulation.fleet.autoscalers import FleetAutoscaler
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries, from_steps
from podscaler.simulation.model.workloads import ContainerModel, PodModel, ResourceLoad, WorkloadModel

_MINUTE_MS = 60_000
_DAY_MINUTES = 1440

_NOISE_MEMORY = 0.95
"""The share of the noise of a minute that remains in the next one."""

_NOISE_DEVIATION = 0.05
_PEAK_MINUTES = 20
_PEAK_FACTOR = 2.5


class SyntheticPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A Partition: the autoscalers with the indices from `begin` to before `end`, over `minutes` of their loads."""

    begin: int
    end: int
    minutes: int = _DAY_MINUTES
    seed: int = 0

    @property
    def name(self) -> str:
        """As in Partition."""
        return f"part-{self.begin:07}"

    @property
    def fingerprint(self) -> str:
        """As in Partition."""
        # 1 is the version of the generator: a change of the loads increments it
        return f"synthetic 1: {self.begin} to {self.end}, {self.minutes} minutes, seed {self.seed}"

    def autoscalers(self) -> Iterator[FleetAutoscaler]:
        """As in Partition."""
        for index in range(self.begin, self.end):
            yield _make_autoscaler(index, self.minutes, Random(f"{self.seed}/{index}"))


def partitions(
    autoscalers: int, *, minutes: int = _DAY_MINUTES, size: int = 50, seed: int = 0
) -> list[SyntheticPartition]:
    """A fleet of that many autoscalers, in partitions of `size`."""
    return [
        SyntheticPartition(begin=begin, end=min(begin + size, autoscalers), minutes=minutes, seed=seed)
        for begin in range(0, autoscalers, size)
    ]


def _make_autoscaler(index: int, minutes: int, random: Random) -> FleetAutoscaler:
    """The autoscaler with that index, over `minutes` of a random load."""
    namespace, name = f"team-{index % 100:02}", f"service-{index:06}"
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=random.choice((50, 60, 70, 80)))
    cpu_metric = autoscaling.MetricSpec(
        type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu", target=target)
    )
    wire = autoscaling.HorizontalPodAutoscalerSpec(
        scale_target_ref=autoscaling.CrossVersionObjectReference("Deployment", name, "apps/v1"),
        min_replicas=2,
        max_replicas=60,
        metrics=(cpu_metric,),
    )
    container = ContainerModel(name="app", requests_milli={"cpu": 200}, cpu_limit_milli=400)
    workload = WorkloadModel(
        key=f"{namespace}/{name}",
        replicas=random.randint(2, 20),
        pod=PodModel(containers=(container,)),
        demands=(ResourceLoad(resource="cpu", total=_make_load(minutes, random)),),
    )
    scenario = SimulationScenario(
        workloads=(workload,),
        autoscalers=(AutoscalerModel(spec=spec.parse(namespace, name, wire), workload=workload.key),),
        duration_ms=minutes * _MINUTE_MS,
    )
    return FleetAutoscaler(key=workload.key, scenario=scenario, wire=wire)


def _make_load(minutes: int, random: Random) -> StepSeries:
    """One value a minute, in millionths of a core: around 0.3 to 5 cores."""
    # e ** -1.2 is 0.3, and e ** 1.6 is 5
    mean_cores, swing, phase = math.exp(random.uniform(-1.2, 1.6)), random.uniform(0.2, 0.9), random.random()
    peak_minute, noise, steps = random.randrange(_DAY_MINUTES), 0.0, []
    for minute in range(minutes):
        noise = _NOISE_MEMORY * noise + random.gauss(0, _NOISE_DEVIATION)
        daily_factor = 1 + swing * math.sin((minute / _DAY_MINUTES + phase) * 2 * math.pi)
        demand_cores = mean_cores * daily_factor * (1 + noise)
        minutes_since_peak = (minute - peak_minute) % _DAY_MINUTES
        demand_cores *= _PEAK_FACTOR if minutes_since_peak < _PEAK_MINUTES else 1
        steps.append((minute * _MINUTE_MS, max(round(demand_cores * 1e6), 0)))
    return from_steps(steps)
