"""Simulates the world in machine code: load, pods and measurements of one workload.

Pods that were made at one instant are a cohort: they run, become ready and are measured together. Cohorts are a stack
in the order in which they were made, because pods that are not ready are removed first, then the youngest, and older
pods are never ready later than younger ones.

Called by `candidate_kernel`. The functions compute the same integers as those of `podscaler.simulation.world` that
their docstrings name, in the same order of events; numba compiles them, so they use numbers and arrays only.

Source: docs/simulation.md (The model).
"""

from podscaler.simulation.batch import layout
from podscaler.simulation.batch.compilation import compiled
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelMemory

_LONG_AGO_MS = 3_600_000
_UNLIMITED_WORK = 1 << 62

_NO_SAMPLE = -2
"""The number of a sample that does not exist; PUBLISHED is -1 before the first publication."""

_HIGHEST_UTILIZATION = 0.99
"""Response times are computed for at most this utilization, because they are infinite at 1."""

_CORE_UCORES = 1_000_000


@compiled
def start(inputs: KernelInputs, memory: KernelMemory) -> None:
    """The world before the first sync: `VirtualWorkload._start`."""
    world, state, cohorts = inputs.world, memory.state, memory.cohorts
    state[:] = 0
    start_ms = world[layout.START_MS]
    state[layout.AT_MS] = start_ms
    take_load(inputs.loads, state, 0)
    state[layout.REPLICAS] = state[layout.PODS] = state[layout.READY] = world[layout.INITIAL_REPLICAS]
    state[layout.NEXT_MEASUREMENT_MS] = start_ms + world[layout.RESOLUTION_MS]
    state[layout.NEXT_PUBLICATION_MS] = state[layout.NEXT_MEASUREMENT_MS] + world[layout.LAG_MS]
    state[layout.PUBLISHED] = -1
    state[layout.NEXT_WRITE_MS] = layout.FAR_MS
    if world[layout.INITIAL_REPLICAS] == 0:
        return
    push_cohort(memory, world[layout.INITIAL_REPLICAS])
    cohorts[0, layout.MADE_MS] = cohorts[0, layout.RUNS_MS] = cohorts[0, layout.READY_MS] = -_LONG_AGO_MS
    cohorts[0, layout.MEASURED_MS] = start_ms
    cohorts[0, layout.MEASURED_WORK] = burst_work(world, start_ms + _LONG_AGO_MS)
    state[layout.NEXT_TO_RUN] = state[layout.NEXT_TO_BE_READY] = 1


@compiled
def push_cohort(memory: KernelMemory, count: int) -> None:
    """Add a cohort of `count` pods on the stack; the caller sets its times, and has counted its pods."""
    state, cohorts, samples = memory.state, memory.cohorts, memory.samples
    top = state[layout.TOP]
    for field in range(layout.COHORT_FIELDS):
        cohorts[top, field] = 0
    cohorts[top, layout.COUNT] = count
    cohorts[top, layout.MEASURED_MS] = layout.NEVER_MS
    for slot in range(samples.shape[1]):
        samples[top, slot, layout.SAMPLE_NUMBER] = _NO_SAMPLE
    state[layout.TOP] = top + 1


@compiled
def take_load(loads: Array, state: Array, step: int) -> None:
    """Take the load of a step: `ServedLoad.set_load`."""
    state[layout.LOAD_STEP] = step + 1
    state[layout.RATE] = loads[step, layout.LOAD_RATE]
    state[layout.DEMAND] = loads[step, layout.LOAD_DEMAND]
    state[layout.BYTES] = loads[step, layout.LOAD_BYTES]


@compiled
def change_load(inputs: KernelInputs, state: Array, at_ms: int) -> None:
    """The event of a step of the load; at 0 the simulation begins, as `ServedLoad.forget_past`."""
    advance(inputs.world, state, at_ms)
    take_load(inputs.loads, state, state[layout.LOAD_STEP])
    if at_ms == 0:
        state[layout.BACKLOG] = state[layout.ARRIVED] = state[layout.LOST] = 0


@compiled
def advance(world: Array, state: Array, at_ms: int) -> None:
    """Serve the load with the present ready pods until that instant: `ServedLoad.advance`."""
    elapsed_ms = at_ms - state[layout.AT_MS]
    if elapsed_ms == 0:
        return
    state[layout.AT_MS] = at_ms
    ready_pods, capacity = state[layout.READY], world[layout.CAPACITY]
    arriving_work = state[layout.DEMAND] * elapsed_ms
    waiting_work = arriving_work + state[layout.BACKLOG]
    served_work = 0
    if ready_pods > 0:
        served_work = waiting_work if capacity < 0 else min(waiting_work, ready_pods * capacity * elapsed_ms)
        state[layout.WORK_OF_EACH] += served_work // ready_pods
    state[layout.ARRIVED] += arriving_work
    unserved_work = waiting_work - served_work
    if unserved_work > 0:
        backlog = min(unserved_work, _longest_backlog(world, state))
        state[layout.LOST] += unserved_work - backlog
        state[layout.BACKLOG] = backlog
    else:
        state[layout.BACKLOG] = 0


