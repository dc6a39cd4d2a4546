"""What thousands of pods cost: the work for each stays the same, and none holds up the others."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from types import SimpleNamespace

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.apps import ranking
from podscaler.controlplane.controllers.apps.disruption import DisruptionBudgets
from podscaler.controlplane.controllers.apps.replicaset import ReplicaSets
from podscaler.controlplane.controllers.endpoints import endpoint_subsets, endpoints
from podscaler.controlplane.controllers.endpoints.endpoint_controller import EndpointController
from podscaler.controlplane.controllers.endpoints.endpoints import EndpointCache
from podscaler.controlplane.controllers.endpoints.endpointslices import EndpointSlices
from podscaler.controlplane.controllers.framework import pod_control, pods, selection
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.controllers.gc.collector import GarbageCollector
from podscaler.controlplane.metrics.resource.sampler import Sampler
from podscaler.controlplane.network import port_listener, service_proxy
from podscaler.controlplane.network.balancer import Balancer
from podscaler.controlplane.network.service_proxy import ServiceProxy
from podscaler.controlplane.registry.registry import IterationLimiter, ObjectEvent, Registry
from podscaler.controlplane.storage.entries import Entry
from podscaler.testing import VirtualClock
from podscaler.testing import workloads as build
from podscaler.testing.registry import OpenRegistry, open_registry

PODS = "pods"


class Counted:
    """How many objects were decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decoded = 0
        decode = Entry.decode

        def counted(entry: Entry) -> Object:
            self.decoded += 1
            return decode(entry)

        monkeypatch.setattr(Entry, "decode", counted)


@pytest.fixture
async def opened(tmp_path: Path):
    """A registry of all kinds."""
    async with open_registry(tmp_path, catalog.RESOURCES, VirtualClock()) as found:
        yield found


async def make_pods(registry: Registry, count: int) -> None:
    """Pods `web-0`, ..."""
    for number in range(count):
        await registry.create(PODS, made_pod(f"web-{number}"))


def made_pod(name: str) -> Object:
    spec = {"containers": [{"name": "app", "image": "python"}], "runtimeClassName": "simulated"}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def replica_set(replicas: int) -> Object:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": made_pod("")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


