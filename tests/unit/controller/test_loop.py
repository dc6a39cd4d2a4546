"""The loop against a cluster in memory, in virtual time: when autoscalers are looked at, and what survives."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from podscaler.clock import NANOSECONDS
from podscaler.controller import gates
from podscaler.controller.loop import Controller
from podscaler.controller.settings import Settings
from podscaler.kube.client import Client
from podscaler.kube.transport import Answer, Request
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import APPS, HPAS, PODS, FakeCluster, refusal
from podscaler.testing.transport import Failure

REFUSED = Failure("dial tcp 10.0.0.1:443: connect: connection refused")
WEB_SCALE = f"{APPS}shop/deployments/web/scale"
WEB_STATUS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web/status"


def spec(target: str = "web", minimum: int = 1, maximum: int = 10, **more: Any) -> dict[str, Any]:
    """An autoscaler's spec: half of the requested CPU."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "scaleTargetRef": {"kind": "Deployment", "name": target, "apiVersion": "apps/v1"},
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "metrics": [{"type": "Resource", "resource": cpu}],
    } | more


class Fixed(random.Random):
    """No randomness."""

    def random(self) -> float:
        return 0.0


class World:
    """A controller at work on a cluster in memory, with a diary of what it asks and writes."""

    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.cluster = FakeCluster()
        self.settings = Settings(sync_period_ns=15 * NANOSECONDS, **settings)
        self.tasks: list[asyncio.Task[None]] = []
        self.controller = self.make_controller()

    def make_controller(self) -> Controller:
        return Controller(Client(self.cluster, self.clock), self.settings, self.clock, rng=Fixed())

    def add_web(self, *, cpu: str = "500m", replicas: int = 1, **more: Any) -> None:
        self.cluster.put_deployment("web", replicas)
        for number in range(replicas):
            self.cluster.put_pod(f"web-{number}", "web", cpu)
        self.cluster.put_autoscaler("web", spec(**more))

    async def start(self) -> None:
        self.tasks.append(asyncio.ensure_future(self.controller.run()))
        await self.advance(0)

    async def advance(self, span_s: float) -> None:
        await self.clock.advance(span_s, turns=60)

    def looks(self, name: str = "web") -> int:
        """How often the scale of a target was read."""
        return len(self.cluster.asked("GET", f"deployments/{name}/scale"))

    async def look_times(self, until_s: float, name: str = "web", step_s: float = 0.5) -> list[float]:
        """When the target was looked at, in seconds from now on, beginning with the looks so far at 0."""
        times: list[float] = []
        start_s = self.clock.monotonic_s()
        while True:
            times += [self.clock.monotonic_s() - start_s] * (self.looks(name) - len(times))
            if self.clock.monotonic_s() - start_s >= until_s:
                return times
            await self.advance(step_s)

    @property
    def web(self) -> dict[str, Any]:
        return self.cluster.collections[HPAS].objects["shop", "web"]

    def replicas(self, name: str = "web") -> int:
        found: int = self.cluster.scales["shop", name]["spec"]["replicas"]
        return found

    def metric(self, name: str) -> float | None:
        return self.controller.telemetry.registry.get_sample_value(f"horizontal_pod_autoscaler_controller_{name}")

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world that ends with the test."""
    made = World()
    yield made
    await made.close()


async def test_the_whole_way(world: World) -> None:
    """An autoscaler over its target is scaled up at once; status and events say so; then all is quiet."""
    world.add_web(cpu="900m")
    await world.start()
    assert (world.replicas(), world.web["status"]) == (
        2,
        {
            "observedGeneration": 1,
            "lastScaleTime": "2026-01-01T00:00:00Z",
            "currentReplicas": 1,
            "desiredReplicas": 2,
            "currentMetrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "current": {"averageValue": "900m", "averageUtilization": 90}},
                }
            ],
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": reason,
                    "message": message,
                }
                for kind, status, reason, message in (
                    (
                        "AbleToScale",
                        "True",
                        "SucceededRescale",
                        "the HPA controller was able to update the target scale to 2",
                    ),
                    (
                        "ScalingActive",
                        "True",
                        "ValidMetricFound",
                        "the HPA was able to successfully calculate a replica count from cpu resource utilization "
                        "(percentage of request)",
                    ),
                    (
                        "ScalingLimited",
                        "False",
                        "DesiredWithinRange",
                        "the desired count is within the acceptable range",
                    ),
                    (
                        "ScaledToZero",
                        "False",
                        "NotScaledToZero",
                        "the HPA controller did not scale the workload to zero",
                    ),
                )
            ],
        },
    )
    assert [(event["reason"], event["message"]) for event in world.cluster.events] == [
        (
            "SuccessfulRescale",
            "New size: 2; reason: cpu resource utilization (percentage of request) above target",
        )
    ]


async def test_requests_of_a_sync(world: World) -> None:
    """Upstream's requests in upstream's order: lists, watches, the mapping, the scale, the metrics, the writes."""
    world.add_web(cpu="900m")
    await world.start()
    sent = [(request.method, request.target.partition("&timeoutSeconds")[0]) for request in world.cluster.requests]
    assert sorted(sent[:4]) == [
        ("GET", f"{PODS}?allowWatchBookmarks=true&resourceVersion=103"),
        ("GET", f"{PODS}?limit=500&resourceVersion=0"),
        ("GET", f"{HPAS}?allowWatchBookmarks=true&resourceVersion=103"),
        ("GET", f"{HPAS}?limit=500&resourceVersion=0"),
    ]
    assert sent[4:] == [
        ("GET", "/apis/apps"),
        ("GET", "/apis/apps/v1"),
        ("GET", WEB_SCALE),
        ("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb"),
        ("PUT", WEB_SCALE),
        ("PUT", WEB_STATUS),
        ("POST", "/api/v1/namespaces/shop/events"),
    ]


async def test_the_status_is_written_only_when_it_changes(world: World) -> None:
    """Syncs that find nothing new write nothing."""
    world.add_web()
    await world.start()
    await world.advance(60)
    assert (world.looks(), len(world.cluster.asked("PUT"))) == (5, 1)


async def test_one_look_a_period(world: World) -> None:
    """Immediately at the start, then once a period; our own status writes bring no extra looks."""
    world.add_web()
    await world.start()
    assert await world.look_times(46) == [0, 15, 30, 45]


async def test_a_new_autoscaler_is_looked_at_at_once(world: World) -> None:
    """An autoscaler that is created while the controller runs does not wait for the period."""
    await world.start()
    await world.advance(4)
    world.add_web()
    await world.advance(0)
    assert await world.look_times(31) == [0, 15, 30]


async def test_an_edit_is_one_extra_look(world: World) -> None:
    """An edit of the spec is looked at immediately, and the periodic looks keep their phase."""
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.put_autoscaler("web", spec(minimum=3))
    await world.advance(0)
    assert (world.looks(), world.replicas(), await world.look_times(26)) == (2, 3, [0, 0, 10, 25])


async def test_other_changes_wait_for_the_period(world: World) -> None:
    """A change of labels brings no extra look."""
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.label_autoscaler("web", team="a")
    assert await world.look_times(11) == [0, 10]


async def test_edits_wait_without_the_gate() -> None:
    """With HPAGeneration off every update waits for the period, and observedGeneration is not written."""
    world = World(gates=gates.parse("HPAGeneration=false"))
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.put_autoscaler("web", spec(minimum=3))
    times = await world.look_times(11)
    await world.close()
    assert (times, "observedGeneration" in world.web["status"]) == ([0, 10], False)


async def test_a_deleted_autoscaler_is_forgotten(world: World) -> None:
    """After a deletion the next turn finds nothing, drops the history and does not come back."""
    world.add_web()
    await world.start()
    await world.advance(5)
    world.cluster.delete(HPAS, "web")
    await world.advance(60)
    key = ("shop", "web")
    memory = world.controller._memory
    remembered = (memory.history(key).recommendations, memory.is_registered(key))
    assert (world.looks(), remembered, world.metric("num_horizontal_pod_autoscalers")) == (1, ((), False), 0)


async def test_history_survives_a_quick_recreation(world: World) -> None:
    """Deleted and made again before the next turn, an autoscaler keeps its recommendations: no scale-down yet."""
    world.add_web(replicas=4, cpu="500m")
    await world.start()
    world.cluster.delete(HPAS, "web")
    for number in range(4):
        world.cluster.put_pod(f"web-{number}", "web", "100m")
    world.cluster.put_autoscaler("web", spec(), uid="u2")
    await world.advance(1)
    conditions = {each["type"]: each["reason"] for each in world.web["status"]["conditions"]}
    assert (world.replicas(), conditions["AbleToScale"]) == (4, "ScaleDownStabilized")


async def test_scale_down_after_stabilization(world: World) -> None:
    """The load falls: the replicas follow when the last higher recommendation is five minutes old."""
    world.add_web(replicas=4, cpu="500m")
    await world.start()
    for number in range(4):
        world.cluster.put_pod(f"web-{number}", "web", "100m")
    timeline = []
    for second in range(0, 330, 15):
        if not timeline or timeline[-1][1] != world.replicas():
            timeline.append((second, world.replicas()))
        await world.advance(15)
    assert timeline == [(0, 4), (315, 1)]


async def test_never_two_looks_at_once(world: World) -> None:
    """While a look takes long, an edit waits for its end, whatever the number of workers."""
    running = 0
    most = 0

    def count(_: Request) -> Answer | None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        return Answer(429, {"retry-after": "20"}, b"")

    world.add_web()
    world.cluster.interfere("GET", WEB_SCALE, count)
    await world.start()
    for minimum in (2, 3):
        world.cluster.put_autoscaler("web", spec(minimum=minimum))
        await world.advance(1)
    during = world.looks()
    await world.advance(19)
    assert (during, most, world.looks(), world.replicas()) == (1, 1, 3, 3)


async def test_workers_are_independent(world: World) -> None:
    """An autoscaler whose target hangs holds up no other."""
    world.add_web()
    world.cluster.put_deployment("db", 1)
    world.cluster.put_autoscaler("db", spec("db", minimum=2))
    world.cluster.interfere("GET", WEB_SCALE, Answer(503, {"retry-after": "100"}, b""))
    await world.start()
    assert (world.replicas("web"), world.replicas("db")) == (1, 2)


async def test_a_bug_in_one_sync_is_survived(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception that nobody expected is logged, the worker goes on after a second, the autoscaler next period."""
    calls = 0

    async def explode(_: object) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("boom")

    monkeypatch.setattr(world.controller._reconciler, "reconcile", explode)
    world.add_web()
    await world.start()
    await world.advance(31)
    assert (calls, caplog.text.count("boom") >= 3) == (3, True)


