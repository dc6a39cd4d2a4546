"""A scripted API server in a process of its own: what the controller's benchmark works on.

Autoscalers with three pods each, 100 to a namespace, all prepared as bytes, so that the server costs little and the
controller's process can be measured alone. Status writes come back as watch events, as on a real server.
"""

import asyncio
import multiprocessing
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection

import msgspec
import uvloop
from aiohttp import web

PODS_EACH = 3
PER_NAMESPACE = 100
NUMBER = re.compile(r"web-(\d+)")
JSON = {"Content-Type": "application/json"}
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/deployments"
DISCOVERY = {
    "/apis/apps": {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
    "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment"}]},
}
LONG_AGO = "2025-12-31T00:00:00Z"
NO_HISTORIES = {"metadata": {"labels": {"podscaler.dev/history": "v1"}}, "data": {}}


class ScriptedApi:
    """The server.

    Args:
        count: how many autoscalers.
        is_live: whether usage moves at each query, so that every sync writes the status.
        delay_s: how long the metrics API takes to answer.
    """

    def __init__(self, count: int, *, is_live: bool, delay_s: float) -> None:
        self._is_live = is_live
        self._delay_s = delay_s
        self._version = 1000
        self._queries = 0
        self._hpas = {f"web-{index}": hpa(index) for index in range(count)}
        self._count = count
        self._watchers: dict[str, list[asyncio.Queue[bytes]]] = {HPAS: [], "/api/v1/pods": [], DEPLOYMENTS: []}

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to any request."""
        path = request.path
        if request.query.get("watch"):
            return await self._watch(request)
        if path in DISCOVERY:
            return _json(DISCOVERY[path])
        if path in self._watchers:
            return _json({"metadata": {"resourceVersion": str(self._version)}, "items": self._list(path)})
        if path.startswith("/apis/metrics.k8s.io"):
            await asyncio.sleep(self._delay_s)
            return _json(self._pod_metrics(path.split("/")[5], request.query.get("labelSelector", "")))
        if "/configmaps/" in path:
            return _json(NO_HISTORIES)
        if path.startswith("/apis/podscaler.dev/"):  # as of a server without the project's own resources
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        if path.endswith("/scale"):
            return _json(scale(path.split("/")[-2]))
        if path.endswith("/status"):
            return await self._write_status(request)
        return _json({})

    def _list(self, path: str) -> list[object]:
        if path == HPAS:
            return list(self._hpas.values())
        if path == DEPLOYMENTS:
            return [deployment(index) for index in range(self._count)]
        return [pod(index, number) for index in range(self._count) for number in range(PODS_EACH)]

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers=JSON)
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._watchers[request.path].append(queue)
        while True:
            await response.write(await queue.get())

    async def _write_status(self, request: web.BaseRequest) -> web.Response:
        sent = msgspec.json.decode(await request.read())
        name = sent["metadata"]["name"]
        self._version += 1
        stored = self._hpas[name]
        stored["metadata"]["resourceVersion"] = str(self._version)
        stored["status"] = sent["status"]
        line = msgspec.json.encode({"type": "MODIFIED", "object": stored}) + b"\n"
        for queue in self._watchers[HPAS]:
            queue.put_nowait(line)
        return _json(stored)

    def _pod_metrics(self, namespace: str, selector: str) -> object:
        """Of the pods of one deployment, or of all in the namespace."""
        first = int(namespace.removeprefix("ns-")) * PER_NAMESPACE
        indexes = [int(selector.removeprefix("app=web-"))] if selector else range(first, first + PER_NAMESPACE)
        self._queries += 1
        milli = 500 + (self._queries % 7 if self._is_live else 0)
        items = [
            {
                "metadata": {"name": f"web-{index}-{number}", "namespace": namespace},
                "timestamp": LONG_AGO,
                "window": "15s",
                "containers": [{"name": "app", "usage": {"cpu": f"{milli}m", "memory": "100Mi"}}],
            }
            for index in indexes
            for number in range(PODS_EACH)
        ]
        return {"kind": "PodMetricsList", "items": items}


def namespace_of(name: str) -> str:
    """The namespace of a deployment."""
    match = NUMBER.match(name)
    return f"ns-{int(match[1]) // PER_NAMESPACE}" if match else "default"


def hpa(index: int) -> dict[str, object]:
    """An autoscaler that is on target at 500m of 1 CPU."""
    name = f"web-{index}"
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace_of(name),
            "uid": name,
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": LONG_AGO,
        },
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"},
            "minReplicas": 1,
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
        "status": {"currentReplicas": 0, "desiredReplicas": 0, "currentMetrics": None},
    }


def pod(index: int, number: int) -> dict[str, object]:
    """A ready pod."""
    name = f"web-{index}"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
    resources = {"requests": {"cpu": "1", "memory": "200Mi"}}
    return {
        "metadata": {
            "name": f"{name}-{number}",
            "namespace": namespace_of(name),
            "uid": f"{name}-{number}",
            "resourceVersion": "1",
            "labels": {"app": name, "pod-template-hash": "5d4f"},
        },
        "spec": {"containers": [{"name": "app", "image": "app:1", "resources": resources}], "nodeName": "n"},
        "status": {"phase": "Running", "startTime": LONG_AGO, "conditions": [ready], "podIP": "10.0.0.1"},
    }


def deployment(index: int) -> dict[str, object]:
    """A deployment of three."""
    name = f"web-{index}"
    return {
        "metadata": {"name": name, "namespace": namespace_of(name), "uid": name, "resourceVersion": "1"},
        "spec": {"replicas": PODS_EACH, "selector": {"matchLabels": {"app": name}}},
        "status": {"replicas": PODS_EACH},
    }


def scale(name: str) -> object:
    """The scale of a deployment of three."""
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": name, "namespace": namespace_of(name), "uid": name, "resourceVersion": "1"},
        "spec": {"replicas": PODS_EACH},
        "status": {"replicas": PODS_EACH, "selector": f"app={name}"},
    }


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), headers=JSON)


def _serve(pipe: Connection, count: int, is_live: bool, delay_s: float) -> None:
    async def serve() -> None:
        server = web.Server(ScriptedApi(count, is_live=is_live, delay_s=delay_s).respond, access_log=None)
        runner = web.ServerRunner(server)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


@asynccontextmanager
async def scripted_api(count: int, *, is_live: bool, delay_s: float = 0.0) -> AsyncIterator[tuple[str, int]]:
    """The server's URL and the id of its process, which ends on leaving."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, count, is_live, delay_s), daemon=True)
    process.start()
    port = await asyncio.to_thread(ours.recv)
    try:
        yield f"http://127.0.0.1:{port}", process.pid or 0
    finally:
        process.terminate()
        await asyncio.to_thread(process.join)
