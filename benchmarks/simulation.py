"""How fast autoscalers are simulated, by the exact engine and in batches, and what that takes in memory.

    .venv/bin/python -m benchmarks simulation

One workload with a target for CPU, under a load that repeats every day with noise, one value a minute; syncs every
15 s. Candidates differ in target, maximum and behavior. Time is CPU time of one core; the batch engine is one thread.
"""

import itertools
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from random import Random

import numpy as np
from benchmarks import simulation_vectorized

from podscaler.api.typed import autoscaling
from podscaler.core.model import spec
from podscaler.core.model.spec import Spec
from podscaler.simulation import batch, engine
from podscaler.simulation.batch import Measures
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries, from_steps
from podscaler.simulation.model.workloads import ContainerModel, PodModel, ResourceLoad, WorkloadModel

DAY_MS = 86_400_000
MINUTE_MS = 60_000
SYNC_MS = 15_000
FLEET = 10_000

Row = tuple[str, str]


def trace(days: int, seed: int = 1) -> StepSeries:
    """Between one and five cores over a day, with noise that lasts some minutes."""
    random, noise, steps = Random(seed), 0.0, []
    for minute in range(days * 1440):
        noise = 0.95 * noise + random.gauss(0, 0.05)
        cores = (3 + 2 * math.sin(minute / 1440 * 2 * math.pi)) * (1 + noise)
        steps.append((minute * MINUTE_MS, max(round(cores * 1e6), 0)))
    return from_steps(steps)


def scenario(days: int, seed: int = 1) -> SimulationScenario:
    """The workload, and an autoscaler with a target of 50 %."""
    container = ContainerModel(name="app", requests_milli={"cpu": 200}, cpu_limit_milli=400)
    workload = WorkloadModel(
        key="default/web",
        replicas=10,
        pod=PodModel(containers=(container,)),
        demands=(ResourceLoad(resource="cpu", total=trace(days, seed)),),
    )
    return SimulationScenario(
        workloads=(workload,),
        autoscalers=(AutoscalerModel(spec=candidate(50), workload=workload.key),),
        duration_ms=days * DAY_MS,
    )


def candidate(target_pct: int, window_s: int | None = None, maximum: int = 60) -> Spec:
    """A spec; with a window also a behavior."""
    rules = autoscaling.HPAScalingRules(stabilization_window_seconds=window_s)
    behavior = autoscaling.HorizontalPodAutoscalerBehavior(scale_down=rules)
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=target_pct)
    cpu = autoscaling.MetricSpec(type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu", target=target))
    wire = autoscaling.HorizontalPodAutoscalerSpec(
        scale_target_ref=autoscaling.CrossVersionObjectReference("Deployment", "web", "apps/v1"),
        max_replicas=maximum,
        metrics=(cpu,),
        behavior=None if window_s is None else behavior,
    )
    return spec.parse("default", "web", wire)


def candidates(count: int) -> list[Spec]:
    """Half of them with a behavior."""
    choices = itertools.product((40, 60), (None, 0, None, 60, None, 300, None, 900), range(30, 80))
    return [candidate(pct, window, most) for most, window, pct in itertools.islice(itertools.cycle(choices), count)]


def measured(run: Callable[[], object]) -> float:
    """The CPU seconds of a call."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def exact_rows(runs: int = 3) -> Iterator[Row]:
    """The exact engine, one autoscaler: the median of some runs."""
    stated, cpu_s, wall_s = scenario(7), [], []
    for _ in range(runs):
        begun = time.perf_counter()
        cpu_s.append(measured(lambda: sum(1 for _ in engine.simulate(stated))))
        wall_s.append(time.perf_counter() - begun)
    syncs, elapsed = 7 * DAY_MS // SYNC_MS, statistics.median(cpu_s)
    yield "exact engine", f"{syncs / elapsed:,.0f} syncs/s"
    wall = f"{statistics.median(wall_s):.1f} s by the clock"
    yield f"exact engine, a week of one autoscaler ({syncs:,} syncs)", f"{elapsed:.1f} s (goal 4 s), {wall}"


def first_run_rows() -> Iterator[Row]:
    """The first run of a process: without machine code, and with that of the process before."""
    program = (
        "from benchmarks import simulation as s; import time; b = time.process_time();"
        "s.batch.run(s.batch.compile_scenario(s.scenario(1)), [s.candidate(50)]); print(time.process_time() - b)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for text in ("made", "kept from before"):
            done = subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | {"NUMBA_CACHE_DIR": folder},
            )
            yield f"batch engine, first run of a process, machine code {text}", f"{float(done.stdout):.2f} s"


def batch_rows() -> Iterator[Row]:
    """The batch engine, with and without timelines."""
    compiled, chosen = batch.compile_scenario(scenario(7)), candidates(1000)
    needed = np.maximum(-(-compiled.demand_ucores // 400_000), 1)
    for text, measures in [
        ("sums and deviations", Measures(keep_timeline=False, needed=needed)),
        ("timelines", Measures()),
    ]:
        elapsed = measured(lambda measures=measures: batch.run(compiled, chosen, measures))
        rate = len(chosen) * len(compiled.at_ms) / elapsed
        yield f"batch engine, {text}", f"{rate:,.0f} syncs/s (goal 2,000,000)"
        yield f"batch engine, {text}, 1,000 candidates on a week", f"{elapsed:.1f} s (goal 30 s)"


def fleet_rows() -> Iterator[Row]:
    """10,000 autoscalers with a load of their own each, one after the other, for a day; results are sums."""
    before = _peak_mib()
    loads = [scenario(1, seed) for seed in range(20)]
    begun, changes = time.process_time(), 0
    for index in range(FLEET):
        compiled = batch.compile_scenario(loads[index % len(loads)])
        result = batch.run(compiled, [candidate(30 + index % 50)], Measures(keep_timeline=False))
        changes += int(result.scale_ups[0])
    elapsed = time.process_time() - begun
    yield f"batch engine, {FLEET:,} autoscalers and a day", f"{elapsed:.0f} s, {changes:,} scale-ups"
    yield "peak memory of the process after that (before it)", f"{_peak_mib():,.0f} MiB ({before:,.0f}), goal 1,024 MiB"


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def vectorized_rows() -> Iterator[Row]:
    """The alternative that was rejected: numpy over all candidates at each sync (docs/decisions/batch-engine.md)."""
    for count in (25, 100, 1000):
        syncs = DAY_MS // SYNC_MS
        demand = batch.compile_scenario(scenario(1)).demand_ucores[:syncs]
        targets = np.array([30.0 + index % 50 for index in range(count)])
        elapsed = measured(
            lambda targets=targets, demand=demand: simulation_vectorized.simulate(demand, targets, 200_000, 20)
        )
        yield (
            f"numpy, {count:,} candidates side by side (no start-up, no behavior)",
            f"{count * syncs / elapsed:,.0f} syncs/s",
        )


def main(print_row: Callable[..., None] = print) -> None:
    """Print the table."""
    for name, figure in itertools.chain(fleet_rows(), exact_rows(), first_run_rows(), batch_rows(), vectorized_rows()):
        print_row(f"{name:<72} {figure}")


if __name__ == "__main__":
    main()
