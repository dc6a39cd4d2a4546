"""Evictions over HTTP: deletes that a PodDisruptionBudget can refuse."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from server_under_test import Running, running_server

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CREATED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with a running, ready pod `a`."""
    async with running_server(tmp_path) as running:
        await make_pod(running, "a")
        yield running


async def make_pod(server: Running, name: str, *, phase: str = "Running", ready: str = "True") -> None:
    """A pod with that status."""
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    await server.create(PODS, {"metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec})
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    headers = {"Content-Type": "application/merge-patch+json"}
    await server.request("PATCH", f"{PODS}/{name}/status", json={"status": status}, headers=headers)


async def make_budget(server: Running, name: str = "b", *, policy: str = "IfHealthyBudget", **status: int) -> None:
    """A budget for all those pods, with that status."""
    spec = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1, "unhealthyPodEvictionPolicy": policy}
    await server.create(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    headers = {"Content-Type": "application/merge-patch+json"}
    await server.request("PATCH", f"{BUDGETS}/{name}/status", json={"status": status}, headers=headers)


async def evict(server: Running, name: str = "a", **fields: Any) -> tuple[int, Any]:
    """Status and body of the answer to an eviction."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **fields}
    reply = await server.request("POST", f"{PODS}/{name}/eviction", json=body)
    return reply.status, reply.body


async def exists(server: Running, name: str = "a") -> bool:
    """Whether the pod is there."""
    return (await server.get(f"{PODS}/{name}")).status == 200


async def test_without_a_budget_a_pod_is_deleted(server: Running) -> None:
    """The answer says so."""
    assert await evict(server) == (201, CREATED)
    assert not await exists(server)


async def test_an_allowance_is_used_up(server: Running) -> None:
    """The first pod goes; the second would be one too many."""
    await make_pod(server, "a2")
    await make_budget(server, observedGeneration=1, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert (await evict(server))[0] == 201
    status = (await server.get(f"{BUDGETS}/b")).body["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])
    assert await evict(server, "a2") == (
        429,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": VIOLATION,
            "reason": "TooManyRequests",
            "details": {
                "causes": [
                    {
                        "reason": "DisruptionBudget",
                        "message": "The disruption budget b needs 1 healthy pods and has 2 currently",
                    }
                ]
            },
            "code": 429,
        },
    )
    assert await exists(server, "a2")


async def test_a_budget_that_was_not_looked_at_allows_nothing(server: Running) -> None:
    """The client is told to come back."""
    await make_budget(server)
    status, body = await evict(server)
    assert (status, body["details"]["retryAfterSeconds"]) == (429, 10)
    assert body["details"]["causes"][0]["message"] == (
        "The disruption budget b is still being processed by the server."
    )


async def test_two_budgets_for_a_pod_are_a_mistake(server: Running) -> None:
    """Upstream's words."""
    await make_budget(server, "b")
    await make_budget(server, "c")
    status, body = await evict(server)
    text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (status, body["message"]) == (500, text)


@pytest.mark.parametrize(
    ("phase", "policy", "healthy", "status"),
    [
        pytest.param("Pending", "IfHealthyBudget", 0, 201, id="never ran"),
        pytest.param("Failed", "IfHealthyBudget", 0, 201, id="is over"),
        pytest.param("Running", "IfHealthyBudget", 0, 429, id="unhealthy, like the others"),
        pytest.param("Running", "IfHealthyBudget", 1, 201, id="unhealthy, while enough others are healthy"),
        pytest.param("Running", "AlwaysAllow", 0, 201, id="unhealthy, and the policy does not mind"),
    ],
)
async def test_pods_that_do_not_serve(server: Running, phase: str, policy: str, healthy: int, status: int) -> None:
    """They may go where nothing is lost by it."""
    await make_pod(server, "u", phase=phase, ready="False")
    await make_budget(server, policy=policy, observedGeneration=1, currentHealthy=healthy, desiredHealthy=1)
    assert (await evict(server, "u"))[0] == status


async def test_a_dry_run_uses_nothing_up(server: Running) -> None:
    """Neither pod nor allowance."""
    await make_budget(server, observedGeneration=1, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
    assert (await evict(server, deleteOptions={"dryRun": ["All"]}))[0] == 201
    assert await exists(server)
    assert (await server.get(f"{BUDGETS}/b")).body["status"]["disruptionsAllowed"] == 1


async def test_another_name_in_the_body_is_refused(server: Running) -> None:
    """The path says which pod."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}
    reply = await server.request("POST", f"{PODS}/a/eviction", json=body)
    assert (reply.status, reply.body["message"]) == (400, "name in URL does not match name in Eviction object")


async def test_a_pod_that_is_not_there(server: Running) -> None:
    """404."""
    status, body = await evict(server, "nobody")
    assert (status, body["message"]) == (404, 'pods "nobody" not found')


async def conditions(server: Running) -> list[tuple[str, str, str]]:
    """Type, status and reason of the pod's conditions."""
    found = (await server.get(f"{PODS}/a")).body["status"]["conditions"]
    return [(each["type"], each["status"], each.get("reason", "")) for each in found]


READY = ("Ready", "True", "")
EVICTED = ("DisruptionTarget", "True", "EvictionByEvictionAPI")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"propagationPolicy": "Orphan"}, [READY, EVICTED], id="a delete that waits"),
        pytest.param({"propagationPolicy": "Bogus"}, [READY, EVICTED], id="a delete that is refused"),
        pytest.param({"dryRun": ["All"]}, [READY], id="nothing is done"),
        pytest.param({"preconditions": {"uid": "x"}}, [READY], id="another pod is meant"),
        pytest.param({"preconditions": {"resourceVersion": "1"}}, [READY], id="another version is meant"),
    ],
)
async def test_the_pod_says_why_it_goes(server: Running, options: dict[str, Any], told: list[tuple[str, ...]]) -> None:
    """An eviction notes itself in the pod's status before the pod is deleted."""
    await evict(server, deleteOptions=options)
    assert await conditions(server) == told


async def test_the_version_that_is_meant_is_that_before_the_mark(server: Running) -> None:
    """A resourceVersion that the pod has is met, although the mark changes it."""
    version = (await server.get(f"{PODS}/a")).body["metadata"]["resourceVersion"]
    assert await evict(server, deleteOptions={"preconditions": {"resourceVersion": version}}) == (201, CREATED)
    assert not await exists(server)
