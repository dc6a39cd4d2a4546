"""ResourceQuotas: what creates are charged, and what the controller counts, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.kinds.policy import quota_usage
from podscaler.base.errors import StatusError
from podscaler.controlplane.admission import resource_quotas
from podscaler.controlplane.controllers.cluster.resource_quota import BATCH_S, RESYNC_S, SETTLE_S, ResourceQuotas
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.registry.registry import Registry
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
CREATES = 20


def quota(**hard: str) -> Object:
    """A quota `q` of the default namespace."""
    named = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": named}}


def config_map(name: str, namespace: str = "default") -> Object:
    """An object that quotas count."""
    return {"metadata": {"name": name, "namespace": namespace}}


def pod(name: str, cpu: str = "100m") -> Object:
    """A pod with a request."""
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


Worlds = Callable[[], Any]


@pytest.fixture
def world(tmp_path: Path) -> Worlds:
    """Opens a registry with admission; the controller runs where it is asked for."""

    @asynccontextmanager
    async def opened(*, counts: bool) -> AsyncIterator[tuple[Registry, VirtualClock]]:
        clock = VirtualClock()
        async with open_registry(tmp_path, catalog.RESOURCES, clock) as found:
            resource_quotas.register(found.objects)
            tasks = []
            if counts:
                controller = ResourceQuotas(found.registry, clock, found.objects.resources)
                tasks.append(asyncio.create_task(ControlLoop(controller, found.registry, clock).run()))
            yield found.registry, clock
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return opened


def status(registry: Registry) -> Object:
    """The status of the quota."""
    found: Object = registry.get("resourcequotas", "default", "q")["status"]
    return found


async def limited(registry: Registry, **hard: str) -> None:
    """A quota under which nothing is used yet."""
    created = await registry.create("resourcequotas", quota(**hard))
    created["status"] = {"hard": created["spec"]["hard"], "used": dict.fromkeys(created["spec"]["hard"], "0")}
    await registry.update("resourcequotas", created, subresource="status")


async def test_concurrent_creates_do_not_exceed_a_quota(world: Worlds) -> None:
    """Of twenty creates at a time three succeed, and the quota says three."""
    async with world(counts=False) as (registry, _):
        await limited(registry, configmaps="3")
        creates = (registry.create("configmaps", config_map(f"c{number}")) for number in range(CREATES))
        results = await asyncio.gather(*creates, return_exceptions=True)
        refused = [each for each in results if isinstance(each, StatusError)]
        assert len(refused) == CREATES - 3
        assert {each.code for each in refused} == {403}
        assert status(registry)["used"] == {"configmaps": "3"}


async def test_a_create_that_fails_is_not_charged(world: Worlds) -> None:
    """A name that is taken, an invalid object, and a quota that is exceeded leave another quota as it is."""
    async with world(counts=False) as (registry, _):
        await registry.create("configmaps", config_map("taken"))
        await limited(registry, configmaps="5")
        none = quota(configmaps="0")
        none["metadata"]["name"] = "z"
        none = await registry.create("resourcequotas", none)
        for name in ("taken", "Invalid"):
            with pytest.raises(StatusError):
                await registry.create("configmaps", config_map(name))
        none["status"] = {"hard": {"configmaps": "0"}, "used": {"configmaps": "0"}}
        await registry.update("resourcequotas", none, subresource="status")
        with pytest.raises(StatusError, match="exceeded quota: z"):
            await registry.create("configmaps", config_map("new"))
        assert status(registry)["used"] == {"configmaps": "0"}


async def test_quotas_of_other_namespaces_and_events_are_not_charged(world: Worlds) -> None:
    """A quota is about its own namespace, and not about events."""
    async with world(counts=False) as (registry, _):
        await registry.create("namespaces", {"metadata": {"name": "other"}})
        await limited(registry, configmaps="0", **{"count/events": "0"})
        await registry.create("configmaps", config_map("c", "other"))
        metadata = {"name": "e", "namespace": "default"}
        event = {"metadata": metadata, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}}
        assert (await registry.create("events", event))["metadata"]["name"] == "e"


async def test_a_deleted_quota_limits_nothing(world: Worlds) -> None:
    """The index of quotas follows deletions."""
    async with world(counts=False) as (registry, _):
        await limited(registry, configmaps="0")
        await registry.delete("resourcequotas", "default", "q")
        assert (await registry.create("configmaps", config_map("c")))["metadata"]["name"] == "c"


async def test_the_controller_counts_what_is_there(world: Worlds) -> None:
    """A new quota gets its status with what exists, and unknown kinds stay out of it."""
    async with world(counts=True) as (registry, clock):
        await registry.create("pods", pod("a"))
        await registry.create("resourcequotas", quota(pods="4", requests_cpu="1", **{"count/nothing.example.com": "1"}))
        await clock.advance(BATCH_S)
        hard = {"pods": "4", "requests.cpu": "1", "count/nothing.example.com": "1"}
        assert status(registry) == {"hard": hard, "used": {"pods": "1", "requests.cpu": "100m"}}


async def test_the_controller_follows_deletions_finished_pods_and_limits(world: Worlds) -> None:
    """What is gone or finished is free again; a limit that is changed is the new one at once."""
    async with world(counts=True) as (registry, clock):
        await registry.create("resourcequotas", quota(pods="4", requests_cpu="1"))
        await clock.advance(SETTLE_S + 1)
        for name in ("a", "b", "c"):
            await registry.create("pods", pod(name))
        await registry.delete("pods", "default", "a", grace_period_s=0)
        await registry.mutate(
            "pods", "default", "b", lambda one: one["status"].update(phase="Succeeded"), subresource="status"
        )
        await clock.advance(2 * BATCH_S)
        assert status(registry)["used"] == {"pods": "1", "requests.cpu": "100m"}
        await registry.mutate("resourcequotas", "default", "q", lambda one: one["spec"].update(hard={"pods": "1"}))
        await clock.advance(BATCH_S)
        assert status(registry) == {"hard": {"pods": "1"}, "used": {"pods": "1"}}


async def test_a_wrong_count_is_corrected_by_the_resync(world: Worlds) -> None:
    """Whatever a status says, it is right after five minutes."""
    async with world(counts=True) as (registry, clock):
        await registry.create("resourcequotas", quota(configmaps="4"))
        await clock.advance(SETTLE_S + 1)
        wrong = {"hard": {"configmaps": "4"}, "used": {"configmaps": "3"}}
        await registry.mutate(
            "resourcequotas", "default", "q", lambda one: one.update(status=wrong), subresource="status"
        )
        await clock.advance(RESYNC_S + SETTLE_S)
        assert status(registry)["used"] == {"configmaps": "0"}


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["high"], [True, False, False]),
        ("NotIn", ["high"], [False, True, True]),
        ("Exists", [], [True, True, False]),
        ("DoesNotExist", [], [False, False, True]),
    ],
)
def test_priority_classes_are_selected(operator: str, values: list[str], expected: list[bool]) -> None:
    """For the classes high, low and none."""
    requirement = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    evaluator = quota_usage.evaluator_of("pods")
    pods: list[Object] = [{"spec": {"priorityClassName": name}} for name in ("high", "low", "")]
    assert [evaluator.is_in_scope(requirement, each) for each in pods] == expected


def test_overhead_and_pod_level_resources() -> None:
    """The pod's take the place of its containers'; the overhead is added, to limits only where there are some."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}}
    spec: Object = {"containers": [container], "overhead": {"cpu": "100m", "memory": "1Mi"}}
    requests, limits = (quota_usage.pod_amounts(spec, part) for part in ("requests", "limits"))
    assert {name: str(amount) for name, amount in requests.items()} == {"cpu": "1100m", "memory": "1025Mi"}
    assert {name: str(amount) for name, amount in limits.items()} == {"cpu": "2100m"}
    whole = quota_usage.pod_amounts({**spec, "resources": {"requests": {"cpu": "3"}}}, "requests")
    assert str(whole["cpu"]) == "3100m"


@pytest.mark.parametrize(
    ("now_s", "charged"), [pytest.param(40, True, id="in its grace period"), pytest.param(41, False, id="after it")]
)
def test_pods_that_should_be_gone_are_not_charged(now_s: int, charged: bool) -> None:
    """A pod whose node does not end it in time uses nothing but its count."""
    metadata = {"deletionTimestamp": "1970-01-01T00:00:10Z", "deletionGracePeriodSeconds": 30}
    assert quota_usage.is_charged({"metadata": metadata}, now_s * 1_000_000_000) == charged