async def test_conflicting_scale_writes_are_repeated(world: World) -> None:
    """Somebody else changes the scale between reading and writing: read again, written over."""

    def meddle(_: Request) -> None:
        world.cluster.put_deployment("web", 7)

    world.add_web(cpu="900m")
    world.cluster.interfere("PUT", WEB_SCALE, meddle)
    await world.start()
    await world.advance(1)
    assert (len(world.cluster.asked("PUT", "deployments")), world.replicas()) == (2, 2)


async def test_a_refused_rescale_is_reported(world: World) -> None:
    """A scale that may not be written: the condition, the event, no desired replicas, another try next period."""
    world.add_web(cpu="900m")
    world.cluster.interfere("PUT", WEB_SCALE, refusal(403, "Forbidden", "not you"))
    await world.start()
    first = {each["type"]: (each["status"], each["reason"]) for each in world.web["status"]["conditions"]}
    events = [(event["type"], event["reason"], event["message"]) for event in world.cluster.events]
    await world.advance(15)
    assert first["AbleToScale"] == ("False", "FailedUpdateScale")
    assert events == [
        (
            "Warning",
            "FailedRescale",
            "New size: 2; reason: cpu resource utilization (percentage of request) above target; error: not you",
        )
    ]
    assert world.replicas() == 2


