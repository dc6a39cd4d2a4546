"""Addresses, slices and proxy of Services on a real registry; the proxy listens on real sockets."""

import asyncio
import errno
import json
import socket
from contextlib import asynccontextmanager

import pytest

from patience import WITHIN_S
from podscaler.api import port_map
from podscaler.api.kinds import catalog
from podscaler.controlplane import controller_manager
from podscaler.controlplane.controllers.endpoints.endpointslices import EndpointSlices
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.network import port_listener
from podscaler.controlplane.network.addresses import AddressBlock, claim_block
from podscaler.controlplane.network.cluster_ips import ClusterIPs
from podscaler.controlplane.network.service_proxy import ServiceProxy
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.registry import open_registry
from tcp_server import serving

SERVICES, SLICES, PODS = "services", "endpointslices.discovery.k8s.io", "pods"
READY_AT = 1_767_225_600 * 10**9


class World:
    """A registry and what a test starts on it."""

    def __init__(self, opened, clock, block):
        self.registry, self.objects, self.clock, self.block = opened.registry, opened.objects, clock, block

    async def pass_time(self, span_s=0.0):
        for _ in range(4):
            await self.clock.advance(span_s / 4 + 0.001, turns=60)
            await self._settled()

    async def _settled(self):
        """Return when nothing was written between two writes of our own, however long the disk takes for each."""
        version = await self._write()
        while True:
            await asyncio.sleep(0.005)  # sockets are real
            await self.clock.advance(0, turns=60)
            before, version = version, await self._write()
            if version == before + 1:
                return

    async def _write(self):
        """Write something that nobody looks at; its version."""
        metadata = {"generateName": "beat-", "namespace": "default"}
        written = await self.registry.create(
            "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        )
        return int(written["metadata"]["resourceVersion"])

    async def make_service(self, name="web", **spec):
        spec = {"selector": {"app": "web"}, "ports": [{"port": 8080}]} | spec
        metadata = {"name": name, "namespace": "default"}
        return await self.registry.create(
            SERVICES, {"metadata": metadata, "spec": spec, "apiVersion": "v1", "kind": "Service"}
        )

    async def make_pod(self, name, ip="127.9.1.1", *, ready=True, labels=None, **extra):
        pod = build.pod(
            name, labels=labels or {"app": "web"}, ip=ip, **({"ready_at": READY_AT} if ready else {}), **extra
        )
        await self.registry.create(PODS, pod)
        bound = {**self.registry.get(PODS, "default", name)}
        bound["spec"]["nodeName"] = "here"
        await self.registry.update(PODS, bound, subresource="binding")
        await self.registry.mutate(
            PODS, "default", name, lambda one: one.update(status=pod["status"]), subresource="status"
        )

    def spec(self, name="web"):
        return self.registry.get(SERVICES, "default", name)["spec"]

    def endpoints(self):
        """Pod names with their conditions, and ports, of each slice."""
        return [
            (
                {one["targetRef"]["name"]: one["conditions"]["ready"] for one in found.get("endpoints") or []},
                [port["port"] for port in found.get("ports") or []],
            )
            for found in self.registry.list(SLICES)
        ]

    def events(self):
        return [(event["reason"], event["message"]) for event in self.registry.list("events")]


@pytest.fixture
async def world(tmp_path):
    clock, block = VirtualClock(), claim_block()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        yield World(opened, clock, block)
    block.close()


@asynccontextmanager
async def running(world, *controllers):
    tasks = [asyncio.create_task(ControlLoop(one, world.registry, world.clock).run()) for one in controllers]
    try:
        await world.pass_time()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def addresses(world, block=None):
    return ClusterIPs(world.registry, world.clock, block or world.block)


@pytest.mark.parametrize(
    ("spec", "has_address", "has_node_port"),
    [
        pytest.param({}, True, False, id="ClusterIP"),
        pytest.param({"clusterIP": "None"}, False, False, id="headless"),
        pytest.param({"type": "ExternalName", "externalName": "example.com"}, False, False, id="ExternalName"),
        pytest.param({"type": "NodePort"}, True, True, id="NodePort"),
        pytest.param({"type": "LoadBalancer"}, True, True, id="LoadBalancer"),
    ],
)
async def test_who_gets_an_address(world, spec, has_address, has_node_port):
    """An address of the block, and a node port where the type has one."""
    async with running(world, addresses(world)):
        await world.make_service(**spec)
        await world.pass_time()
        found = world.spec()
        assert world.block.contains(found.get("clusterIP", "")) == has_address
        assert found.get("clusterIPs") == ([found["clusterIP"]] if has_address or spec.get("clusterIP") else None)
        assert (30000 <= found["ports"][0].get("nodePort", 0) < 32768) == has_node_port


async def test_no_two_services_share_an_address(world):
    """Nor a node port, whatever they ask for."""
    async with running(world, addresses(world)):
        await world.make_service("first", type="NodePort")
        await world.pass_time()
        first = world.spec("first")
        wanted = {"port": 8080, "nodePort": first["ports"][0]["nodePort"]}
        await world.make_service("second", type="NodePort", clusterIP=first["clusterIP"], ports=[wanted])
        await world.pass_time()
        second = world.spec("second")
        assert first["clusterIP"] != second["clusterIP"]
        assert first["ports"][0]["nodePort"] != second["ports"][0]["nodePort"]


async def test_an_address_of_another_block_is_renewed(world):
    """After a restart with another block the place within it is kept."""
    ours, others = world.block, AddressBlock(world.block.number % 200 + 2)
    async with running(world, addresses(world, others)):
        await world.make_service()
        await world.pass_time()
        before = world.spec()["clusterIP"]
    async with running(world, addresses(world)):
        after = world.spec()["clusterIP"]
    assert ours.contains(after)
    assert before.split(".")[2:] == after.split(".")[2:]


async def test_an_address_is_free_again_when_its_service_is_gone(world):
    """And a restart with the same block changes nothing."""
    async with running(world, addresses(world)):
        await world.make_service()
        await world.pass_time()
        before = world.spec()
    world.block.release(before["clusterIP"])
    async with running(world, addresses(world)):
        assert world.spec() == before
        await world.registry.delete(SERVICES, "default", "web")
        await world.pass_time()
        assert world.block.reserve_service(before["clusterIP"])


async def test_slices_follow_the_pods(world):
    """Ready, relabelled, terminating, gone."""
    async with running(world, EndpointSlices(world.registry, world.clock)):
        await world.make_service()
        await world.pass_time()
        assert world.endpoints() == [({}, [])]
        await world.make_pod("a")
        await world.make_pod("b", ip="127.9.1.2", ready=False)
        await world.make_pod("other", ip="127.9.1.3", labels={"app": "other"})
        await world.pass_time()
        assert world.endpoints() == [({"a": True, "b": False}, [8080])]
        await world.registry.delete(PODS, "default", "a")
        await world.pass_time()
        assert world.endpoints() == [({"a": False, "b": False}, [8080])]
        await world.registry.delete(PODS, "default", "a", grace_period_s=0)
        await world.registry.mutate(PODS, "default", "b", lambda pod: pod["metadata"].update(labels={}))
        await world.pass_time()
        assert world.endpoints() == [({}, [])]


async def test_slices_follow_the_selector(world):
    """Another selector is another set of pods; slices that somebody deletes come back."""
    async with running(world, EndpointSlices(world.registry, world.clock)):
        await world.make_service()
        await world.make_pod("a")
        await world.make_pod("other", ip="127.9.1.3", labels={"app": "other"})
        await world.pass_time()
        await world.registry.mutate(
            SERVICES, "default", "web", lambda one: one["spec"].update(selector={"app": "other"})
        )
        await world.pass_time()
        assert world.endpoints() == [({"other": True}, [8080])]
        name = world.registry.list(SLICES)[0]["metadata"]["name"]
        await world.registry.delete(SLICES, "default", name)
        await world.pass_time()
        assert world.endpoints() == [({"other": True}, [8080])]


async def test_slices_of_others_are_left_alone(world):
    """A Service without a selector: its slices are made by whoever knows the endpoints."""
    async with running(world, EndpointSlices(world.registry, world.clock)):
        await world.make_service(selector=None)
        await make_slice(world, "by-hand", "127.0.0.1", 9)
        await world.pass_time()
        assert len(world.registry.list(SLICES)) == 1


async def make_slice(world, name, ip, port, *, port_name="", protocol="TCP", **conditions):
    await world.registry.create(
        SLICES,
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [ip], "conditions": conditions or {"ready": True}}],
            "ports": [{"name": port_name, "port": port, "protocol": protocol}],
        },
    )


