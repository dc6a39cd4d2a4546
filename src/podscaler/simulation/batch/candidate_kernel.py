"""Simulates candidates one after the other in machine code: the events in order, the syncs, and the sums.

Called by `podscaler.simulation.batch.batch_runs`. numba compiles the functions, so they use numbers and arrays only;
the fields of arrays are those of `layout`. The order of events at one instant is that of
`podscaler.simulation.world.event_queue.EventPriority`.
"""

import numpy as np

from podscaler.simulation.batch import decision_kernel, layout, world_kernel
from podscaler.simulation.batch.compilation import compiled, entry_point
from podscaler.simulation.batch.decision_kernel import UNCHANGED
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelMemory, KernelResults


@entry_point
def simulate(inputs: KernelInputs, memory: KernelMemory, results: KernelResults, slo_ms: float) -> None:
    """Simulate each candidate, and fill the results.

    Args:
        inputs: the scenario and the candidates; `results` has one row for each candidate.
        memory: scratch space, which is reset before each candidate.
        slo_ms: the mean response time above which work misses the SLO; NaN: there is no SLO.
    """
    world, state = inputs.world, memory.state
    has_timeline = results.replicas.shape[0] > 0
    for candidate in range(inputs.specs.shape[0]):
        world_kernel.start(inputs, memory)
        memory.marks[:] = 0
        memory.last[:] = 0
        totals = results.totals[candidate]
        sync_ms = world[layout.FIRST_SYNC_MS]
        for sync in range(world[layout.SYNCS]):
            _run_until(inputs, memory, sync_ms)
            ready, replicas_before = state[layout.READY], state[layout.REPLICAS]
            _add_totals(world, memory, totals, sync, slo_ms)
            if inputs.needed.shape[0] > 0:
                _add_deviations(inputs, memory, results, candidate, sync)
            desired = decision_kernel.decide(inputs, memory, candidate, sync, sync_ms)
            if desired != UNCHANGED:
                _write(world, memory, desired, sync_ms)
                if sync >= world[layout.COUNTED_FROM]:
                    totals[layout.SCALE_UPS if desired > replicas_before else layout.SCALE_DOWNS] += 1
            if has_timeline:
                results.replicas[candidate, sync] = state[layout.REPLICAS]
                results.ready[candidate, sync] = ready
            sync_ms += world[layout.SYNC_PERIOD_MS]


@compiled
def _run_until(inputs: KernelInputs, memory: KernelMemory, sync_ms: int) -> None:
    """Run all events up to and including the instant of a sync, and serve the load until then."""
    world, loads, state, cohorts = inputs.world, inputs.loads, memory.state, memory.cohorts
    while True:
        now_ms = min(loads[state[layout.LOAD_STEP], layout.LOAD_AT_MS], state[layout.NEXT_WRITE_MS])
        now_ms = min(now_ms, state[layout.NEXT_MEASUREMENT_MS])
        next_to_run, next_to_be_ready = state[layout.NEXT_TO_RUN], state[layout.NEXT_TO_BE_READY]
        if next_to_run < state[layout.TOP]:
            now_ms = min(now_ms, cohorts[next_to_run, layout.RUNS_MS])
        if next_to_be_ready < next_to_run:
            now_ms = min(now_ms, cohorts[next_to_be_ready, layout.READY_MS])
        if now_ms > sync_ms:
            break
        if loads[state[layout.LOAD_STEP], layout.LOAD_AT_MS] == now_ms:
            world_kernel.change_load(inputs, state, now_ms)
        world_kernel.move_pods(world, memory, now_ms)
        if state[layout.NEXT_WRITE_MS] == now_ms:
            _apply_write(world, memory, now_ms)
            world_kernel.move_pods(world, memory, now_ms)  # new pods without a launch delay run at once
        if state[layout.NEXT_MEASUREMENT_MS] == now_ms:
            world_kernel.measure(world, memory, now_ms)
    world_kernel.advance(world, state, sync_ms)
    while state[layout.NEXT_PUBLICATION_MS] <= sync_ms:  # only syncs read what is published
        state[layout.PUBLISHED] += 1
        state[layout.NEXT_PUBLICATION_MS] += world[layout.RESOLUTION_MS]


