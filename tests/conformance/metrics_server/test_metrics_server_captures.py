"""`podscaler adapter --resource` answers as the real metrics-server did about the same scrapes (captures.json).

record.py made the captures with metrics-server v0.9. Two things are not compared: the `creationTimestamp` of the
objects, which is the time of the request, and the order of containers, which is random there. A pod whose CPU time
decreases is served without containers there, and not at all here.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import scripted_kubelets as scenario

from podscaler.adapter.cluster import rest_mapper
from podscaler.adapter.cluster.object_names import ObjectNames
from podscaler.adapter.cluster.rest_mapper import RESTMapper
from podscaler.adapter.resource.kubelet_points import NodePointsParser
from podscaler.adapter.resource.kubelet_usage import KubeletUsage
from podscaler.adapter.resource.usage_storage import UsageStorage
from podscaler.adapter.server import request_info, responses
from podscaler.adapter.server.resource_api import ResourceMetricsApi
from podscaler.api.machinery import selectors
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer

CAPTURES = [json.loads(line) for line in Path(__file__).with_name("captures.json").read_text().splitlines()]
RESOLUTION_NS = 10 * 10**9
Object = dict[str, Any]


def _objects(names: dict[str, dict[str, str]], namespace: str) -> list[Object]:
    return [
        {
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "status": {"phase": scenario.phase(name)},
        }
        for name, labels in sorted(names.items())
    ]


def _listing(objects: list[Object]) -> Any:
    """A script that lists the objects that the label selector of the request matches."""

    def reply(request: Request) -> Response:
        selector = selectors.parse(parse_qs(request.query).get("labelSelector", [""])[0])
        return json_answer({"items": [each for each in objects if selector.matches(each["metadata"]["labels"])]})

    return reply


@pytest.fixture
def api() -> tuple[ResourceMetricsApi, UsageStorage]:
    """The API over an empty storage, and the nodes and pods of the scenario."""
    transport, clock = ScriptedTransport(), VirtualClock()
    pods = _objects(scenario.PODS, "default")
    transport.on("GET", "/api/v1/nodes", _listing(_objects({name: {"node": name} for name in scenario.NODES}, "")))
    transport.on("GET", "/api/v1/pods", _listing(pods))
    transport.on("GET", "/api/v1/namespaces/default/pods", _listing(pods))
    transport.on("GET", "/api/v1/namespaces/other/pods", _listing([]))
    client, storage = Client(transport, clock), UsageStorage(RESOLUTION_NS)
    mapper = RESTMapper(client)
    mapper.mapping = rest_mapper.mapping_of({"pods": ("v1", "Pod", True), "nodes": ("v1", "Node", False)})
    usage = KubeletUsage(storage, mapper, ObjectNames(client, clock, watches=False))
    return ResourceMetricsApi(usage, clock), storage


def _scrape(storage: UsageStorage, number: int) -> None:
    now_ns = (scenario.BASE_S + 10 * number) * 10**9
    parser = NodePointsParser(now_ns)
    parser.feed(scenario.ROUNDS[number].encode().splitlines())
    storage.store("n1", parser.points(), now_ns)


async def _answer(api: ResourceMetricsApi, path: str) -> Object:
    """Status and body."""
    raw_path, _, query = path.partition("?")
    try:
        return {"status": 200, "body": await api.respond(request_info.parse("GET", raw_path, query))}
    except StatusError as error:
        response = responses.of_error(error)
        return {"status": response.status, "body": json.loads(response.body or b"")}


def _comparable(answer: Object) -> Object:
    """Without the time of the request and pods without containers; containers are in the order of their names."""
    body = answer["body"]
    if body["kind"] == "PodMetricsList":
        body["items"] = [item for item in body["items"] if item["containers"]]
    for item in [body, *body.get("items", [])]:
        item.get("metadata", {}).pop("creationTimestamp", None)
        item.get("containers", []).sort(key=lambda container: container["name"])
    return answer


@pytest.mark.parametrize("path", [path for path in scenario.PATHS if not path.endswith("/falling")])
@pytest.mark.parametrize("last", scenario.INDEXES)
async def test_the_answers_after_each_round(api: tuple[ResourceMetricsApi, UsageStorage], last: int, path: str) -> None:
    """Values, times, windows, order, missing pods and errors are those of metrics-server."""
    served, storage = api
    for number in range(last + 1):
        _scrape(storage, number)
    assert _comparable(await _answer(served, path)) == _comparable(CAPTURES[last]["responses"][path])


async def test_a_pod_whose_cpu_time_decreases(api: tuple[ResourceMetricsApi, UsageStorage]) -> None:
    """It is not found, as long as metrics-server serves it without containers."""
    served, storage = api
    path = next(path for path in scenario.PATHS if path.endswith("/falling"))
    for number in (0, 1):
        _scrape(storage, number)
    assert CAPTURES[1]["responses"][path]["body"]["containers"] in (None, [])
    assert (await _answer(served, path))["status"] == 404