@asynccontextmanager
async def answering(name):
    """A small server that says its name; its port."""

    async def handle(reader, writer):
        await reader.read()
        writer.write(name)

    async with serving(handle) as port:
        yield port


async def ask(address, port):
    async with asyncio.timeout(WITHIN_S):
        reader, writer = await asyncio.open_connection(address, port)
        try:
            writer.write_eof()
            return await reader.read()
        finally:
            writer.close()


@asynccontextmanager
async def proxying(world):
    node = world.block.node_address
    running_proxy = ServiceProxy(world.registry, world.clock, max_connections=100, node_address=node)
    async with running(world, addresses(world), running_proxy):
        yield
    running_proxy.close()


async def test_the_cluster_ip_leads_to_the_endpoints(world):
    """On each port of the Service; endpoints come and go; the Service goes."""
    async with answering(b"one") as one, answering(b"two") as two, proxying(world):
        await world.make_service(selector=None)
        await make_slice(world, "s1", "127.0.0.1", one)
        await world.pass_time()
        address = world.spec()["clusterIP"]
        assert await ask(address, 8080) == b"one"
        await world.registry.delete(SLICES, "default", "s1")
        await make_slice(world, "s2", "127.0.0.1", two)
        await world.pass_time()
        assert await ask(address, 8080) == b"two"
        await world.registry.delete(SERVICES, "default", "web")
        await world.pass_time()
        with pytest.raises(ConnectionRefusedError):
            await ask(address, 8080)