@compiled
def _longest_backlog(world: Array, state: Array) -> int:
    """The most work that may wait; what exceeds it is lost: `ServedLoad._longest_backlog`."""
    if world[layout.HAS_REQUESTS] == 0 or state[layout.AT_MS] <= 0:
        return 0
    if world[layout.TIMEOUT_MS] < 0:
        return _UNLIMITED_WORK
    return world[layout.TIMEOUT_MS] * state[layout.READY] * max(world[layout.CAPACITY], 0)


@compiled
def waiting_milli(world: Array, state: Array) -> int:
    """The number of requests that wait, in thousandths."""
    return state[layout.BACKLOG] // world[layout.CPU_PER_REQUEST_US] if world[layout.HAS_REQUESTS] else 0


@compiled
def _bytes_of_each(world: Array, state: Array) -> int:
    """The memory of the load that each ready pod takes, waiting requests included: `ServedLoad.bytes_of_each`."""
    ready_pods, memory_per_request = state[layout.READY], world[layout.MEMORY_PER_REQUEST]
    if ready_pods == 0:
        return 0
    waiting_bytes = 0
    if world[layout.HAS_REQUESTS] and memory_per_request:
        waiting_bytes = share(waiting_milli(world, state), memory_per_request)
    return (state[layout.BYTES] + waiting_bytes) // ready_pods


@compiled
def share(amount: int, permille: int) -> int:
    """`amount * permille // 1000` without the large product."""
    if permille == 1000:
        return amount
    return amount // 1000 * permille + amount % 1000 * permille // 1000


@compiled
def burst_work(world: Array, age_ms: int) -> int:
    """The work that a pod has done for its start, beyond load."""
    return world[layout.BURST_UCORES] * min(age_ms, world[layout.BURST_MS])


@compiled
def move_pods(world: Array, memory: KernelMemory, at_ms: int) -> None:
    """The events of pods at that instant: they run, and become ready."""
    state, cohorts = memory.state, memory.cohorts
    while True:
        next_to_run, next_to_be_ready = state[layout.NEXT_TO_RUN], state[layout.NEXT_TO_BE_READY]
        if next_to_run < state[layout.TOP] and cohorts[next_to_run, layout.RUNS_MS] <= at_ms:
            state[layout.NEXT_TO_RUN] = next_to_run + 1
        elif next_to_be_ready < next_to_run and cohorts[next_to_be_ready, layout.READY_MS] <= at_ms:
            _become_ready(world, memory, at_ms)
        else:
            return


@compiled
def _become_ready(world: Array, memory: KernelMemory, at_ms: int) -> None:
    """The next cohort becomes ready, one pod after the other: `VirtualWorkload._become_ready`.

    Of their reconciliations only the first finds pods to make or remove; others of the cohort may be among these.
    """
    state, cohorts = memory.state, memory.cohorts
    advance(world, state, at_ms)
    cohort = state[layout.NEXT_TO_BE_READY]
    state[layout.READY] += 1
    reconcile(world, memory, at_ms, 1)
    if state[layout.TOP] > cohort:
        state[layout.READY] += cohorts[cohort, layout.COUNT] - 1
        cohorts[cohort, layout.READY_WORK] = state[layout.WORK_OF_EACH]
        state[layout.NEXT_TO_BE_READY] = cohort + 1


@compiled
def reconcile(world: Array, memory: KernelMemory, at_ms: int, half_ready: int) -> None:
    """Make or remove pods: `VirtualWorkload._reconcile`.

    Args:
        half_ready: how many pods (0 or 1) of the cohort at NEXT_TO_BE_READY are ready already, its oldest.
    """
    state, cohorts = memory.state, memory.cohorts
    missing_pods = state[layout.REPLICAS] - state[layout.PODS]
    if missing_pods == 0:
        return
    state[layout.PODS] = state[layout.REPLICAS]
    if missing_pods > 0:
        index = state[layout.TOP]
        push_cohort(memory, missing_pods)
        cohorts[index, layout.MADE_MS] = at_ms
        cohorts[index, layout.RUNS_MS] = at_ms + world[layout.LAUNCH_MS]
        cohorts[index, layout.READY_MS] = at_ms + world[layout.LAUNCH_MS] + world[layout.STARTUP_MS]
        return
    surplus = -missing_pods
    while surplus > 0:
        top = state[layout.TOP] - 1
        count = cohorts[top, layout.COUNT]
        removed_count = min(count, surplus)
        surplus -= removed_count
        removed_ready = 0
        if top < state[layout.NEXT_TO_BE_READY]:
            removed_ready = removed_count
        elif top == state[layout.NEXT_TO_BE_READY]:
            removed_ready = max(removed_count - count + half_ready, 0)
        if removed_ready > 0:
            advance(world, state, at_ms)
            state[layout.READY] -= removed_ready
        cohorts[top, layout.COUNT] = count - removed_count
        if removed_count == count:
            state[layout.TOP] = top
    state[layout.NEXT_TO_RUN] = min(state[layout.NEXT_TO_RUN], state[layout.TOP])
    state[layout.NEXT_TO_BE_READY] = min(state[layout.NEXT_TO_BE_READY], state[layout.TOP])


