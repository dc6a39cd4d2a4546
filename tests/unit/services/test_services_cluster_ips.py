"""Addresses and node ports are given while a Service is written, as upstream's storage of Services gives them."""

import asyncio
import sqlite3
from random import Random
from types import SimpleNamespace

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.errors import StatusError
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.options import UpdateOptions
from podscaler.controlplane.storage.store import open_store
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

SERVICES = "services"
NODE_PORT = {"type": "NodePort"}
LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}


@pytest.fixture
async def world(tmp_path):
    clock, block = VirtualClock(), AddressBlock(7)
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        controller = ClusterIPs(opened.registry, clock, block)
        opened.objects.set_allocator(SERVICES, controller.allocate)
        opened.objects.listen(controller.on_commit)
        yield SimpleNamespace(objects=opened.objects, registry=opened.registry, block=block)


def service(name="web", **spec):
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]} | spec
    metadata = {"name": name, "namespace": "default"} if name else {"namespace": "default"}
    filled = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    catalog.get(SERVICES).versions[0].default(filled)
    return filled


async def create(world, name="web", *, dry_run=False, **spec):
    return (await world.objects.create(SERVICES, service(name, **spec), dry_run=dry_run)).decode()["spec"]


async def replace(world, *, dry_run=False, **spec):
    options = UpdateOptions(dry_run=dry_run)
    entry = await world.objects.update(SERVICES, "default", "web", lambda _: service(**spec), options=options)
    return entry.decode()["spec"]


async def refusal(writing):
    with pytest.raises(StatusError) as refused:
        await writing
    return refused.value.code, refused.value.message


async def test_a_name_that_is_taken_costs_nothing(world):
    """The write fails after the address was taken: it is free again."""
    first = await create(world)
    assert (await refusal(create(world)))[0] == 409
    taken = [address for address in ("127.7.224.2", "127.7.224.3") if not world.block.reserve_service(address)]
    assert (first["clusterIP"], taken) == ("127.7.224.1", [])


async def test_a_dry_run_shows_an_address_and_keeps_none(world):
    """Nor a node port."""
    shown = await create(world, dry_run=True, **NODE_PORT)
    assert (shown["clusterIP"], shown["ports"][0]["nodePort"]) == ("127.7.224.1", 30000)
    assert world.block.reserve_service("127.7.224.1")
    assert (await create(world, "other", **NODE_PORT))["ports"][0]["nodePort"] == 30000


@pytest.mark.parametrize("dry_run", [pytest.param(False, id="kept"), pytest.param(True, id="dry")])
async def test_a_type_with_node_ports_gets_them_at_once(world, dry_run):
    """The update itself returns them; those of a type that has none are dropped and free."""
    address = (await create(world))["clusterIP"]
    shown = await replace(world, dry_run=dry_run, type="LoadBalancer")
    assert (shown["clusterIP"], shown["ports"][0]["nodePort"]) == (address, 30000)
    assert "nodePort" not in (await replace(world))["ports"][0]
    assert (await create(world, "other", **NODE_PORT))["ports"][0]["nodePort"] == 30000


async def test_a_name_in_dns_has_no_address_until_it_is_a_service(world):
    """From ExternalName and back: given and let go with the write."""
    await create(world, type="ExternalName", externalName="example.com", ports=[])
    given = (await replace(world))["clusterIP"]
    assert not world.block.reserve_service(given)
    assert "clusterIP" not in await replace(world, type="ExternalName", externalName="example.com", ports=[])
    assert world.block.reserve_service(given)


async def test_what_the_server_gives_belongs_to_no_manager(world):
    """The author of the change of type does not own the node port."""
    await create(world)
    await replace(world, **NODE_PORT)
    managed = world.registry.get(SERVICES, "default", "web")["metadata"].get("managedFields") or []
    assert "nodePort" not in str(managed)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"ports": [{"port": 80, "nodePort": 30000}]}, "provided port is already allocated", id="taken"),
        pytest.param(
            {"ports": [{"port": 80, "nodePort": 29999}]},
            "provided port is not in the valid range. The range of valid ports is 30000-32767",
            id="out of range",
        ),
    ],
)
async def test_node_ports_that_cannot_be_had(world, spec, expected):
    """They are refused in upstream's words, and the address is free again."""
    await create(world, **NODE_PORT)
    number = spec["ports"][0]["nodePort"]
    message = f'Service "other" is invalid: spec.ports[0].nodePort: Invalid value: {number}: {expected}'
    assert await refusal(create(world, "other", **NODE_PORT, **spec)) == (422, message)
    assert world.block.reserve_service("127.7.224.2")


async def test_ports_of_one_number_share_a_node_port(world):
    """As the two of DNS do; others have their own, and may not name the same."""
    dns = [{"name": name, "port": 53, "protocol": name.upper()} for name in ("udp", "tcp")]
    given = await create(world, **NODE_PORT, ports=[*dns, {"name": "web", "port": 80}])
    assert [port["nodePort"] for port in given["ports"]] == [30000, 30000, 30001]
    twice = [{"name": name, "port": port, "nodePort": 30005} for name, port in (("a", 1), ("b", 2))]
    code, message = await refusal(create(world, "twice", **NODE_PORT, ports=twice))
    assert (code, "spec.ports[1].nodePort" in message) == (422, True)


async def test_a_port_without_node_port_does_not_get_one_that_the_service_requests(world):
    """Neither that of a later port nor that of the health check."""
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443, "nodePort": 30000}]
    service = await create(world, **LOCAL, ports=ports, healthCheckNodePort=30001)
    assert [port["nodePort"] for port in service["ports"]] == [30002, 30000]


