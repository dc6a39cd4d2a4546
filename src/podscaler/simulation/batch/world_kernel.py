"""Simulates the world in machine code: load, pods and measurements of one workload.

Pods that were made at one instant are a cohort: they run, become ready and are measured together. Cohorts are a stack
in the order in which they were made, because pods that are not ready are removed first, then the youngest, and older
pods are never ready later than younger ones.

Called by `candidate_kernel`. The functions compute the same integers as those of `podscaler.simulation.world` that
their docstrings name, in the same order of events.

Source: docs/simulation.md (The model).
"""

from podscaler.simulation.batch import layout as at
from podscaler.simulation.batch.compilation import compiled
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelMemory

_LONG_AGO_MS = 3_600_000
_UNLIMITED = 1 << 62

_NO_SAMPLE = -2
"""The number of a sample that does not exist; PUBLISHED is -1 before the first publication."""

_HIGHEST_UTILIZATION = 0.99
"""Response times are computed for at most this utilization, because they are infinite at 1."""

_UCORES = 1_000_000


@compiled
def start(inputs: KernelInputs, memory: KernelMemory) -> None:
    """The world before the first sync: `VirtualWorkload._start`."""
    world, state, cohorts = inputs.world, memory.state, memory.cohorts
    state[:] = 0
    start_ms = world[at.START_MS]
    state[at.AT_MS] = start_ms
    take_load(inputs.loads, state, 0)
    state[at.REPLICAS] = state[at.PODS] = state[at.READY] = world[at.INITIAL_REPLICAS]
    state[at.NEXT_MEASUREMENT_MS] = start_ms + world[at.RESOLUTION_MS]
    state[at.NEXT_PUBLICATION_MS] = state[at.NEXT_MEASUREMENT_MS] + world[at.LAG_MS]
    state[at.PUBLISHED] = -1
    state[at.NEXT_WRITE_MS] = at.FAR_MS
    if world[at.INITIAL_REPLICAS] == 0:
        return
    push_cohort(memory, world[at.INITIAL_REPLICAS])
    cohorts[0, at.MADE_MS] = cohorts[0, at.RUNS_MS] = cohorts[0, at.READY_MS] = -_LONG_AGO_MS
    cohorts[0, at.MEASURED_MS] = start_ms
    cohorts[0, at.MEASURED_WORK] = burst_work(world, start_ms + _LONG_AGO_MS)
    state[at.NEXT_TO_RUN] = state[at.NEXT_TO_BE_READY] = 1


@compiled
def push_cohort(memory: KernelMemory, count: int) -> None:
    """Add a cohort without times, whose pods are counted already."""
    state, cohorts, samples = memory.state, memory.cohorts, memory.samples
    top = state[at.TOP]
    for field in range(at.COHORT_FIELDS):
        cohorts[top, field] = 0
    cohorts[top, at.COUNT] = count
    cohorts[top, at.MEASURED_MS] = at.NEVER_MS
    for slot in range(samples.shape[1]):
        samples[top, slot, at.SAMPLE_NUMBER] = _NO_SAMPLE
    state[at.TOP] = top + 1


@compiled
def take_load(loads: Array, state: Array, step: int) -> None:
    """Take the load of a step: `ServedLoad.set_load`."""
    state[at.LOAD_STEP] = step + 1
    state[at.RATE] = loads[step, at.LOAD_RATE]
    state[at.DEMAND] = loads[step, at.LOAD_DEMAND]
    state[at.BYTES] = loads[step, at.LOAD_BYTES]


@compiled
def change_load(inputs: KernelInputs, state: Array, at_ms: int) -> None:
    """The event of a step of the load; at 0 the simulation begins, as `ServedLoad.forget_past`."""
    advance(inputs.world, state, at_ms)
    take_load(inputs.loads, state, state[at.LOAD_STEP])
    if at_ms == 0:
        state[at.BACKLOG] = state[at.ARRIVED] = state[at.LOST] = 0


@compiled
def advance(world: Array, state: Array, at_ms: int) -> None:
    """Serve the load with the present ready pods until that instant: `ServedLoad.advance`."""
    elapsed_ms = at_ms - state[at.AT_MS]
    if elapsed_ms == 0:
        return
    state[at.AT_MS] = at_ms
    ready_pods, capacity = state[at.READY], world[at.CAPACITY]
    arriving_work = state[at.DEMAND] * elapsed_ms
    waiting_work = arriving_work + state[at.BACKLOG]
    served_work = 0
    if ready_pods > 0:
        served_work = waiting_work if capacity < 0 else min(waiting_work, ready_pods * capacity * elapsed_ms)
        state[at.WORK_OF_EACH] += served_work // ready_pods
    state[at.ARRIVED] += arriving_work
    unserved_work = waiting_work - served_work
    if unserved_work > 0:
        backlog = min(unserved_work, _longest_backlog(world, state))
        state[at.LOST] += unserved_work - backlog
        state[at.BACKLOG] = backlog
    else:
        state[at.BACKLOG] = 0


