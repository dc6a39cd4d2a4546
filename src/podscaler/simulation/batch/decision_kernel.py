"""Decides in machine code: branch, metrics, windows, rates and bounds, and the history of one autoscaler.

Called by `candidate_kernel`. The functions compute what those of `podscaler.core` compute that their docstrings name;
numba compiles them, so they use numbers and arrays only. `spec` is a row of `layout`'s `specs`.
Recommendations are kept as two monotonic queues, for the highest and the lowest within the windows. Their result equals
that of the list of `podscaler.core.model.history`, which overwrites only recommendations that are outside of both
windows for good. Scale events are kept as they are there, because a policy may look further back than the events of the
other direction are kept.

Source: docs/spec/decision.md 2 (Reconcile in order), 3 (Combining the metrics), 8 (Normalisation without behavior), 9
(Normalisation with behavior), 10 (Scale-event history).
"""

from podscaler.simulation.batch import layout, metric_kernel
from podscaler.simulation.batch.compilation import INT32_MAX, INT32_MIN, ceil_int32, compiled, int32_of_float, wrap32
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelMemory
from podscaler.simulation.batch.metric_kernel import NO_PROPOSAL

UNCHANGED = -1
"""The result of a decision that leaves the scale as it is."""

UP, DOWN = 0, 1


@compiled
def decide(inputs: KernelInputs, memory: KernelMemory, candidate: int, sync: int, now_ms: int) -> int:
    """The replicas to write, or UNCHANGED, and the history with this decision: `decide.decide`."""
    spec, state, marks = inputs.specs[candidate], memory.state, memory.marks
    now_ns, current = now_ms * layout.MS_NS, state[layout.REPLICAS]
    if not marks[layout.HAS_BEGUN]:
        marks[layout.HAS_BEGUN] = 1
        recommend(memory, current, now_ns)
    if current == 0:
        if not state[layout.WAS_SCALED_TO_ZERO] or (
            spec[layout.MIN_REPLICAS] == 0 and not spec[layout.SCALES_ON_OTHERS]
        ):
            return UNCHANGED
    elif current > spec[layout.MAX_REPLICAS]:
        return _write_replicas(spec, inputs.world, memory, spec[layout.MAX_REPLICAS], now_ns)
    elif current < spec[layout.MIN_REPLICAS]:
        return _write_replicas(spec, inputs.world, memory, spec[layout.MIN_REPLICAS], now_ns)
    largest_proposal = _largest_proposal(inputs, memory, candidate, sync, now_ms)
    if largest_proposal == NO_PROPOSAL:
        return UNCHANGED
    desired = limit_replicas(spec, inputs.policies, memory, max(largest_proposal, 0), current, now_ns)
    if current == 0 and desired < spec[layout.MIN_REPLICAS]:
        desired = spec[layout.MIN_REPLICAS]
    if desired == current:
        return UNCHANGED
    return _write_replicas(spec, inputs.world, memory, desired, now_ns)


@compiled
def _largest_proposal(inputs: KernelInputs, memory: KernelMemory, candidate: int, sync: int, now_ms: int) -> int:
    """The largest proposal of the metrics: `combine.combine_results`; NO_PROPOSAL if there is no conclusion.

    That is if no metric has a proposal, or one has none and the others want fewer replicas.
    """
    spec = inputs.specs[candidate]
    largest_proposal, metrics_without_proposal = 0, 0
    for index in range(spec[layout.METRICS], spec[layout.END_OF_METRICS]):
        proposal = metric_kernel.propose(inputs, memory, candidate, index, sync, now_ms)
        if proposal == NO_PROPOSAL:
            metrics_without_proposal += 1
        elif largest_proposal == 0 or proposal > largest_proposal:  # as upstream, any proposal replaces 0
            largest_proposal = proposal
    if metrics_without_proposal == spec[layout.END_OF_METRICS] - spec[layout.METRICS]:
        return NO_PROPOSAL
    if metrics_without_proposal > 0 and largest_proposal < memory.state[layout.REPLICAS]:
        return NO_PROPOSAL
    return largest_proposal


@compiled
def _write_replicas(spec: Array, world: Array, memory: KernelMemory, desired: int, now_ns: int) -> int:
    """Record the rescale to `desired`, and return `desired`: `settle.written`."""
    state = memory.state
    current = state[layout.REPLICAS]
    is_zero = current > 0 and desired == 0 and spec[layout.MIN_REPLICAS] == 0 and spec[layout.SCALES_ON_OTHERS]
    state[layout.WAS_SCALED_TO_ZERO] = 1 if is_zero and world[layout.SCALES_TO_ZERO] else 0
    record_rescale(spec, memory, desired - current, now_ns)
    return desired


