"""Views of pods: why one does not run as it should, its requests, and what became of its sample."""

from typing import Any

import pytest

from observed_world import ObservedWorld
from podscaler.observe import pod_views


def pod(status: Any, *containers: Any, **metadata: Any) -> dict[str, Any]:
    """A pod web-0."""
    return {"metadata": {"name": "web-0"} | metadata, "spec": {"containers": containers}, "status": status}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
CRASHING = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
DONE = {"state": {"terminated": {"reason": "Completed"}}}


@pytest.mark.parametrize(
    ("status", "phase", "reason"),
    [
        ({"phase": "Running"}, "Running", ""),
        ({"phase": "Pending", "conditions": [UNSCHEDULABLE]}, "Pending", "Unschedulable"),
        ({"phase": "Running", "containerStatuses": [DONE, CRASHING]}, "Running", "CrashLoopBackOff"),
        ({"phase": "Failed", "reason": "Evicted"}, "Failed", "Evicted"),
        ({}, "Unknown", ""),
        (None, "Unknown", ""),
    ],
    ids=["runs", "pending", "crashing", "evicted", "no phase", "no status"],
)
def test_reasons(status: Any, phase: str, reason: str) -> None:
    """The most telling reason of the status."""
    (view,) = pod_views.of([pod(status)], None)
    assert (view.phase, view.reason) == (phase, reason)


def test_a_deleted_pod() -> None:
    """It is terminating, whatever its phase is."""
    (view,) = pod_views.of([pod({"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:00Z")], None)
    assert view.phase == "Terminating"


def test_requests() -> None:
    """The sum over the containers; a quantity that cannot be read is left out."""
    requests = [{"resources": {"requests": {"cpu": cpu}}} for cpu in ("100m", "1", "x")]
    (view,) = pod_views.of([pod({}, *requests, {})], None)
    assert view.requests == {"cpu": 1100}


async def test_samples_that_do_not_count() -> None:
    """A pod without a sample, and one that is pending, have the reason."""
    world = ObservedWorld()
    world.add_web(cpu="500m", replicas=2)
    del world.cluster.usage["shop", "web-1"]
    await world.start()
    await world.close()
    track = world.history.find(("shop", "web"))
    assert track is not None
    pods = [pod({}) | {"metadata": {"name": name}} for name in ("web-1", "web-0", "web-2")]
    views = pod_views.of(pods, track.latest)
    assert [(view.name, view.usage, view.ignored) for view in views] == [
        ("web-0", {"cpu": 500}, ""),
        ("web-1", {}, "the metric has no sample of it"),
        ("web-2", {}, ""),
    ]
