"""Decisions held against what another controller wrote."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from podscaler.api.machinery import instants
from podscaler.testing.autoscaling import AutoscalerWorld

CPU = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50, "averageValue": "500m"}}}
ACTIVE = {
    "type": "ScalingActive",
    "status": "True",
    "reason": "ValidMetricFound",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
LIMITED = ACTIVE | {"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"}
ABLE = ACTIVE | {"type": "AbleToScale", "reason": "ReadyForNewScale"}
CONDITIONS = [ABLE, ACTIVE, LIMITED]
WINDOW_S = 300


def metric(utilization: int) -> dict[str, Any]:
    """What the other saw."""
    current = {"averageUtilization": utilization, "averageValue": f"{utilization * 10}m"}
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


class World(AutoscalerWorld):
    """A controller that compares."""

    def __init__(self) -> None:
        super().__init__(dry_run=True, compares=True)

    def other(self, current: int, desired: int, *, utilization: int = 50, **more: Any) -> None:
        """The other controller writes."""
        status = {
            "observedGeneration": 1,
            "currentReplicas": current,
            "desiredReplicas": desired,
            "currentMetrics": [metric(utilization)],
            "conditions": CONDITIONS,
        }
        now = instants.text(self.clock.now_ns())
        self.cluster.report("web", status | more, manager="kube-controller-manager", at=now)

    def load(self, cpu: str, replicas: int) -> None:
        """All pods use so much."""
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", cpu)

    @property
    def verdicts(self) -> Mapping[str, float]:
        """Those that there were."""
        found = {}
        for family in self.controller.telemetry.registry.collect():
            for sample in family.samples:
                if sample.name in {"podscaler_comparisons_total", "podscaler_comparison_differences_total"}:
                    found["".join(sample.labels.values())] = sample.value
        return {name: value for name, value in found.items() if value}

    async def settle(self, **status: Any) -> None:
        """Both agree for longer than any window, so that both remember the same."""
        self.add_web(cpu="500m", replicas=2)
        self.other(2, 2, **status)
        await self.start()
        await self.advance(WINDOW_S + 31)


async def test_agreement() -> None:
    """Two that decide the same are the same in every look, and nothing is said."""
    world = World()
    await world.settle()
    await world.close()
    assert world.verdicts == {"same": 23}


async def test_another_moment() -> None:
    """Replicas that our rules give for what the other saw are its sampling."""
    world = World()
    await world.settle()
    world.other(2, 3, utilization=75)
    world.cluster.scales["shop", "web"]["spec"]["replicas"] = 3
    await world.advance(16)
    await world.close()
    assert world.verdicts == {"same": 23, "sampling": 1}


async def test_a_rescale_that_nothing_explains(caplog: pytest.LogCaptureFixture) -> None:
    """A rescale that our rules do not give for the metrics that the other reported differs at once, with the reason."""
    world = World()
    await world.settle()
    world.other(2, 6, utilization=75)
    world.cluster.scales["shop", "web"]["spec"]["replicas"] = 6
    with caplog.at_level(logging.INFO):
        await world.advance(16)
    await world.close()
    assert world.verdicts == {"same": 23, "different": 1, "desiredReplicas": 1}
    said = [record.message for record in caplog.records if "differs" in record.message]
    assert [line.partition(";")[0] for line in said] == [
        "horizontalpodautoscaler shop/web differs: the status says desiredReplicas 6, here 2"
    ]


async def test_a_difference_that_stays_is_counted_once() -> None:
    """Without a rescale it counts when it is still there at the next look, and then once."""
    world = World()
    await world.settle()
    world.load("1000m", 2)
    await world.advance(31)
    first = dict(world.verdicts)
    world.other(2, 2, utilization=100)
    await world.advance(121)
    await world.close()
    assert first["same"] >= 23
    assert world.verdicts["desiredReplicas"] == 1


async def test_what_the_other_remembers() -> None:
    """Until the windows for scaling down have passed, replicas that are held may be memory that we lack."""
    world = World()
    world.add_web(cpu="250m", replicas=4)
    world.other(4, 4, utilization=25)
    await world.start()
    await world.advance(100)
    await world.close()
    assert set(world.verdicts) == {"history"}


async def test_a_scale_up_is_no_memory() -> None:
    """A scale-up beyond ours differs in the first minutes, too: no window for scaling down makes one."""
    world = World()
    world.add_web(cpu="500m", replicas=2)
    world.other(2, 4, utilization=50)
    await world.start()
    await world.advance(31)
    await world.close()
    assert (world.verdicts["history"], world.verdicts["different"], world.verdicts["desiredReplicas"]) == (1, 2, 1)


async def test_a_scale_down_below_ours_is_no_memory() -> None:
    """What a window keeps only holds a count up: a lower one differs in the first minutes, too."""
    world = World()
    world.add_web(cpu="500m", replicas=4)
    world.other(4, 2, utilization=50)
    await world.start()
    await world.advance(31)
    await world.close()
    assert world.verdicts["desiredReplicas"] == 1


async def test_other_conditions() -> None:
    """Replicas alike, but another reason of a condition that lasts: counted as conditions."""
    world = World()
    await world.settle()
    world.other(2, 2, conditions=[ABLE, ACTIVE, LIMITED | {"status": "True", "reason": "TooManyReplicas"}])
    await world.advance(61)
    await world.close()
    assert (world.verdicts["conditions"], "desiredReplicas" in world.verdicts) == (1, False)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"observedGeneration": 0}, id="an older spec"),
        pytest.param({"conditions": None}, id="no sync yet"),
        pytest.param({"currentReplicas": 7}, id="other replicas than we ever saw"),
    ],
)
async def test_what_cannot_be_compared(status: dict[str, Any]) -> None:
    """Statuses that say nothing about what we see are unsettled."""
    world = World()
    world.add_web(cpu="500m", replicas=2)
    world.other(2, 2, **status)
    await world.start()
    await world.advance(31)
    await world.close()
    assert set(world.verdicts) == {"unsettled"}


async def test_a_summary_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """The last line counts all verdicts."""
    world = World()
    with caplog.at_level(logging.INFO):
        await world.settle()
        world.controller.stop()
        await world.advance(5)
    assert caplog.records[-1].message == (
        "compared 23 decisions about 1 autoscalers: 23 same, 0 sampling, 0 history, 0 unsettled, 0 different; "
        "0 autoscalers differed"
    )
