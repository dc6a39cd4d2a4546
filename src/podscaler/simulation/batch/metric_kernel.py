"""Computes the proposals of metrics in machine code: groups of pods, their averages, and totals.

Called by `decision_kernel`. The functions compute what those of `podscaler.core.calculation` compute that their
docstrings name, for cohorts of pods instead of single pods. `metric` is a row of `layout`'s `metrics`, `tolerance` has
the ratios for down and up. numba compiles all functions, so they use numbers and arrays only.

Source: docs/spec/decision.md 3 (Combining the metrics), 6 (Replica calculator).
"""

from podscaler.simulation.batch import layout, world_kernel
from podscaler.simulation.batch.compilation import (
    INT64_MAX,
    ceil_int32,
    ceil_int32_saturating,
    compiled,
    divide_toward_zero,
    wrap32,
    wrapped_product,
    wrapped_sum,
)
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelMemory

NO_PROPOSAL = 1 << 40
"""The result for a metric that has no proposal; proposals have 32 bits."""

_SECOND_MS = 1_000
_COUNTED, _UNREADY, _MISSING = range(3)


@compiled
def propose(inputs: KernelInputs, memory: KernelMemory, candidate: int, index: int, sync: int, now_ms: int) -> int:
    """The proposal of a candidate's metric (a row of `inputs.metrics`) at a sync, or NO_PROPOSAL."""
    metric, tolerance, feeds, state = inputs.metrics[index], inputs.tolerances[candidate], inputs.feeds, memory.state
    metric_kind, feed = metric[layout.KIND], metric[layout.FEED]
    if metric_kind <= layout.RESOURCE_AVERAGE:
        return _propose_resource(inputs, memory, metric, tolerance, now_ms)
    if metric_kind == layout.PODS_AVERAGE:
        metric_value = state[layout.RATE] if feed < 0 else feeds[feed, sync]
        return _propose_pods(memory, metric, tolerance, metric_value)
    usage = world_kernel.waiting_milli(inputs.world, state) if feed < 0 else feeds[feed, sync]
    if metric_kind == layout.TOTAL:
        return propose_total(metric, tolerance, state, usage)
    return propose_average(metric, tolerance, state, usage)


@compiled
def _propose_resource(inputs: KernelInputs, memory: KernelMemory, metric: Array, tolerance: Array, now_ms: int) -> int:
    """The proposal for a resource metric: `per_pod.propose_resource`, with the groups of `pod_groups.grouped`."""
    world, state, cohorts, samples = inputs.world, memory.state, memory.cohorts, memory.samples
    usage = counted = unready = missing = 0
    published = state[layout.PUBLISHED]
    slot = max(published, 0) % world[layout.SLOTS]
    taken_ms = world[layout.START_MS] + (published + 1) * world[layout.RESOLUTION_MS]  # measurement 0 is after a period
    taken_ms -= taken_ms % _SECOND_MS
    for index in range(state[layout.BOTTOM], state[layout.TOP]):
        count = cohorts[index, layout.COUNT]
        group = _COUNTED
        if index >= state[layout.NEXT_TO_RUN]:
            group = _UNREADY
        elif samples[index, slot, layout.SAMPLE_NUMBER] != published:
            group = _MISSING
        elif metric[layout.IS_CPU]:
            is_ready = index < state[layout.NEXT_TO_BE_READY]
            window_ms = samples[index, slot, layout.SAMPLE_WINDOW_MS]
            group = _cpu_group(world, cohorts[index], is_ready, taken_ms, window_ms, now_ms)
        if group == _COUNTED:
            counted += count
            value_milli = _value_milli(metric, inputs.containers, samples[index, slot])
            usage = wrapped_sum(usage, wrapped_product(count, value_milli))
        elif group == _UNREADY:
            unready += count
        else:
            missing += count
    return propose_per_pod(metric, tolerance, state[layout.REPLICAS], usage, (counted, unready, missing))


@compiled
def _cpu_group(world: Array, cohort: Array, is_ready: bool, taken_ms: int, window_ms: int, now_ms: int) -> int:
    """The group of pods that have a sample of CPU: `pod_groups._cpu_rule`."""
    started_ns = cohort[layout.MADE_MS] // _SECOND_MS * _SECOND_MS * layout.MS_NS
    ready_changed_ms = cohort[layout.READY_MS] if is_ready else cohort[layout.MADE_MS]
    ready_changed_ms -= ready_changed_ms % _SECOND_MS
    if started_ns + world[layout.CPU_INITIALIZATION_NS] > now_ms * layout.MS_NS:
        return _COUNTED if is_ready and taken_ms >= ready_changed_ms + window_ms else _UNREADY
    if not is_ready and started_ns + world[layout.READINESS_DELAY_NS] > ready_changed_ms * layout.MS_NS:
        return _UNREADY
    return _COUNTED