@compiled
def _longest_backlog(world: Array, state: Array) -> int:
    """The most work that may wait; what exceeds it is lost: `ServedLoad._longest_backlog`."""
    if world[at.HAS_REQUESTS] == 0 or state[at.AT_MS] <= 0:
        return 0
    if world[at.TIMEOUT_MS] < 0:
        return _UNLIMITED
    return world[at.TIMEOUT_MS] * state[at.READY] * max(world[at.CAPACITY], 0)


@compiled
def waiting_milli(world: Array, state: Array) -> int:
    """The number of requests that wait, in thousandths."""
    return state[at.BACKLOG] // world[at.CPU_PER_REQUEST_US] if world[at.HAS_REQUESTS] else 0


@compiled
def _bytes_of_each(world: Array, state: Array) -> int:
    """The memory of the load that each ready pod takes, waiting requests included: `ServedLoad.bytes_of_each`."""
    ready_pods, memory_per_request = state[at.READY], world[at.MEMORY_PER_REQUEST]
    if ready_pods == 0:
        return 0
    waiting_bytes = 0
    if world[at.HAS_REQUESTS] and memory_per_request:
        waiting_bytes = share(waiting_milli(world, state), memory_per_request)
    return (state[at.BYTES] + waiting_bytes) // ready_pods


@compiled
def share(amount: int, permille: int) -> int:
    """`amount * permille // 1000` without the large product."""
    if permille == 1000:
        return amount
    return amount // 1000 * permille + amount % 1000 * permille // 1000


@compiled
def burst_work(world: Array, age_ms: int) -> int:
    """The work that a pod has done for its start, beyond load."""
    return world[at.BURST_UCORES] * min(age_ms, world[at.BURST_MS])


@compiled
def move_pods(world: Array, memory: KernelMemory, at_ms: int) -> None:
    """The events of pods at that instant: they run, and become ready."""
    state, cohorts = memory.state, memory.cohorts
    while True:
        next_to_run, next_to_be_ready = state[at.NEXT_TO_RUN], state[at.NEXT_TO_BE_READY]
        if next_to_run < state[at.TOP] and cohorts[next_to_run, at.RUNS_MS] <= at_ms:
            state[at.NEXT_TO_RUN] = next_to_run + 1
        elif next_to_be_ready < next_to_run and cohorts[next_to_be_ready, at.READY_MS] <= at_ms:
            _become_ready(world, memory, at_ms)
        else:
            return


@compiled
def _become_ready(world: Array, memory: KernelMemory, at_ms: int) -> None:
    """The next cohort becomes ready, one pod after the other; after the first the workload is reconciled."""
    state, cohorts = memory.state, memory.cohorts
    advance(world, state, at_ms)
    cohort = state[at.NEXT_TO_BE_READY]
    state[at.READY] += 1
    reconcile(world, memory, at_ms, 1)
    if state[at.TOP] > cohort:
        state[at.READY] += cohorts[cohort, at.COUNT] - 1
        cohorts[cohort, at.READY_WORK] = state[at.WORK_OF_EACH]
        state[at.NEXT_TO_BE_READY] = cohort + 1