async def test_the_port_of_the_health_check_is_no_other_node_port(world):
    """One number for both is refused."""
    ports = [{"port": 80, "nodePort": 30000}]
    code, message = await refusal(create(world, **LOCAL, ports=ports, healthCheckNodePort=30000))
    expected = "failed to allocate requested HealthCheck NodePort 30000: provided port is already allocated"
    assert (code, expected in message) == (500, True)


async def test_a_load_balancer_may_do_without_node_ports(world):
    """allocateLoadBalancerNodePorts: false."""
    given = await create(world, type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    assert "nodePort" not in given["ports"][0]


async def test_a_load_balancer_of_local_endpoints_has_a_port_for_health_checks(world):
    """It stays while it is needed, cannot be changed, and goes with the need."""
    given = await create(world, **LOCAL)
    assert (given["ports"][0]["nodePort"], given["healthCheckNodePort"]) == (30000, 30001)
    assert (await replace(world, **LOCAL, sessionAffinity="ClientIP"))["healthCheckNodePort"] == 30001
    path = "spec.healthCheckNodePort: Forbidden: field is immutable"
    assert await refusal(replace(world, **LOCAL, healthCheckNodePort=30009)) == (
        422,
        f'Service "web" is invalid: {path}',
    )
    assert "healthCheckNodePort" not in await replace(world, type="LoadBalancer")


async def test_what_a_deleted_service_had_is_free_when_the_delete_returns(world):
    """Its node port may be asked for at once."""
    had = await create(world, **NODE_PORT)
    await world.registry.delete(SERVICES, "default", "web")
    assert world.block.reserve_service(had["clusterIP"])
    ports = [{"port": 80, "nodePort": 30000}]
    assert (await create(world, "other", **NODE_PORT, ports=ports))["ports"][0]["nodePort"] == 30000


@pytest.mark.parametrize(
    ("dry_run", "expected"),
    [
        pytest.param(
            False,
            'spec.clusterIPs: Invalid value: [""]: failed to allocate IP: IPAddress.networking.k8s.io "127.7.224.1" is '
            "invalid: spec.parentRef.name: Required value",
            id="kept",
        ),
        pytest.param(True, "metadata.name: Required value: name or generateName is required", id="dry"),
    ],
)
async def test_without_a_name_there_is_no_address(world, dry_run, expected):
    """Upstream's record of the address needs a name, which comes before the object's own; a dry run makes no record."""
    assert await refusal(create(world, "", dry_run=dry_run)) == (422, f'Service "" is invalid: {expected}')


@pytest.fixture
async def failing(tmp_path):
    """A world whose disk fails while `failing.disk.error` is set, and commits when `failing.disk.gate` is open."""
    clock, block, disk = VirtualClock(), AddressBlock(7), FailingDisk()
    store = await open_store(tmp_path, clock, run=disk, is_synced=False)
    objects = Objects(store, catalog.RESOURCES, random=Random(0))
    registry = Registry(objects)
    await registry.create("namespaces", {"metadata": {"name": "default"}})
    controller = ClusterIPs(registry, clock, block)
    objects.set_allocator(SERVICES, controller.allocate)
    objects.listen(controller.on_commit)
    yield SimpleNamespace(objects=objects, registry=registry, block=block, disk=disk)
    disk.error = None
    disk.gate.set()
    await store.close()


class FailingDisk:
    """Runs the store's calls on the event loop, once the gate is open; fails them while there is an error."""

    def __init__(self):
        self.error = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, call):
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return call()


async def fail_all(world, *writes):
    """Decide all writes, in order, then fail the commits; their status codes."""
    world.disk.gate.clear()
    tasks = []
    for write in writes:
        tasks.append(asyncio.ensure_future(write))
        await asyncio.sleep(0)
    world.disk.error = sqlite3.OperationalError("disk I/O error")
    world.disk.gate.set()
    failed = await asyncio.gather(*tasks, return_exceptions=True)
    world.disk.error = None
    return [error.code for error in failed]


async def test_a_create_that_is_not_committed_keeps_nothing(failing):
    """Address and node port are free again after the disk failed."""
    assert await fail_all(failing, create(failing, "lost", **NODE_PORT)) == [500]
    assert failing.block.reserve_service("127.7.224.1")
    assert (await create(failing, **NODE_PORT))["ports"][0]["nodePort"] == 30000


async def test_an_update_that_is_not_committed_keeps_what_the_service_had(failing):
    """Its address and node port, given up by the update, are not given to another Service: two would have the same."""
    had = await create(failing, **NODE_PORT)
    gives_up = replace(failing, type="ExternalName", externalName="example.com", ports=[])
    assert await fail_all(failing, gives_up, create(failing, "other", **NODE_PORT)) == [500, 500]
    other = await create(failing, "other", **NODE_PORT, clusterIP=had["clusterIP"])
    assert other["clusterIP"] != had["clusterIP"]
    assert (had["ports"][0]["nodePort"], other["ports"][0]["nodePort"]) == (30000, 30001)


async def test_a_later_batch_that_fails_takes_nothing_from_an_earlier_one(failing):
    """What was given up in a commit that succeeded stays free, though a later write to the same Service fails."""
    had = (await create(failing))["clusterIP"]
    await replace(failing, type="ExternalName", externalName="example.com", ports=[])
    assert await fail_all(failing, replace(failing), create(failing, "other")) == [500, 500]
    assert failing.block.reserve_service(had)
