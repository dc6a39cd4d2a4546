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
        slo_ms: NaN: there is none.
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
            ready, before = state[at.READY], state[at.REPLICAS]
            _count(world, memory, totals, sync, slo_ms)
            if inputs.needed.shape[0] > 0:
                _compare(inputs, memory, results, candidate, sync)
            desired = decision_kernel.decide(inputs, memory, candidate, sync, sync_ms)
            if desired != UNCHANGED:
                _write(world, memory, desired, sync_ms)
                if sync >= world[at.COUNTED_FROM]:
                    totals[at.SCALE_UPS if desired > before else at.SCALE_DOWNS] += 1
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
        run, ready = state[at.NEXT_TO_RUN], state[at.NEXT_TO_BE_READY]
        if run < state[at.TOP]:
            now_ms = min(now_ms, cohorts[run, at.RUNS_MS])
        if ready < run:
            now_ms = min(now_ms, cohorts[ready, at.READY_MS])
        if now_ms > sync_ms:
            break
        if loads[state[at.LOAD_STEP], at.LOAD_AT_MS] == now_ms:
            world_kernel.change_load(inputs, state, now_ms)
        world_kernel.move_pods(world, memory, now_ms)
        if state[at.NEXT_WRITE_MS] == now_ms:
            _carry_out(world, memory, now_ms)
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
def _carry_out(world: Array, memory: KernelMemory, now_ms: int) -> None:
    """The workload controller makes or removes pods after a write."""
    state, writes = memory.state, memory.writes
    state[at.FIRST_WRITE] += 1
    state[at.NEXT_WRITE_MS] = at.FAR_MS
    if state[at.FIRST_WRITE] < state[at.END_OF_WRITES]:
        state[at.NEXT_WRITE_MS] = writes[state[at.FIRST_WRITE] % writes.shape[0]]
    world_kernel.reconcile(world, memory, now_ms, 0)


@compiled
def _count(world: Array, memory: KernelMemory, totals: Array, sync: int, slo_ms: float) -> None:
    """Add what happened since the sync before."""
    state, last = memory.state, memory.last
    arrived, lost = state[at.ARRIVED] - last[0], state[at.LOST] - last[1]
    last[0], last[1] = state[at.ARRIVED], state[at.LOST]
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
def _compare(inputs: KernelInputs, memory: KernelMemory, results: KernelResults, candidate: int, sync: int) -> None:
    """Add the deviation of the ready pods from the needed ones."""
    world, last, ready = inputs.world, memory.last, memory.state[at.READY]
    deviations, inaccuracies = results.deviations[candidate], results.inaccuracies[candidate]
    need = inputs.needed[sync]
    if sync >= world[at.COUNTED_FROM]:
        if ready < need:
            deviations[at.UNDER_SYNCS] += 1
            inaccuracies[0] += (need - ready) / need
        elif ready > need:
            deviations[at.OVER_SYNCS] += 1
            if need > 0:
                inaccuracies[1] += (ready - need) / need
        if sync > world[at.COUNTED_FROM]:
            supply, demand = np.sign(ready - last[2]), np.sign(need - last[3])
            deviations[at.UNSTABLE_SYNCS] += min(abs(supply - demand), 1)
            deviations[at.SUPPLY_CHANGES] += abs(supply)
            deviations[at.DEMAND_CHANGES] += abs(demand)
    last[2], last[3] = ready, need