async def test_pods_are_decoded_once_for_all_lists(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing pods again decodes those that have changed since, and no other; what writes return is not counted."""
    await make_pods(opened.registry, 5)
    opened.registry.list(PODS)
    await opened.registry.mutate(PODS, "default", "web-3", lambda pod: pod["metadata"]["labels"].update(new="yes"))
    counted = Counted(monkeypatch)
    listed = opened.registry.acting_as("kubelet").list(PODS)
    assert (counted.decoded, [pod["metadata"]["labels"].get("new") for pod in listed]) == (
        1,
        [None, None, None, "yes", None],
    )


async def test_a_change_is_decoded_once_for_all_watchers(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve controllers that watch a kind share what a change shows."""
    watches = [opened.registry.watch("configmaps") for _ in range(12)]
    metadata = {"name": "one", "namespace": "default"}
    await opened.registry.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    counted = Counted(monkeypatch)
    changes = [await anext(watch) for watch in watches]
    assert (counted.decoded, {change.object["metadata"]["name"] for change in changes}) == (1, {"one"})


async def test_a_watch_lets_others_go_on_between_changes(opened: OpenRegistry) -> None:
    """Of the many changes that one commit makes visible a controller handles 50 in a pass of the event loop."""
    await make_pods(opened.registry, 120)
    seen: list[str] = []

    async def follow() -> None:
        async for change in opened.registry.watch(PODS):
            seen.append(change.object["metadata"]["name"])

    following = asyncio.create_task(follow())
    after_each = []
    while len(seen) < 120:
        await asyncio.sleep(0)
        after_each.append(len(seen))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    steps = [b - a for a, b in zip([0, *after_each], after_each, strict=False) if b > a]
    assert steps == [50, 50, 20]


async def test_superseded_versions_are_not_kept_decoded(opened: OpenRegistry) -> None:
    """Only the newest version of a pod is held in decoded form."""
    await make_pods(opened.registry, 1)
    former = opened.objects.get(PODS, "default", "web-0")
    opened.registry.list(PODS)
    held = former.view is not None
    await opened.registry.mutate(PODS, "default", "web-0", lambda pod: pod["metadata"]["labels"].update(new="yes"))
    assert (held, former.view) == (True, None)


async def test_found_objects_are_the_callers_own(opened: OpenRegistry) -> None:
    """Who finds a pod may change it; lists do not show that."""
    await make_pods(opened.registry, 1)
    opened.registry.list(PODS)
    found = opened.registry.get(PODS, "default", "web-0")
    found["metadata"]["labels"]["app"] = "mine"
    assert opened.registry.list(PODS)[0]["metadata"]["labels"] == {"app": "web"}


async def test_writes_take_turns() -> None:
    """So many writes as fit into one pass of the event loop begin in it, in the order in which they came."""
    limiter, begun = IterationLimiter(2), []

    async def write(number: int) -> None:
        await limiter.acquire()
        begun.append(number)

    tasks = [asyncio.create_task(write(number)) for number in range(5)]
    after_each = []
    for _ in range(8):
        await asyncio.sleep(0)
        after_each.append(len(begun))
    await asyncio.gather(*tasks)
    assert (begun, max(b - a for a, b in zip([0, *after_each], after_each, strict=False))) == ([0, 1, 2, 3, 4], 2)


async def test_a_pass_has_one_long_step(opened: OpenRegistry) -> None:
    """Syncs that pause go on one after the other, and not in the pass in which they began."""
    begun: list[int] = []

    async def work(number: int) -> None:
        await opened.registry.acting_as(f"controller-{number}").pause()
        begun.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(3)]
    after_each = []
    for _ in range(8):
        await asyncio.sleep(0)
        after_each.append(len(begun))
    await asyncio.gather(*tasks)
    steps = [b - a for a, b in zip([0, *after_each], after_each, strict=False)]
    assert (begun, steps[0], max(steps)) == ([0, 1, 2], 0, 1)


async def test_a_large_replica_set_goes_on_at_once(opened: OpenRegistry) -> None:
    """After the 500 pods that one sync may create the next follows without waiting for any change."""
    sets = ReplicaSets(opened.registry, VirtualClock())
    await opened.registry.create("replicasets.apps", replica_set(501))
    key = ("default", "web")
    again = [await sets.sync(key), await sets.sync(key)]
    assert (again, len(opened.registry.list(PODS))) == ([0.0, None], 501)


