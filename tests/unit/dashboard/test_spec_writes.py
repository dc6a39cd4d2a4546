"""Changes of specs: off unless allowed, only of some fields, with the version that was seen, by the viewer's client."""

import json
from typing import Any

import pytest

from dashboard_world import WEB_PATH, DashboardWorld
from podscaler.dashboard.server import DashboardOptions
from podscaler.testing.cluster import conflict, refusal
from podscaler.testing.transport import json_answer

OBJECT = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web"
CHANGE = {"spec": {"maxReplicas": 20}, "resourceVersion": "5"}
ALLOWED = DashboardOptions(allows_writes=True)


async def test_reading_alone_is_the_default() -> None:
    """Without --allow-writes nothing is sent."""
    async with DashboardWorld.open() as world:
        status, body = await world.viewer.post(f"{WEB_PATH}/spec", CHANGE)
        session = await world.viewer.get("/api/session")
        sent = world.cluster.cluster.asked("PATCH")
    assert (status, body["needs"], sent, session[1]["allowsWrites"]) == (403, "--allow-writes", [], False)


async def test_a_change() -> None:
    """The patch has the fields and the version that was seen."""
    async with DashboardWorld.open(options=ALLOWED) as world:
        world.cluster.cluster.interfere("PATCH", OBJECT, json_answer({"metadata": {"resourceVersion": "6"}}))
        answer = await world.viewer.post(f"{WEB_PATH}/spec", CHANGE)
        (sent,) = [each for each in world.cluster.cluster.requests if each.method == "PATCH"]
    assert answer == (200, {"resourceVersion": "6"})
    assert json.loads(sent.body or b"") == {"metadata": {"resourceVersion": "5"}, "spec": {"maxReplicas": 20}}


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"spec": {"scaleTargetRef": {}}, "resourceVersion": "5"}, 400, "spec.scaleTargetRef cannot be written here"),
        ({"spec": {}, "resourceVersion": "5"}, 400, "needs at least one field"),
        ({"spec": {"maxReplicas": 3}, "resourceVersion": ""}, 400, "the resourceVersion that was seen"),
        ({"spec": {"maxReplicas": 3}}, 400, "cannot be read"),
    ],
    ids=["the target", "nothing", "empty version", "no version"],
)
async def test_changes_that_are_refused(change: Any, status: int, error: str) -> None:
    """The error is a sentence, and nothing is sent."""
    async with DashboardWorld.open(options=ALLOWED) as world:
        answer = await world.viewer.post(f"{WEB_PATH}/spec", change)
        assert (answer[0], error in answer[1]["error"], world.cluster.cluster.asked("PATCH")) == (status, True, [])


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (conflict("horizontalpodautoscalers", "web"), 409),
        (refusal(403, "Forbidden", "no"), 403),
        (refusal(422, "Invalid", "maxReplicas"), 422),
        (refusal(500, "InternalError", "oops"), 503),
    ],
    ids=["changed meanwhile", "forbidden", "invalid", "a failure"],
)
async def test_errors_of_the_api_server(reply: Any, status: int) -> None:
    """They are passed on."""
    async with DashboardWorld.open(options=ALLOWED) as world:
        world.cluster.cluster.interfere("PATCH", OBJECT, reply)
        assert (await world.viewer.post(f"{WEB_PATH}/spec", CHANGE))[0] == status


async def test_other_sites_change_nothing() -> None:
    """A request of another site's page is rejected before anything else."""
    async with DashboardWorld.open(options=ALLOWED) as world:
        answer = await world.viewer.post(f"{WEB_PATH}/spec", CHANGE, Origin="http://evil.example")
        assert (answer[0], world.cluster.cluster.asked("PATCH")) == (403, [])