@compiled
def measure(world: Array, memory: KernelMemory, at_ms: int) -> None:
    """Measure all pods that run: `ResourceSampling.measure`."""
    state, cohorts, samples = memory.state, memory.cohorts, memory.samples
    advance(world, state, at_ms)
    number = state[layout.MEASUREMENT]
    slot = number % world[layout.SLOTS]
    load_bytes = _bytes_of_each(world, state)
    for index in range(state[layout.BOTTOM], state[layout.NEXT_TO_RUN]):
        measured_ms = cohorts[index, layout.MEASURED_MS]
        window_ms = at_ms - measured_ms
        if measured_ms == layout.NEVER_MS:
            window_ms = at_ms - cohorts[index, layout.RUNS_MS]
            if window_ms < world[layout.FRESH_MS] or window_ms == 0:
                continue
        is_ready = index < state[layout.NEXT_TO_BE_READY]
        work = state[layout.WORK_OF_EACH] - cohorts[index, layout.READY_WORK] if is_ready else 0
        if world[layout.BURST_MS]:
            work += burst_work(world, at_ms - cohorts[index, layout.RUNS_MS])
        samples[index, slot, layout.SAMPLE_NUMBER] = number
        samples[index, slot, layout.SAMPLE_SERVED] = work - cohorts[index, layout.MEASURED_WORK]
        samples[index, slot, layout.SAMPLE_WINDOW_MS] = window_ms
        samples[index, slot, layout.SAMPLE_BYTES] = load_bytes if is_ready else 0
        cohorts[index, layout.MEASURED_MS] = at_ms
        cohorts[index, layout.MEASURED_WORK] = work
    state[layout.MEASUREMENT] = number + 1
    state[layout.NEXT_MEASUREMENT_MS] = at_ms + world[layout.RESOLUTION_MS]
    _merge_settled(world, state, cohorts, at_ms)


@compiled
def _merge_settled(world: Array, state: Array, cohorts: Array, at_ms: int) -> None:
    """Merge the oldest cohorts that were made SETTLED_MS ago or earlier: their pods and samples are alike."""
    while state[layout.TOP] - state[layout.BOTTOM] > 1:
        bottom = state[layout.BOTTOM]
        if cohorts[bottom + 1, layout.MADE_MS] > at_ms - world[layout.SETTLED_MS]:
            return
        cohorts[bottom + 1, layout.COUNT] += cohorts[bottom, layout.COUNT]
        state[layout.BOTTOM] = bottom + 1


@compiled
def latency_ms(world: Array, state: Array) -> float:
    """The mean response time while pods are ready: `ServedLoad.latency_ms`."""
    capacity = world[layout.CAPACITY]
    if capacity < 0:
        return float(world[layout.LATENCY_MS]) + world[layout.CPU_PER_REQUEST_US] / 1000.0
    demand_of_each = state[layout.DEMAND] / state[layout.READY]
    backlog_of_each = state[layout.BACKLOG] / state[layout.READY]
    pod_capacity = float(max(capacity, 1))
    cores = max(capacity // _CORE_UCORES, 1)
    service_ms = world[layout.CPU_PER_REQUEST_US] / 1000.0 * _CORE_UCORES * cores / pod_capacity
    utilization = min(demand_of_each / pod_capacity, _HIGHEST_UTILIZATION)
    waiting_ms = service_ms * _erlang_c(cores, utilization * cores) / (cores * (1.0 - utilization))
    return world[layout.LATENCY_MS] + service_ms + waiting_ms + backlog_of_each / pod_capacity


@compiled
def _erlang_c(servers: int, offered: float) -> float:
    """The probability that a request waits for a free server: `load_serving.erlang_c`.

    Args:
        offered: the load in servers that it keeps busy, below `servers`.
    """
    if offered <= 0.0:
        return 0.0
    loss = 1.0
    for server in range(1, servers + 1):
        loss = offered * loss / (server + offered * loss)
    utilization = offered / servers
    return loss / (1.0 - utilization * (1.0 - loss))