@compiled
def _write(world: Array, memory: KernelMemory, desired: int, sync_ms: int) -> None:
    """Write the scale, whose effect is due after the actuation delay: `VirtualWorkload.set_replicas`."""
    state, writes = memory.state, memory.writes
    state[layout.REPLICAS] = desired
    writes[state[layout.END_OF_WRITES] % writes.shape[0]] = sync_ms + world[layout.ACTUATION_MS]
    state[layout.END_OF_WRITES] += 1
    state[layout.NEXT_WRITE_MS] = writes[state[layout.FIRST_WRITE] % writes.shape[0]]


@compiled
def _apply_write(world: Array, memory: KernelMemory, now_ms: int) -> None:
    """Apply the oldest write of the scale: the workload controller makes or removes pods."""
    state, writes = memory.state, memory.writes
    state[layout.FIRST_WRITE] += 1
    state[layout.NEXT_WRITE_MS] = layout.FAR_MS
    if state[layout.FIRST_WRITE] < state[layout.END_OF_WRITES]:
        state[layout.NEXT_WRITE_MS] = writes[state[layout.FIRST_WRITE] % writes.shape[0]]
    world_kernel.reconcile(world, memory, now_ms, 0)


@compiled
def _add_totals(world: Array, memory: KernelMemory, totals: Array, sync: int, slo_ms: float) -> None:
    """Add to a row of `totals` what happened since the sync before."""
    state, last = memory.state, memory.last
    arrived, lost = state[layout.ARRIVED] - last[layout.LAST_ARRIVED], state[layout.LOST] - last[layout.LAST_LOST]
    last[layout.LAST_ARRIVED], last[layout.LAST_LOST] = state[layout.ARRIVED], state[layout.LOST]
    if sync < world[layout.COUNTED_FROM]:
        return
    totals[layout.COUNTED_SYNCS] += 1
    totals[layout.ARRIVED_WORK] += arrived
    totals[layout.LOST_WORK] += lost
    totals[layout.POD_MS] += state[layout.PODS] * world[layout.SYNC_PERIOD_MS]
    if not world[layout.HAS_REQUESTS] or np.isnan(slo_ms):
        return
    if state[layout.READY] == 0 or world_kernel.latency_ms(world, state) > slo_ms:
        totals[layout.SLO_MISSED_WORK] += arrived


@compiled
def _add_deviations(
    inputs: KernelInputs, memory: KernelMemory, results: KernelResults, candidate: int, sync: int
) -> None:
    """Add the deviation of the ready pods from the needed ones."""
    world, last, ready = inputs.world, memory.last, memory.state[layout.READY]
    deviations, inaccuracies = results.deviations[candidate], results.inaccuracies[candidate]
    needed_pods = inputs.needed[sync]
    if sync >= world[layout.COUNTED_FROM]:
        if ready < needed_pods:
            deviations[layout.UNDER_SYNCS] += 1
            inaccuracies[layout.UNDER_SHARES] += (needed_pods - ready) / needed_pods
        elif ready > needed_pods:
            deviations[layout.OVER_SYNCS] += 1
            if needed_pods > 0:
                inaccuracies[layout.OVER_SHARES] += (ready - needed_pods) / needed_pods
        if sync > world[layout.COUNTED_FROM]:
            supply_change = np.sign(ready - last[layout.LAST_READY])
            demand_change = np.sign(needed_pods - last[layout.LAST_NEEDED])
            deviations[layout.UNSTABLE_SYNCS] += min(abs(supply_change - demand_change), 1)
            deviations[layout.SUPPLY_CHANGES] += abs(supply_change)
            deviations[layout.DEMAND_CHANGES] += abs(demand_change)
    last[layout.LAST_READY], last[layout.LAST_NEEDED] = ready, needed_pods
