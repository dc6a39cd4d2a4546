"""Autoscalers under the rules of older releases: timelines of what is wanted of a target, in virtual time."""

from typing import Any

from podscaler.base.clock import NANOSECONDS
from podscaler.testing.autoscaling import AutoscalerWorld

MINUTE_NS = 60 * NANOSECONDS


class World(AutoscalerWorld):
    """A world whose pods share a load, in thousandths of a CPU; each requests one CPU, and the target is a half."""

    load_milli = 0

    def share(self) -> None:
        """Spread the load over as many pods as are wanted."""
        replicas = self.replicas()
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", f"{self.load_milli // replicas}m")
        pods = self.cluster.collections["/api/v1/pods"].objects
        for name in [name for _, name in pods if int(name.removeprefix("web-")) >= replicas]:
            self.cluster.delete("/api/v1/pods", name)

    async def timeline(self, loads_milli: dict[int, int], until_s: int) -> list[tuple[int, int]]:
        """Seconds and replicas, whenever those change, while the load changes at the seconds given."""
        seen: list[tuple[int, int]] = []
        for second in range(until_s):
            if second in loads_milli:
                self.load_milli = loads_milli[second]
            self.share()
            await self.advance(1)
            if not seen or seen[-1][1] != self.replicas():
                seen.append((second + 1, self.replicas()))
        return seen


async def _timeline(loads_milli: dict[int, int], until_s: int, **settings: Any) -> list[tuple[int, int]]:
    world = World(**settings)
    world.add_web(cpu="500m", replicas=1)
    world.load_milli = 500
    await world.start()
    try:
        return await world.timeline(loads_milli, until_s)
    finally:
        await world.close()


LOADS_MILLI = {40: 2000, 100: 4000, 400: 500}


async def test_v1_1() -> None:
    """Up at once, again 3 minutes after that; down not before 5 minutes after the last; no steps, no windows."""
    settings = {"algorithm": "v1.1", "sync_period_ns": 30 * NANOSECONDS}
    assert await _timeline(LOADS_MILLI, 900, **settings) == [(1, 1), (60, 4), (270, 8), (600, 1)]


async def test_cooldowns_beside_todays_windows() -> None:
    """The second scale-up waits for its cooldown; the scale-down waits for the window, which is longer than its own."""
    settings = {"upscale_delay_ns": 3 * MINUTE_NS, "downscale_delay_ns": 2 * MINUTE_NS}
    assert await _timeline(LOADS_MILLI, 900, **settings) == [(1, 1), (45, 4), (240, 8), (705, 1)]


async def test_today() -> None:
    """For comparison: up at every sync that asks for it, down when the window has passed."""
    assert await _timeline(LOADS_MILLI, 900) == [(1, 1), (45, 4), (105, 8), (705, 1)]
