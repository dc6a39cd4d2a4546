"""Heapster's API on the embedded plane: its paths, its models, and its Service."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from metric_world import MetricWorld, metric_world, pod

from own_ports import own_address
from podscaler.controlplane.metrics.heapster import service
from podscaler.controlplane.metrics.heapster.endpoint import HeapsterEndpoint
from podscaler.controlplane.metrics.heapster.model import HeapsterError, HeapsterModel, HeapsterRequest
from podscaler.controlplane.metrics.resource.sampler import MetricsTable
from podscaler.controlplane.registry.registry import Registry

NOW = "2026-01-01T00:00:00Z"
MODEL = "/api/v1/model/namespaces/default"
USAGE = "/apis/metrics/v1alpha1"


def _metrics(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    """PodMetrics with two containers."""
    usage = {"cpu": "250500000n", "memory": "1024Ki"}
    containers = [{"name": container, "usage": usage} for container in ("a", "b")]
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "timestamp": NOW, "window": "15s", "containers": containers}


WEB, DB, OTHER = _metrics("web", "default", app="web"), _metrics("db", "default", app="db"), _metrics("web", "other")
NODE = {"metadata": {"name": "vm"}, "timestamp": NOW, "window": "15s", "usage": {"cpu": "1", "memory": "1Gi"}}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[MetricWorld]:
    """Custom metrics `qps` of the pods web and db."""
    async with metric_world(tmp_path) as made:
        made.run_pods(pod("web", app="web"), pod("db", app="db"))
        await made.state("custom", qps="{pods: app=web, value: 12500m}", hits="{pods: '', value: 7}")
        yield made


@pytest.fixture
def model(world: MetricWorld) -> HeapsterModel:
    """The model of three pods and a node."""
    pods, nodes = MetricsTable(), MetricsTable()
    pods.replace([WEB, DB, OTHER])
    nodes.replace([NODE])
    return HeapsterModel(pods, nodes, world.apis)


def _get(model: HeapsterModel, path: str, **parameters: str) -> Any:
    return model.respond(HeapsterRequest(tuple(part for part in path.split("/") if part), parameters))


@pytest.mark.parametrize(
    ("path", "parameters", "items"),
    [
        (f"{USAGE}/namespaces/default/pods", {}, [DB, WEB]),
        (f"{USAGE}/namespaces/default/pods/", {"labelSelector": "app=web"}, [WEB]),
        (f"{USAGE}/pods", {}, [DB, WEB, OTHER]),
        (f"{USAGE}/nodes", {}, [NODE]),
        (f"{USAGE}/namespaces/empty/pods", {}, []),
    ],
)
def test_lists(model: HeapsterModel, path: str, parameters: dict[str, str], items: list[Any]) -> None:
    """They are those of metrics.k8s.io under Heapster's version, selected by labels."""
    found = _get(model, path, **parameters)
    assert (found["apiVersion"], found["items"]) == ("metrics/v1alpha1", items)


@pytest.mark.parametrize(("path", "obj"), [(f"{USAGE}/namespaces/default/pods/web", WEB), (f"{USAGE}/nodes/vm", NODE)])
def test_one_object(model: HeapsterModel, path: str, obj: Any) -> None:
    """It is the object itself."""
    assert _get(model, path) == obj


def _result(**point: Any) -> dict[str, Any]:
    return {"metrics": [{"timestamp": NOW, **point}], "latestTimestamp": NOW}


NOTHING = {"metrics": [], "latestTimestamp": "0001-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(f"{MODEL}/pods/web/metrics/cpu/usage_rate", _result(value=502), id="cpu in thousandths"),
        pytest.param(f"{MODEL}/pods/web/metrics/memory/usage", _result(value=2 << 20), id="memory in bytes"),
        pytest.param(f"{MODEL}/pods/web/metrics/custom/hits", _result(value=7), id="an integer"),
        pytest.param(
            f"{MODEL}/pods/web/metrics/custom/qps", _result(value=12, floatValue=12.5), id="a number with a fraction"
        ),
        pytest.param(f"{MODEL}/pods/web/metrics/unknown", NOTHING, id="an unknown metric"),
        pytest.param(f"{MODEL}/pods/web/metrics/custom/unknown", NOTHING, id="an unknown custom metric"),
        pytest.param(f"{MODEL}/pods/gone/metrics/cpu/usage_rate", NOTHING, id="an unknown pod"),
        pytest.param(
            f"{MODEL}/pod-list/db,gone,web/metrics/custom/qps",
            {"items": [NOTHING, NOTHING, _result(value=12, floatValue=12.5)]},
            id="several pods, in their order",
        ),
    ],
)
def test_models(model: HeapsterModel, path: str, expected: Any) -> None:
    """A model has the latest value, and is empty where there is none."""
    assert _get(model, path) == expected


