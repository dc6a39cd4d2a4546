"""The metrics clients: URLs, version negotiation, and the text of every failure."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podscaler.api.machinery import selectors
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import PodMetricsList
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.client.discovery import Discovery
from podscaler.kube.transport.transport import Response
from podscaler.metrics.metrics_apis import APIMetricsSource
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricQuery,
    MetricsSource,
    ObjectMetricQuery,
    PodsMetricQuery,
    ResourceMetricsQuery,
)
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

RESOURCE = "/apis/metrics.k8s.io/v1beta1/namespaces/ns1/pods"
PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns1/pods/%2A/qps"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns1/depth"
WEB = selectors.parse("app=web,tier in (a,b)")
METRIC = selectors.parse("queue=q")
VALUES = json_answer({"kind": "MetricValueList", "items": []})

Ask = Callable[[MetricsSource], Awaitable[Any]]


def _resource(source: MetricsSource) -> Awaitable[Any]:
    return source.query(ResourceMetricsQuery("ns1", WEB))


def _pods(source: MetricsSource) -> Awaitable[Any]:
    return source.query(PodsMetricQuery("ns1", "qps", WEB, METRIC))


def _external(source: MetricsSource) -> Awaitable[Any]:
    return source.query(ExternalMetricQuery("ns1", "depth", METRIC))


def _object(kind: str, api_version: str, name: str = "main") -> Ask:
    described = CrossVersionObjectReference(kind=kind, name=name, api_version=api_version)
    return lambda source: source.query(ObjectMetricQuery("ns1", "qps", described, selectors.EVERYTHING))


@pytest.fixture
def transport() -> ScriptedTransport:
    """A cluster that serves ingresses, services and custom metrics in both versions."""
    made = ScriptedTransport()
    served(made, "v1beta1", "v1beta2", preferred="v1beta2")
    made.on("GET", "/api", json_answer({"versions": ["v1"]}))
    made.on("GET", "/api/v1", json_answer({"resources": [{"name": "services", "kind": "Service"}]}))
    made.on("GET", "/apis/net", json_answer({"versions": [{"version": "v1"}]}))
    made.on("GET", "/apis/net/v1", json_answer({"resources": [{"name": "ingresses", "kind": "Ingress"}]}))
    return made


def served(transport: ScriptedTransport, *versions: str, preferred: str) -> None:
    """Make the custom metrics API be served so."""
    group = {"versions": [{"version": version} for version in versions], "preferredVersion": {"version": preferred}}
    transport.on("GET", "/apis/custom.metrics.k8s.io", json_answer(group))


@pytest.fixture
def clock() -> VirtualClock:
    """Virtual time."""
    return VirtualClock()


@pytest.fixture
def source(transport: ScriptedTransport, clock: VirtualClock) -> APIMetricsSource:
    """The source on that cluster."""
    client = Client(transport, clock)
    return APIMetricsSource(client, Discovery(client, clock), version_period_s=15)


async def _text(source: MetricsSource, ask: Ask) -> str:
    with pytest.raises(StatusError) as caught:
        await ask(source)
    return str(caught.value)


CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns1"
URLS: dict[str, tuple[Ask, str]] = {
    "resource": (_resource, RESOURCE + "?labelSelector=app%3Dweb%2Ctier+in+%28a%2Cb%29"),
    "pods": (_pods, PODS + "?labelSelector=app%3Dweb%2Ctier+in+%28a%2Cb%29&metricLabelSelector=queue%3Dq"),
    "external": (_external, EXTERNAL + "?labelSelector=queue%3Dq"),
    "object of the core group": (_object("Service", "v1"), f"{CUSTOM}/services/main/qps"),
    "object of a group": (_object("Ingress", "net/v9"), f"{CUSTOM}/ingresses.net/main/qps"),
    "namespace": (_object("Namespace", "v1"), f"{CUSTOM}/metrics/qps"),
    "no group where it cannot be parsed": (_object("Service", "a/b/c"), f"{CUSTOM}/services/main/qps"),
}


OUTSIDE = "../../../../api/v1/secrets"


EVERYTHING = selectors.EVERYTHING
SERVICE = CrossVersionObjectReference(kind="Service", name="main", api_version="v1")
NAMESPACE = CrossVersionObjectReference(kind="Namespace", name="ns1", api_version="v1")


@pytest.mark.parametrize(
    ("query", "called"),
    [
        pytest.param(PodsMetricQuery("ns1", OUTSIDE, EVERYTHING, EVERYTHING), "subresource", id="pods"),
        pytest.param(ObjectMetricQuery("ns1", OUTSIDE, SERVICE, EVERYTHING), "subresource", id="object"),
        pytest.param(ObjectMetricQuery("ns1", OUTSIDE, NAMESPACE, EVERYTHING), "resource name", id="namespace"),
        pytest.param(ExternalMetricQuery("ns1", OUTSIDE, EVERYTHING), "resource", id="external"),
    ],
)
async def test_a_metric_whose_name_is_no_segment(
    source: MetricsSource, transport: ScriptedTransport, query: MetricQuery[Any], called: str
) -> None:
    """Nothing is asked for that is no metric, in the words of client-go; PodAutoscalers may have such."""
    with pytest.raises(StatusError, match=f'^invalid {called} "{OUTSIDE}": '):
        await source.query(query)
    assert [path for path in transport.asked() if "secrets" in path] == []


@pytest.mark.parametrize("name", URLS)
async def test_urls(source: MetricsSource, transport: ScriptedTransport, name: str) -> None:
    """Upstream's paths and parameters; empty selectors send none."""
    ask, url = URLS[name]
    transport.on("GET", url.partition("?")[0], VALUES if "custom" in url else json_answer({}))
    await ask(source)
    assert transport.asked()[-1] == url


