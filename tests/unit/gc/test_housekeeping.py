"""Namespaces that go, events that expire, finished pods that are too many; and what every namespace has."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.cluster import namespace_defaults
from podscaler.controlplane.controllers.cluster.namespace_defaults import NamespaceDefaults
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.controllers.gc.event_expiry import EventExpiry
from podscaler.controlplane.controllers.gc.finished_pods import FinishedPods
from podscaler.controlplane.controllers.gc.namespace_deletion import NamespaceDeletion
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.node import PlayedNode
from podscaler.testing.registry import open_registry

CA = "-----BEGIN CERTIFICATE-----"


@pytest.fixture
async def world(tmp_path):
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        yield opened.registry, clock


@asynccontextmanager
async def running(world, *controllers, node=False):
    registry, clock = world
    tasks = [asyncio.create_task(ControlLoop(one, registry, clock, workers=1).run()) for one in controllers]
    if node:
        tasks.append(asyncio.create_task(PlayedNode(registry, clock, stop_s=3.0).run()))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def pass_time(clock, span_s=0.0):
    for _ in range(5):
        await clock.advance(span_s / 5 + 0.001, turns=60)


async def make_namespace(registry, name="team"):
    await registry.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def make_map(registry, name, namespace="team", **metadata):
    metadata = {"name": name, "namespace": namespace, **metadata}
    await registry.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


def namespace_deletion(world):
    registry, clock = world
    return NamespaceDeletion(registry, clock, catalog.RESOURCES)


async def test_a_namespace_goes_with_all_that_is_in_it(world):
    """Pods first, what they may need when they have stopped, then the namespace."""
    registry, clock = world
    await make_namespace(registry)
    await make_map(registry, "settings")
    pod = build.pod("web")
    pod["metadata"]["namespace"] = "team"
    await registry.create("pods", pod)
    async with running(world, namespace_deletion(world), node=True):
        await pass_time(clock)
        await registry.delete("namespaces", "", "team")
        await pass_time(clock, 2)
        assert (len(registry.list("pods", "team")), len(registry.list("configmaps", "team"))) == (1, 1)
        await pass_time(clock, 3)
        assert registry.find("namespaces", "", "team") is None
        assert (registry.list("pods", "team"), registry.list("configmaps", "team")) == ([], [])


async def test_what_keeps_a_namespace_is_told(world):
    """An object with a finalizer: conditions name kind and finalizer, and nothing new may be made."""
    registry, clock = world
    await make_namespace(registry)
    await make_map(registry, "kept", finalizers=["example.com/hold"])
    async with running(world, namespace_deletion(world)):
        await registry.delete("namespaces", "", "team")
        await pass_time(clock, 3)
        status = registry.get("namespaces", "", "team")["status"]
        told = {one["type"]: (one["status"], one["reason"], one["message"]) for one in status["conditions"]}
        assert status["phase"] == "Terminating"
        assert told == {
            "NamespaceDeletionDiscoveryFailure": (
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            "NamespaceDeletionGroupVersionParsingFailure": (
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            "NamespaceDeletionContentFailure": (
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            "NamespaceContentRemaining": (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
            ),
        }
        with pytest.raises(StatusError, match="because it is being terminated"):
            await make_map(registry, "late")
        await registry.mutate("configmaps", "team", "kept", lambda one: one["metadata"].pop("finalizers"))
        await pass_time(clock, 3)
        assert registry.find("namespaces", "", "team") is None


async def test_every_namespace_has_its_defaults(world):
    """ServiceAccount and root CA; they come back when somebody deletes or changes them, and go with the namespace."""
    registry, clock = world
    await namespace_defaults.make_system_namespaces(registry)
    controllers = (NamespaceDefaults(registry, ca_certificate=CA), namespace_deletion(world))
    async with running(world, *controllers):
        await make_namespace(registry)
        await pass_time(clock)
        found = [one["metadata"]["namespace"] for one in registry.list("serviceaccounts")]
        assert found == ["default", "kube-node-lease", "kube-public", "kube-system", "team"]
        await registry.delete("serviceaccounts", "team", "default")
        await registry.mutate("configmaps", "team", "kube-root-ca.crt", lambda one: one.update(data={}))
        await pass_time(clock)
        assert registry.get("serviceaccounts", "team", "default")["metadata"]["name"] == "default"
        assert registry.get("configmaps", "team", "kube-root-ca.crt")["data"] == {"ca.crt": CA}
        await registry.delete("namespaces", "", "team")
        await pass_time(clock, 3)
        assert registry.find("namespaces", "", "team") is None


async def test_system_namespaces_are_made_once(world):
    """A second start finds them."""
    registry, _ = world
    for _ in range(2):
        await namespace_defaults.make_system_namespaces(registry)
    names = [one["metadata"]["name"] for one in registry.list("namespaces")]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def event(name, seen_at):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        "reason": "Started",
        "lastTimestamp": rfc3339(seen_at),
        "count": 1,
    }


async def test_events_are_kept_for_an_hour_after_they_were_last_counted(world):
    """One that is counted again lives on."""
    registry, clock = world
    await registry.create("events", event("once", clock.now_ns()))
    await registry.create("events", event("again", clock.now_ns()))
    async with running(world, EventExpiry(registry, clock)):
        await pass_time(clock, 1800)
        later = rfc3339(clock.now_ns())
        await registry.mutate("events", "default", "again", lambda one: one.update(lastTimestamp=later, count=2))
        await pass_time(clock, 1790)
        assert len(registry.list("events")) == 2
        await pass_time(clock, 20)
        assert [one["metadata"]["name"] for one in registry.list("events")] == ["again"]
        await pass_time(clock, 1800)
        assert registry.list("events") == []


async def test_a_backlog_of_events_is_worked_off_slowly(world):
    """At most 50 a second."""
    registry, clock = world
    for number in range(100):
        await registry.create("events", event(f"old-{number}", clock.now_ns()))
    await clock.advance(7200)
    async with running(world, EventExpiry(registry, clock)):
        await pass_time(clock, 61)
        assert 20 <= len(registry.list("events")) <= 75
        await pass_time(clock, 3)
        assert registry.list("events") == []


async def test_finished_pods_are_kept_up_to_a_number(world):
    """The oldest go; running ones do not count."""
    registry, clock = world
    async with running(world, FinishedPods(registry, kept_pods=2)):
        for number in range(5):
            await clock.advance(NANOSECONDS / 1e9)
            await registry.create("pods", build.pod(f"web-{number}"))
            if number != 2:
                await registry.mutate(
                    "pods",
                    "default",
                    f"web-{number}",
                    lambda one: one["status"].update(phase="Failed"),
                    subresource="status",
                )
        await pass_time(clock, 3)
        assert [one["metadata"]["name"] for one in registry.list("pods")] == ["web-2", "web-3", "web-4"]


async def test_a_finished_pod_that_could_not_be_deleted_is_deleted_by_the_retry(world, monkeypatch):
    """An error of one delete does not keep the pod."""
    registry, clock = world
    delete, failures = registry.delete, [StatusError("the disk is full", code=500)]

    async def delete_or_fail(*args, **options):
        if failures:
            raise failures.pop()
        await delete(*args, **options)

    monkeypatch.setattr(registry, "delete", delete_or_fail)
    async with running(world, FinishedPods(registry, kept_pods=0)):
        await registry.create("pods", build.pod("web-0"))
        status = {"phase": "Failed"}
        await registry.mutate(
            "pods", "default", "web-0", lambda one: one["status"].update(status), subresource="status"
        )
        await pass_time(clock, 3)
        assert not failures
        assert registry.list("pods") == []