@pytest.mark.parametrize(
    ("parameters", "points"),
    [
        ({"start": NOW}, 1),
        ({"start": "2026-01-01T00:00:01Z"}, 0),
        ({"end": NOW}, 1),
        ({"end": "2025-12-31T23:59:59Z"}, 0),
    ],
)
def test_the_window_of_a_model(model: HeapsterModel, parameters: dict[str, str], points: int) -> None:
    """Both ends are within it."""
    found = _get(model, f"{MODEL}/pods/web/metrics/memory/usage", **parameters)
    assert len(found["metrics"]) == points


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("/", {}, 404),
        (f"{USAGE}/services", {}, 404),
        (f"{USAGE}/nodes/gone", {}, 404),
        (f"{USAGE}/namespaces/default/pods/gone", {}, 404),
        (f"{MODEL}/nodes/vm/metrics/cpu/usage_rate", {}, 404),
        (f"{USAGE}/pods", {"labelSelector": "a=("}, 400),
        (f"{MODEL}/pods/web/metrics/memory/usage", {"start": "now"}, 400),
    ],
)
def test_errors(model: HeapsterModel, path: str, parameters: dict[str, str], status: int) -> None:
    """Paths and objects that are not there are not found; wrong parameters are reported."""
    with pytest.raises(HeapsterError) as caught:
        _get(model, path, **parameters)
    assert caught.value.status == status


async def test_the_endpoint(model: HeapsterModel) -> None:
    """It answers over HTTP, without authentication, and to reads alone."""
    endpoint = HeapsterEndpoint(model)
    url = f"http://{own_address()}:{await endpoint.start(own_address())}"
    found = []
    async with aiohttp.ClientSession() as session:
        for method, path in (("GET", "/healthz"), ("GET", f"{USAGE}/nodes"), ("GET", "/no"), ("POST", "/healthz")):
            async with session.request(method, url + path) as response:
                found.append((response.status, response.content_type))
    await endpoint.stop()
    assert found == [(200, "text/plain"), (200, "application/json"), (404, "text/plain"), (405, "text/plain")]


def _addresses(registry: Registry) -> list[tuple[str, int]]:
    found = registry.find(service.SLICES, service.NAMESPACE, service.NAME)
    if found is None:
        return []
    return [(found["endpoints"][0]["addresses"][0], found["ports"][0]["port"])]


async def test_the_service_follows_the_endpoint(world: MetricWorld) -> None:
    """It is created once, gets the address of each run, and is gone without the flag."""
    registry = world.registry
    await registry.create("namespaces", {"metadata": {"name": service.NAMESPACE}})
    await service.remove(registry)
    await service.ensure(registry, "127.7.0.1", 8082)
    assert _addresses(registry) == [("127.7.0.1", 8082)]
    await service.ensure(registry, "127.8.0.1", 40000)
    assert _addresses(registry) == [("127.8.0.1", 40000)]
    await service.remove(registry)
    assert (_addresses(registry), registry.find("services", service.NAMESPACE, service.NAME)) == ([], None)


async def test_a_service_of_somebody_else_stays(world: MetricWorld) -> None:
    """A Heapster that the user installed is not replaced."""
    registry = world.registry
    await registry.create("namespaces", {"metadata": {"name": service.NAMESPACE}})
    metadata = {"name": service.NAME, "namespace": service.NAMESPACE}
    await registry.create("services", {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    await service.ensure(registry, "127.7.0.1", 8082)
    await service.remove(registry)
    assert _addresses(registry) == []
    assert registry.find("services", service.NAMESPACE, service.NAME) is not None
