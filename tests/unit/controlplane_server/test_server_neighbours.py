"""What the server shows of its parts: computed objects and containers' logs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from server_under_test import Running, running_server

from patience import WITHIN_S
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http.resource_request import ServerParts
from podscaler.controlplane.registry.providers import LogOptions

Object = dict[str, Any]
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
PODS = "/api/v1/namespaces/default/pods"


def pod_metrics(name: str, namespace: str, **labels: str) -> Object:
    """The usage of a pod."""
    usage = {"cpu": "100m", "memory": "5Mi"}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "15s",
        "containers": [{"name": "c", "usage": usage}],
    }


INVALID_LOG = 'PodLogOptions "zero" is invalid: limitBytes: Invalid value: 0: must be greater than 0'
INVALID_STREAM = 'PodLogOptions "one" is invalid: stream: Forbidden: may not be specified'


class Usage:
    """Three pods in two namespaces."""

    objects = (
        pod_metrics("b", "default", app="y"),
        pod_metrics("a", "default", app="x"),
        pod_metrics("a", "other"),
    )

    def list(self, namespace: str) -> Sequence[Object]:
        """Those of the namespace."""
        return [each for each in self.objects if namespace in ("", each["metadata"]["namespace"])]

    def get(self, namespace: str, name: str) -> Object | None:
        """One of them."""
        return next((each for each in self.list(namespace) if each["metadata"]["name"] == name), None)


class Logs:
    """A log of two lines; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[LogOptions] = []
        self.more = asyncio.Event()

    async def stream(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The lines; when following, the second comes once the test says so."""
        self.asked.append(options)
        if options.container == "waiting":
            text = f'container "waiting" in pod "{pod["metadata"]["name"]}" is waiting to start: ContainerCreating'
            raise StatusError(text, code=400, reason="BadRequest")
        yield b"one\n"
        if options.follow:
            await self.more.wait()
        yield b"two\n"


@pytest.fixture
def logs() -> Logs:
    """The log."""
    return Logs()


@pytest.fixture
async def server(tmp_path: Path, logs: Logs) -> AsyncIterator[Running]:
    """A server with usage and logs, and two pods."""
    parts = ServerParts(virtual_objects={"pods.metrics.k8s.io": Usage()}, logs=logs)
    async with running_server(tmp_path, parts) as running:
        await running.create("/api/v1/nodes", {"metadata": {"name": "node"}})
        for name, containers in (("one", ["c"]), ("two", ["c", "waiting"])):
            spec = {
                "containers": [{"name": container, "image": "i"} for container in containers],
                "initContainers": [{"name": "init", "image": "i"}],
                "nodeName": "node",
            }
            await running.create(PODS, {"metadata": {"name": name}, "spec": spec})
        yield running


async def test_computed_objects_are_listed(server: Running) -> None:
    """Computed objects are listed in the version asked for, in order, without resourceVersions."""
    for version in ("v1", "v1beta1"):
        body = (await server.get(METRICS.replace("v1beta1", version))).body
        assert (body["kind"], body["apiVersion"], body["metadata"]) == (
            "PodMetricsList",
            f"metrics.k8s.io/{version}",
            {},
        )
        assert [item["metadata"]["name"] for item in body["items"]] == ["a", "b"]


async def test_computed_object(server: Running) -> None:
    """One computed object says what it is."""
    reply = await server.get(f"{METRICS}/a")
    expected = {"kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1", **pod_metrics("a", "default", app="x")}
    assert (reply.status, reply.body) == (200, expected)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("labelSelector=app%3Dy", ["b"], id="labels"),
        pytest.param("fieldSelector=metadata.name%3Da", ["a"], id="fields"),
        pytest.param("labelSelector=app%3Dz", [], id="none"),
    ],
)
async def test_computed_objects_are_selected(server: Running, query: str, names: list[str]) -> None:
    """Selectors work as for stored objects."""
    body = (await server.get(f"{METRICS}?{query}")).body
    assert [item["metadata"]["name"] for item in body["items"]] == names


async def test_computed_objects_of_all_namespaces(server: Running) -> None:
    """A cluster-wide list has them all."""
    body = (await server.get("/apis/metrics.k8s.io/v1beta1/pods")).body
    found = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in body["items"]]
    assert found == [("default", "a"), ("default", "b"), ("other", "a")]


async def test_computed_objects_as_table(server: Running) -> None:
    """Computed objects have a Table like others."""
    reply = await server.get(METRICS, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert [row["cells"] for row in reply.body["rows"]] == [["a", "100m", "5Mi", "15s"], ["b", "100m", "5Mi", "15s"]]


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        pytest.param("GET", f"{METRICS}/z", 404, 'pods.metrics.k8s.io "z" not found', id="no such object"),
        pytest.param(
            "DELETE",
            f"{METRICS}/a",
            405,
            "the server does not allow this method on the requested resource",
            id="read-only",
        ),
        pytest.param(
            "GET",
            "/apis/metrics.k8s.io/v1beta1/nodes",
            503,
            "the server is currently unable to handle the request",
            id="nobody computes them",
        ),
    ],
)
async def test_computed_refusals(server: Running, method: str, path: str, status: int, message: str) -> None:
    """Computed objects are refused as an aggregated server would."""
    reply = await server.request(method, path)
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_log(server: Running, logs: Logs) -> None:
    """A log is plain text; the only container need not be named."""
    reply = await server.get(f"{PODS}/one/log")
    assert (reply.status, reply.headers["Content-Type"], reply.body) == (200, "text/plain", "one\ntwo\n")
    assert logs.asked == [LogOptions("c")]


async def test_log_options(server: Running, logs: Logs) -> None:
    """Every option reaches the log."""
    query = "container=init&previous=true&timestamps=1&tailLines=3&limitBytes=9&sinceSeconds=10"
    await server.get(f"{PODS}/two/log?{query}")
    now_ns = server.clock.now_ns()
    assert logs.asked == [
        LogOptions(
            "init",
            previous=True,
            timestamps=True,
            tail_lines=3,
            since_ns=now_ns - 10 * NANOSECONDS,
            limit_bytes=9,
        )
    ]


async def test_log_since_a_time(server: Running, logs: Logs) -> None:
    """An instant may be given instead of a span."""
    await server.get(f"{PODS}/one/log?sinceTime=1970-01-01T00:00:05Z")
    assert logs.asked == [LogOptions("c", since_ns=5 * NANOSECONDS)]


async def test_followed_log(server: Running, logs: Logs) -> None:
    """A followed log comes as it grows, and ends when the container's log ends."""
    async with server.client.get(f"{server.url}{PODS}/one/log?follow=true") as answer:
        first = await asyncio.wait_for(answer.content.readline(), WITHIN_S)
        logs.more.set()
        rest = await asyncio.wait_for(answer.content.read(), WITHIN_S)
    assert (first, rest) == (b"one\n", b"two\n")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        pytest.param("zero/log", 404, 'pods "zero" not found', id="no such pod"),
        pytest.param(
            "two/log",
            400,
            "a container name must be specified for pod two, choose one of: [init c waiting]",
            id="several containers",
        ),
        pytest.param("zero/log?limitBytes=0", 422, INVALID_LOG, id="options come before the pod"),
        pytest.param("one/log?stream=All", 422, INVALID_STREAM, id="a choice of streams"),
        pytest.param("one/log?container=x", 400, "container x is not valid for pod one", id="no such container"),
        pytest.param(
            "two/log?container=waiting",
            400,
            'container "waiting" in pod "two" is waiting to start: ContainerCreating',
            id="no log yet",
        ),
        pytest.param(
            "two/log?container=waiting&follow=1",
            400,
            'container "waiting" in pod "two" is waiting to start: ContainerCreating',
            id="no log to follow yet",
        ),
        pytest.param(
            "one/log?tailLines=-1",
            422,
            'PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
            id="negative tail",
        ),
        pytest.param(
            "one/log?sinceSeconds=0",
            422,
            'PodLogOptions "one" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0',
            id="no seconds",
        ),
        pytest.param(
            "one/log?limitBytes=0",
            422,
            'PodLogOptions "one" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
            id="no bytes",
        ),
    ],
)
async def test_log_refusals(server: Running, path: str, status: int, message: str) -> None:
    """A log that cannot be had is refused before anything is sent."""
    reply = await server.get(f"{PODS}/{path}")
    assert (reply.status, reply.body["message"]) == (status, message)


