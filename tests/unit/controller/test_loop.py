"""The loop against a cluster in memory, in virtual time: when autoscalers are looked at, and what survives."""

from collections.abc import AsyncIterator

import pytest

from podscaler.controller.options import feature_gates
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import APPS, HPAS, PODS, refusal
from podscaler.testing.transport import TransportFailure

REFUSED = TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused")
WEB_SCALE = f"{APPS}shop/deployments/web/scale"
WEB_STATUS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web/status"


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """A world that ends with the test."""
    made = AutoscalerWorld()
    yield made
    await made.close()


async def test_one_look_a_period(world: AutoscalerWorld) -> None:
    """Immediately at the start, then once a period; our own status writes bring no extra looks."""
    world.add_web()
    await world.start()
    assert await world.scale_read_times(46) == [0, 15, 30, 45]


async def test_a_new_autoscaler_is_looked_at_at_once(world: AutoscalerWorld) -> None:
    """An autoscaler that is created while the controller runs does not wait for the period."""
    await world.start()
    await world.advance(4)
    world.add_web()
    await world.advance(0)
    assert await world.scale_read_times(31) == [0, 15, 30]


async def test_the_first_looks_are_spread(world: AutoscalerWorld) -> None:
    """1,000 autoscalers that are there at the start are spread over the first period, and so ever after."""
    for number in range(1000):
        world.cluster.put_autoscaler(f"a{number % 500:03}", spec(f"t{number}"), namespace=f"n{number // 500}", uid="u")
    world.cluster.interfere("GET", "/apis/apps", *[refusal(404, "NotFound", "none")] * 9999)
    await world.start()
    counts = []
    for _ in range(6):
        counts.append(world.metric("reconciliations_total", action="none", error="internal") or 0)
        await world.clock.advance(3, turns=40)
    assert [round(count, -2) for count in counts] == [0, 200, 400, 600, 800, 1000]


async def test_an_edit_during_the_first_looks_is_looked_at_at_once(world: AutoscalerWorld) -> None:
    """Whose turn has not come yet is looked at immediately when it is edited."""
    for number in range(400):
        world.cluster.put_deployment(f"t{number:03}", 1)
        world.cluster.put_autoscaler(f"t{number:03}", spec(f"t{number:03}"), uid=f"u{number}")
    await world.start()
    world.cluster.put_autoscaler("t399", spec("t399", minimum=2), uid="u399")
    await world.advance(0.01)
    assert (world.replicas("t399"), world.replicas("t398")) == (2, 1)


async def test_lateness_is_told(world: AutoscalerWorld) -> None:
    """How long after it was due each sync began is a histogram."""
    world.add_web()
    await world.start()
    await world.advance(46)
    sample = world.controller.telemetry.registry.get_sample_value
    name = "podscaler_sync_lateness_seconds"
    assert (sample(f"{name}_count"), sample(f"{name}_sum"), sample(f"{name}_bucket", {"le": "0.001"})) == (4, 0, 4)


async def test_an_edit_is_one_extra_look(world: AutoscalerWorld) -> None:
    """An edit of the spec is looked at immediately, and the periodic looks keep their phase."""
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.put_autoscaler("web", spec(minimum=3))
    await world.advance(0)
    assert (world.scale_reads(), world.replicas(), await world.scale_read_times(26)) == (2, 3, [0, 0, 10, 25])


async def test_other_changes_wait_for_the_period(world: AutoscalerWorld) -> None:
    """A change of labels brings no extra look."""
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.label_autoscaler("web", team="a")
    assert await world.scale_read_times(11) == [0, 10]


async def test_edits_wait_without_the_gate() -> None:
    """With HPAGeneration off every update waits for the period, and observedGeneration is not written."""
    world = AutoscalerWorld(gates=feature_gates.parse("HPAGeneration=false"))
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.put_autoscaler("web", spec(minimum=3))
    times = await world.scale_read_times(11)
    await world.close()
    assert (times, "observedGeneration" in world.web["status"]) == ([0, 10], False)


