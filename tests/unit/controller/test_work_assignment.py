"""The order in which the autoscalers of a part have their first turn."""

from typing import Any

from podscaler.base import concurrency as turns_of_syncs
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.work_assignment import RunningSyncs, WorkAssignment

KEYS = [("a", "one"), ("a", "two"), ("b", "one"), ("c", "one")]


class Slots:
    """The keys that got a turn, with their delays in seconds."""

    period_s = 15.0

    def __init__(self) -> None:
        self.added: list[tuple[tuple[str, str], float]] = []

    def add_after(self, key: tuple[str, str], delay_s: float) -> None:
        self.added.append((key, delay_s))

    def done(self, key: tuple[str, str]) -> None:
        """A sync has ended."""


def assignment(turns: Slots) -> WorkAssignment:
    """With four autoscalers."""
    states = AutoscalerStates()
    for key in reversed(KEYS):
        states.register(key)
    queue: Any = turns

    async def listed() -> None:
        """At once."""

    unused: Any = None
    syncs = RunningSyncs(queue)
    return WorkAssignment(states, syncs, queue, handover=unused, telemetry=unused, wait_listed=listed)


async def _nothing() -> None:
    """A sync that is over at once."""


def test_the_first_round() -> None:
    """All have a turn, in the order of their names, spread over the round."""
    turns = Slots()
    assignment(turns).queue_registered(lambda _key: True)
    assert turns.added == [(key, index * 0.02) for index, key in enumerate(KEYS)]


async def test_a_round_goes_on_where_the_last_one_stopped() -> None:
    """Who lost the lease in the middle of a round begins the next one with those that had no turn."""
    turns, syncs = Slots(), turns_of_syncs.Slots(2)
    made = assignment(turns)
    for key in KEYS[:2]:
        made.syncs.run(key, _nothing(), await syncs.take())
    made.queue_registered(lambda _key: True)
    assert [key for key, _ in turns.added] == [*KEYS[2:], *KEYS[:2]]
