"""Endpoints follow Services and pods, on a real registry."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.controllers.endpoints.endpoint_controller import EndpointController
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.network.kubernetes_service import KubernetesService
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.registry import open_registry

READY_AT = 1_767_225_600 * 10**9


class World:
    """A registry and what a test does to it."""

    def __init__(self, registry, clock):
        self.registry, self.clock = registry, clock

    async def settle(self):
        await self.clock.advance(2, turns=200)

    async def make_service(self, **spec):
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]} | spec
        metadata = {"name": "web", "namespace": "default"}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
        return await self.registry.create("services", service)

    async def make_pod(self, name, ip):
        pod = build.pod(name, labels={"app": "web"}, ip=ip, ready_at=READY_AT)
        await self.registry.create("pods", pod)
        await self.registry.mutate(
            "pods", "default", name, lambda one: one.update(status=pod["status"]), subresource="status"
        )

    async def make_endpoints(self, name, **metadata):
        metadata = {"name": name, "namespace": "default", **metadata}
        await self.registry.create("endpoints", {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata})

    def shown(self):
        """Ready addresses by name."""
        return {
            one["metadata"]["name"]: [
                address["ip"] for subset in one.get("subsets") or [] for address in subset.get("addresses") or []
            ]
            for one in self.registry.list("endpoints")
        }

    def version(self):
        return self.registry.get("endpoints", "default", "web")["metadata"]["resourceVersion"]


@pytest.fixture
async def world(tmp_path):
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        yield World(opened.registry, clock)


@asynccontextmanager
async def running(world, make=None):
    controller = make or EndpointController(world.registry, world.clock)
    task = asyncio.create_task(ControlLoop(controller, world.registry, world.clock).run())
    try:
        await world.settle()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_endpoints_live_with_their_service_and_its_pods(world):
    """Made empty, filled, emptied, deleted."""
    async with running(world):
        await world.make_service()
        await world.settle()
        assert world.shown() == {"web": []}
        await world.make_pod("a", "127.9.1.1")
        await world.settle()
        assert world.shown() == {"web": ["127.9.1.1"]}
        await world.registry.delete("pods", "default", "a", grace_period_s=0)
        await world.settle()
        assert world.shown() == {"web": []}
        await world.registry.delete("services", "default", "web")
        await world.settle()
        assert world.shown() == {}


async def test_deleted_endpoints_come_back(world):
    """As long as there is their Service."""
    async with running(world):
        await world.make_service()
        await world.settle()
        await world.registry.delete("endpoints", "default", "web")
        await world.settle()
        assert world.shown() == {"web": []}


async def test_endpoints_of_a_service_without_a_selector_are_left_alone(world):
    """They are somebody else's."""
    await world.make_service(selector=None)
    await world.make_endpoints("web", labels={"mine": "yes"})
    before = world.version()
    async with running(world):
        assert world.version() == before


async def test_endpoints_without_a_service_are_deleted_at_the_start(world):
    """But not the lock of a leader election."""
    await world.make_endpoints("left")
    await world.make_endpoints("lock", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"})
    async with running(world):
        assert world.shown() == {"lock": []}


async def test_the_api_server_has_endpoints(world):
    """Its own address, which is not to be mirrored."""
    async with running(world, KubernetesService(world.registry, ("127.0.0.1", 7443))):
        found = world.registry.get("endpoints", "default", "kubernetes")
        assert found["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
        assert found["subsets"] == [
            {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": 7443, "protocol": "TCP"}]}
        ]
