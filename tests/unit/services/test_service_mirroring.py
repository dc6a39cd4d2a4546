"""Endpoints that somebody wrote become slices, on a real registry."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.controllers.endpoints.mirroring import EndpointMirroring
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

SLICES = "endpointslices.discovery.k8s.io"
PORT = {"name": "http", "port": 80, "protocol": "TCP"}
SUBSETS = [{"addresses": [{"ip": "10.1.2.3"}], "notReadyAddresses": [{"ip": "2001:db8::1"}], "ports": [PORT]}]


class World:
    """A registry in which the controller runs."""

    def __init__(self, registry, clock):
        self.registry, self.clock = registry, clock

    async def settle(self):
        await self.clock.advance(1, turns=200)

    async def make_service(self, **spec):
        metadata = {"name": "web", "namespace": "default"}
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"port": 80}]} | spec,
        }
        await self.registry.create("services", service)

    async def make_endpoints(self, **metadata):
        metadata = {"name": "web", "namespace": "default", **metadata}
        made = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": SUBSETS}
        return await self.registry.create("endpoints", made)

    def shown(self):
        """Family, and addresses with whether they are ready, of each slice."""
        return sorted(
            (one["addressType"], [(each["addresses"][0], each["conditions"]["ready"]) for each in one["endpoints"]])
            for one in self.registry.list(SLICES)
        )


BOTH = [("IPv4", [("10.1.2.3", True)]), ("IPv6", [("2001:db8::1", False)])]


@pytest.fixture
async def world(tmp_path):
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened, _running(opened.registry, clock):
        yield World(opened.registry, clock)


@asynccontextmanager
async def _running(registry, clock):
    task = asyncio.create_task(ControlLoop(EndpointMirroring(registry, clock), registry, clock).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_slice_for_each_family(world):
    """With labels, ports and owner; they follow the Endpoints, and go with them."""
    await world.make_service()
    made = await world.make_endpoints(labels={"team": "a"}, annotations={"note": "yes"})
    await world.settle()
    assert world.shown() == BOTH
    one = world.registry.list(SLICES)[0]
    owner = {"apiVersion": "v1", "kind": "Endpoints", "name": "web", "uid": made["metadata"]["uid"]}
    assert one["ports"] == [PORT]
    assert one["metadata"]["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    assert one["metadata"]["annotations"] == {"note": "yes"}
    assert one["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    names = {each["metadata"]["name"] for each in world.registry.list(SLICES)}
    await world.registry.mutate(
        "endpoints", "default", "web", lambda each: each["subsets"][0].update(addresses=[{"ip": "10.1.2.4"}])
    )
    await world.settle()
    assert world.shown() == [("IPv4", [("10.1.2.4", True)]), BOTH[1]]
    assert {each["metadata"]["name"] for each in world.registry.list(SLICES)} == names
    await world.registry.delete("endpoints", "default", "web")
    await world.settle()
    assert world.shown() == []


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [
        pytest.param({"selector": {"app": "web"}}, {}, id="the Service has a selector"),
        pytest.param({}, {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, id="not wanted"),
        pytest.param({}, {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}, id="a lock"),
    ],
)
async def test_what_is_not_mirrored(world, spec, metadata):
    """These have slices of their own, or need none."""
    await world.make_service(**spec)
    await world.make_endpoints(**metadata)
    await world.settle()
    assert world.shown() == []


async def test_the_service_may_come_later(world):
    """Without one, nobody asks for the slices."""
    await world.make_endpoints()
    await world.settle()
    assert world.shown() == []
    await world.make_service()
    await world.settle()
    assert world.shown() == BOTH


async def test_deleted_slices_come_back(world):
    """As long as there is what they mirror."""
    await world.make_service()
    await world.make_endpoints()
    await world.settle()
    await world.registry.delete(SLICES, "default", world.registry.list(SLICES)[0]["metadata"]["name"])
    await world.settle()
    assert world.shown() == BOTH
