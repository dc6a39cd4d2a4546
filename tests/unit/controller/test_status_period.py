"""--status-period: a status in which only values of metrics changed is written at most that often."""

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus as Status
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.reconcile import status_writer
from podscaler.testing.autoscaling import AutoscalerWorld, spec


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """A world with a status period of a minute."""
    made = AutoscalerWorld(status_period_ns=60 * NANOSECONDS)
    yield made
    await made.close()


def _writes(world: AutoscalerWorld) -> int:
    return len(world.cluster.asked("PUT", "/status"))


async def _periods(world: AutoscalerWorld, count: int) -> list[int]:
    """How many statuses were written by the end of each period, with a usage that moves a little in each."""
    writes = []
    for number in range(count):
        world.cluster.put_pod("web-0", "web", f"{501 + number}m")
        await world.advance(15)
        writes.append(_writes(world))
    return writes


async def test_values_wait_for_the_period(world: AutoscalerWorld) -> None:
    """New values are written a minute apart; the first time up to two, so that not all are written together."""
    world.add_web()
    await world.start()
    writes = await _periods(world, 16)
    written_in = [number for number in range(1, 16) if writes[number] > writes[number - 1]]
    assert (3 <= written_in[0] <= 8, [after - before for before, after in pairwise(written_in)]) == (
        True,
        [4] * (len(written_in) - 1),
    )


async def test_what_else_changes_is_written_at_once(world: AutoscalerWorld) -> None:
    """A scale, a condition or a generation is told without delay."""
    world.add_web()
    await world.start()
    await world.advance(16)
    world.cluster.put_autoscaler("web", spec(minimum=2))
    await world.advance(0)
    assert (_writes(world), world.web["status"]["desiredReplicas"]) == (2, 2)


async def test_every_change_by_default() -> None:
    """Without the flag each new value is written, as upstream does."""
    world = AutoscalerWorld()
    world.add_web()
    await world.start()
    writes = await _periods(world, 4)
    await world.close()
    assert writes == [2, 3, 4, 5]


CPU = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            Status(current_metrics=[CPU]),
            Status(current_metrics=[CPU | {"resource": {"name": "cpu", "current": {"averageValue": "2"}}}]),
            True,
        ),
        (Status(current_metrics=[CPU]), Status(current_metrics=[]), False),
        (
            Status(current_metrics=[CPU]),
            Status(current_metrics=[CPU | {"resource": {"name": "memory", "current": {"averageValue": "1"}}}]),
            False,
        ),
        (
            Status(current_metrics=[CPU]),
            Status(current_metrics=[CPU | {"resource": {"name": "cpu", "current": {"averageUtilization": 1}}}]),
            False,
        ),
        (Status(current_metrics=[CPU]), Status(current_metrics=[CPU], desired_replicas=2), False),
        (Status(current_metrics=[CPU]), Status(current_metrics=[CPU], observed_generation=2), False),
    ],
    ids=["a value", "a metric less", "another metric", "another kind of value", "replicas", "generation"],
)
def test_what_is_only_a_value(before: Status, after: Status, expected: bool) -> None:
    """Which differences may wait."""
    assert status_writer.differs_in_metric_values(before, after) is expected