@compiled
def record_rescale(spec: Array, memory: KernelMemory, change: int, now_ns: int) -> None:
    """Add a change of the replicas to the history, unless the spec has no behavior: `settle.with_change`."""
    if not spec[layout.HAS_BEHAVIOR]:
        return
    if change > 0:
        _record_event(memory, UP, change, now_ns, now_ns - spec[layout.UP_LONGEST_NS])
    else:
        _record_event(memory, DOWN, -change, now_ns, now_ns - spec[layout.DOWN_LONGEST_NS])


@compiled
def _record_event(memory: KernelMemory, direction: int, change: int, now_ns: int, cutoff_ns: int) -> None:
    """Store a scale event in the slot of an outdated one, or in a new slot: `history.with_scale_event`.

    Args:
        change: the added or removed pods, above 0.
        cutoff_ns: events before it are outdated.
    """
    marks, events = memory.marks, memory.events[direction]
    length = marks[layout.UP_EVENTS + direction]  # UP_EVENTS or DOWN_EVENTS
    slot = length
    for index in range(length):
        if events[index, layout.CHANGED_NS] < cutoff_ns:
            events[index, layout.IS_OUTDATED] = 1
        if events[index, layout.IS_OUTDATED]:
            slot = index
    marks[layout.UP_EVENTS + direction] = max(length, slot + 1)
    events[slot, layout.CHANGE] = change
    events[slot, layout.CHANGED_NS] = now_ns
    events[slot, layout.IS_OUTDATED] = 0


@compiled
def limit_replicas(spec: Array, policies: Array, memory: KernelMemory, proposal: int, current: int, now_ns: int) -> int:
    """The proposal after windows, rates and bounds are applied: `normalisation.by_windows`."""
    marks, highest, lowest = memory.marks, memory.highest, memory.lowest
    down_cutoff_ns = now_ns - spec[layout.DOWN_WINDOW_NS]
    if not spec[layout.HAS_BEHAVIOR]:
        # Without behavior the window includes the instant at which it begins: `stabilization.by_flag`.
        _expire(marks, layout.HIGHEST_HEAD, layout.HIGHEST_TAIL, highest, down_cutoff_ns - 1)
        stabilized = max(proposal, _front(marks, layout.HIGHEST_HEAD, layout.HIGHEST_TAIL, highest, proposal))
        recommend(memory, proposal, now_ns)
        return _without_behavior(spec, stabilized, current)
    _expire(marks, layout.HIGHEST_HEAD, layout.HIGHEST_TAIL, highest, down_cutoff_ns)
    _expire(marks, layout.LOWEST_HEAD, layout.LOWEST_TAIL, lowest, now_ns - spec[layout.UP_WINDOW_NS])
    highest_recommended = max(proposal, _front(marks, layout.HIGHEST_HEAD, layout.HIGHEST_TAIL, highest, proposal))
    lowest_recommended = min(proposal, _front(marks, layout.LOWEST_HEAD, layout.LOWEST_TAIL, lowest, proposal))
    recommend(memory, proposal, now_ns)
    stabilized = min(max(current, lowest_recommended), highest_recommended)
    if stabilized > current:
        return _limit_scale_up(spec, policies, memory, stabilized, current, now_ns)
    if stabilized < current:
        return _limit_scale_down(spec, policies, memory, stabilized, current, now_ns)
    return current


@compiled
def _without_behavior(spec: Array, stabilized: int, current: int) -> int:
    """The stabilized replicas within the bounds, at most the double of `current` or 4: `bounds.without_behavior`."""
    limit = min(int32_of_float(max(2.0 * float(current), 4.0)), spec[layout.MAX_REPLICAS])
    if stabilized < spec[layout.MIN_REPLICAS]:
        return spec[layout.MIN_REPLICAS]
    return min(stabilized, limit)