async def test_the_node_port_leads_to_the_endpoints(world):
    """On the address of the node, until the Service is of another type."""
    async with answering(b"one") as one, proxying(world):
        await world.make_service(selector=None, type="NodePort")
        await make_slice(world, "s1", "127.0.0.1", one)
        await world.pass_time()
        number = world.spec()["ports"][0]["nodePort"]
        assert await ask(world.block.node_address, number) == b"one"
        assert "annotations" not in world.registry.get(SERVICES, "default", "web")["metadata"]
        await world.registry.mutate(SERVICES, "default", "web", lambda one: one["spec"].update(type="ClusterIP"))
        await world.pass_time()
        with pytest.raises(ConnectionRefusedError):
            await ask(world.block.node_address, number)
        assert await ask(world.spec()["clusterIP"], 8080) == b"one"


async def test_one_number_serves_both_protocols(world):
    """The slice's port of the same name and protocol gets the datagrams."""
    loop = asyncio.get_running_loop()
    ports = [{"name": name, "port": 8080, "protocol": name.upper()} for name in ("tcp", "udp")]
    async with answering(b"tcp") as tcp, proxying(world):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint,
            socket.socket(type=socket.SOCK_DGRAM) as client,
        ):
            endpoint.bind(("127.0.0.1", 0))
            endpoint.setblocking(False)
            client.setblocking(False)
            await world.make_service(selector=None, ports=ports)
            await make_slice(world, "s1", "127.0.0.1", tcp, port_name="tcp")
            await make_slice(world, "s2", "127.0.0.1", endpoint.getsockname()[1], port_name="udp", protocol="UDP")
            await world.pass_time()
            address = world.spec()["clusterIP"]
            assert await ask(address, 8080) == b"tcp"
            client.connect((address, 8080))
            client.send(b"question")
            async with asyncio.timeout(WITHIN_S):
                question, proxy_address = await loop.sock_recvfrom(endpoint, 100)
                endpoint.sendto(b"answer", proxy_address)
                assert (question, await loop.sock_recv(client, 100)) == (b"question", b"answer")