async def test_no_logs_without_a_node(tmp_path: Path) -> None:
    """Where no pods run, there are no logs."""
    async with running_server(tmp_path) as server:
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "node"}
        await server.create("/api/v1/nodes", {"metadata": {"name": "node"}})
        await server.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
        assert (await server.get(f"{PODS}/p/log")).status == 503


async def test_a_log_that_breaks_off(
    server: Running, logs: Logs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure in the middle of a followed log cuts the connection, and is told in our log alone."""

    async def stream(pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        del pod, options
        yield b"one\n"
        raise OSError("disk on fire")

    monkeypatch.setattr(logs, "stream", stream)
    with pytest.raises(aiohttp.ClientPayloadError):
        await server.get(f"{PODS}/one/log?follow=true")
    assert "disk on fire" in caplog.text


async def test_log_of_a_pod_without_node(server: Running) -> None:
    """A pod that no node has says nothing; one on a node that there is not is refused."""
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await server.create(PODS, {"metadata": {"name": "unbound"}, "spec": spec})
    await server.create(PODS, {"metadata": {"name": "astray"}, "spec": {**spec, "nodeName": "nowhere"}})
    replies = [await server.get(f"{PODS}/{name}/log") for name in ("unbound", "astray")]
    assert [reply.status for reply in replies] == [204, 404]
    assert replies[1].body["message"] == 'nodes "nowhere" not found'
