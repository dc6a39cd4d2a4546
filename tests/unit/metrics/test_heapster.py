"""Metrics from Heapster: paths, the mean of a minute, and the text of every failure."""

from collections.abc import Mapping
from typing import Any

import pytest

from podscaler.api.machinery import selectors
from podscaler.api.typed.autoscaling import CrossVersionObjectReference
from podscaler.api.typed.metrics import (
    ContainerMetrics,
    DescribedObject,
    MetricValue,
    MetricValueList,
    PodMetrics,
    PodMetricsList,
    PodMetricsMeta,
)
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Response
from podscaler.metrics.heapster import HeapsterMetricsSource, HeapsterPoint, HeapsterService, last_minute_mean
from podscaler.metrics.queries import (
    ExternalMetricQuery,
    MetricQuery,
    ObjectMetricQuery,
    PodsMetricQuery,
    ResourceMetricsQuery,
)
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

PROXY = "/api/v1/namespaces/kube-system/services/http:heapster:/proxy"
USAGE = "/apis/metrics/v1alpha1/namespaces/ns1/pods"
POD_LIST = "/api/v1/model/namespaces/ns1/pod-list/a,b/metrics/custom/qps"
PODS = "/api/v1/namespaces/ns1/pods"
WEB = selectors.parse("app=web")
ALL = selectors.EVERYTHING
RESOURCE_QUERY = ResourceMetricsQuery("ns1", WEB)
PODS_QUERY = PodsMetricQuery("ns1", "qps", WEB, ALL)
DESCRIBED = CrossVersionObjectReference(kind="Service", name="main", api_version="v1")
TWO_PODS = json_answer({"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]})
USED = {
    "metadata": {},
    "items": [
        {
            "metadata": {"name": "a", "namespace": "ns1"},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "1m0s",
            "containers": [{"name": "main", "usage": {"cpu": "250m", "memory": "1Mi"}}],
        }
    ],
}


@pytest.fixture
def transport() -> ScriptedTransport:
    """An API server with two pods and nothing else."""
    made = ScriptedTransport()
    made.on("GET", PODS, TWO_PODS)
    return made


@pytest.fixture
def source(transport: ScriptedTransport) -> HeapsterMetricsSource:
    """Heapster behind the proxy of that API server."""
    clock = VirtualClock()
    return HeapsterMetricsSource(Client(transport, clock), HeapsterService(), clock)


async def test_the_usage_of_pods(source: HeapsterMetricsSource, transport: ScriptedTransport) -> None:
    """It is the list of the API that metrics.k8s.io grew out of, through the proxy of the Service."""
    transport.on("GET", PROXY + USAGE, json_answer(USED))
    container = ContainerMetrics("main", {"cpu": "250m", "memory": "1Mi"})
    pod = PodMetrics(PodMetricsMeta("a", "ns1"), "2026-01-01T00:00:00Z", "1m0s", (container,))
    assert await source.query(RESOURCE_QUERY) == PodMetricsList(metadata={}, items=(pod,))
    assert transport.asked() == [f"{PROXY}{USAGE}?labelSelector=app%3Dweb"]


async def test_a_metric_of_pods(source: HeapsterMetricsSource, transport: ScriptedTransport) -> None:
    """Results belong to the names in order; a pod without points has no value."""
    point = {"timestamp": "2026-01-01T00:00:00Z", "value": 7}
    transport.on("GET", PROXY + POD_LIST, json_answer({"items": [{"metrics": []}, {"metrics": [point]}]}))
    value = MetricValue(
        described_object=DescribedObject("Pod", "ns1", "b", "v1"),
        metric_name="qps",
        timestamp="2026-01-01T00:00:00Z",
        window_seconds=60,
        value="7000m",
    )
    assert await source.query(PODS_QUERY) == MetricValueList(items=(value,))
    assert transport.asked()[1] == f"{PROXY}{POD_LIST}?start=2025-12-31T23%3A55%3A00Z"


async def test_many_pods_take_several_requests(source: HeapsterMetricsSource, transport: ScriptedTransport) -> None:
    """A path has the names of 200 pods at most."""
    names = [f"p{number}" for number in range(201)]
    transport.on("GET", PODS, json_answer({"items": [{"metadata": {"name": name}} for name in names]}))
    for some in (names[:200], names[200:]):
        path = f"{PROXY}/api/v1/model/namespaces/ns1/pod-list/{','.join(some)}/metrics/custom/qps"
        point = {"timestamp": "2026-01-01T00:00:00Z", "value": 1}
        transport.on("GET", path, json_answer({"items": [{"metrics": [point]}] * len(some)}))
    found = await source.query(PODS_QUERY)
    assert [each.described_object.name for each in found.items or ()] == names


async def test_a_heapster_with_an_address_of_its_own(transport: ScriptedTransport) -> None:
    """Only pods are read from the API server; the path has no proxy."""
    clock, direct = VirtualClock(), ScriptedTransport("http://10.1.2.3:8082")
    direct.on("GET", POD_LIST, json_answer({"items": [{}, {}]}))
    service = HeapsterService(url="http://10.1.2.3:8082")
    source = HeapsterMetricsSource(Client(transport, clock), service, clock, direct=Client(direct, clock))
    assert await source.query(PODS_QUERY) == MetricValueList(items=())
    assert (transport.asked(), len(direct.asked())) == ([f"{PODS}?labelSelector=app%3Dweb"], 1)


@pytest.mark.parametrize(
    ("service", "name"),
    [
        (HeapsterService(), "http:heapster:"),
        (HeapsterService(scheme="https", port="api"), "https:heapster:api"),
        (HeapsterService(scheme="", port="80"), "heapster:80"),
        (HeapsterService(scheme=""), "heapster"),
    ],
)
def test_the_name_of_the_service_in_the_proxy(service: HeapsterService, name: str) -> None:
    """Scheme and port stand before and behind it."""
    assert service.proxy_name == name


FAILURES: dict[str, tuple[MetricQuery[Any], Mapping[str, Any], str]] = {
    "objects": (
        ObjectMetricQuery("ns1", "qps", DESCRIBED, ALL),
        {},
        "object metrics are not yet supported",
    ),
    "external": (ExternalMetricQuery("ns1", "depth", ALL), {}, "external metrics aren't supported"),
    "metric selector": (
        PodsMetricQuery("ns1", "qps", WEB, WEB),
        {},
        "metric selectors aren't supported by heapster",
    ),
    "no heapster": (
        RESOURCE_QUERY,
        {},
        "failed to get pod resource metrics: the server could not find the requested resource (get services "
        "http:heapster:)",
    ),
    "heapster away": (
        RESOURCE_QUERY,
        {PROXY + USAGE: TransportFailure("dial tcp 10.0.0.1:443: connect: connection refused")},
        'failed to get pod resource metrics: Get "https://10.0.0.1:443/api/v1/namespaces/kube-system/services/'
        'http:heapster:/proxy/apis/metrics/v1alpha1/namespaces/ns1/pods?labelSelector=app%3Dweb": dial tcp '
        "10.0.0.1:443: connect: connection refused",
    ),
    "no usage": (RESOURCE_QUERY, {PROXY + USAGE: json_answer({"items": []})}, "no metrics returned from heapster"),
    "no JSON": (
        RESOURCE_QUERY,
        {PROXY + USAGE: Response(200, {}, b"<html>")},
        "failed to unmarshal heapster response: JSON is malformed: invalid character (byte 0)",
    ),
    "no UTF-8": (
        PODS_QUERY,
        {PODS: Response(200, {}, b'{"items": [{"metadata": {"name": "\xff"}}]}')},
        "failed to unmarshal heapster response: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    ),
    "a wrong type": (
        PODS_QUERY,
        {PROXY + POD_LIST: json_answer({"items": 5})},
        "failed to unmarshal heapster response: Expected `array | null`, got `int` - at `$.items`",
    ),
    "a wrong time": (
        PODS_QUERY,
        {PROXY + POD_LIST: json_answer({"items": [{"metrics": [{"timestamp": "now"}]}, {}]})},
        "failed to unmarshal heapster response: 'now' is not a time like 2026-01-31T12:00:00Z",
    ),
    "a huge value": (
        PODS_QUERY,
        {
            PROXY + POD_LIST: json_answer(
                {"items": [{"metrics": [{"timestamp": "2026-01-01T00:00:00Z", "floatValue": 1e300}]}, {}]}
            )
        },
        "failed to unmarshal heapster response: the value 1e+300 is beyond 64 bits",
    ),
    "another number of pods": (
        PODS_QUERY,
        {PROXY + POD_LIST: json_answer({"items": [{}]})},
        "requested metrics for 2 pods, got metrics for 1",
    ),
    "no pods": (PODS_QUERY, {PODS: json_answer({"items": None})}, "no pods matched the provided selector"),
    "no metric": (
        PODS_QUERY,
        {},
        "failed to get pod metrics: the server could not find the requested resource (get services http:heapster:)",
    ),
    "a metric that is no segment": (
        PodsMetricQuery("ns1", "../../x", WEB, ALL),
        {},
        "invalid subresource \"../../x\": [may not contain '/']",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_failures(source: HeapsterMetricsSource, transport: ScriptedTransport, name: str) -> None:
    """Texts are those of kube-controller-manager 1.9."""
    query, scripts, text = FAILURES[name]
    for path, script in scripts.items():
        transport.on("GET", path, script)
    with pytest.raises(StatusError) as caught:
        await source.query(query)
    assert caught.value.message == text


def _point(second: int, value: int = 0, float_value: float | None = None) -> HeapsterPoint:
    return HeapsterPoint(f"2026-01-01T00:0{second // 60}:{second % 60:02}Z", value, float_value)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([], None, id="no points"),
        pytest.param([_point(0, 3)], (3000, "2026-01-01T00:00:00Z"), id="one"),
        pytest.param([_point(0, 1), _point(59, 2)], (1500, "2026-01-01T00:00:59Z"), id="59 s before the newest"),
        pytest.param([_point(0, 1), _point(60, 2)], (2000, "2026-01-01T00:01:00Z"), id="60 s before the newest"),
        pytest.param([_point(59, 2), _point(0, 1)], (1500, "2026-01-01T00:00:59Z"), id="in any order"),
        pytest.param([_point(0, 1), _point(1, 1), _point(2, 0)], (666, "2026-01-01T00:00:02Z"), id="cut off"),
        pytest.param([_point(0, 0, 0.5), _point(1, 0, 1.0)], (750, "2026-01-01T00:00:01Z"), id="floats"),
        pytest.param([_point(0, 9), _point(1, 0, 1.0)], (1000, "2026-01-01T00:00:01Z"), id="the newest is a float"),
        pytest.param([_point(0, 0, 1.0), _point(1, 9)], (9000, "2026-01-01T00:00:01Z"), id="the newest is an integer"),
    ],
)
def test_the_mean_of_the_last_minute(points: list[HeapsterPoint], expected: tuple[int, str] | None) -> None:
    """Points of the newest one's type count, of less than a minute before it."""
    assert last_minute_mean(points) == expected
