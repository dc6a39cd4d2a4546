"""Defines the event queue of a simulation in virtual time.

Workloads, nodes and the engine add events; the engine runs them. Events at one instant run in the order of
`EventPriority`, and events of one priority in the order in which they were added, so that a scenario has one result.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum


class EventPriority(IntEnum):
    """The order of events at one instant, which `podscaler.simulation.batch.candidate_kernel` has, too.

    A sync sees all changes of its instant; a tick of another scaler (`scaler_runs`) comes after the sync.
    """

    LOAD = 0
    POD = 1
    USER = 2
    SCALE = 3
    MEASUREMENT = 4
    PUBLICATION = 5
    SYNC = 6
    TICK = 7


Action = Callable[[int], None]
"""An event: called with its instant in milliseconds."""


class EventQueue:
    """The events to come, as a heap of (instant in ms, priority, sequence number, action)."""

    def __init__(self) -> None:
        self._events: list[tuple[int, EventPriority, int, Action]] = []
        self._sequence = 0

    def add(self, at_ms: int, priority: EventPriority, action: Action) -> None:
        """Let `run_next` call `action` at an instant, which must not be before that of the event that runs now."""
        self._sequence += 1
        heapq.heappush(self._events, (at_ms, priority, self._sequence, action))

    def run_next(self, until_ms: int) -> int | None:
        """Run one event that is due at `until_ms` or before; returns its instant, None if there is none."""
        if not self._events or self._events[0][0] > until_ms:
            return None
        at_ms, _, _, action = heapq.heappop(self._events)
        action(at_ms)
        return at_ms
