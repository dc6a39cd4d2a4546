"""Single syncs against a cluster in memory: what is asked, what is written, what is told."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import APPS, CONFIG_MAPS, DEPLOYMENTS, HPAS, PODS, refusal

WEB_SCALE = f"{APPS}shop/deployments/web/scale"
WEB_STATUS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web/status"


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """A world that ends with the test."""
    made = AutoscalerWorld()
    yield made
    await made.close()


async def test_the_whole_way(world: AutoscalerWorld) -> None:
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


async def test_requests_of_a_sync(world: AutoscalerWorld) -> None:
    """Upstream's requests in upstream's order where targets cannot be followed, and nobody shares a namespace."""
    world.add_web(cpu="900m")
    await world.start()
    sent = [(request.method, request.target.partition("&timeoutSeconds")[0]) for request in world.cluster.requests]
    assert sorted(sent[:4]) == [
        ("GET", f"{PODS}?allowWatchBookmarks=true&resourceVersion=103"),
        ("GET", f"{PODS}?limit=500&resourceVersion=0"),
        ("GET", f"{HPAS}?allowWatchBookmarks=true&resourceVersion=103"),
        ("GET", f"{HPAS}?limit=500&resourceVersion=0"),
    ]
    sent.remove(("GET", f"{DEPLOYMENTS}?limit=500&resourceVersion=0"))
    sent.remove(("GET", f"{CONFIG_MAPS}/podscaler-history"))  # settings of an earlier process, to be removed
    assert sent[4:] == [
        ("GET", "/apis/apps"),
        ("GET", "/apis/apps/v1"),
        ("GET", WEB_SCALE),
        ("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb"),
        ("PUT", WEB_SCALE),
        ("PUT", WEB_STATUS),
        ("POST", "/api/v1/namespaces/shop/events"),
    ]


async def test_the_status_is_written_only_when_it_changes(world: AutoscalerWorld) -> None:
    """Syncs that find nothing new write nothing."""
    world.add_web()
    await world.start()
    await world.advance(60)
    assert (world.scale_reads(), len(world.cluster.asked("PUT"))) == (5, 1)


async def test_scale_down_after_stabilization(world: AutoscalerWorld) -> None:
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


async def test_conflicting_scale_writes_are_repeated(world: AutoscalerWorld) -> None:
    """Somebody else changes the scale between reading and writing: read again, written over."""

    def meddle(_: Request) -> None:
        world.cluster.put_deployment("web", 7)

    world.add_web(cpu="900m")
    world.cluster.interfere("PUT", WEB_SCALE, meddle)
    await world.start()
    await world.advance(1)
    assert (len(world.cluster.asked("PUT", "deployments")), world.replicas()) == (2, 2)


async def test_a_refused_rescale_is_reported(world: AutoscalerWorld) -> None:
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


async def test_failing_metrics_are_reported_in_order(world: AutoscalerWorld) -> None:
    """The metric's event, the status, then the event that follows it; the count stays."""
    world.add_web()
    metrics = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
    world.cluster.interfere("GET", metrics, Response(503, {"content-type": "text/plain"}, b"x"))
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


async def test_a_status_conflict_is_an_event(world: AutoscalerWorld) -> None:
    """A status that cannot be written is an event and is tried again next period."""
    world.add_web()
    world.cluster.interfere("PUT", WEB_STATUS, refusal(409, "Conflict", "modified"))
    await world.start()
    events = [(event["reason"], event["message"]) for event in world.cluster.events]
    await world.advance(15)
    assert (events, "conditions" in world.web["status"]) == ([("FailedUpdateStatus", "modified")], True)


async def test_an_unknown_kind(world: AutoscalerWorld) -> None:
    """A target whose kind is not served: event, condition, nothing else."""
    reference = {"kind": "Cart", "name": "web", "apiVersion": "apps/v1"}
    world.cluster.put_autoscaler("web", spec() | {"scaleTargetRef": reference})
    await world.start()
    text = 'no matches for kind "Cart" in group "apps"'
    assert [(event["reason"], event["message"]) for event in world.cluster.events] == [("FailedGetScale", text)]
    assert world.web["status"]["conditions"][0]["message"] == (
        f"the HPA controller was unable to get the target's current scale: {text}"
    )


async def test_overlapping_autoscalers_stop(world: AutoscalerWorld) -> None:
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


async def test_metrics_of_a_sync(world: AutoscalerWorld) -> None:
    """Reconciliations, computations and gauges carry upstream's labels."""
    world.add_web(cpu="900m")
    await world.start()
    up = {"action": "scale_up", "error": "none"}
    assert (
        world.metric("reconciliations_total", **up),
        world.metric("metric_computation_total", **up, metric_type="Resource"),
        world.metric("desired_replicas", namespace="shop", hpa_name="web"),
        world.metric("num_horizontal_pod_autoscalers"),
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
async def test_error_labels(world: AutoscalerWorld, change: dict[str, Any], label: str) -> None:
    """What the user got wrong is `spec`, what the world did is `internal`."""
    world.add_web()
    world.cluster.put_autoscaler("web", spec() | change)
    await world.start()
    assert world.metric("reconciliations_total", action="none", error=label) == 1


async def test_equal_queries_are_one_request(world: AutoscalerWorld) -> None:
    """cpu and memory of one autoscaler are one query of the resource metrics API."""
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}}
    world.add_web()
    world.cluster.put_autoscaler("web", spec() | {"metrics": [*spec()["metrics"], memory]})
    await world.start()
    assert len(world.cluster.asked("GET", "metrics.k8s.io")) == 1


async def test_bodies_are_json() -> None:
    """What the fake cluster keeps is what was sent: a check of the test's own ground."""
    world = AutoscalerWorld()
    world.add_web(cpu="900m")
    await world.start()
    await world.close()
    bodies = [msgspec.json.decode(each.body or b"{}")["kind"] for each in world.cluster.requests if each.body]
    assert bodies == ["Scale", "HorizontalPodAutoscaler", "Event"]


async def test_an_error_is_logged_when_it_is_news(world: AutoscalerWorld, caplog: pytest.LogCaptureFixture) -> None:
    """The same error at every sync is one line in the log, and its end is one more."""
    caplog.set_level("INFO", "podscaler.controller.reconcile.sync_reporter")
    world.add_web()
    world.cluster.interfere("GET", WEB_SCALE, *[refusal(404, "NotFound", "not there")] * 3)
    await world.start()
    await world.advance(46)
    said = [
        record.message for record in caplog.records if record.name == "podscaler.controller.reconcile.sync_reporter"
    ]
    assert said == [
        "horizontalpodautoscaler shop/web: failed to query scale subresource for Deployment/shop/web: not there",
        "horizontalpodautoscaler shop/web: works again",
    ]
