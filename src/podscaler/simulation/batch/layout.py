"""Defines the arrays that the compiled functions share: which there are, and their fields as indexes.

`candidate_tables` and `scenario_tables` fill the arrays of inputs; the compiled modules read them and keep their own.
Numbers are 64 bits wide: times in ms (`_MS`) or ns (`_NS`) since the start of the scenario, CPU in millionths of a
core, work in those times ms, memory in bytes, metric values in thousandths. A new field: a name in one of the tuples of
indexes here, its number of fields, and its value in the module that fills the array.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FAR_MS = 1 << 60
"""Later than everything."""

NEVER_MS = -(1 << 60)
"""MEASURED_MS of pods that were not measured yet."""

MS_NS = 1_000_000

(
    SYNC_PERIOD_MS,
    FIRST_SYNC_MS,
    SYNCS,
    START_MS,
    RESOLUTION_MS,
    LAG_MS,
    FRESH_MS,
    SLOTS,
    LAUNCH_MS,
    STARTUP_MS,
    SETTLED_MS,
    ACTUATION_MS,
    INITIAL_REPLICAS,
    CAPACITY,
    TIMEOUT_MS,
    HAS_REQUESTS,
    CPU_PER_REQUEST_US,
    MEMORY_PER_REQUEST,
    LATENCY_MS,
    BURST_UCORES,
    BURST_MS,
    CPU_INITIALIZATION_NS,
    READINESS_DELAY_NS,
    SCALES_TO_ZERO,
    COUNTED_FROM,
) = range(25)
"""`world`: the scenario.

SLOTS: how many samples of a pod are kept, the published one and those that wait. SETTLED_MS: the age at which all
ready pods are alike. CAPACITY, TIMEOUT_MS: -1: unlimited. COUNTED_FROM: the first sync that sums contain.
"""
WORLD_FIELDS = 25

LOAD_AT_MS, LOAD_RATE, LOAD_DEMAND, LOAD_BYTES = range(4)
"""`loads[step]`: the load from an instant on; the first step is that of the start, the last one is at FAR_MS."""

IDLE_CPU, IDLE_MEMORY, LOAD_PERMILLE, MEMORY_PERMILLE = range(4)
"""`containers[container]`."""

(
    MIN_REPLICAS,
    MAX_REPLICAS,
    HAS_BEHAVIOR,
    SCALES_ON_OTHERS,
    DOWN_WINDOW_NS,
    UP_WINDOW_NS,
    UP_SELECTION,
    DOWN_SELECTION,
    UP_LONGEST_NS,
    DOWN_LONGEST_NS,
    UP_POLICIES,
    DOWN_POLICIES,
    END_OF_POLICIES,
    METRICS,
    END_OF_METRICS,
) = range(15)
"""`specs[candidate]`. UP_POLICIES to END_OF_METRICS are indexes of rows of `policies` and `metrics`."""
SPEC_FIELDS = 15

SELECT_MAX, SELECT_MIN, SELECT_DISABLED = range(3)
"""UP_SELECTION and DOWN_SELECTION."""

IS_PODS, POLICY_VALUE, POLICY_PERIOD_NS = range(3)
"""`policies[policy]`; IS_PODS is 1 for the type Pods, 0 for Percent."""
POLICY_FIELDS = 3

(
    KIND,
    TARGET,
    IS_CPU,
    FIRST_CONTAINER,
    END_OF_CONTAINERS,
    REQUEST,
    HAS_REQUEST,
    FEED,
    IS_SHARED,
) = range(9)
"""`metrics[metric]`. FEED: a row of `feeds`; -1: the load of the workload has the values."""
METRIC_FIELDS = 9

UTILIZATION, RESOURCE_AVERAGE, PODS_AVERAGE, OBJECT_AVERAGE, EXTERNAL_AVERAGE, TOTAL = range(6)
"""KIND: the type of metric and target that decides how a proposal is computed (`metric_kernel.propose`)."""

(
    AT_MS,
    RATE,
    DEMAND,
    BYTES,
    BACKLOG,
    WORK_OF_EACH,
    ARRIVED,
    LOST,
    REPLICAS,
    PODS,
    READY,
    BOTTOM,
    NEXT_TO_RUN,
    NEXT_TO_BE_READY,
    TOP,
    LOAD_STEP,
    NEXT_MEASUREMENT_MS,
    MEASUREMENT,
    NEXT_PUBLICATION_MS,
    PUBLISHED,
    FIRST_WRITE,
    END_OF_WRITES,
    NEXT_WRITE_MS,
    WAS_SCALED_TO_ZERO,
) = range(24)
"""`state` of the simulated world.

