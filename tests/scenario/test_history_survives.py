"""What a controller remembers outlives it: restarts and kills in the middle of windows, in virtual time."""

import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import sampling
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.history import history_maps, stored_map
from podscaler.testing.autoscaling import AutoscalerWorld
from podscaler.testing.cluster import CONFIG_MAPS, HPAS, PODS, refusal
from podscaler.testing.transport import TransportFailure

PERIOD_S = 15
UP_2_IN_120_S = {
    "behavior": {
        "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 120}]},
        "scaleDown": {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
    }
}


class World(AutoscalerWorld):
    """A world whose controllers come and go."""

    async def stop(self) -> None:
        """End the controller in good order."""
        self.controller.stop()
        await self.advance(1)

    async def kill(self) -> None:
        """End it without a last word: its last writes never arrive."""
        requests, self.cluster.request = self.cluster.request, _unreachable  # type: ignore[method-assign]  # the fault
        await self.close()
        self.cluster.request = requests  # type: ignore[method-assign]  # the end of it

    async def next_controller(self) -> None:
        """Another one takes over."""
        self.tasks = []
        self.controller = self.make_controller()
        await self.start()

    def use(self, cpu: str) -> None:
        """Let every pod of `web` use so much."""
        for number in range(self.replicas()):
            self.cluster.put_pod(f"web-{number}", "web", cpu)

    def remove_pods(self) -> None:
        """Have no more pods of `web` than are wanted."""
        for _, name in list(self.cluster.collections[PODS].objects):
            if int(name.removeprefix("web-")) >= self.replicas():
                self.cluster.delete(PODS, name)

    async def seconds_until(self, replicas: int, limit_s: int = 900) -> int:
        """How many seconds pass until that many are wanted."""
        for second in range(limit_s):
            if self.replicas() == replicas:
                return second
            await self.advance(1)
        raise AssertionError(f"still {self.replicas()} after {limit_s} s")

    def asked_for_histories(self, method: str) -> int:
        """How many requests of that method went to ConfigMaps."""
        return len([each for each in self.cluster.requests if each.method == method and "configmaps" in each.path])


async def _unreachable(*_: Any) -> Any:
    raise ConnectionError("killed")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Five busy pods, and a controller that keeps its history in the cluster."""
    made = World(history_namespace="kube-system")
    made.add_web(cpu="500m", replicas=5)
    await made.start()
    yield made
    await made.close()


async def _held_for(world: World, *, interrupted_after_s: float | None, is_killed: bool = False) -> float:
    """How long a scale-down is held after the load is gone at 102 s, with another controller in between."""
    await world.advance(102)
    world.use("100m")
    before_s = world.clock.monotonic_s()
    if interrupted_after_s is not None:
        await world.advance(interrupted_after_s)
        await (world.kill() if is_killed else world.stop())
        await world.next_controller()
    await world.seconds_until(1)
    return world.clock.monotonic_s() - before_s


async def test_a_window_without_interruption(world: World) -> None:
    """The last high recommendation is from 90 s: it holds the scale-down until the first sync after 390 s."""
    assert await _held_for(world, interrupted_after_s=None) == 405 - 102


@pytest.mark.parametrize("set_s", [-3 * 3600, 3 * 3600], ids=["back", "forward"])
@pytest.mark.parametrize("is_kept", [False, True], ids=["in memory", "kept"])
async def test_a_wall_clock_that_is_set_changes_no_window(*, set_s: int, is_kept: bool) -> None:
    """In the middle of a window the clock is set: the window ends as if it had not been."""
    world = World(history_namespace="kube-system" if is_kept else None)
    world.add_web(cpu="500m", replicas=5)
    await world.start()
    await world.advance(102)
    world.use("100m")
    await world.advance(100)
    world.clock.set_wall(set_s)
    await world.seconds_until(1)
    assert world.clock.monotonic_s() == 405
    await world.close()


@pytest.mark.parametrize("after_s", sampling.one_in(2, [1, 20, 150, 285]))
async def test_a_restart_does_not_cut_a_window_short(world: World, after_s: float) -> None:
    """With another controller in the middle of the window it lasts as long, but for the phase of the period."""
    held_s = await _held_for(world, interrupted_after_s=after_s)
    assert 390 - 102 <= held_s <= 390 - 102 + PERIOD_S + 1


@pytest.mark.parametrize("after_s", sampling.one_in(2, [1, 20, 75, 150, 285]))
async def test_a_kill_does_not_cut_a_window_short(world: World, after_s: float) -> None:
    """Where the last changes were lost, the window lasts up to two minutes longer, and never less long."""
    held_s = await _held_for(world, interrupted_after_s=after_s, is_killed=True)
    assert 390 - 102 <= held_s <= 390 - 102 + 120 + PERIOD_S + 1


async def test_in_memory_it_is_as_upstream() -> None:
    """With histories in memory a restart begins the window anew, with what the target has, and nothing is written."""
    world = World()
    world.add_web(cpu="500m", replicas=5)
    await world.start()
    held_s = await _held_for(world, interrupted_after_s=285)
    assert (held_s > 285 + 300, world.cluster.config_maps) == (True, {})
    await world.close()


async def test_policies_remember_what_was_added(world: World) -> None:
    """A restart does not renew the budget of a policy."""
    await world.advance(2)
    world.add_web(cpu="900m", replicas=5, **UP_2_IN_120_S)
    await world.advance(0)
    assert world.replicas() == 7
    world.use("900m")
    await world.advance(20)
    await world.stop()
    await world.next_controller()
    assert 120 - 21 <= await world.seconds_until(9) <= 120 - 21 + PERIOD_S


async def test_a_change_that_nobody_kept_counts_as_recommended(world: World) -> None:
    """A kill right after a rescale: the next controller finds more replicas than it knows of, and holds them."""
    await world.advance(100)
    world.use("1")
    await world.advance(6)
    assert world.replicas() == 10
    await world.kill()
    world.use("100m")
    await world.next_controller()
    held_s = await world.seconds_until(2)
    assert 300 <= held_s <= 300 + PERIOD_S


async def _scaled_down(world: World, *, is_stored: bool) -> None:
    """Six pods become three 40 s after half of the load is gone; each of the three has enough to do."""
    world.add_web(cpu="500m", replicas=6)
    await world.start()
    await world.advance(11)
    world.use("250m")
    if not is_stored:
        refused = refusal(500, "InternalError", "no disk")
        world.cluster.interfere("PATCH", f"{CONFIG_MAPS}/podscaler-history-03", *[refused] * 99)
    await world.seconds_until(3)
    world.remove_pods()
    world.use("500m")


@pytest.fixture
async def quick() -> AsyncIterator[World]:
    """A controller with a period of 5 s and a window of 40 s, that keeps its history in the cluster."""
    period_ns, window_ns = 5 * NANOSECONDS, 40 * NANOSECONDS
    made = World(history_namespace="kube-system", sync_period_ns=period_ns, downscale_stabilization_ns=window_ns)
    yield made
    await made.close()


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("gone_s", [0, 15])
@pytest.mark.parametrize("after_s", [0, 4.5, 20, 70])
async def test_a_kill_after_a_scale_down_scales_nothing_up(
    quick: World, *, after_s: float, gone_s: float, is_stored: bool
) -> None:
    """What was recommended before a scale-down makes nobody scale up again, however soon its controller is killed."""
    await _scaled_down(quick, is_stored=is_stored)
    await quick.advance(after_s)
    await quick.kill()
    quick.cluster.recover()
    await quick.clock.advance(gone_s)
    await quick.next_controller()
    found = set()
    for _ in range(60):
        await quick.advance(1)
        found.add(quick.replicas())
    assert found == {3}


async def test_a_rescale_is_stored_before_it_is_written(world: World) -> None:
    """Whoever goes on after a kill knows of it, by one request that is made anyway."""
    await world.advance(70)
    world.use("900m")
    before = len(world.cluster.requests)
    await world.seconds_until(9)
    written = [(each.method, each.path.split("/")[-2:]) for each in world.cluster.requests[before:]]
    changes = [each for each in written if each[0] in ("PATCH", "PUT")]
    assert changes[:2] == [("PATCH", ["configmaps", "podscaler-history-03"]), ("PUT", ["web", "scale"])]
    kept = json.loads(world.cluster.config_maps["podscaler-history-03"]["data"]["shop.web"])
    assert (kept["replicas"], kept["rescaledFrom"]) == (9, 5)


async def test_a_rescale_that_was_stored_and_not_written(quick: World) -> None:
    """A kill between the two: the target has what it had, and its window ends as if nothing had been stored."""
    quick.add_web(cpu="500m", replicas=6)
    await quick.start()
    await quick.advance(11)
    quick.use("250m")
    lost = [TransportFailure("killed", broken=True)] * 99
    quick.cluster.interfere("PUT", "/apis/apps/v1/namespaces/shop/deployments/web/scale", *lost)
    while not quick.cluster.asked("PUT"):
        await quick.advance(0.5)
    await quick.kill()
    quick.cluster.recover()
    await quick.next_controller()
    held_s = await quick.seconds_until(3)
    assert 1 <= held_s <= 120 + 5


async def test_a_rescale_that_is_refused_again_and_again(quick: World) -> None:
    """It is stored, and what became of it, about once a minute each; whoever goes on takes what the target has."""
    quick.add_web(cpu="500m", replicas=5)
    await quick.start()
    await quick.advance(70)
    before = quick.asked_for_histories("PATCH")
    refused = [refusal(403, "Forbidden", "no")] * 99
    quick.cluster.interfere("PUT", "/apis/apps/v1/namespaces/shop/deployments/web/scale", *refused)
    quick.use("1")
    await quick.advance(120)
    heartbeats = 2
    assert quick.asked_for_histories("PATCH") - before - heartbeats <= 6
    await quick.kill()
    await quick.next_controller()
    await quick.advance(20)
    assert quick.replicas() == 5


async def test_a_kill_does_not_renew_a_budget(world: World) -> None:
    """A policy counts what was added right before a kill."""
    await world.advance(2)
    world.add_web(cpu="900m", replicas=5, **UP_2_IN_120_S)
    await world.advance(0)
    assert world.replicas() == 7
    world.use("900m")
    await world.kill()
    await world.next_controller()
    assert 120 - 1 <= await world.seconds_until(9) <= 120 + PERIOD_S


async def test_a_recommendation_that_comes_back_before_a_kill(world: World) -> None:
    """A peak in the middle of a window begins it anew, for the next controller too, ten seconds later."""
    await world.advance(102)
    world.use("100m")
    await world.advance(100)
    world.use("500m")
    await world.advance(15)
    world.use("100m")
    peak_s = 210
    await world.advance(12)
    await world.kill()
    await world.next_controller()
    await world.seconds_until(1)
    assert peak_s + 300 <= world.clock.monotonic_s() <= peak_s + 300 + 120 + PERIOD_S + 1


async def test_a_steady_autoscaler_costs_no_writes(world: World) -> None:
    """In an hour of 240 equal syncs: one heartbeat a minute for the whole controller."""
    await world.advance(55)
    before = world.asked_for_histories("PATCH")
    await world.advance(3600)
    assert world.asked_for_histories("PATCH") - before == 60


async def test_a_restless_autoscaler_is_written_once_a_minute(world: World) -> None:
    """Recommendations that go up and down at every sync are changes, but wait for one another."""
    loads = itertools.cycle(["500m", "450m", "400m", "350m"])
    before = world.asked_for_histories("PATCH")
    for _ in range(120):
        await world.advance(PERIOD_S)
        world.use(next(loads))
    heartbeats = 30
    assert 30 <= world.asked_for_histories("PATCH") - before - heartbeats <= 36


async def test_many_autoscalers_share_requests() -> None:
    """However many autoscalers there are, a change of all of them is at most sixteen requests."""
    world = World(history_namespace="kube-system")
    for number in range(200):
        world.cluster.put_deployment(f"a{number}", 2)
        world.cluster.put_pod(f"a{number}-0", f"a{number}", "500m")
        web = {"scaleTargetRef": {"kind": "Deployment", "name": f"a{number}", "apiVersion": "apps/v1"}}
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        metrics = {"metrics": [{"type": "Resource", "resource": cpu}]}
        world.cluster.put_autoscaler(f"a{number}", web | {"minReplicas": 1, "maxReplicas": 9} | metrics)
    await world.start()
    await world.clock.advance(120, turns=400)
    maps = {name: found for name, found in world.cluster.config_maps.items() if name != "podscaler-history"}
    assert (len(maps), sum(len(found["data"]) for found in maps.values())) == (16, 200)
    assert world.asked_for_histories("PATCH") <= 16 * 2 + 3
    await world.close()


async def test_another_object_of_the_same_name_begins_anew(world: World) -> None:
    """Deleted and made again while no controller ran: the kept history is of the old one, and not used."""
    await world.advance(102)
    await world.stop()
    old = world.cluster.collections[HPAS].objects["shop", "web"]
    world.cluster.delete(HPAS, "web")
    world.cluster.put_autoscaler("web", old["spec"], uid="u2")
    world.cluster.put_deployment("web", 2)
    world.use("500m")
    await world.next_controller()
    await world.advance(30)
    kept = json.loads(world.cluster.config_maps["podscaler-history-03"]["data"]["shop.web"])
    assert (kept["uid"], [each["replicas"] for each in kept["history"]["recommendations"]]) == ("u2", [2])


async def test_a_deleted_autoscaler_leaves_nothing(world: World) -> None:
    """Its record goes soon after a sync found it gone."""
    await world.advance(70)
    before = dict(world.cluster.config_maps["podscaler-history-03"]["data"])
    world.cluster.delete(HPAS, "web")
    await world.advance(90)
    assert (list(before), world.cluster.config_maps["podscaler-history-03"]["data"]) == (["shop.web"], {})


async def test_one_that_was_deleted_meanwhile_goes_when_no_window_reaches_it(world: World) -> None:
    """Nobody asks for its record any more; after an hour it is removed."""
    await world.advance(20)
    await world.stop()
    world.cluster.delete(HPAS, "web")
    same_map = next(name for name in (f"b{number}" for number in range(999)) if _map_of(name) == _map_of("web"))
    world.cluster.put_deployment(same_map, 1)
    world.cluster.put_autoscaler(same_map, {"scaleTargetRef": {"kind": "Deployment", "name": same_map}} | BOUNDS)
    await world.next_controller()
    await world.advance(600)
    data = world.cluster.config_maps[_map_of("web")]["data"]
    assert "shop.web" in data
    await world.clock.advance(3600, turns=30)
    assert "shop.web" not in world.cluster.config_maps[_map_of("web")]["data"]


BOUNDS = {"minReplicas": 2, "maxReplicas": 3}


def _map_of(name: str) -> str:
    return history_maps.map_of(("shop", name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is invalid and ignored"),
        ('{"uid":"u1","writer":"w","savedAt":"soon"}', "is invalid and ignored"),
        ('{"uid":"u1","writer":"w","savedAt":"2027-01-01T00:00:00Z"}', "is from the future and ignored"),
        ('{"uid":"u1","writer":"w","savedAt":"2026-01-01T00:00:00Z","more":1}', "is invalid and ignored"),
    ],
    ids=["no JSON", "no time", "the future", "another format"],
)
async def test_a_record_that_makes_no_sense(
    world: World, text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is ignored with a warning, the autoscaler works, and its next record takes the place."""
    await world.advance(70)
    await world.stop()
    world.cluster.config_maps["podscaler-history-03"]["data"]["shop.web"] = text
    await world.next_controller()
    await world.advance(70)
    assert said in caplog.text
    assert json.loads(world.cluster.config_maps["podscaler-history-03"]["data"]["shop.web"])["uid"] == "u1"
    assert world.replicas() == 5


async def test_a_foreign_config_map_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody else's ConfigMap of our name is neither read nor changed; the memory serves."""
    world = World(history_namespace="kube-system")
    foreign = {"metadata": {"name": "podscaler-history-03", "labels": {"app": "x"}}, "data": {"shop.web": "mine"}}
    world.cluster.config_maps["podscaler-history-03"] = foreign
    world.add_web(cpu="900m")
    await world.start()
    await world.advance(300)
    await world.stop()
    assert (world.replicas(), foreign["data"]) == (2, {"shop.web": "mine"})
    assert caplog.text.count("is not podscaler's: it lacks the label podscaler.dev/history=v1") == 1


async def test_without_permission_the_memory_serves(caplog: pytest.LogCaptureFixture) -> None:
    """One sentence says what to grant; nothing is asked more than twice a minute, and it heals."""
    caplog.set_level("INFO")
    world = World(history_namespace="kube-system")
    refused = refusal(403, "Forbidden", 'configmaps "podscaler-history-03" is forbidden')
    world.cluster.interfere("GET", f"{CONFIG_MAPS}/podscaler-history-03", *[refused] * 4)
    world.add_web(cpu="900m")
    await world.start()
    await world.advance(100)
    asked, replicas = len(world.cluster.asked("GET", "podscaler-history-03")), world.replicas()
    await world.advance(100)
    assert (asked, replicas, sorted(world.cluster.config_maps)) == (
        4,
        2,
        ["podscaler-history", "podscaler-history-03"],
    )
    grant = '(grant get, patch and create on "configmaps" in the namespace kube-system, or use --history=memory)'
    assert (caplog.text.count(grant), "histories are kept in the cluster again" in caplog.text) == (1, True)
    await world.close()


async def test_a_write_that_fails_is_made_up_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """While the API server refuses, records wait; the window holds for the next controller."""
    world.cluster.interfere("POST", CONFIG_MAPS, *[refusal(500, "InternalError", "no disk")] * 4)
    await world.advance(102)
    world.use("100m")
    await world.advance(50)
    await world.stop()
    await world.next_controller()
    await world.seconds_until(1)
    assert world.clock.monotonic_s() >= 390
    assert caplog.text.count("histories are kept in memory only: no disk") == 1


async def test_a_full_config_map(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Records that have no room go, rather than stay as they were; that is said once, and the memory serves."""
    world = World(history_namespace="kube-system")
    world.add_web(cpu="500m", replicas=5)
    await world.start()
    await world.advance(70)
    before = list(world.cluster.config_maps["podscaler-history-03"]["data"])
    monkeypatch.setattr(stored_map, "MAP_MAX_BYTES", 100)
    world.use("900m")
    await world.advance(120)
    after = world.cluster.config_maps["podscaler-history-03"]["data"]
    assert (before, after, world.replicas(), caplog.text.count("podscaler-history-03 is full")) == (
        ["shop.web"],
        {},
        9,
        1,
    )
    await world.close()