@compiled
def _value_milli(metric: Array, containers: Array, sample: Array) -> int:
    """The value of a sample: `sampling._cpu_milli`, `sampling._memory_bytes`."""
    first_container, end_container = metric[layout.FIRST_CONTAINER], metric[layout.END_OF_CONTAINERS]
    total = 0
    if not metric[layout.IS_CPU]:
        for index in range(first_container, end_container):
            share = world_kernel.share(sample[layout.SAMPLE_BYTES], containers[index, layout.MEMORY_PERMILLE])
            total += containers[index, layout.IDLE_MEMORY] + share
        return total * 1000
    window_ms = sample[layout.SAMPLE_WINDOW_MS]
    for index in range(first_container, end_container):
        share = world_kernel.share(sample[layout.SAMPLE_SERVED], containers[index, layout.LOAD_PERMILLE])
        total += containers[index, layout.IDLE_CPU] * window_ms + share
    return -(-total // (window_ms * 1000))


@compiled
def _propose_pods(memory: KernelMemory, metric: Array, tolerance: Array, metric_value: int) -> int:
    """The proposal for a Pods metric: `per_pod.propose_pods`, with the samples of `MetricFeeds._sample_pods`.

    Args:
        metric_value: of each pod or in total, in thousandths.
    """
    state, cohorts = memory.state, memory.cohorts
    running_unready = starting = 0
    for index in range(state[layout.NEXT_TO_BE_READY], state[layout.TOP]):
        if index < state[layout.NEXT_TO_RUN]:
            running_unready += cohorts[index, layout.COUNT]
        else:
            starting += cohorts[index, layout.COUNT]
    ready = state[layout.READY]
    if metric[layout.IS_SHARED]:
        usage = wrapped_product(metric_value // max(ready, 1), ready)
    else:
        usage = wrapped_product(metric_value, ready + running_unready)
    return propose_per_pod(metric, tolerance, state[layout.REPLICAS], usage, (ready + running_unready, starting, 0))


@compiled
def is_within(tolerance: Array, ratio: float) -> bool:
    """Whether a ratio is close enough to 1 that nothing is scaled: `Tolerance.allows`."""
    return (1.0 - tolerance[0]) <= ratio <= (1.0 + tolerance[1])


@compiled
def propose_per_pod(metric: Array, tolerance: Array, current: int, usage: int, groups: tuple[int, int, int]) -> int:
    """The proposal for pods: `per_pod._calculate`.

    Args:
        usage: of the pods that count.
        groups: how many pods count, are unready, and are missing.
    """
    counted, unready, missing = groups
    if counted == 0 or (metric[layout.KIND] == layout.UTILIZATION and not metric[layout.HAS_REQUEST]):
        return NO_PROPOSAL
    if metric[layout.KIND] == layout.UTILIZATION and wrapped_product(metric[layout.REQUEST], counted) == 0:
        return NO_PROPOSAL
    first_ratio = _ratio(metric, usage, counted)
    includes_unready = unready > 0 and first_ratio > 1.0
    if not includes_unready and missing == 0:
        return current if is_within(tolerance, first_ratio) else ceil_int32(first_ratio * float(counted))
    divisor_pods = counted
    if first_ratio < 1.0:
        divisor_pods += missing
        usage = wrapped_sum(usage, wrapped_product(missing, _usage_of_missing_pod(metric)))
    elif first_ratio > 1.0:
        divisor_pods += missing
    if includes_unready:
        divisor_pods += unready
    if metric[layout.KIND] == layout.UTILIZATION and wrapped_product(metric[layout.REQUEST], divisor_pods) == 0:
        return NO_PROPOSAL
    second_ratio = _ratio(metric, usage, divisor_pods)
    if is_within(tolerance, second_ratio):
        return current
    is_turned_up = first_ratio < 1.0 < second_ratio
    is_turned_down = second_ratio < 1.0 < first_ratio
    if is_turned_up or is_turned_down:  # by the usage that is assumed for missing and unready pods
        return current
    replicas = ceil_int32(second_ratio * float(divisor_pods))
    if (second_ratio < 1.0 and replicas > current) or (second_ratio > 1.0 and replicas < current):
        return current
    return replicas


@compiled
def _ratio(metric: Array, usage: int, pods: int) -> float:
    """The ratio of a reading: `_UtilizationGauge.read`, `_AverageGauge.read`."""
    if metric[layout.KIND] != layout.UTILIZATION:
        return float(divide_toward_zero(usage, pods)) / float(metric[layout.TARGET])
    requests = wrapped_product(metric[layout.REQUEST], pods)
    percent = wrap32(divide_toward_zero(wrapped_product(usage, 100), requests))
    return float(percent) / float(metric[layout.TARGET])


@compiled
def _usage_of_missing_pod(metric: Array) -> int:
    """The usage that is assumed for a missing pod before a scale-down."""
    if metric[layout.KIND] != layout.UTILIZATION:
        return metric[layout.TARGET]
    return divide_toward_zero(wrapped_product(metric[layout.REQUEST], max(100, metric[layout.TARGET])), 100)


@compiled
def propose_total(metric: Array, tolerance: Array, state: Array, usage: int) -> int:
    """The proposal for a metric with a Value target: `totals._total_proposal`."""
    ratio = float(usage) / float(metric[layout.TARGET])
    if state[layout.REPLICAS] == 0:
        return ceil_int32(ratio)
    if is_within(tolerance, ratio):
        return state[layout.REPLICAS]
    if state[layout.PODS] == 0:
        return NO_PROPOSAL
    return ceil_int32_saturating(ratio * float(state[layout.READY]))


@compiled
def propose_average(metric: Array, tolerance: Array, state: Array, usage: int) -> int:
    """The proposal for an AverageValue target: that part of `totals.propose_object` and `totals.propose_external`."""
    target = float(metric[layout.TARGET])
    if metric[layout.KIND] == layout.EXTERNAL_AVERAGE and usage < 0:
        usage = INT64_MAX
    ratio = float(usage) / (target * float(state[layout.PODS]))
    if is_within(tolerance, ratio):
        return state[layout.PODS]
    if metric[layout.KIND] == layout.EXTERNAL_AVERAGE:
        return ceil_int32_saturating(float(usage) / target)
    return ceil_int32(float(usage) / target)
