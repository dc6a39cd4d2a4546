"""`podscaler doctor` on an API server: what it finds, what it may not read, exit statuses."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_server_world import ApiServerWorld, Object, named
from click.testing import CliRunner, Result

from podscaler.base.errors import StatusError
from podscaler.cli.diagnosis.autoscaler_objects import RelatedObjectsReader
from podscaler.cli.main import cli

HPAS = "horizontalpodautoscalers.autoscaling"
OLD_VALUES = "metrics"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server with the autoscaler default/web over two pods that run at their target."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await made.create_web(pods=2)
    node = await made.opened.registry.create("nodes", {"metadata": {"name": "one"}})
    status = {"allocatable": {"cpu": "20", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}
    await made.opened.registry.update("nodes", node | {"status": status}, subresource="status")
    yield made
    await made.close()


async def run(world: ApiServerWorld, *arguments: str) -> Result:
    """The command against the server."""
    words = ["doctor", *arguments, "--kubeconfig", str(world.folder / "kubeconfig")]
    return await asyncio.to_thread(CliRunner().invoke, cli, words)


async def examined(world: ApiServerWorld) -> tuple[int, Object]:
    """Exit status and the JSON output for default/web."""
    result = await run(world, "web", "-o", "json")
    return result.exit_code, json.loads(result.stdout)


def found(data: Object, area: str) -> list[str]:
    """The messages of the findings of an area."""
    return [each["message"] for each in data["findings"] if each["area"] == area]


def lines(data: Object, title: str) -> dict[str, str]:
    """The lines of a section by label."""
    section = next(each for each in data["sections"] if each["title"] == title)
    return {each["label"]: each["text"] for each in section["lines"]}


async def add_status(world: ApiServerWorld) -> None:
    """A controller looked at the autoscaler, and it is steady."""
    hpa = world.hpa()
    conditions = [
        {"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, status, reason in (
            ("AbleToScale", "True", "ReadyForNewScale"),
            ("ScalingActive", "True", "ValidMetricFound"),
            ("ScalingLimited", "False", "DesiredWithinRange"),
        )
    ]
    hpa["status"] = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": [], "conditions": conditions}
    await world.opened.registry.update(HPAS, hpa, subresource="status")


async def test_old_values_are_a_finding(world: ApiServerWorld) -> None:
    """The values of this server are of another year; all else is well, and the API answers."""
    await add_status(world)
    status, data = await examined(world)
    assert (status, data["healthy"], data["state"], data["severity"]) == (1, False, "Steady", 0)
    assert [each["area"] for each in data["findings"] if each["level"] != "note"] == [OLD_VALUES]
    assert found(data, "metrics")[0].startswith("2 of 2 values of the usage of pods are old, the oldest of ")
    assert lines(data, "Metrics")["cpu"] == "is at 50 % of requests, target 50 %"
    assert data["summary"].startswith("default/web stays at 2: cpu is at 50 % of requests, target 50 %")


async def test_an_autoscaler_that_nobody_looks_at(world: ApiServerWorld) -> None:
    """No controller has written its status."""
    _, data = await examined(world)
    assert (data["state"], found(data, "state")) == ("Unknown", ["Unknown: no controller has written its status"])


async def test_pods_quota_and_lint(world: ApiServerWorld) -> None:
    """Each part of the examination has its finding."""
    registry = world.opened.registry
    quota: dict[str, Any] = named("small", spec={"hard": {"pods": "2"}})
    made = await registry.create("resourcequotas", quota)
    status = {"hard": {"pods": "2"}, "used": {"pods": "2"}}
    await registry.update("resourcequotas", made | {"status": status}, subresource="status")
    pod = registry.get("pods", "default", "web-1")
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    pod["status"]["conditions"][0]["status"] = "False"
    pod["status"]["containerStatuses"] = [{"name": "c", "ready": False, "restartCount": 3, "state": waiting}]
    await registry.update("pods", pod, subresource="status")
    hpa = world.hpa()
    hpa["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    await registry.update(HPAS, hpa)
    _, data = await examined(world)
    assert found(data, "pods") == ["1 pod is CrashLoopBackOff (web-1): container c: back-off, restarted 3 times"]
    assert found(data, "capacity") == [
        "ResourceQuota small has room for 0 more pods by pods, but maxReplicas 10 needs 8 more"
    ]
    assert any(each.startswith("PSL021 ") for each in found(data, "lint"))


async def test_events_of_a_replica_set(world: ApiServerWorld) -> None:
    """Found by its owner, the target."""
    registry = world.opened.registry
    uid = registry.get("deployments.apps", "default", "web")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": True}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}}
    template = registry.get("deployments.apps", "default", "web")["spec"]["template"]
    made = named("web-1", spec=spec | {"template": template})
    made["metadata"]["ownerReferences"] = [owner]
    await registry.create("replicasets.apps", made)
    now = registry.get("replicasets.apps", "default", "web-1")["metadata"]["creationTimestamp"]
    event = named("e", type="Warning", reason="FailedCreate", message="exceeded quota", count=1)
    about = {"kind": "ReplicaSet", "namespace": "default", "name": "web-1"}
    await registry.create("events", event | {"involvedObject": about, "firstTimestamp": now, "lastTimestamp": now})
    _, data = await examined(world)
    assert [each.split(" ")[0] for each in found(data, "events")] == ["ReplicaSet/web-1"]


async def test_a_target_that_is_not_there(world: ApiServerWorld) -> None:
    """The sentence of `explain`, and what to do."""
    await world.opened.registry.delete("deployments.apps", "default", "web")
    _, data = await examined(world)
    assert data["summary"].startswith("default/web can do nothing: the scale of its target cannot be read: ")
    assert 'Deployment web cannot be read: deployments.apps "web" not found' in data["notes"]


async def test_what_may_not_be_read_is_said(world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no error: the other checks go on."""
    read_all = RelatedObjectsReader.read_all

    async def refused(self: RelatedObjectsReader, group: str, version: str, *rest: Any) -> list[Object]:
        if rest[1] in ("nodes", "events", "pods", "apiservices"):
            raise StatusError(f"{rest[1]} is forbidden", code=403)
        return await read_all(self, group, version, *rest)

    monkeypatch.setattr(RelatedObjectsReader, "read_all", refused)
    await add_status(world)
    status, data = await examined(world)
    assert (status, data["notes"]) == (
        1,
        [
            "events cannot be read: events is forbidden",
            "pods cannot be read: pods is forbidden",
            "APIServices cannot be read: apiservices is forbidden",
            "nodes cannot be read: nodes is forbidden",
        ],
    )
    assert lines(data, "Pods") == {"": "not known"}


async def test_text_and_exit_statuses(world: ApiServerWorld) -> None:
    """Findings are numbered, each with what to do; names that do not exist are wrong use."""
    result = await run(world, "default/web")
    assert result.exit_code == 1
    assert result.stdout.startswith("default/web is Unknown: no controller has written its status.\n")
    assert "\n  1. warning, state: Unknown: no controller has written its status\n     do: see " in result.stdout
    missing = await run(world, "api")
    assert (missing.exit_code, missing.stderr) == (
        2,
        'podscaler: no autoscaler "api" in the namespace default: there are web\n',
    )


async def test_a_server_that_is_gone(world: ApiServerWorld) -> None:
    """Exit status 2, with the server."""
    await world.stop_server()
    result = await run(world, "web")
    assert result.exit_code == 2
    assert result.stderr.startswith("podscaler: cannot reach the API server https://127.0.0.1:")