async def test_a_pod_that_is_deleted_gets_no_new_connections_though_its_slice_says_ready(world):
    """The proxy sees the deletion itself: the slice is moments behind."""
    async with answering(b"leaving") as leaving, answering(b"staying") as staying, proxying(world):
        await world.make_service(selector=None)
        await world.make_pod("leaving")
        pod = world.registry.get(PODS, "default", "leaving")["metadata"]
        await make_slice(world, "s1", "127.0.0.1", leaving)

        def refer(one):
            target = {"kind": "Pod", "namespace": "default", "name": "leaving", "uid": pod["uid"]}
            one["endpoints"][0]["targetRef"] = target

        await world.registry.mutate(SLICES, "default", "s1", refer)
        await make_slice(world, "s2", "127.0.0.1", staying)
        await world.pass_time()
        address = world.spec()["clusterIP"]
        assert {await ask(address, 8080) for _ in range(4)} == {b"leaving", b"staying"}
        await world.registry.delete(PODS, "default", "leaving")
        await world.pass_time()
        assert {await ask(address, 8080) for _ in range(4)} == {b"staying"}


async def test_terminating_endpoints_serve_when_there_are_no_others(world):
    """Better than nobody."""
    async with answering(b"last") as last, proxying(world):
        await world.make_service(selector=None)
        await make_slice(world, "s1", "127.0.0.1", last, ready=False, serving=True, terminating=True)
        await world.pass_time()
        assert await ask(world.spec()["clusterIP"], 8080) == b"last"


async def test_a_port_that_is_in_use_is_told(world, monkeypatch):
    """An event says why the Service cannot be reached on its clusterIP; it is tried again."""

    async def refuse(*_):
        raise OSError(errno.EADDRINUSE, "in use")

    with monkeypatch.context() as patched:
        patched.setattr(port_listener, "listen", refuse)
        async with proxying(world):
            await world.make_service()
            await world.pass_time()
            address = world.spec()["clusterIP"]
            message = f"cannot listen on {address}:8080: another process of this machine uses that port"
            assert ("FailedToListen", message) in world.events()
            patched.undo()
            await world.pass_time(120)
            with pytest.raises(ConnectionError):
                await ask(address, 8080)  # reset, not refused: it listens, and has no endpoints


async def test_a_low_port_of_an_ordinary_user_is_told(world, monkeypatch):
    """Annotation and event name the port that is really served."""
    real = port_listener._serve_at

    async def serve(balancer, accounts, host, port):
        if port < 1024:
            raise PermissionError(errno.EACCES, "Permission denied")
        return await real(balancer, accounts, host, port)

    monkeypatch.setattr(port_listener, "_serve_at", serve)
    async with proxying(world):
        await world.make_service(ports=[{"port": 80}])
        await world.pass_time()
        notes = world.registry.get(SERVICES, "default", "web")["metadata"]["annotations"]
        assert json.loads(notes["podscaler.dev/port-map"]) == {"80": 20080}
        text = (
            "ports below 1024 need privileges on this machine: port 80 is served at 20080 "
            "(inside pods at both where the Node's condition LowPorts is True)"
        )
        assert ("PortMoved", text) in world.events()


