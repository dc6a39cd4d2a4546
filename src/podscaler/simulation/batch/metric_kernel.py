"""Computes the proposals of metrics in machine code: groups of pods, their averages, and totals.

Called by `decision_kernel`. The functions compute what those of `podscaler.core.calculation` compute that their
docstrings name, for cohorts of pods instead of single pods.

Source: docs/spec/decision.md 3 (Combining the metrics), 6 (Replica calculator).
"""

from podscaler.simulation.batch import layout as at
from podscaler.simulation.batch import world_kernel
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
"""Of a metric that has none."""

_SECOND_MS = 1_000
_COUNTED, _UNREADY, _MISSING = range(3)


@compiled
def proposal(inputs: KernelInputs, memory: KernelMemory, candidate: int, index: int, sync: int, now_ms: int) -> int:
    """The proposal of a candidate's metric (a row of `inputs.metrics`) at a sync, or NO_PROPOSAL."""
    metric, tolerance, feeds, state = inputs.metrics[index], inputs.tolerances[candidate], inputs.feeds, memory.state
    kind, feed = metric[at.KIND], metric[at.FEED]
    if kind <= at.RESOURCE_AVERAGE:
        return _of_resource(inputs, memory, metric, tolerance, now_ms)
    if kind == at.PODS_AVERAGE:
        value = state[at.RATE] if feed < 0 else feeds[feed, sync]
        return _of_pods(memory, metric, tolerance, value)
    usage = world_kernel.waiting_milli(inputs.world, state) if feed < 0 else feeds[feed, sync]
    if kind == at.TOTAL:
        return of_total(metric, tolerance, state, usage)
    return of_average(metric, tolerance, state, usage)


@compiled
def _of_resource(inputs: KernelInputs, memory: KernelMemory, metric: Array, tolerance: Array, now_ms: int) -> int:
    """`per_pod.propose_resource`, with the groups of `pod_groups.grouped`."""
    world, state, cohorts, samples = inputs.world, memory.state, memory.cohorts, memory.samples
    usage = counted = unready = missing = 0
    published = state[at.PUBLISHED]
    slot = max(published, 0) % world[at.SLOTS]
    taken_ms = world[at.START_MS] + (published + 1) * world[at.RESOLUTION_MS]
    taken_ms -= taken_ms % _SECOND_MS
    for index in range(state[at.BOTTOM], state[at.TOP]):
        count = cohorts[index, at.COUNT]
        group = _COUNTED
        if index >= state[at.NEXT_TO_RUN]:
            group = _UNREADY
        elif samples[index, slot, at.SAMPLE_NUMBER] != published:
            group = _MISSING
        elif metric[at.IS_CPU]:
            is_ready = index < state[at.NEXT_TO_BE_READY]
            window_ms = samples[index, slot, at.SAMPLE_WINDOW_MS]
            group = _cpu_group(world, cohorts[index], is_ready, taken_ms, window_ms, now_ms)
        if group == _COUNTED:
            counted += count
            value_milli = _value_milli(metric, inputs.containers, samples[index, slot])
            usage = wrapped_sum(usage, wrapped_product(count, value_milli))
        elif group == _UNREADY:
            unready += count
        else:
            missing += count
    return per_pod(metric, tolerance, state[at.REPLICAS], usage, (counted, unready, missing))


@compiled
def _cpu_group(world: Array, cohort: Array, is_ready: bool, taken_ms: int, window_ms: int, now_ms: int) -> int:
    """The group of pods that have a sample of CPU: `pods._cpu_rule`."""
    started_ns = cohort[at.MADE_MS] // _SECOND_MS * _SECOND_MS * at.MS_NS
    ready_changed_ms = cohort[at.READY_MS] if is_ready else cohort[at.MADE_MS]
    ready_changed_ms -= ready_changed_ms % _SECOND_MS
    if started_ns + world[at.CPU_INITIALIZATION_NS] > now_ms * at.MS_NS:
        return _COUNTED if is_ready and taken_ms >= ready_changed_ms + window_ms else _UNREADY
    if not is_ready and started_ns + world[at.READINESS_DELAY_NS] > ready_changed_ms * at.MS_NS:
        return _UNREADY
    return _COUNTED


