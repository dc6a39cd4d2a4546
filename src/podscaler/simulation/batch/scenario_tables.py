"""Converts a scenario to arrays for the compiled functions, after checking that the batch engine covers it.

Called by `podscaler.simulation.batch.batch_runs`. A new attribute of a model: a reason in `_obstacles`, or a column of
`layout`, filled here and used by `world_kernel`.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from podscaler.core.model import emulation, settings
from podscaler.simulation.batch import layout
from podscaler.simulation.batch.candidate_tables import MetricSources, NotCovered, span_ns
from podscaler.simulation.batch.layout import Array
from podscaler.simulation.model.scenario import MetricFeed, SimulationScenario
from podscaler.simulation.model.step_series import StepSeries
from podscaler.simulation.model.workloads import ContainerModel, WorkloadModel

_AMOUNT_LIMIT = 1 << 61
"""What amounts must stay below, so that sums of a few of them do not wrap."""

_LONGEST_MS = 1 << 40
"""The longest time that is covered, almost 35 years."""


class BatchScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario as arrays, for any number of candidates; `layout` states the fields of arrays.

    Attributes:
        sources: what the metrics of candidates can refer to.
        at_ms: the instant of each sync.
        demand_ucores: the CPU that the load needs at each sync.
        feeds: the value of each feed at each sync.
        most_replicas: the largest `maxReplicas` whose capacity can be computed.
    """

    scenario: SimulationScenario
    sources: MetricSources
    world: Array
    loads: Array
    feeds: Array
    containers: Array
    at_ms: Array
    demand_ucores: Array
    most_replicas: int