async def test_a_deleted_autoscaler_is_forgotten(world: AutoscalerWorld) -> None:
    """After a deletion the next turn finds nothing, drops the history and does not come back."""
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.delete(HPAS, "web")
    await world.advance(60)
    key = ("shop", "web")
    state = world.controller.assignment._states.of(key)
    remembered = (state.history.recommendations, state.is_registered)
    assert (world.scale_reads(), remembered, world.metric("num_horizontal_pod_autoscalers")) == (1, ((), False), 0)


async def test_history_survives_a_quick_recreation(world: AutoscalerWorld) -> None:
    """Deleted and made again before the next turn, an autoscaler keeps its recommendations: no scale-down yet."""
    world.add_web(replicas=4, cpu="500m")
    await world.start()
    await world.advance(2)  # answers of the same tick are shared
    world.cluster.delete(HPAS, "web")
    for number in range(4):
        world.cluster.put_pod(f"web-{number}", "web", "100m")
    world.cluster.put_autoscaler("web", spec(), uid="u2")
    await world.advance(1)
    conditions = {each["type"]: each["reason"] for each in world.web["status"]["conditions"]}
    assert (world.replicas(), conditions["AbleToScale"]) == (4, "ScaleDownStabilized")


async def test_never_two_looks_at_once(world: AutoscalerWorld) -> None:
    """While a look takes long, an edit waits for its end, whatever the number of workers."""
    running = 0
    most = 0

    def count(_: Request) -> Response | None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        return Response(429, {"retry-after": "20"}, b"")

    world.add_web()
    world.cluster.interfere("GET", WEB_SCALE, count)
    await world.start()
    for minimum in (2, 3):
        world.cluster.put_autoscaler("web", spec(minimum=minimum))
        await world.advance(1)
    during = world.scale_reads()
    await world.advance(19)
    assert (during, most, world.scale_reads(), world.replicas()) == (1, 1, 3, 3)


async def test_workers_are_independent(world: AutoscalerWorld) -> None:
    """An autoscaler whose target hangs holds up no other."""
    world.add_web()
    world.cluster.put_deployment("db", 1)
    world.cluster.put_autoscaler("db", spec("db", minimum=2))
    world.cluster.interfere("GET", WEB_SCALE, Response(503, {"retry-after": "100"}, b""))
    await world.start()
    assert (world.replicas("web"), world.replicas("db")) == (1, 2)