async def test_failing_metrics_are_reported_in_order(world: World) -> None:
    """The metric's event, the status, then the event that follows it; the count stays."""
    world.add_web()
    metrics = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
    world.cluster.interfere("GET", metrics, Answer(503, {"content-type": "text/plain"}, b"x"))
    await world.start()
    text = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource "
        "metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)"
    )
    assert [(event["reason"], event["message"]) for event in world.cluster.events] == [
        ("FailedGetResourceMetric", text),
        (
            "FailedComputeMetricsReplicas",
            f"invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {text}",
        ),
    ]
    assert world.web["status"]["conditions"][1]["message"] == f"the HPA was unable to compute the replica count: {text}"


async def test_a_status_conflict_is_an_event(world: World) -> None:
    """A status that cannot be written is an event and is tried again next period."""
    world.add_web()
    world.cluster.interfere("PUT", WEB_STATUS, refusal(409, "Conflict", "modified"))
    await world.start()
    events = [(event["reason"], event["message"]) for event in world.cluster.events]
    await world.advance(15)
    assert (events, "conditions" in world.web["status"]) == ([("FailedUpdateStatus", "modified")], True)


async def test_an_unknown_kind(world: World) -> None:
    """A target whose kind is not served: event, condition, nothing else."""
    reference = {"kind": "Cart", "name": "web", "apiVersion": "apps/v1"}
    world.cluster.put_autoscaler("web", spec() | {"scaleTargetRef": reference})
    await world.start()
    text = 'no matches for kind "Cart" in group "apps"'
    assert [(event["reason"], event["message"]) for event in world.cluster.events] == [("FailedGetScale", text)]
    assert world.web["status"]["conditions"][0]["message"] == (
        f"the HPA controller was unable to get the target's current scale: {text}"
    )