def of_scenario(scenario: SimulationScenario) -> BatchScenario:
    """The scenario as arrays. Raises NotCovered."""
    obstacle = next(_obstacles(scenario), None)
    if obstacle is not None:
        raise NotCovered(obstacle)
    workload = scenario.workloads[0]
    at_ms = np.arange(scenario.first_sync_ms, scenario.duration_ms + 1, scenario.sync_period_ms, dtype=np.int64)
    start_ms = -(2 + -(-scenario.metrics_server.lag_ms // scenario.metrics_server.resolution_ms))
    start_ms *= scenario.metrics_server.resolution_ms  # as in `VirtualWorkload._start`
    loads = _loads(workload, start_ms, scenario.duration_ms)
    feeds = {(feed.metric, feed.object_name): feed for feed in scenario.feeds}
    feed_rows = {key: (index, feed.sharing == "shared") for index, (key, feed) in enumerate(feeds.items())}
    load_steps = np.searchsorted(loads[:, layout.LOAD_AT_MS], at_ms, side="right") - 1
    world = _world(scenario, workload, len(at_ms), start_ms)
    _check_amounts(workload, loads, scenario.duration_ms - start_ms)
    return BatchScenario(
        scenario=scenario,
        sources=MetricSources(workload, feed_rows),
        world=world,
        loads=loads,
        feeds=_feed_values(list(feeds.values()), at_ms),
        containers=np.array([_container_row(container) for container in workload.pod.containers], np.int64),
        at_ms=at_ms,
        demand_ucores=loads[load_steps, layout.LOAD_DEMAND],
        most_replicas=_most_replicas(workload, scenario.metrics_server.resolution_ms),
    )


def _container_row(container: ContainerModel) -> tuple[int, int, int, int]:
    """The fields of a row of `containers`: IDLE_CPU, IDLE_MEMORY, LOAD_PERMILLE, MEMORY_PERMILLE."""
    return (
        container.idle_cpu_ucores,
        container.idle_memory_bytes,
        container.load_permille,
        container.memory_share_permille,
    )


def _obstacles(scenario: SimulationScenario) -> Iterator[str]:
    """The reasons why a scenario is not covered."""
    if len(scenario.workloads) != 1 or len(scenario.autoscalers) > 1:
        yield "more than one workload or autoscaler is not covered"
        return
    workload, pipeline, controller_settings = scenario.workloads[0], scenario.metrics_server, scenario.settings
    if any(autoscaler.workload != workload.key for autoscaler in scenario.autoscalers):
        yield "an autoscaler without its workload is not covered"
    if not workload.pod.is_deterministic:
        yield "pods with random durations or crashes are not covered"
    if workload.is_ordered:
        yield "a workload that makes its pods one after another is not covered"
    if scenario.cluster is not None:
        yield "a cluster with limited room is not covered"
    if scenario.events:
        yield "events (scaling by hand, rollouts, edits) are not covered"
    if scenario.outages:
        yield "outages of the metrics API are not covered"
    if pipeline.dropout_ratio:
        yield "measurements that fail are not covered"
    if controller_settings.algorithm != settings.CURRENT or controller_settings.emulation != emulation.V1_37:
        yield "only today's algorithm, as in Kubernetes 1.37, is covered"
    if controller_settings.upscale_delay_ns is not None or controller_settings.downscale_delay_ns is not None:
        yield "delays after a rescale are not covered"
    yield from _obstacles_of_times(scenario)
    yield from _obstacles_of_loads(workload)


def _obstacles_of_times(scenario: SimulationScenario) -> Iterator[str]:
    """The reasons why times of a scenario are not covered."""
    pipeline, pod = scenario.metrics_server, scenario.workloads[0].pod
    spans = (scenario.first_sync_ms, scenario.actuation_ms, pipeline.lag_ms, pipeline.fresh_ms, pod.burst_ms)
    if min(spans) < 0 or min(scenario.sync_period_ms, pipeline.resolution_ms) <= 0:
        yield "negative times, and periods of 0, are not covered"
    if max(*spans, scenario.duration_ms, pod.launch.low_ms, pod.startup.low_ms) > _LONGEST_MS:
        yield "times beyond 30 years are not covered"


def _obstacles_of_loads(workload: WorkloadModel) -> Iterator[str]:
    """The reasons why loads and containers of a workload are not covered."""
    resources = [demand.resource for demand in workload.demands]
    if len(set(resources)) < len(resources) or (workload.requests is not None and "cpu" in resources):
        yield "two demands for one resource are not covered"
    requests = workload.requests
    if requests is not None and requests.cpu_per_request_us <= 0:
        yield "requests without CPU time are not covered"
    series = [demand.total for demand in workload.demands]
    if requests is not None:
        series.append(requests.rate)
    if any(min(one_series.values) < 0 for one_series in series) or workload.replicas < 0:
        yield "negative loads are not covered"
    names = [container.name for container in workload.pod.containers]
    if len(set(names)) < len(names):
        yield "two containers with one name are not covered"
    containers = workload.pod.containers
    shares = [
        *[container.load_permille for container in containers],
        *[container.memory_share_permille for container in containers],
    ]
    if not all(0 <= share <= 1000 for share in shares):
        yield "containers with more than all of the load are not covered"


def _world(scenario: SimulationScenario, workload: WorkloadModel, syncs: int, start_ms: int) -> Array:
    """The array `world` of the kernels, whose fields `layout` states.

    Args:
        start_ms: before the first instant of the scenario, so below 0.
    """
    pipeline, pod, requests, settings = scenario.metrics_server, workload.pod, workload.requests, scenario.settings
    capacity = workload.cpu_capacity_ucores
    launch_ms, startup_ms = pod.launch.low_ms, pod.startup.low_ms
    slots = pipeline.lag_ms // pipeline.resolution_ms + 2
    initialization_ns = span_ns(settings.cpu_initialization_period_ns)
    alike_age_ms = max(
        launch_ms + max(startup_ms, pod.burst_ms, pipeline.fresh_ms), -(-initialization_ns // layout.MS_NS) + 1000
    )
    world = np.zeros(layout.WORLD_FIELDS, np.int64)
    world[layout.SYNC_PERIOD_MS], world[layout.FIRST_SYNC_MS] = scenario.sync_period_ms, scenario.first_sync_ms
    world[layout.SYNCS], world[layout.START_MS] = syncs, start_ms
    world[layout.RESOLUTION_MS], world[layout.LAG_MS] = pipeline.resolution_ms, pipeline.lag_ms
    world[layout.FRESH_MS], world[layout.SLOTS] = pipeline.fresh_ms, slots
    world[layout.LAUNCH_MS], world[layout.STARTUP_MS] = launch_ms, startup_ms
    world[layout.SETTLED_MS] = alike_age_ms + (slots + 2) * pipeline.resolution_ms
    world[layout.ACTUATION_MS], world[layout.INITIAL_REPLICAS] = scenario.actuation_ms, workload.replicas
    world[layout.CAPACITY] = -1 if capacity is None else capacity
    world[layout.TIMEOUT_MS] = -1
    if requests is not None:
        world[layout.HAS_REQUESTS], world[layout.CPU_PER_REQUEST_US] = 1, requests.cpu_per_request_us
        world[layout.TIMEOUT_MS] = -1 if requests.timeout_ms is None else requests.timeout_ms
        world[layout.MEMORY_PER_REQUEST] = requests.memory_per_request_bytes
        world[layout.LATENCY_MS] = requests.latency_ms
    world[layout.BURST_UCORES], world[layout.BURST_MS] = pod.burst_ucores, pod.burst_ms
    world[layout.CPU_INITIALIZATION_NS] = initialization_ns
    world[layout.READINESS_DELAY_NS] = span_ns(settings.initial_readiness_delay_ns)
    world[layout.SCALES_TO_ZERO] = settings.gates.scale_to_zero
    return world


def _loads(workload: WorkloadModel, start_ms: int, duration_ms: int) -> Array:
    """The load at the start and from each of its steps on; there is one at 0, where the simulation begins."""
    requests = workload.requests
    totals = {demand.resource: demand.total for demand in workload.demands if demand.resource in ("cpu", "memory")}
    series = [*totals.values(), *([] if requests is None else [requests.rate])]
    instants = {step for one_series in series for step in one_series.at_ms if start_ms < step <= duration_ms}
    at_ms = np.array([start_ms, *sorted(instants | {0}), layout.FAR_MS], np.int64)
    loads = np.zeros((len(at_ms), 4), np.int64)
    loads[:, layout.LOAD_AT_MS] = at_ms
    if requests is not None:
        loads[:, layout.LOAD_RATE] = values_at(requests.rate, at_ms)
        if int(loads[:, layout.LOAD_RATE].max()) * requests.cpu_per_request_us >= _AMOUNT_LIMIT:
            raise NotCovered("the requests need more CPU than 64 bits can state")
        loads[:, layout.LOAD_DEMAND] = loads[:, layout.LOAD_RATE] * requests.cpu_per_request_us // 1000
    elif "cpu" in totals:
        loads[:, layout.LOAD_DEMAND] = values_at(totals["cpu"], at_ms)
    if "memory" in totals:
        loads[:, layout.LOAD_BYTES] = values_at(totals["memory"], at_ms)
    return loads


def values_at(series: StepSeries, at_ms: Array) -> Array:
    """The values of a series at these instants. Raises NotCovered if they have more than 64 bits."""
    if max(map(abs, series.values)) >= _AMOUNT_LIMIT:
        raise NotCovered("values of a load or a metric beyond 61 bits are not covered")
    steps = np.searchsorted(np.array(series.at_ms, np.int64), at_ms, side="right") - 1
    values: Array = np.array(series.values, np.int64)[np.maximum(steps, 0)]
    return values


def _feed_values(feeds: list[MetricFeed], at_ms: Array) -> Array:
    """The value of each feed (row) at each of these instants (column), delayed by the lag of the feed."""
    values = np.zeros((len(feeds), len(at_ms)), np.int64)
    for row, feed in zip(values, feeds, strict=True):
        row[:] = values_at(feed.values, at_ms - feed.lag_ms)
    return values


def _check_amounts(workload: WorkloadModel, loads: Array, span_ms: int) -> None:
    """Raises NotCovered if sums of work or memory could have more than 64 bits."""
    work = int(loads[:, layout.LOAD_DEMAND].max()) * span_ms
    waiting_bytes = 0
    if workload.requests is not None and workload.requests.memory_per_request_bytes:
        waiting_requests_milli = work // workload.requests.cpu_per_request_us
        waiting_bytes = waiting_requests_milli // 1000 * workload.requests.memory_per_request_bytes
    idle_ucore_ms = sum(container.idle_cpu_ucores for container in workload.pod.containers) * span_ms
    burst_work = workload.pod.burst_ucores * max(workload.pod.burst_ms, 1)
    idle_bytes = sum(container.idle_memory_bytes for container in workload.pod.containers)
    memory_milli = (int(loads[:, layout.LOAD_BYTES].max()) + waiting_bytes + idle_bytes) * 1000
    if max(work, idle_ucore_ms, burst_work, memory_milli) >= _AMOUNT_LIMIT:
        raise NotCovered("the sums of work or memory need more than 61 bits")


def _most_replicas(workload: WorkloadModel, resolution_ms: int) -> int:
    """The most replicas whose work during a timeout or a measurement stays below _AMOUNT_LIMIT."""
    timeout_ms = 0 if workload.requests is None else workload.requests.timeout_ms or 0
    work_of_each = (workload.cpu_capacity_ucores or 0) * max(timeout_ms, resolution_ms)
    return _AMOUNT_LIMIT // max(work_of_each, 1)
