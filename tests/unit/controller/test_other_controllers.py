"""Who else is at work on autoscalers, over those that this process looks after."""

import msgspec
import pytest

from podscaler.api.machinery import instants
from podscaler.controller.coexistence import standby
from podscaler.controller.informers.other_controllers import OtherControllers
from podscaler.controller.leaderelection.shard_ownership import every_key
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key
from podscaler.testing import VirtualClock
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.transport import ScriptedTransport

BUILT_IN = "kube-controller-manager"
FORK = "podscaler-fork"
WEB, API = ("shop", "web"), ("shop", "api")


def note(others: OtherControllers, clock: VirtualClock, key: Key, *managers: str) -> None:
    """Have the status of an autoscaler written by these now."""
    fields = [{"manager": each, "subresource": "status", "time": instants.text(clock.now_ns())} for each in managers]
    meta = {"namespace": key[0], "name": key[1], "managedFields": fields}
    others.note(msgspec.Raw(msgspec.json.encode({"metadata": meta})))


@pytest.fixture
def clock() -> VirtualClock:
    """All time."""
    return VirtualClock()


@pytest.fixture
def others(clock: VirtualClock) -> OtherControllers:
    """Two controllers write about shop/web, one of them about shop/api, and both were asked about."""
    made = OtherControllers(Client(ScriptedTransport(), clock), clock, own="podscaler")
    note(made, clock, WEB, BUILT_IN, FORK)
    note(made, clock, API, BUILT_IN)
    for key in (WEB, API):
        made.update_competing(key, has_change=True)
    return made


def test_names_of_all(others: OtherControllers) -> None:
    """Each other controller is named once, as long as it is at work on one autoscaler that is ours."""
    found = [others.all_competing]
    for key in (WEB, API):
        others.release(key)
        found.append(others.all_competing)
    assert found == [f"{BUILT_IN}, {FORK}", BUILT_IN, ""]


async def test_names_of_those_that_are_silent(others: OtherControllers, clock: VirtualClock) -> None:
    """Who has been silent for long is named no more."""
    await clock.advance(60)
    note(others, clock, API, BUILT_IN)
    for key in (WEB, API):
        others.update_competing(key, has_change=True)
    assert others.all_competing == BUILT_IN


def test_everywhere_is_what_was_asked_about(clock: VirtualClock) -> None:
    """Autoscalers of other processes, which nobody asks about here, do not count; nor do those that are laid down."""
    others = OtherControllers(Client(ScriptedTransport(), clock), clock, own="podscaler")
    note(others, clock, WEB, BUILT_IN)
    note(others, clock, API)
    said = [others.competes_everywhere]
    for key in (WEB, API):
        others.update_competing(key, has_change=True)
        said.append(others.competes_everywhere)
    others.release(API)
    said.append(others.competes_everywhere)
    others.forget(WEB)
    said.append(others.competes_everywhere)
    assert said == [False, True, False, True, False]


async def test_what_is_laid_down_makes_nobody_unready() -> None:
    """A member that gives its autoscalers away is ready: whoever has them now says what stops it."""
    world = AutoscalerWorld(other_controller=standby.REFUSE)
    world.add_web(cpu="1000m", replicas=2)
    world.cluster.put_deployment("api", 2)
    world.cluster.put_autoscaler("api", spec("api"))
    status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": None}
    world.cluster.report("web", status, manager=BUILT_IN, at=instants.text(world.clock.now_ns()))
    await world.start()
    await world.advance(5)
    found = [len(world.controller.unready())]
    for part in (lambda key: key == API, every_key):
        await world.controller.assignment.on_lost_lease(part)
        found.append(len(world.controller.unready()))
    await world.close()
    assert found == [0, 1, 0]
