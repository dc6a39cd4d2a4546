"""Simulates candidates one after the other in machine code: the events in order, the syncs, and the sums.

Called by `podscaler.simulation.batch.running`. The order of events at one instant is that of
`podscaler.simulation.world.agenda.EventPriority`.
"""

from typing import NamedTuple

import numpy as np

from podscaler.simulation.batch import decision_kernel, world_kernel
from podscaler.simulation.batch import layout as at
from podscaler.simulation.batch.compilation import compiled, entry_point
from podscaler.simulation.batch.decision_kernel import UNCHANGED
from podscaler.simulation.batch.tables import Array


class KernelInputs(NamedTuple):
    """What candidates share, and the candidates; `layout` states the fields of the arrays.

    Attributes:
        needed: pods for each sync; empty: unknown.
    """

    world: Array
    loads: Array
    feeds: Array
    containers: Array
    specs: Array
    tolerances: Array
    metrics: Array
    policies: Array
    needed: Array


class KernelMemory(NamedTuple):
    """What a candidate changes while it is simulated; `layout` states the fields of the arrays.

    Attributes:
        writes: the instants at which pods are made or removed, as a ring.
        last: of the sync before: the work that had arrived and was lost, the ready pods, the needed pods.
    """

    state: Array
    cohorts: Array
    samples: Array
    writes: Array
    marks: Array
    highest: Array
    lowest: Array
    events: Array
    last: Array


class KernelResults(NamedTuple):
    """The arrays to fill, one row for each candidate; timelines have no rows where they are not kept.

    Attributes:
        inaccuracies: the sums of the shares of missing and of surplus pods.
    """

    replicas: Array
    ready: Array
    totals: Array
    deviations: Array
    inaccuracies: Array


def memory_for(world: Array, event_slots: int) -> KernelMemory:
    """The memory of one candidate.

    Args:
        event_slots: how many scale events it keeps at most in each direction.
    """
    entries = int(world[at.SYNCS]) + 3
    writes = int(world[at.ACTUATION_MS]) // int(world[at.SYNC_PERIOD_MS]) + 2
    return KernelMemory(
        state=np.zeros(at.STATE_FIELDS, np.int64),
        cohorts=np.empty((entries, at.COHORT_FIELDS), np.int64),
        samples=np.empty((entries, int(world[at.SLOTS]), at.SAMPLE_FIELDS), np.int64),
        writes=np.empty(writes, np.int64),
        marks=np.zeros(at.MARK_FIELDS, np.int64),
        highest=np.empty((entries, 2), np.int64),
        lowest=np.empty((entries, 2), np.int64),
        events=np.empty((2, event_slots, 3), np.int64),
        last=np.zeros(4, np.int64),
    )


@entry_point
def simulate(inputs: KernelInputs, memory: KernelMemory, results: KernelResults, slo_ms: float) -> None:
    """Simulate each candidate, and fill the results.

    Args:
        slo_ms: NaN: there is none.
    """
    world, loads, feeds, containers, specs, tolerances, metrics, policies, needed = inputs
    state, cohorts, samples, writes, marks, highest, lowest, events, last = memory
    replicas, ready, totals, deviations, inaccuracies = results
    has_timeline = replicas.shape[0] > 0
    for candidate in range(specs.shape[0]):
        spec, tolerance = specs[candidate], tolerances[candidate]
        world_kernel.start(world, loads, state, cohorts, samples)
        marks[:] = 0
        last[:] = 0
        sync_ms = world[at.FIRST_SYNC_MS]
        for sync in range(world[at.SYNCS]):
            _run_until(world, loads, state, cohorts, samples, writes, sync_ms)
            was_ready, before = state[at.READY], state[at.REPLICAS]
            _count(world, state, totals, candidate, last, sync, slo_ms)
            if needed.shape[0] > 0:
                _compare(world, needed, was_ready, last, sync, deviations, inaccuracies, candidate)
            # fmt: off
            desired = decision_kernel.decide(
                spec, tolerance, metrics, policies, world, containers, feeds, state, cohorts, samples,
                marks, highest, lowest, events, sync, sync_ms,
            )
            # fmt: on
            if desired != UNCHANGED:
                _write(world, state, writes, desired, sync_ms)
                if sync >= world[at.COUNTED_FROM]:
                    totals[candidate, at.SCALE_UPS if desired > before else at.SCALE_DOWNS] += 1
            if has_timeline:
                replicas[candidate, sync] = state[at.REPLICAS]
                ready[candidate, sync] = was_ready
            sync_ms += world[at.SYNC_PERIOD_MS]


