"""The instants of metrics, when the wall clock is set."""

from typing import Any

import pytest

from podscaler.controlplane.metrics.resource.sampler import Sampler
from podscaler.testing import VirtualClock

RESOLUTION_S = 15


async def _stamps(clock: VirtualClock, *set_s: float) -> list[tuple[str, str]]:
    """Timestamp and window of a node's metrics, one round each after the wall clock is set."""
    registry: Any = None
    sampler = Sampler(registry, lambda: (), clock=clock, get_node_name=lambda: "here", resolution_s=RESOLUTION_S)
    await sampler.sample()
    stamps = []
    for each in set_s:
        await clock.advance(RESOLUTION_S)
        clock.set_wall(each)
        await sampler.sample()
        (metrics,) = sampler.node_metrics.list("")
        stamps.append((metrics["timestamp"], metrics["window"]))
    return stamps


@pytest.mark.parametrize(
    ("set_s", "after"),
    [
        (-3 * 3600, "2026-01-01T00:00:30Z"),
        (-1, "2026-01-01T00:00:29Z"),
        (3 * 3600, "2026-01-01T03:00:30Z"),
    ],
    ids=["back", "back a little", "forward"],
)
async def test_metrics_of_a_wall_clock_that_is_set(set_s: float, after: str) -> None:
    """There are metrics in every round; their instants follow the clock, but not far back."""
    assert await _stamps(VirtualClock(), 0, set_s) == [("2026-01-01T00:00:15Z", "15s"), (after, "15s")]


async def test_metrics_of_a_wall_clock_that_is_set_back_and_forward() -> None:
    """Once the clock has caught up, its instants are told again."""
    stamps = await _stamps(VirtualClock(), -3600, 0, 7200)
    assert [stamp for stamp, _ in stamps] == ["2026-01-01T00:00:15Z", "2026-01-01T00:00:30Z", "2026-01-01T01:00:45Z"]