async def test_a_port_that_has_to_move_makes_room(world, monkeypatch):
    """What a Service calls 20080 is 20080, also when its port 80 went there first; no traceback says so."""
    real = port_listener._serve_at

    async def serve(balancer, accounts, host, port):
        if port < 1024:
            raise PermissionError(errno.EACCES, "Permission denied")
        return await real(balancer, accounts, host, port)

    monkeypatch.setattr(port_listener, "_serve_at", serve)
    both = [{"name": "low", "port": 80}, {"name": "high", "port": 20080}]
    async with answering(b"low") as low, answering(b"high") as high, proxying(world):
        await world.make_service(selector=None, ports=both[:1])
        await make_slice(world, "s1", "127.0.0.1", low, port_name="low")
        await make_slice(world, "s2", "127.0.0.1", high, port_name="high")
        await world.pass_time()
        address = world.spec()["clusterIP"]
        assert await ask(address, 20080) == b"low"
        await world.registry.mutate(SERVICES, "default", "web", lambda one: one["spec"].update(ports=both))
        await world.pass_time()
        assert (await ask(address, 20080), await ask(address, 21080)) == (b"high", b"low")
        notes = world.registry.get(SERVICES, "default", "web")["metadata"]["annotations"]
        assert json.loads(notes["podscaler.dev/port-map"]) == {"80": 21080}


async def test_ports_that_are_not_served_are_told_once(world):
    """SCTP is not proxied."""
    async with proxying(world):
        ports = [{"name": "sctp", "port": 53000, "protocol": "SCTP"}, {"name": "tcp", "port": 53000, "protocol": "TCP"}]
        await world.make_service(ports=ports)
        await world.pass_time()
        await world.registry.mutate(SERVICES, "default", "web", lambda one: one["metadata"].update(labels={"a": "b"}))
        await world.pass_time()
        text = "only TCP and UDP are served, not 53000/SCTP: reach the pods directly"
        assert [(event["reason"], event["message"], event["count"]) for event in world.registry.list("events")] == [
            ("ProtocolNotServed", text, 1)
        ]


async def test_all_controllers_together(world):
    """From a bare registry to a cluster: the Service `kubernetes` leads to the API server."""
    async with answering(b"the API server") as server:
        facts = controller_manager.ClusterFacts(catalog.RESOURCES, addresses(world), "CA", ("127.0.0.1", server))
        task = asyncio.create_task(controller_manager.Controllers(world.registry, world.clock, facts).run())
        await world.pass_time(1)
        service = world.registry.get(SERVICES, "default", "kubernetes")
        address, port = service["spec"]["clusterIP"], port_map.of(service).get(443, 443)
        assert await ask(address, port) == b"the API server"
        assert world.registry.get("configmaps", "default", "kube-root-ca.crt")["data"] == {"ca.crt": "CA"}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(ConnectionRefusedError):
            await ask(address, port)


async def test_controllers_can_be_left_out(world):
    """`--without-workload-controllers` leaves Deployments to somebody else."""
    facts = controller_manager.ClusterFacts(catalog.RESOURCES, addresses(world), "CA", ("127.0.0.1", 9))
    enabled = controller_manager.ALL_CONTROLLERS - controller_manager.WORKLOAD_CONTROLLERS
    task = asyncio.create_task(
        controller_manager.Controllers(world.registry, world.clock, facts, enabled=enabled).run()
    )
    await world.registry.create("deployments.apps", build.deployment())
    await world.pass_time(1)
    assert world.registry.list("replicasets.apps") == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_new_service_has_its_address_when_create_returns(world):
    """What is given while a Service is created is what it keeps once the controller runs."""
    controller = addresses(world)
    world.objects.set_allocator("services", controller.allocate)
    created = await world.make_service("at-once")
    assert world.block.contains(created["spec"]["clusterIP"])
    async with running(world, controller):
        assert world.spec("at-once")["clusterIP"] == created["spec"]["clusterIP"]