@compiled
def _run_until(
    world: Array, loads: Array, state: Array, cohorts: Array, samples: Array, writes: Array, sync_ms: int
) -> None:
    """All events until a sync, and serve until then."""
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
            world_kernel.change_load(world, loads, state, now_ms)
        world_kernel.move_pods(world, state, cohorts, samples, now_ms)
        if state[at.NEXT_WRITE_MS] == now_ms:
            _carry_out(world, state, cohorts, samples, writes, now_ms)
            world_kernel.move_pods(world, state, cohorts, samples, now_ms)
        if state[at.NEXT_MEASUREMENT_MS] == now_ms:
            world_kernel.measure(world, state, cohorts, samples, now_ms)
    world_kernel.advance(world, state, sync_ms)
    while state[at.NEXT_PUBLICATION_MS] <= sync_ms:  # only syncs read what is published
        state[at.PUBLISHED] += 1
        state[at.NEXT_PUBLICATION_MS] += world[at.RESOLUTION_MS]


@compiled
def _write(world: Array, state: Array, writes: Array, desired: int, sync_ms: int) -> None:
    """Write the scale: `VirtualWorkload.set_replicas`."""
    state[at.REPLICAS] = desired
    writes[state[at.END_OF_WRITES] % writes.shape[0]] = sync_ms + world[at.ACTUATION_MS]
    state[at.END_OF_WRITES] += 1
    state[at.NEXT_WRITE_MS] = writes[state[at.FIRST_WRITE] % writes.shape[0]]


@compiled
def _carry_out(world: Array, state: Array, cohorts: Array, samples: Array, writes: Array, now_ms: int) -> None:
    """The workload controller makes or removes pods after a write."""
    state[at.FIRST_WRITE] += 1
    state[at.NEXT_WRITE_MS] = at.FAR_MS
    if state[at.FIRST_WRITE] < state[at.END_OF_WRITES]:
        state[at.NEXT_WRITE_MS] = writes[state[at.FIRST_WRITE] % writes.shape[0]]
    world_kernel.reconcile(world, state, cohorts, samples, now_ms, 0)


@compiled
def _count(world: Array, state: Array, totals: Array, candidate: int, last: Array, sync: int, slo_ms: float) -> None:
    """Add what happened since the sync before; `last` has the work that arrived and was lost until then."""
    arrived, lost = state[at.ARRIVED] - last[0], state[at.LOST] - last[1]
    last[0], last[1] = state[at.ARRIVED], state[at.LOST]
    if sync < world[at.COUNTED_FROM]:
        return
    totals[candidate, at.COUNTED_SYNCS] += 1
    totals[candidate, at.ARRIVED_WORK] += arrived
    totals[candidate, at.LOST_WORK] += lost
    totals[candidate, at.POD_MS] += state[at.PODS] * world[at.SYNC_PERIOD_MS]
    if not world[at.HAS_REQUESTS] or np.isnan(slo_ms):
        return
    if state[at.READY] == 0 or world_kernel.latency_ms(world, state) > slo_ms:
        totals[candidate, at.SLO_MISSED_WORK] += arrived


@compiled
def _compare(
    world: Array,
    needed: Array,
    ready: int,
    last: Array,
    sync: int,
    deviations: Array,
    inaccuracies: Array,
    candidate: int,
) -> None:
    """Add the deviation of the ready pods from the needed ones; `last` has those of the sync before."""
    need = needed[sync]
    if sync >= world[at.COUNTED_FROM]:
        if ready < need:
            deviations[candidate, at.UNDER_SYNCS] += 1
            inaccuracies[candidate, 0] += (need - ready) / need
        elif ready > need:
            deviations[candidate, at.OVER_SYNCS] += 1
            if need > 0:
                inaccuracies[candidate, 1] += (ready - need) / need
        if sync > world[at.COUNTED_FROM]:
            supply, demand = np.sign(ready - last[2]), np.sign(need - last[3])
            deviations[candidate, at.UNSTABLE_SYNCS] += min(abs(supply - demand), 1)
            deviations[candidate, at.SUPPLY_CHANGES] += abs(supply)
            deviations[candidate, at.DEMAND_CHANGES] += abs(demand)
    last[2], last[3] = ready, need
