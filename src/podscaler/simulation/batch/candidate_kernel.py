"""Simulates candidates one after the other in machine code: the events in order, the syncs, and the sums.

Called by `podscaler.simulation.batch.batch_runs`. The order of events at one instant is that of
`podscaler.simulation.world.agenda.EventPriority`.
"""

import numpy as np

from podscaler.simulation.batch import decision_kernel, world_kernel
from podscaler.simulation.batch import layout as at
from podscaler.simulation.batch.compilation import compiled, entry_point
from podscaler.simulation.batch.decision_kernel import UNCHANGED
from podscaler.simulation.batch.layout import Array, KernelInputs, KernelMemory, KernelResults


@entry_point
def simulate(inputs: KernelInputs, memory: KernelMemory, results: KernelResults, slo_ms: float) -> None:
    """Simulate each candidate, and fill the results.

    Args:
        inputs: the scenario and the candidates; `results` has one row for each candidate.
        memory: is reset before each candidate.
        slo_ms: the mean response time above which work misses the SLO; NaN: there is no SLO.
    """
    world, state = inputs.world, memory.state
    has_timeline = results.replicas.shape[0] > 0
    for candidate in range(inputs.specs.shape[0]):
        world_kernel.start(inputs, memory)
        memory.marks[:] = 0
        memory.last[:] = 0
        totals = results.totals[candidate]
        sync_ms = world[at.FIRST_SYNC_MS]
        for sync in range(world[at.SYNCS]):
            _run_until(inputs, memory, sync_ms)
            ready, replicas_before = state[at.READY], state[at.REPLICAS]
            _add_totals(world, memory, totals, sync, slo_ms)
            if inputs.needed.shape[0] > 0:
                _add_deviations(inputs, memory, results, candidate, sync)
            desired = decision_kernel.decide(inputs, memory, candidate, sync, sync_ms)
            if desired != UNCHANGED:
                _write(world, memory, desired, sync_ms)
                if sync >= world[at.COUNTED_FROM]:
                    totals[at.SCALE_UPS if desired > replicas_before else at.SCALE_DOWNS] += 1
            if has_timeline:
                results.replicas[candidate, sync] = state[at.REPLICAS]
                results.ready[candidate, sync] = ready
            sync_ms += world[at.SYNC_PERIOD_MS]


@compiled
def _run_until(inputs: KernelInputs, memory: KernelMemory, sync_ms: int) -> None:
    """All events until a sync, and serve until then."""
    world, loads, state, cohorts = inputs.world, inputs.loads, memory.state, memory.cohorts
    while True:
        now_ms = min(loads[state[at.LOAD_STEP], at.LOAD_AT_MS], state[at.NEXT_WRITE_MS])
        now_ms = min(now_ms, state[at.NEXT_MEASUREMENT_MS])
        next_to_run, next_to_be_ready = state[at.NEXT_TO_RUN], state[at.NEXT_TO_BE_READY]
        if next_to_run < state[at.TOP]:
            now_ms = min(now_ms, cohorts[next_to_run, at.RUNS_MS])
        if next_to_be_ready < next_to_run:
            now_ms = min(now_ms, cohorts[next_to_be_ready, at.READY_MS])
        if now_ms > sync_ms:
            break
        if loads[state[at.LOAD_STEP], at.LOAD_AT_MS] == now_ms:
            world_kernel.change_load(inputs, state, now_ms)
        world_kernel.move_pods(world, memory, now_ms)
        if state[at.NEXT_WRITE_MS] == now_ms:
            _apply_write(world, memory, now_ms)
            world_kernel.move_pods(world, memory, now_ms)
        if state[at.NEXT_MEASUREMENT_MS] == now_ms:
            world_kernel.measure(world, memory, now_ms)
    world_kernel.advance(world, state, sync_ms)
    while state[at.NEXT_PUBLICATION_MS] <= sync_ms:  # only syncs read what is published
        state[at.PUBLISHED] += 1
        state[at.NEXT_PUBLICATION_MS] += world[at.RESOLUTION_MS]


@compiled
def _write(world: Array, memory: KernelMemory, desired: int, sync_ms: int) -> None:
    """Write the scale: `VirtualWorkload.set_replicas`."""
    state, writes = memory.state, memory.writes
    state[at.REPLICAS] = desired
    writes[state[at.END_OF_WRITES] % writes.shape[0]] = sync_ms + world[at.ACTUATION_MS]
    state[at.END_OF_WRITES] += 1
    state[at.NEXT_WRITE_MS] = writes[state[at.FIRST_WRITE] % writes.shape[0]]


@compiled
def _apply_write(world: Array, memory: KernelMemory, now_ms: int) -> None:
    """Apply the oldest write of the scale: the workload controller makes or removes pods."""
    state, writes = memory.state, memory.writes
    state[at.FIRST_WRITE] += 1
    state[at.NEXT_WRITE_MS] = at.FAR_MS
    if state[at.FIRST_WRITE] < state[at.END_OF_WRITES]:
        state[at.NEXT_WRITE_MS] = writes[state[at.FIRST_WRITE] % writes.shape[0]]
    world_kernel.reconcile(world, memory, now_ms, 0)


@compiled
def _add_totals(world: Array, memory: KernelMemory, totals: Array, sync: int, slo_ms: float) -> None:
    """Add to a row of `totals` what happened since the sync before."""
    state, last = memory.state, memory.last
    arrived, lost = state[at.ARRIVED] - last[at.LAST_ARRIVED], state[at.LOST] - last[at.LAST_LOST]
    last[at.LAST_ARRIVED], last[at.LAST_LOST] = state[at.ARRIVED], state[at.LOST]
    if sync < world[at.COUNTED_FROM]:
        return
    totals[at.COUNTED_SYNCS] += 1
    totals[at.ARRIVED_WORK] += arrived
    totals[at.LOST_WORK] += lost
    totals[at.POD_MS] += state[at.PODS] * world[at.SYNC_PERIOD_MS]
    if not world[at.HAS_REQUESTS] or np.isnan(slo_ms):
        return
    if state[at.READY] == 0 or world_kernel.latency_ms(world, state) > slo_ms:
        totals[at.SLO_MISSED_WORK] += arrived


@compiled
def _add_deviations(
    inputs: KernelInputs, memory: KernelMemory, results: KernelResults, candidate: int, sync: int
) -> None:
    """Add the deviation of the ready pods from the needed ones."""
    world, last, ready = inputs.world, memory.last, memory.state[at.READY]
    deviations, inaccuracies = results.deviations[candidate], results.inaccuracies[candidate]
    needed_pods = inputs.needed[sync]
    if sync >= world[at.COUNTED_FROM]:
        if ready < needed_pods:
            deviations[at.UNDER_SYNCS] += 1
            inaccuracies[at.UNDER_SHARES] += (needed_pods - ready) / needed_pods
        elif ready > needed_pods:
            deviations[at.OVER_SYNCS] += 1
            if needed_pods > 0:
                inaccuracies[at.OVER_SHARES] += (ready - needed_pods) / needed_pods
        if sync > world[at.COUNTED_FROM]:
            supply_change = np.sign(ready - last[at.LAST_READY])
            demand_change = np.sign(needed_pods - last[at.LAST_NEEDED])
            deviations[at.UNSTABLE_SYNCS] += min(abs(supply_change - demand_change), 1)
            deviations[at.SUPPLY_CHANGES] += abs(supply_change)
            deviations[at.DEMAND_CHANGES] += abs(demand_change)
    last[at.LAST_READY], last[at.LAST_NEEDED] = ready, needed_pods
