"""What the adapter reads from the API server: resources by any name, and objects by list or watch."""

import asyncio

import pytest

from podscaler.adapter.cluster.object_names import IDLE_S, RETRY_S, ObjectNames
from podscaler.adapter.cluster.rest_mapper import MappedResource, RESTMapper, mapping_of
from podscaler.adapter.config.rules import GroupResource
from podscaler.api.machinery import selectors
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.clock import VirtualClock
from podscaler.testing.transport import Feed, ScriptedTransport, json_answer

PODS = MappedResource(GroupResource("", "pods"), "v1", "Pod", "pod", is_namespaced=True)
SERVED = mapping_of(
    {
        "pods": ("v1", "Pod", True),
        "ingresses.networking.k8s.io": ("v1", "Ingress", True),
        "deployments.apps": ("v1", "Deployment", True),
        "deployments.example.dev": ("v1", "Deployment", True),
        "pods.metrics.k8s.io": ("v1beta1", "PodMetrics", True),
    }
)


@pytest.mark.parametrize(
    ("group", "name", "found"),
    [
        ("", "pods", "pods"),
        ("", "pod", "pods"),
        ("", "Pods", "pods"),
        ("", "ingress", "ingresses.networking.k8s.io"),
        ("networking", "ingress", "ingresses.networking.k8s.io"),
        ("", "deployment", "deployments.apps"),
        ("example.dev", "deployment", "deployments.example.dev"),
        ("metrics.k8s.io", "pods", "pods.metrics.k8s.io"),
        ("networking_k8s_io", "ingress", None),
        ("", "job", None),
    ],
)
def test_names_of_resources(group: str, name: str, found: str | None) -> None:
    """Singular, plural, any case, a group's beginning; without a group the first one counts."""
    resource = SERVED.find(GroupResource(group, name))
    assert (None if resource is None else str(resource.resource)) == found


async def test_discovery() -> None:
    """The preferred version of each resource is used; a group that does not respond is left out."""
    transport = ScriptedTransport()
    versions = [{"groupVersion": f"apps/{each}", "version": each} for each in ("v1", "v1beta1")]
    groups = [{"name": "apps", "versions": versions, "preferredVersion": versions[1]}, {"name": "away", "versions": []}]
    transport.on("GET", "/apis", json_answer({"groups": groups}))
    transport.on("GET", "/api/v1", json_answer({"message": "no"}, 503))
    resources = [{"name": "deployments", "kind": "Deployment", "namespaced": True}, {"name": "deployments/scale"}]
    for version in ("v1", "v1beta1"):
        transport.on("GET", f"/apis/apps/{version}", json_answer({"resources": resources}))
    mapper = RESTMapper(Client(transport, VirtualClock()))
    await mapper.refresh()
    expected = MappedResource(GroupResource("apps", "deployments"), "v1beta1", "Deployment", "deployment", True)
    assert mapper.mapping.resources == (expected,)