Cohorts BOTTOM to TOP exist; those before NEXT_TO_RUN run, and of these those before NEXT_TO_BE_READY are ready.
MEASUREMENT: the number of the next one; PUBLISHED: of the one that the metrics API shows.
"""
STATE_FIELDS = 24

COUNT, MADE_MS, RUNS_MS, READY_MS, MEASURED_MS, MEASURED_WORK, READY_WORK = range(7)
"""`cohorts[cohort]`: pods that were made at one instant. READY_WORK: WORK_OF_EACH when they became ready."""
COHORT_FIELDS = 7

SAMPLE_NUMBER, SAMPLE_SERVED, SAMPLE_WINDOW_MS, SAMPLE_BYTES = range(4)
"""`samples[cohort, slot]`: of each pod of the cohort; SAMPLE_NUMBER: of the measurement, below 0: none."""
SAMPLE_FIELDS = 4

HIGHEST_HEAD, HIGHEST_TAIL, LOWEST_HEAD, LOWEST_TAIL, UP_EVENTS, DOWN_EVENTS, HAS_BEGUN = range(7)
"""`marks` of the history: the ends of the queues `highest` and `lowest`, the numbers of `events` by direction."""
MARK_FIELDS = 7

RECOMMENDED, RECOMMENDED_NS = range(2)
"""`highest[entry]` and `lowest[entry]`: recommendations."""

CHANGE, CHANGED_NS, IS_OUTDATED = range(3)
"""`events[direction, entry]`: rescales, up (0) and down (1)."""

POD_MS, ARRIVED_WORK, LOST_WORK, SLO_MISSED_WORK, SCALE_UPS, SCALE_DOWNS, COUNTED_SYNCS = range(7)
"""`totals[candidate]`."""
TOTAL_FIELDS = 7

UNDER_SYNCS, OVER_SYNCS, UNSTABLE_SYNCS, SUPPLY_CHANGES, DEMAND_CHANGES = range(5)
"""`deviations[candidate]` of the ready pods from the needed ones."""
DEVIATION_FIELDS = 5

UNDER_SHARES, OVER_SHARES = range(2)
"""`inaccuracies[candidate]`: the sums of the shares of missing and of surplus pods."""
INACCURACY_FIELDS = 2

LAST_ARRIVED, LAST_LOST, LAST_READY, LAST_NEEDED = range(4)
"""`last`, of the sync before: the work that had arrived and was lost, the ready pods, the needed pods."""
LAST_FIELDS = 4


class KernelInputs(NamedTuple):
    """What candidates share, and the candidates; the fields of the arrays are stated above.

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
    """What a candidate changes while it is simulated; the fields of the arrays are stated above.

    Attributes:
        writes: the instants at which pods are made or removed, as a ring.
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
    """The arrays to fill, one row for each candidate; timelines have no rows where they are not kept."""

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
    # A sync adds at most one cohort and one recommendation. Three entries more than syncs leave a margin.
    entries = int(world[SYNCS]) + 3
    pending_writes = int(world[ACTUATION_MS]) // int(world[SYNC_PERIOD_MS]) + 2
    return KernelMemory(
        state=np.zeros(STATE_FIELDS, np.int64),
        cohorts=np.empty((entries, COHORT_FIELDS), np.int64),
        samples=np.empty((entries, int(world[SLOTS]), SAMPLE_FIELDS), np.int64),
        writes=np.empty(pending_writes, np.int64),
        marks=np.zeros(MARK_FIELDS, np.int64),
        highest=np.empty((entries, 2), np.int64),
        lowest=np.empty((entries, 2), np.int64),
        events=np.empty((2, event_slots, 3), np.int64),
        last=np.zeros(LAST_FIELDS, np.int64),
    )