async def test_bugs_are_counted(world: AutoscalerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that fails by a bug is one of upstream's internal errors, and counts by its part with other bugs."""

    async def explode(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(world.controller.processor.reconciler, "reconcile", explode)
    monkeypatch.setitem(world.controller._services.always, "the watch of pods", explode)
    world.add_web()
    monkeypatch.setattr(world.controller, "wait_listed", world.controller.informers.autoscalers.wait_synced)
    await world.start()
    await world.advance(0.5)
    sample = world.controller.telemetry.registry.get_sample_value
    panics = [sample("podscaler_panics_total", {"part": part}) for part in ("sync", "watch of pods")]
    assert (world.metric("reconciliations_total", action="none", error="internal"), panics) == (1, [1, 1])


async def test_a_bug_in_one_sync_is_survived(
    world: AutoscalerWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception that nobody expected is logged, the worker goes on after a second, the autoscaler next period."""
    calls = 0

    async def explode(_: object) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("boom")

    monkeypatch.setattr(world.controller.processor.reconciler, "reconcile", explode)
    world.add_web()
    await world.start()
    await world.advance(31)
    assert (calls, caplog.text.count("boom") >= 3) == (3, True)


async def test_a_cache_behind_our_own_write_is_not_used(world: AutoscalerWorld) -> None:
    """Until the watch has brought our last status write back, the autoscaler is skipped; it is looked at soon after."""
    world.add_web()
    collection = world.cluster.collections[HPAS]
    await world.start()
    await world.advance(10)
    world.cluster.usage["shop", "web-0"] = "510m"
    watchers, collection.watchers = collection.watchers, []
    await world.advance(5)
    await world.advance(15)
    skips = world.metric("stale_sync_skips_total", group="autoscaling", resource="horizontalpodautoscalers")
    looks = world.scale_reads()
    collection.watchers = watchers
    collection.announce("MODIFIED", world.web)
    await world.advance(1)
    assert (skips, looks, world.scale_reads()) == (1, 2, 3)


async def test_a_status_that_met_no_answer_is_written_soon(world: AutoscalerWorld) -> None:
    """A broken connection does not cost a period: the turn is taken again after 1 s, 2 s, 4 s and 8 s."""
    world.add_web()
    await world.start()
    world.cluster.usage["shop", "web-0"] = "510m"
    world.cluster.interfere("PUT", WEB_STATUS, *[REFUSED] * 2)
    await world.advance(15)
    before = world.scale_reads()
    await world.advance(1)
    again = world.scale_reads()
    await world.advance(2)
    (metric,) = world.web["status"]["currentMetrics"]
    assert (before, again, world.scale_reads()) == (2, 3, 4)
    assert metric["resource"]["current"]["averageValue"] == "510m"


async def test_without_the_consistency_gate() -> None:
    """With the gate off a cache that is behind is used, and the write conflicts."""
    world = AutoscalerWorld(gates=feature_gates.parse("StaleControllerConsistencyHPA=false"))
    world.add_web()
    await world.start()
    world.cluster.usage["shop", "web-0"] = "510m"
    world.cluster.collections[HPAS].watchers.clear()
    await world.advance(15)
    world.cluster.usage["shop", "web-0"] = "520m"
    await world.advance(15)
    await world.close()
    assert (world.scale_reads(), world.cluster.events[-1]["reason"]) == (3, "FailedUpdateStatus")


async def test_the_controller_starts_when_the_server_comes(world: AutoscalerWorld) -> None:
    """Without a server the controller waits and says why; when it comes, work begins."""
    world.add_web(minimum=2)
    world.cluster.interfere("GET", HPAS, *[REFUSED] * 3)
    await world.start()
    unready = world.controller.unready()
    await world.advance(10)
    assert unready == [
        'horizontalpodautoscalers are not listed yet: Get "https://10.0.0.1:443/apis/autoscaling/v2/'
        'horizontalpodautoscalers?limit=500&resourceVersion=0": dial tcp 10.0.0.1:443: connect: connection refused'
    ]
    assert (world.controller.unready(), world.replicas()) == ([], 2)


@pytest.mark.parametrize("cause", ["", "EOF"], ids=["ended", "cut"])
async def test_watches_come_back(world: AutoscalerWorld, cause: str) -> None:
    """After watches end or break, an edit is seen as soon as they are back."""
    world.add_web()
    await world.start()
    world.cluster.end_watches(cause)
    await world.advance(1)
    world.cluster.put_autoscaler("web", spec(minimum=4))
    await world.advance(1)
    assert world.replicas() == 4


async def test_an_outage_heals(world: AutoscalerWorld) -> None:
    """The server is away for a minute: syncs fail with conditions that nobody can write; then all goes on."""
    world.add_web(cpu="900m", maximum=2)
    world.cluster.interfere("GET", WEB_SCALE, refusal(404, "NotFound", "not yet"))
    await world.start()
    for method, path in (("GET", WEB_SCALE), ("GET", HPAS), ("GET", PODS), ("PUT", WEB_STATUS)):
        world.cluster.interfere(method, path, *[REFUSED] * 200)
    world.cluster.end_watches("EOF")
    await world.advance(60)
    before = world.replicas()
    world.cluster.recover()
    await world.advance(16)
    assert (before, world.replicas()) == (1, 2)


async def test_stop_waits_for_running_syncs(world: AutoscalerWorld) -> None:
    """Stopping lets what runs come to its end, and `run` returns."""
    world.add_web(cpu="900m")
    world.cluster.interfere("PUT", WEB_SCALE, Response(503, {"retry-after": "3"}, b""))
    await world.start()
    world.controller.stop()
    await world.advance(2)
    waiting = world.tasks[0].done()
    await world.advance(1)
    assert (waiting, world.tasks[0].done(), world.replicas()) == (False, True, 2)
    assert [event["reason"] for event in world.cluster.events] == ["SuccessfulRescale"]


async def test_stop_before_the_first_list(world: AutoscalerWorld) -> None:
    """A controller that never reached its server stops all the same."""
    world.cluster.interfere("GET", HPAS, *[REFUSED] * 50)
    await world.start()
    world.controller.stop()
    await world.advance(3)
    assert world.tasks[0].done()