@compiled
def reconcile(world: Array, memory: KernelMemory, at_ms: int, half_ready: int) -> None:
    """Make or remove pods: `VirtualWorkload._reconcile`.

    Args:
        half_ready: how many pods (0 or 1) of the cohort at NEXT_TO_BE_READY are ready already, its oldest.
    """
    state, cohorts = memory.state, memory.cohorts
    missing_pods = state[at.REPLICAS] - state[at.PODS]
    if missing_pods == 0:
        return
    state[at.PODS] = state[at.REPLICAS]
    if missing_pods > 0:
        index = state[at.TOP]
        push_cohort(memory, missing_pods)
        cohorts[index, at.MADE_MS] = at_ms
        cohorts[index, at.RUNS_MS] = at_ms + world[at.LAUNCH_MS]
        cohorts[index, at.READY_MS] = at_ms + world[at.LAUNCH_MS] + world[at.STARTUP_MS]
        return
    surplus = -missing_pods
    while surplus > 0:
        top = state[at.TOP] - 1
        count = cohorts[top, at.COUNT]
        removed_count = min(count, surplus)
        surplus -= removed_count
        removed_ready = 0
        if top < state[at.NEXT_TO_BE_READY]:
            removed_ready = removed_count
        elif top == state[at.NEXT_TO_BE_READY]:
            removed_ready = max(removed_count - count + half_ready, 0)
        if removed_ready > 0:
            advance(world, state, at_ms)
            state[at.READY] -= removed_ready
        cohorts[top, at.COUNT] = count - removed_count
        if removed_count == count:
            state[at.TOP] = top
    state[at.NEXT_TO_RUN] = min(state[at.NEXT_TO_RUN], state[at.TOP])
    state[at.NEXT_TO_BE_READY] = min(state[at.NEXT_TO_BE_READY], state[at.TOP])


@compiled
def measure(world: Array, memory: KernelMemory, at_ms: int) -> None:
    """Measure all pods that run: `ResourceSampling.measure`."""
    state, cohorts, samples = memory.state, memory.cohorts, memory.samples
    advance(world, state, at_ms)
    number = state[at.MEASUREMENT]
    slot = number % world[at.SLOTS]
    load_bytes = _bytes_of_each(world, state)
    for index in range(state[at.BOTTOM], state[at.NEXT_TO_RUN]):
        measured_ms = cohorts[index, at.MEASURED_MS]
        window_ms = at_ms - measured_ms
        if measured_ms == at.NEVER_MS:
            window_ms = at_ms - cohorts[index, at.RUNS_MS]
            if window_ms < world[at.FRESH_MS] or window_ms == 0:
                continue
        is_ready = index < state[at.NEXT_TO_BE_READY]
        work = state[at.WORK_OF_EACH] - cohorts[index, at.READY_WORK] if is_ready else 0
        if world[at.BURST_MS]:
            work += burst_work(world, at_ms - cohorts[index, at.RUNS_MS])
        samples[index, slot, at.SAMPLE_NUMBER] = number
        samples[index, slot, at.SAMPLE_SERVED] = work - cohorts[index, at.MEASURED_WORK]
        samples[index, slot, at.SAMPLE_WINDOW_MS] = window_ms
        samples[index, slot, at.SAMPLE_BYTES] = load_bytes if is_ready else 0
        cohorts[index, at.MEASURED_MS] = at_ms
        cohorts[index, at.MEASURED_WORK] = work
    state[at.MEASUREMENT] = number + 1
    state[at.NEXT_MEASUREMENT_MS] = at_ms + world[at.RESOLUTION_MS]
    _merge_settled(world, state, cohorts, at_ms)


@compiled
def _merge_settled(world: Array, state: Array, cohorts: Array, at_ms: int) -> None:
    """Take the oldest cohorts together once no rule and no sample tells them apart any more."""
    while state[at.TOP] - state[at.BOTTOM] > 1:
        bottom = state[at.BOTTOM]
        if cohorts[bottom + 1, at.MADE_MS] > at_ms - world[at.SETTLED_MS]:
            return
        cohorts[bottom + 1, at.COUNT] += cohorts[bottom, at.COUNT]
        state[at.BOTTOM] = bottom + 1


@compiled
def latency_ms(world: Array, state: Array) -> float:
    """The mean response time while pods are ready: `ServedLoad.latency_ms`."""
    capacity = world[at.CAPACITY]
    if capacity < 0:
        return float(world[at.LATENCY_MS]) + world[at.CPU_PER_REQUEST_US] / 1000.0
    demand_of_each = state[at.DEMAND] / state[at.READY]
    backlog_of_each = state[at.BACKLOG] / state[at.READY]
    pod_capacity = float(max(capacity, 1))
    cores = max(capacity // _UCORES, 1)
    service_ms = world[at.CPU_PER_REQUEST_US] / 1000.0 * 1_000_000.0 * cores / pod_capacity
    utilization = min(demand_of_each / pod_capacity, _HIGHEST_UTILIZATION)
    waiting_ms = service_ms * _erlang_c(cores, utilization * cores) / (cores * (1.0 - utilization))
    return world[at.LATENCY_MS] + service_ms + waiting_ms + backlog_of_each / pod_capacity


@compiled
def _erlang_c(servers: int, offered: float) -> float:
    """The probability that a request waits for a free server: `serving.erlang_c`.

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