async def decoded_for_each(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch, count: int) -> float:
    """How many objects are decoded for each pod while controllers make so many and then delete them."""
    clock, registry = VirtualClock(), opened.registry
    loops = [ControlLoop(make(registry, clock), registry, clock) for make in (ReplicaSets, EndpointSlices)]
    tasks = [asyncio.create_task(loop.run()) for loop in loops]
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    await registry.create("services", {**service, "spec": spec})
    counted = Counted(monkeypatch)
    await registry.create("replicasets.apps", replica_set(count))
    while len(opened.objects.list(PODS).entries) < count:
        await clock.advance(1.0)
    await registry.mutate("replicasets.apps", "default", "web", lambda one: one["spec"].update(replicas=0))
    while opened.objects.list(PODS).entries:
        await clock.advance(1.0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return counted.decoded / count


@pytest.mark.parametrize("count", [50, 400])
async def test_the_work_for_each_pod_stays_the_same(
    opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """However many pods there are, making and deleting one decodes no more than twelve objects."""
    assert await decoded_for_each(opened, monkeypatch, count) < 12


@pytest.mark.parametrize("count", [10, 400])
async def test_one_change_costs_the_same_among_many(
    opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """When one pod of many has changed, the syncs that look at all of them decode three objects."""
    registry, clock = opened.registry, VirtualClock()
    syncs = [make(registry, clock).sync for make in (ReplicaSets, EndpointSlices)]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    await registry.create("services", {**service, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    await registry.create("replicasets.apps", replica_set(count))
    for sync in (*syncs, *syncs):
        await sync(("default", "web"))
    name = registry.list(PODS)[0]["metadata"]["name"]
    await registry.mutate(PODS, "default", name, lambda pod: pod["metadata"]["labels"].update(new="yes"))
    counted = Counted(monkeypatch)
    for sync in syncs:
        await sync(("default", "web"))
    assert counted.decoded == 3


async def test_pods_that_own_nothing_go_without_a_search(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector looks for dependents only of what has had some."""
    collector = GarbageCollector(opened.registry, catalog.RESOURCES)
    watch = next(watched for watched in collector.watches() if watched.resource == PODS)
    asked: list[str] = []
    monkeypatch.setattr(opened.registry, "owned_by", lambda _resource, uid: asked.append(uid) or [])
    pod = {**made_pod("web-0"), "metadata": {"name": "web-0", "namespace": "default", "uid": "uid-pod"}}
    list(watch.get_keys(ObjectEvent("ADDED", pod)))
    list(watch.get_keys(ObjectEvent("DELETED", pod)))
    assert asked == []


def test_unchanged_pods_keep_their_endpoints() -> None:
    """Only pods that have changed are looked at again; a Service that changed has all made anew."""
    spec = {"type": "ClusterIP", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    first, second = (build.pod(f"web-{n}", labels={"app": "web"}, ip=f"127.9.1.{n}", node="here") for n in (1, 2))
    known = EndpointCache()
    (before,) = known.groups(service, [first, second]).values()
    (after,) = known.groups(service, [first, {**second}]).values()
    (other,) = known.groups({**service, "spec": {**spec, "publishNotReadyAddresses": True}}, [first]).values()
    kept = [one is another for one, another in zip(before, after, strict=True)]
    assert (kept, before == after, other[0]["conditions"]["ready"]) == ([True, False], True, True)


async def make_service(registry: Registry) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    await registry.create("services", {**service, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})


async def run_with_address(registry: Registry, number: int) -> None:
    """Pod `web-NUMBER` is running and has an address."""

    def run(pod: Object) -> None:
        pod["status"] = {"phase": "Running", "podIP": f"127.9.1.{number}", "podIPs": [{"ip": f"127.9.1.{number}"}]}

    await registry.mutate(PODS, "default", f"web-{number}", run, subresource="status")


@pytest.mark.parametrize("controller", [EndpointController, EndpointSlices])
async def test_unchanged_pods_are_not_looked_at_again(
    opened: OpenRegistry,
    monkeypatch: pytest.MonkeyPatch,
    controller: type[EndpointController] | type[EndpointSlices],
) -> None:
    """When one of many pods has changed, its address alone is made anew."""
    registry = opened.registry
    await make_service(registry)
    await make_pods(registry, 8)
    for number in range(8):
        await run_with_address(registry, number)
    sync = controller(registry, VirtualClock()).sync
    await sync(("default", "web"))
    await registry.mutate(PODS, "default", "web-3", lambda pod: pod["metadata"]["labels"].update(new="yes"))
    made: list[str] = []
    real = endpoints.endpoint
    monkeypatch.setattr(
        endpoints, "endpoint", lambda service, pod: made.append(pod["metadata"]["name"]) or real(service, pod)
    )
    await sync(("default", "web"))
    assert made == ["web-3"]


def test_one_subset_is_not_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text by which subsets are ordered is as long as all addresses: it is made where there are several only."""
    worded: list[Object] = []
    monkeypatch.setattr(endpoint_subsets, "_subset_text", lambda subset: worded.append(subset) or "")
    one = {"addresses": [{"ip": "127.9.1.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}
    assert (endpoint_subsets.canonical([one]), worded) == ([one], [])


async def test_slices_of_a_large_service_are_not_looked_at_after_each_write(opened: OpenRegistry) -> None:
    """Their changes, the controller's own writes among them, are collected as those of pods are."""
    registry = opened.registry
    await make_service(registry)
    await make_pods(registry, 8)
    controller = EndpointSlices(registry, VirtualClock())
    list(controller.prime())
    await controller.sync(("default", "web"))
    delays = {watched.resource: watched.get_delay_s(("default", "web")) for watched in controller.watches()}
    assert delays == {"services": 0.0, "pods": 0.002, "endpointslices.discovery.k8s.io": 0.002}


def made_slice(name: str, count: int) -> Object:
    endpoints = [{"addresses": [f"127.9.1.{n}"], "conditions": {"ready": True}} for n in range(1, count + 1)]
    labels = {"kubernetes.io/service-name": "web"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
    }


@pytest.fixture
async def unheard(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServiceProxy]:
    """A proxy for the Service `web` that listens nowhere."""

    async def listen(address: tuple[str, int], connections: object, clock: Clock) -> SimpleNamespace:
        return SimpleNamespace(port=address[1], balancer=Balancer(clock), close=lambda: None)

    monkeypatch.setattr(port_listener, "listen", listen)
    spec = {"clusterIP": "127.9.0.1", "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    await opened.registry.create("services", {**service, "spec": spec})
    made = ServiceProxy(opened.registry, VirtualClock(), max_connections=10)
    yield made
    made.close()


async def test_the_proxy_reads_slices_that_have_changed(
    opened: OpenRegistry, unheard: ServiceProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the many slices of a large Service only those that are other objects than before."""
    registry = opened.registry
    for name in ("a", "b", "c"):
        await registry.create("endpointslices.discovery.k8s.io", made_slice(name, 2))
    await unheard.sync(("default", "web"))
    await registry.update("endpointslices.discovery.k8s.io", made_slice("b", 3))
    read: list[str] = []
    real = service_proxy._backends_of
    monkeypatch.setattr(
        service_proxy, "_backends_of", lambda one, *more: read.append(one["metadata"]["name"]) or real(one, *more)
    )
    await unheard.sync(("default", "web"))
    assert read == ["b"]


@pytest.mark.parametrize(("endpoints", "settle_s"), [(99, 0.0), (100, 0.01), (6000, 0.5)])
async def test_the_proxy_collects_changes_of_large_services(
    opened: OpenRegistry, unheard: ServiceProxy, endpoints: int, settle_s: float
) -> None:
    """Each look at all endpoints takes as long as there are many; the fewer wait for nothing."""
    sizes = [1000] * (endpoints // 1000) + [endpoints % 1000] * bool(endpoints % 1000)
    for number, size in enumerate(sizes):
        one = {**made_slice(f"s{number}", 0), "endpoints": [{"addresses": ["127.9.1.1"]}] * size}
        await opened.registry.create("endpointslices.discovery.k8s.io", one)
    await unheard.sync(("default", "web"))
    delays = {watched.resource: round(watched.get_delay_s(("default", "web")), 3) for watched in unheard.watches()}
    assert delays == {"services": 0.0, "pods": settle_s, "endpointslices.discovery.k8s.io": settle_s}


async def test_the_order_of_those_that_all_go_is_not_worked_out(
    opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ReplicaSet of no pods deletes 500 in a sync, in any order."""
    monkeypatch.setattr(pod_control, "BURST_PODS", 3)
    monkeypatch.setattr(ranking, "_with_sort_keys", None)
    registry, key = opened.registry, ("default", "web")
    sets = ReplicaSets(registry, VirtualClock())
    await registry.create("replicasets.apps", replica_set(4))
    while await sets.sync(key) == 0.0:
        pass
    await registry.mutate("replicasets.apps", *key, lambda one: one["spec"].update(replicas=0))
    left = []
    for _ in range(2):
        await sets.sync(key)
        left.append(len(registry.list(PODS)))
    assert left == [1, 0]


async def test_a_budget_looks_up_each_controller_once(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pods of one ReplicaSet a budget selects."""
    registry = opened.registry
    await registry.create("replicasets.apps", replica_set(8))
    await ReplicaSets(registry, VirtualClock()).sync(("default", "web"))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
    }
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await registry.create("poddisruptionbudgets.policy", {**budget, "spec": spec})
    found: list[str] = []
    find = registry.find
    monkeypatch.setattr(registry, "find", lambda resource, *key: found.append(resource) or find(resource, *key))
    await DisruptionBudgets(registry, VirtualClock()).sync(("default", "b"))
    status = registry.get("poddisruptionbudgets.policy", "default", "b")["status"]
    assert (found.count("replicasets.apps"), status["expectedPods"]) == (1, 8)


async def test_a_round_of_metrics_looks_up_each_controller_once(
    opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many simulated pods a ReplicaSet has, its annotations are read once."""
    registry, clock = opened.registry, VirtualClock()
    await registry.create("replicasets.apps", replica_set(8))
    await ReplicaSets(registry, clock).sync(("default", "web"))
    for pod in registry.list(PODS):
        await registry.mutate(PODS, *selection.key_of(pod), run_simulated, subresource="status")
    sampler = Sampler(registry, lambda: (), clock=clock, get_node_name=lambda: "", resolution_s=15.0)
    following = asyncio.create_task(sampler.run())
    await clock.advance(0.0)
    following.cancel()  # the pods are known, and its own round of metrics counts nothing
    await asyncio.gather(following, return_exceptions=True)
    found: list[str] = []
    find = registry.find
    monkeypatch.setattr(registry, "find", lambda resource, *key: found.append(resource) or find(resource, *key))
    await sampler.sample()
    assert (found, len(sampler.pod_metrics.list("default"))) == (["replicasets.apps"], 8)


def run_simulated(pod: Object) -> None:
    pod["status"] = {**(pod.get("status") or {}), "phase": "Running"}


def test_each_pod_is_looked_at_once_to_find_who_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing pods does not read them again, however many comparisons there are."""
    candidates = [build.pod(f"web-{n}", labels={}, ip=f"127.9.1.{n}", ready_at=n * 10**9) for n in range(1, 41)]
    asked: list[Object] = []
    is_ready = pods.is_ready
    monkeypatch.setattr(pods, "is_ready", lambda pod: asked.append(pod) or is_ready(pod))
    ranking.select_for_deletion(candidates, 20, now_ns=10**12)
    assert len(asked) == 40


async def longest_step(work: Coroutine[object, object, object], steps: list[object]) -> int:
    """Run `work`; the most entries that came to `steps` within one pass of the event loop."""
    task, longest, before = asyncio.ensure_future(work), 0, 0
    while not task.done():
        await asyncio.sleep(0)
        longest, before = max(longest, len(steps) - before), len(steps)
    await task
    return longest


async def test_a_sync_of_a_large_replica_set_has_pauses(opened: OpenRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claiming pods, counting those that are missing and counting for the status are steps of their own."""
    registry, clock = opened.registry, VirtualClock()
    sets = ReplicaSets(registry, clock)
    await registry.create("replicasets.apps", replica_set(40))
    await sets.sync(("default", "web"))
    await registry.mutate(
        "replicasets.apps", "default", "web", lambda one: one["metadata"].update(annotations={"a": "b"})
    )
    asked: list[object] = []
    for name in ("is_active", "is_ready"):
        real = getattr(pods, name)
        monkeypatch.setattr(pods, name, lambda pod, real=real: asked.append(pod) or real(pod))
    longest = await longest_step(sets.sync(("default", "web")), asked)
    assert longest <= 2 * 40