async def test_overlapping_autoscalers_stop(world: World) -> None:
    """Two autoscalers over the same pods: both say so and neither scales."""
    world.add_web(cpu="900m")
    world.cluster.put_deployment("other", 1, selector="app=web")
    world.cluster.put_autoscaler("other", spec("other"))
    await world.start()
    await world.advance(15)
    objects = world.cluster.collections[HPAS].objects
    reasons = [objects["shop", name]["status"]["conditions"][1]["reason"] for name in ("web", "other")]
    assert reasons == ["AmbiguousSelector", "AmbiguousSelector"]
    world.cluster.delete(HPAS, "other")
    await world.advance(15)
    assert world.web["status"]["conditions"][1]["reason"] == "ValidMetricFound"


async def test_a_cache_behind_our_own_write_is_not_used(world: World) -> None:
    """Until the watch has brought our last status write back, the autoscaler is skipped for a whole period."""
    world.add_web()
    collection = world.cluster.collections[HPAS]
    await world.start()
    await world.advance(10)
    world.cluster.usage["shop", "web-0"] = "510m"
    watchers, collection.watchers = collection.watchers, []
    await world.advance(5)
    await world.advance(15)
    skips = world.controller.telemetry.registry.get_sample_value(
        "horizontal_pod_autoscaler_controller_stale_sync_skips_total",
        {"group": "autoscaling", "resource": "horizontalpodautoscalers"},
    )
    looks = world.looks()
    collection.watchers = watchers
    collection.announce("MODIFIED", world.web)
    await world.advance(15)
    assert (skips, looks, world.looks()) == (1, 2, 3)