async def test_resource_metrics_are_typed(source: MetricsSource, transport: ScriptedTransport) -> None:
    """The answer comes back as the API's list."""
    pod = {"metadata": {"name": "p"}, "timestamp": "2026-01-01T00:00:00Z", "window": "30s", "containers": []}
    transport.on("GET", RESOURCE, json_answer({"kind": "PodMetricsList", "items": [pod]}))
    metrics = await source.query(ResourceMetricsQuery("ns1", WEB))
    assert isinstance(metrics, PodMetricsList)
    assert [item.metadata.name for item in metrics.items or ()] == ["p"]


@pytest.mark.parametrize(
    ("versions", "preferred", "chosen"),
    [
        (["v1beta1", "v1beta2"], "v1beta1", "v1beta1"),
        (["v1beta1", "v1beta2"], "v1beta2", "v1beta2"),
        (["v1", "v1beta2", "v1beta1"], "v1", "v1beta2"),
    ],
    ids=["preferred old", "preferred new", "preferred unknown"],
)
async def test_version_negotiation(
    source: MetricsSource, transport: ScriptedTransport, versions: list[str], preferred: str, chosen: str
) -> None:
    """The preferred version if it is known, else the first listed that is."""
    served(transport, *versions, preferred=preferred)
    path = PODS.replace("v1beta2", chosen)
    transport.on("GET", path, VALUES)
    await _pods(source)
    assert transport.asked()[-1].startswith(path)


async def test_the_version_is_looked_at_every_period(
    source: MetricsSource, transport: ScriptedTransport, clock: VirtualClock
) -> None:
    """A negotiated version is used for one sync period."""
    transport.on("GET", PODS, VALUES)
    asked = []
    for _ in range(3):
        await _pods(source)
        asked.append(transport.asked().count("/apis/custom.metrics.k8s.io"))
        await clock.advance(7.5)
    assert asked == [1, 1, 2]


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        ([], "no custom metrics API (custom.metrics.k8s.io) registered"),
        (["v1"], "no known available metric versions found"),
    ],
)
async def test_no_custom_metrics(
    source: MetricsSource, transport: ScriptedTransport, versions: list[str], text: str
) -> None:
    """Without a version that can be read the custom metrics API is not asked."""
    served(transport, *versions, preferred="v1" if versions else "")
    assert await _text(source, _pods) == text


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            _object("Cart", "shop/v1"),
            'unable to map kind Cart.shop to resource: no matches for kind "Cart" in group "shop"',
        ),
        (_object("Cart", "v1"), 'unable to map kind Cart to resource: no matches for kind "Cart" in group ""'),
    ],
    ids=["with a group", "core"],
)
async def test_kinds_that_are_not_served(source: MetricsSource, ask: Ask, text: str) -> None:
    """An object of an unknown kind is named with its group, if it has one."""
    assert await _text(source, ask) == text