@compiled
def _value_milli(metric: Array, containers: Array, sample: Array) -> int:
    """The value of a sample: `sampling._cpu_milli`, `sampling._memory_bytes`."""
    first_container, end_container = metric[at.FIRST_CONTAINER], metric[at.END_OF_CONTAINERS]
    total = 0
    if not metric[at.IS_CPU]:
        for index in range(first_container, end_container):
            share = world_kernel.share(sample[at.SAMPLE_BYTES], containers[index, at.MEMORY_PERMILLE])
            total += containers[index, at.IDLE_MEMORY] + share
        return total * 1000
    window_ms = sample[at.SAMPLE_WINDOW_MS]
    for index in range(first_container, end_container):
        share = world_kernel.share(sample[at.SAMPLE_SERVED], containers[index, at.LOAD_PERMILLE])
        total += containers[index, at.IDLE_CPU] * window_ms + share
    return -(-total // (window_ms * 1000))


@compiled
def _of_pods(memory: KernelMemory, metric: Array, tolerance: Array, metric_value: int) -> int:
    """`per_pod.propose_pods`, with the samples of `MetricFeeds._sample_pods`."""
    state, cohorts = memory.state, memory.cohorts
    running_unready = starting = 0
    for index in range(state[at.NEXT_TO_BE_READY], state[at.TOP]):
        if index < state[at.NEXT_TO_RUN]:
            running_unready += cohorts[index, at.COUNT]
        else:
            starting += cohorts[index, at.COUNT]
    ready = state[at.READY]
    if metric[at.IS_SHARED]:
        usage = wrapped_product(metric_value // max(ready, 1), ready)
    else:
        usage = wrapped_product(metric_value, ready + running_unready)
    return per_pod(metric, tolerance, state[at.REPLICAS], usage, (ready + running_unready, starting, 0))


@compiled
def is_within(tolerance: Array, ratio: float) -> bool:
    """Whether a ratio is close enough to 1 that nothing is scaled: `Tolerance.allows`."""
    return (1.0 - tolerance[0]) <= ratio <= (1.0 + tolerance[1])


@compiled
def per_pod(metric: Array, tolerance: Array, current: int, usage: int, groups: tuple[int, int, int]) -> int:
    """The proposal for pods: `per_pod._calculate`.

    Args:
        usage: of the pods that count.
        groups: how many pods count, are unready, and are missing.
    """
    counted, unready, missing = groups
    if counted == 0 or (metric[at.KIND] == at.UTILIZATION and not metric[at.HAS_REQUEST]):
        return NO_PROPOSAL
    if metric[at.KIND] == at.UTILIZATION and wrapped_product(metric[at.REQUEST], counted) == 0:
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
    if metric[at.KIND] == at.UTILIZATION and wrapped_product(metric[at.REQUEST], divisor_pods) == 0:
        return NO_PROPOSAL
    second_ratio = _ratio(metric, usage, divisor_pods)
    if is_within(tolerance, second_ratio):
        return current
    if (first_ratio < 1.0 < second_ratio) or (
        second_ratio < 1.0 < first_ratio
    ):  # the assumed usage turns the direction
        return current
    replicas = ceil_int32(second_ratio * float(divisor_pods))
    if (second_ratio < 1.0 and replicas > current) or (second_ratio > 1.0 and replicas < current):
        return current
    return replicas


@compiled
def _ratio(metric: Array, usage: int, pods: int) -> float:
    """The ratio of a reading: `_UtilizationGauge.read`, `_AverageGauge.read`."""
    if metric[at.KIND] != at.UTILIZATION:
        return float(divide_toward_zero(usage, pods)) / float(metric[at.TARGET])
    requests = wrapped_product(metric[at.REQUEST], pods)
    percent = wrap32(divide_toward_zero(wrapped_product(usage, 100), requests))
    return float(percent) / float(metric[at.TARGET])


@compiled
def _usage_of_missing_pod(metric: Array) -> int:
    """The usage that is assumed for a missing pod before a scale-down."""
    if metric[at.KIND] != at.UTILIZATION:
        return metric[at.TARGET]
    return divide_toward_zero(wrapped_product(metric[at.REQUEST], max(100, metric[at.TARGET])), 100)


@compiled
def of_total(metric: Array, tolerance: Array, state: Array, usage: int) -> int:
    """The proposal for a metric with a Value target: `totals._of_total`."""
    ratio = float(usage) / float(metric[at.TARGET])
    if state[at.REPLICAS] == 0:
        return ceil_int32(ratio)
    if is_within(tolerance, ratio):
        return state[at.REPLICAS]
    if state[at.PODS] == 0:
        return NO_PROPOSAL
    return ceil_int32_saturating(ratio * float(state[at.READY]))


@compiled
def of_average(metric: Array, tolerance: Array, state: Array, usage: int) -> int:
    """The proposal for an AverageValue target: that part of `totals.propose_object` and `totals.propose_external`."""
    target = float(metric[at.TARGET])
    if metric[at.KIND] == at.EXTERNAL_AVERAGE and usage < 0:
        usage = INT64_MAX
    ratio = float(usage) / (target * float(state[at.PODS]))
    if is_within(tolerance, ratio):
        return state[at.PODS]
    if metric[at.KIND] == at.EXTERNAL_AVERAGE:
        return ceil_int32_saturating(float(usage) / target)
    return ceil_int32(float(usage) / target)
