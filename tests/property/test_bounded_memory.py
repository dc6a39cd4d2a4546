"""Whatever autoscalers come and go, nothing that a controller remembers grows with them."""

from collections import Counter, deque
from typing import Any

import pytest

from podscaler.base.lru import LRU
from podscaler.controller.controller import Controller
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.clock import VirtualClock
from podscaler.testing.cluster import HPAS, FakeCluster

COUNT = 20
OUTSIDE = (FakeCluster, VirtualClock, LRU)
"""What is no memory of the controller's, or is bounded by itself."""


def sizes(controller: Controller) -> Counter[str]:
    """How many things each container holds that can be reached from a controller, by where it is."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [("controller", controller)]
    while todo:
        path, each = todo.pop()
        each = getattr(each, "__self__", each)  # a bound method holds its object
        if id(each) in seen or isinstance(each, OUTSIDE):
            continue
        seen.add(id(each))
        if isinstance(each, dict | set | list | deque):
            found[path] += len(each)
            inside = each.values() if isinstance(each, dict) else each
            todo += [(f"{path}[]", item) for item in inside]
        elif type(each).__module__.startswith(("podscaler", "prometheus_client")):
            names = [*getattr(each, "__dict__", ()), *getattr(type(each), "__slots__", ())]
            todo += [(f"{path}.{name}", getattr(each, name, None)) for name in names]
    return found


async def _come_and_go(world: AutoscalerWorld, round_name: str) -> None:
    """Autoscalers that work, that fail and that another controller serves too, for some periods."""
    names = [f"{round_name}{number}" for number in range(COUNT)]
    for number, name in enumerate(names):
        world.cluster.put_deployment(name, 1)
        world.cluster.put_pod(f"{name}-0", name, "900m")
        world.cluster.put_autoscaler(name, spec(name if number % 3 else "missing"), uid=name)
    await world.advance(40)
    for name in names:
        world.cluster.delete(HPAS, name)
        world.cluster.delete("/api/v1/pods", f"{name}-0")
    await world.advance(600)


@pytest.mark.parametrize(
    "settings",
    [{}, {"history_namespace": "kube-system"}, {"dry_run": True}, {"dry_run": True, "compares": True}],
    ids=["in memory", "kept", "dry run", "compared"],
)
async def test_nothing_grows(settings: dict[str, Any]) -> None:
    """After a second lot has come and gone, everything is as large as after the first."""
    world = AutoscalerWorld(**settings)
    await world.start()
    await _come_and_go(world, "a")
    before = sizes(world.controller)
    await _come_and_go(world, "b")
    grown = {path: size for path, size in sizes(world.controller).items() if size > before[path]}
    assert grown == {}
    await world.close()