async def test_a_group_stays_known() -> None:
    """Where a group does not respond any more, its resources stay known."""
    transport = ScriptedTransport()
    transport.on("GET", "/apis", json_answer({"groups": []}))
    listed = json_answer({"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]})
    transport.on("GET", "/api/v1", listed, json_answer({}, 503))
    mapper = RESTMapper(Client(transport, VirtualClock()))
    for _ in range(2):
        await mapper.refresh()
        assert [str(each.resource) for each in mapper.mapping.resources] == ["pods"]


async def test_discovery_fails() -> None:
    """Without the list of groups nothing changes."""
    mapper = RESTMapper(Client(ScriptedTransport(), VirtualClock()))
    with pytest.raises(StatusError):
        await mapper.refresh()
    assert mapper.mapping.resources == ()


def pod(name: str, app: str, version: str = "1") -> dict[str, object]:
    """A pod."""
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": version, "labels": {"app": app}}
    return {"metadata": metadata, "spec": {"ignored": [1]}}


async def test_lists_have_pages() -> None:
    """A list is read to its end, and equal lists that overlap are one."""
    transport = ScriptedTransport()

    def page(request: Request) -> Response:
        is_last = "continue=next" in request.query
        metadata = {} if is_last else {"continue": "next"}
        return json_answer({"metadata": metadata, "items": [pod("b" if is_last else "a", "web")]})

    transport.on("GET", "/api/v1/namespaces/default/pods", page)
    names = ObjectNames(Client(transport, VirtualClock()), VirtualClock(), watches=False)
    selector = selectors.parse("app=web")
    found = await asyncio.gather(*(names.select(PODS, "default", selector) for _ in range(3)))
    assert found == [["a", "b"]] * 3
    assert len(transport.requests) == 2


async def test_a_watch_replaces_lists() -> None:
    """Once the watch has its first list, requests are answered from it."""
    transport, clock = ScriptedTransport(), VirtualClock()
    items = {"metadata": {"resourceVersion": "5"}, "items": [pod("b", "web"), pod("a", "web"), pod("c", "db")]}
    transport.on("GET", "/api/v1/pods", json_answer(items), Feed())
    transport.on("GET", "/api/v1/namespaces/default/pods", json_answer({"items": [pod("listed", "web")]}))
    names = ObjectNames(Client(transport, clock), clock)
    selector = selectors.parse("app=web")
    assert await names.select(PODS, "default", selector) == ["listed"]
    for _ in range(20):
        await asyncio.sleep(0)
    assert await names.select(PODS, "default", selector) == ["a", "b"]
    assert await names.select(PODS, "", selectors.EVERYTHING) == ["a", "b", "c"]
    await names.stop()


LISTED = json_answer({"items": [pod("listed", "web")]})
FORBIDDEN = json_answer({"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403}, 403)


def watches(transport: ScriptedTransport) -> int:
    """The number of requests for all pods, which watches send."""
    return sum(request.path == "/api/v1/pods" for request in transport.requests)


async def test_a_watch_that_is_forbidden_ends() -> None:
    """Each request lists the objects then; after ten minutes the watch is tried again."""
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("GET", "/api/v1/pods", FORBIDDEN)
    transport.on("GET", "/api/v1/namespaces/default/pods", LISTED)
    names = ObjectNames(Client(transport, clock), clock)
    tried = []
    for _ in range(3):
        assert await names.select(PODS, "default", selectors.EVERYTHING) == ["listed"]
        await clock.advance(0.0, turns=50)
        assert await names.select(PODS, "default", selectors.EVERYTHING) == ["listed"]
        await clock.advance(RETRY_S, turns=50)
        tried.append(watches(transport))
    assert tried == [1, 2, 3]
    await names.stop()


async def test_a_watch_that_nobody_needs_ends() -> None:
    """A request about another resource finds that out; the next one about this resource starts it again."""
    transport, clock = ScriptedTransport(), VirtualClock()
    items = {"metadata": {"resourceVersion": "5"}, "items": []}
    feed = Feed()
    transport.on("GET", "/api/v1/pods", json_answer(items), feed)
    transport.on("GET", "/api/v1/namespaces/default/pods", LISTED)
    transport.on("GET", "/api/v1/nodes", json_answer(items))
    names = ObjectNames(Client(transport, clock), clock)
    nodes = MappedResource(GroupResource("", "nodes"), "v1", "Node", "node", is_namespaced=False)
    found = []
    for idle_s in (IDLE_S - 1, IDLE_S):
        await names.select(PODS, "default", selectors.EVERYTHING)
        await clock.advance(0.0, turns=50)
        found.append(await names.select(PODS, "default", selectors.EVERYTHING))
        await clock.advance(idle_s, turns=5)
        await names.select(nodes, "", selectors.EVERYTHING)
    found.append(await names.select(PODS, "default", selectors.EVERYTHING))
    assert found == [[], [], ["listed"]]
    await names.stop()


async def test_a_list_that_cannot_be_decoded() -> None:
    """A server that is no API server is an error, not a crash."""
    transport = ScriptedTransport()
    transport.on("GET", "/api/v1/namespaces/default/pods", json_answer([1]))
    names = ObjectNames(Client(transport, VirtualClock()), VirtualClock(), watches=False)
    with pytest.raises(StatusError, match="cannot be decoded"):
        await names.select(PODS, "default", selectors.EVERYTHING)


async def test_bodies_that_are_not_utf_8() -> None:
    """They are failures of requests: a list cannot be read, and a version has no resources."""
    transport = ScriptedTransport()
    client = Client(transport, VirtualClock())
    transport.on("GET", "/api/v1/pods", Response(200, {}, b'{"items": [{"metadata": {"name": "\xff"}}]}'))
    with pytest.raises(StatusError, match="the list at /api/v1/pods cannot be decoded"):
        await ObjectNames(client, VirtualClock(), watches=False).select(PODS, "", selectors.EVERYTHING)
    transport.on("GET", "/apis", json_answer({"groups": []}))
    transport.on("GET", "/api/v1", Response(200, {}, b'{"resources": [{"name": "\xff"}]}'))
    mapper = RESTMapper(client)
    await mapper.refresh()
    assert mapper.mapping.resources == ()
    transport.on("GET", "/apis", Response(200, {}, b'{"groups": [{"name": "\xff"}]}'))
    with pytest.raises(StatusError, match="the list of API groups cannot be decoded"):
        await mapper.refresh()