@compiled
def recommend(memory: KernelMemory, replicas: int, now_ns: int) -> None:
    """Add a recommendation to both queues, and drop those that it makes irrelevant."""
    marks, highest, lowest = memory.marks, memory.highest, memory.lowest
    tail = marks[layout.HIGHEST_TAIL]
    while tail > marks[layout.HIGHEST_HEAD] and highest[tail - 1, layout.RECOMMENDED] <= replicas:
        tail -= 1
    highest[tail, layout.RECOMMENDED], highest[tail, layout.RECOMMENDED_NS] = replicas, now_ns
    marks[layout.HIGHEST_TAIL] = tail + 1
    tail = marks[layout.LOWEST_TAIL]
    while tail > marks[layout.LOWEST_HEAD] and lowest[tail - 1, layout.RECOMMENDED] >= replicas:
        tail -= 1
    lowest[tail, layout.RECOMMENDED], lowest[tail, layout.RECOMMENDED_NS] = replicas, now_ns
    marks[layout.LOWEST_TAIL] = tail + 1


@compiled
def _expire(marks: Array, head: int, tail: int, queue: Array, cutoff_ns: int) -> None:
    """Drop the recommendations up to that instant; `head` and `tail` are the indexes of the queue's ends in `marks`."""
    while marks[head] < marks[tail] and queue[marks[head], layout.RECOMMENDED_NS] <= cutoff_ns:
        marks[head] += 1


@compiled
def _front(marks: Array, head: int, tail: int, queue: Array, default: int) -> int:
    """The first recommendation of a queue, which is the highest, or the lowest; `default` for an empty queue."""
    return queue[marks[head], layout.RECOMMENDED] if marks[head] < marks[tail] else default


@compiled
def _limit_scale_up(
    spec: Array, policies: Array, memory: KernelMemory, stabilized: int, current: int, now_ns: int
) -> int:
    """The stabilized replicas within the scale-up policies: `bounds.with_behavior` and `policies.scale_up_limit`."""
    limit = current
    if spec[layout.UP_SELECTION] != layout.SELECT_DISABLED:
        is_min = spec[layout.UP_SELECTION] == layout.SELECT_MIN
        limit = INT32_MAX if is_min else INT32_MIN
        for index in range(spec[layout.UP_POLICIES], spec[layout.DOWN_POLICIES]):
            policy_limit = _policy_limit(policies[index], memory, current, now_ns, 1)
            limit = min(limit, policy_limit) if is_min else max(limit, policy_limit)
        limit = max(limit, current)
    return min(stabilized, limit, spec[layout.MAX_REPLICAS])


@compiled
def _limit_scale_down(
    spec: Array, policies: Array, memory: KernelMemory, stabilized: int, current: int, now_ns: int
) -> int:
    """The stabilized replicas within the scale-down policies: `bounds.with_behavior`, `policies.scale_down_limit`."""
    limit = current
    if spec[layout.DOWN_SELECTION] != layout.SELECT_DISABLED:
        is_min = spec[layout.DOWN_SELECTION] == layout.SELECT_MIN
        limit = INT32_MIN if is_min else INT32_MAX
        for index in range(spec[layout.DOWN_POLICIES], spec[layout.END_OF_POLICIES]):
            policy_limit = _policy_limit(policies[index], memory, current, now_ns, -1)
            limit = max(limit, policy_limit) if is_min else min(limit, policy_limit)
        limit = min(limit, current)
    return max(stabilized, limit, spec[layout.MIN_REPLICAS])


@compiled
def _policy_limit(policy: Array, memory: KernelMemory, current: int, now_ns: int, sign: int) -> int:
    """The replicas that a policy allows: `policies._policy_budget`.

    Args:
        sign: 1 for a scale-up policy, -1 for a scale-down policy.
    """
    cutoff_ns = now_ns - policy[layout.POLICY_PERIOD_NS]
    added = _changed_since(memory.events[UP], memory.marks[layout.UP_EVENTS], cutoff_ns)
    removed = _changed_since(memory.events[DOWN], memory.marks[layout.DOWN_EVENTS], cutoff_ns)
    replicas_at_period_start = wrap32(current - added + removed)
    if policy[layout.IS_PODS]:
        return wrap32(replicas_at_period_start + sign * policy[layout.POLICY_VALUE])
    scaled = float(replicas_at_period_start) * (1.0 + sign * float(policy[layout.POLICY_VALUE]) / 100.0)
    return ceil_int32(scaled) if sign > 0 else int32_of_float(scaled)


@compiled
def _changed_since(events: Array, length: int, cutoff_ns: int) -> int:
    """The sum of the changes after an instant: `history.change_since`."""
    total = 0
    for index in range(length):
        if events[index, layout.CHANGED_NS] > cutoff_ns:
            total += events[index, layout.CHANGE]
    return wrap32(total)