BUSY = Response(503, {"content-type": "text/plain"}, b"no")
UNAVAILABLE = "the server is currently unable to handle the request"
HTTP_FAILURES: dict[str, tuple[Ask, str, str]] = {
    "resource": (_resource, RESOURCE, f"{UNAVAILABLE} (get pods.metrics.k8s.io)"),
    "pods": (_pods, PODS, f"{UNAVAILABLE} (get pods.custom.metrics.k8s.io *)"),
    "external": (_external, EXTERNAL, f"{UNAVAILABLE} (get depth.external.metrics.k8s.io)"),
    "object of the core group": (
        _object("Service", "v1"),
        f"{CUSTOM}/services/main/qps",
        f"{UNAVAILABLE} (get services.custom.metrics.k8s.io main)",
    ),
    "object of a group": (
        _object("Ingress", "net/v1"),
        f"{CUSTOM}/ingresses.net/main/qps",
        f"{UNAVAILABLE} (get ingresses.net.custom.metrics.k8s.io main)",
    ),
    "namespace": (
        _object("Namespace", "v1"),
        f"{CUSTOM}/metrics/qps",
        f"{UNAVAILABLE} (get metrics.custom.metrics.k8s.io qps)",
    ),
}


@pytest.mark.parametrize("name", HTTP_FAILURES)
async def test_http_failures(source: MetricsSource, transport: ScriptedTransport, name: str) -> None:
    """What was asked stands in the text, as each of upstream's clients names it."""
    ask, path, text = HTTP_FAILURES[name]
    transport.on("GET", path, BUSY)
    assert await _text(source, ask) == text


def _answer(body: bytes, content_type: str = "application/json") -> Response:
    return Response(200, {"content-type": content_type}, body)


EMPTY = "0-length response with status code: 200 and content type: application/json"
UNUSABLE: dict[str, tuple[Ask, str, Response, str]] = {
    "resource, empty": (_resource, RESOURCE, _answer(b""), EMPTY),
    "external, empty": (_external, EXTERNAL, _answer(b""), EMPTY),
    "custom, empty": (_pods, PODS, _answer(b""), "Object 'Kind' is missing in ''"),
    "custom, without kind": (_pods, PODS, _answer(b'{"items":[]}'), "Object 'Kind' is missing in '{\"items\":[]}'"),
    "resource, not JSON": (
        _resource,
        RESOURCE,
        _answer(b"<html>", "text/html; charset=utf-8"),
        "serializer for text/html doesn't exist",
    ),
    "external, not JSON": (
        _external,
        EXTERNAL,
        _answer(b"<html>", "text/html"),
        "serializer for text/html doesn't exist",
    ),
    "a Status with 200": (
        _resource,
        RESOURCE,
        _answer(b'{"kind":"Status","status":"Failure","message":"nope"}'),
        "nope",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_unusable_answers(source: MetricsSource, transport: ScriptedTransport, name: str) -> None:
    """An answer of 200 that says nothing usable has a text of its own."""
    ask, path, answer, text = UNUSABLE[name]
    transport.on("GET", path, answer)
    assert await _text(source, ask) == text


@pytest.mark.parametrize("body", [b"<", b'{"kind":"PodMetricsList","items":5}', b'{"kind":"Other"}'])
@pytest.mark.parametrize(("ask", "path"), [(_resource, RESOURCE), (_pods, PODS)], ids=["resource", "custom"])
async def test_nonsense_is_a_failure(
    source: MetricsSource, transport: ScriptedTransport, ask: Ask, path: str, body: bytes
) -> None:
    """Whatever a metrics API answers, the autoscaler gets a text and nothing crashes."""
    transport.on("GET", path, _answer(body))
    assert await _text(source, ask)


@pytest.mark.parametrize("ask", [_resource, _external], ids=["resource", "external"])
async def test_an_empty_object_is_an_empty_list(source: MetricsSource, transport: ScriptedTransport, ask: Ask) -> None:
    """The typed clients take an answer without a kind for the list that was asked for."""
    for path in (RESOURCE, EXTERNAL):
        transport.on("GET", path, _answer(b"{}"))
    assert not (await ask(source)).items


async def test_transport_failures_show_the_url(source: MetricsSource, transport: ScriptedTransport) -> None:
    """A server that is not there is named with the whole encoded URL."""
    transport.on("GET", EXTERNAL, TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused"))
    assert await _text(source, _external) == (
        f'Get "https://10.0.0.1:443{EXTERNAL}?labelSelector=queue%3Dq": '
        "dial tcp 10.0.0.1:443: connect: connection refused"
    )