async def test_without_the_consistency_gate() -> None:
    """With the gate off a cache that is behind is used, and the write conflicts."""
    world = World(gates=gates.parse("StaleControllerConsistencyHPA=false"))
    world.add_web()
    await world.start()
    world.cluster.usage["shop", "web-0"] = "510m"
    world.cluster.collections[HPAS].watchers.clear()
    await world.advance(15)
    world.cluster.usage["shop", "web-0"] = "520m"
    await world.advance(15)
    await world.close()
    assert (world.looks(), world.cluster.events[-1]["reason"]) == (3, "FailedUpdateStatus")


async def test_the_controller_starts_when_the_server_comes(world: World) -> None:
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
async def test_watches_come_back(world: World, cause: str) -> None:
    """After watches end or break, an edit is seen as soon as they are back."""
    world.add_web()
    await world.start()
    world.cluster.end_watches(cause)
    await world.advance(1)
    world.cluster.put_autoscaler("web", spec(minimum=4))
    await world.advance(1)
    assert world.replicas() == 4


async def test_an_outage_heals(world: World) -> None:
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


async def test_stop_waits_for_running_syncs(world: World) -> None:
    """Stopping lets what runs come to its end, and `run` returns."""
    world.add_web(cpu="900m")
    world.cluster.interfere("PUT", WEB_SCALE, Answer(503, {"retry-after": "3"}, b""))
    await world.start()
    world.controller.stop()
    await world.advance(2)
    waiting = world.tasks[0].done()
    await world.advance(1)
    assert (waiting, world.tasks[0].done(), world.replicas()) == (False, True, 2)
    assert [event["reason"] for event in world.cluster.events] == ["SuccessfulRescale"]


async def test_stop_before_the_first_list(world: World) -> None:
    """A controller that never reached its server stops all the same."""
    world.cluster.interfere("GET", HPAS, *[REFUSED] * 50)
    await world.start()
    world.controller.stop()
    await world.advance(3)
    assert world.tasks[0].done()


async def test_metrics_of_a_sync(world: World) -> None:
    """Reconciliations, computations and gauges carry upstream's labels."""
    world.add_web(cpu="900m")
    await world.start()
    sample = world.controller.telemetry.registry.get_sample_value
    prefix = "horizontal_pod_autoscaler_controller"
    up = {"action": "scale_up", "error": "none"}
    assert (
        sample(f"{prefix}_reconciliations_total", up),
        sample(f"{prefix}_metric_computation_total", up | {"metric_type": "Resource"}),
        sample(f"{prefix}_desired_replicas", {"namespace": "shop", "hpa_name": "web"}),
        sample(f"{prefix}_num_horizontal_pod_autoscalers"),
    ) == (1, 1, 2, 1)


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "a/b/c"}}, "spec"),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "none", "apiVersion": "apps/v1"}}, "internal"),
        ({"metrics": [{"type": "Moon"}]}, "spec"),
    ],
    ids=["apiVersion", "target", "metric type"],
)
async def test_error_labels(world: World, change: dict[str, Any], label: str) -> None:
    """What the user got wrong is `spec`, what the world did is `internal`."""
    world.add_web()
    world.cluster.put_autoscaler("web", spec() | change)
    await world.start()
    labels = {"action": "none", "error": label}
    name = "horizontal_pod_autoscaler_controller_reconciliations_total"
    assert world.controller.telemetry.registry.get_sample_value(name, labels) == 1


async def test_equal_queries_are_one_request(world: World) -> None:
    """cpu and memory of one autoscaler are one query of the resource metrics API."""
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}}
    world.add_web()
    world.cluster.put_autoscaler("web", spec() | {"metrics": [*spec()["metrics"], memory]})
    await world.start()
    assert len(world.cluster.asked("GET", "metrics.k8s.io")) == 1


async def test_bodies_are_json() -> None:
    """What the fake cluster keeps is what was sent: a check of the test's own ground."""
    world = World()
    world.add_web(cpu="900m")
    await world.start()
    await world.close()
    bodies = [msgspec.json.decode(each.body or b"{}")["kind"] for each in world.cluster.requests if each.body]
    assert bodies == ["Scale", "HorizontalPodAutoscaler", "Event"]
