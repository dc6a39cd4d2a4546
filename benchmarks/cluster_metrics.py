"""The three metrics APIs behind the aggregation layer, scripted, in a process of their own.

`benchmarks.cluster` starts it and tells it what to say. Values follow from names: on target (500 thousandths) unless
the load is live, when they move a little ten times a second, or an autoscaler's load was stepped. It speaks HTTP/1.1 on
asyncio's protocols, so that it takes little of the machine that is measured.
"""

import asyncio
import json
import multiprocessing
import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import uvloop
from benchmarks import cluster_objects as objects

ON_TARGET_MILLI = 500
GROUPS = {
    "metrics.k8s.io": ("v1beta1", (("pods", "PodMetrics"),)),
    "custom.metrics.k8s.io": ("v1beta2", ((f"pods/{objects.PODS_METRIC}", "MetricValueList"),)),
    "external.metrics.k8s.io": ("v1beta1", ((objects.EXTERNAL_METRIC, "ExternalMetricValueList"),)),
}
LENGTH = re.compile(rb"content-length: *(\d+)", re.I)


@dataclass
class Script:
    """What is said.

    Attributes:
        layout: of the objects.
        is_live: whether values move.
        delay_s: how long an answer takes.
        steps: by index of an autoscaler, its load in thousandths.
        questions: how many were answered.
    """

    layout: objects.Layout
    is_live: bool = True
    delay_s: float = 0.0
    steps: dict[int, int] = field(default_factory=dict)
    questions: int = 0

    def milli(self, index: int) -> int:
        """The load of an autoscaler's pods, each."""
        if index in self.steps:
            return self.steps[index]
        return ON_TARGET_MILLI + (int(time.time() * 10) % 41 - 20 if self.is_live else 0)

    def answer(self, path: str, query: str) -> tuple[int, Any]:
        """Status and document."""
        parts = path.strip("/").split("/")
        group = parts[1] if len(parts) > 1 else ""
        if group not in GROUPS:
            return (200, {}) if parts == ["apis"] else (404, {"kind": "Status", "status": "Failure", "code": 404})
        if len(parts) < 4:
            return 200, _discovery(group, parts)
        self.questions += 1
        selector = parse_qs(query).get("labelSelector", [""])[0]
        items = self._items(group, parts[4], selector)
        return 200, {"kind": f"{_kind(group)}", "apiVersion": "/".join(parts[1:3]), "metadata": {}, "items": items}

    def _items(self, group: str, namespace: str, selector: str) -> list[Any]:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        indexes = [objects.index_of(selector)] if selector else self.layout.indexes(namespace)
        if group == "external.metrics.k8s.io":
            return [_external(now, self.milli(index) * objects.PODS_EACH) for index in indexes]
        one = _usage if group == "metrics.k8s.io" else _value
        pods = ((index, number) for index in indexes for number in range(objects.PODS_EACH))
        return [one(namespace, objects.pod_name(index, number), now, self.milli(index)) for index, number in pods]


def _kind(group: str) -> str:
    kind = GROUPS[group][1][0][1]
    return kind if kind.endswith("List") else f"{kind}List"


def _usage(namespace: str, name: str, now: str, milli: int) -> Any:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name.rpartition("-")[0]}},
        "timestamp": now,
        "window": "15s",
        "containers": [{"name": "c", "usage": {"cpu": f"{milli}m", "memory": "100Mi"}}],
    }


def _value(namespace: str, name: str, now: str, milli: int) -> Any:
    described = {"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "v1"}
    metric = {"name": objects.PODS_METRIC, "selector": None}
    return {"describedObject": described, "metric": metric, "timestamp": now, "value": f"{milli}m"}


def _external(now: str, milli: int) -> Any:
    return {"metricName": objects.EXTERNAL_METRIC, "metricLabels": {}, "timestamp": now, "value": f"{milli}m"}


def _discovery(group: str, parts: list[str]) -> Any:
    version, resources = GROUPS[group]
    known = {"groupVersion": f"{group}/{version}", "version": version}
    if len(parts) == 2:
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [known], "preferredVersion": known}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}",
        "resources": [
            {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
            for name, kind in resources
        ],
    }


class Http(asyncio.Protocol):
    """One connection."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        """As asyncio.Protocol."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """As asyncio.Protocol: answers each complete request."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            length = LENGTH.search(self._received, 0, end)
            stop = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < stop:
                return
            target = self._received[: self._received.find(b"\r\n")].decode("latin-1").split(" ")[1]
            self._received = self._received[stop:]
            path, _, query = target.partition("?")
            before = self._script.questions
            status, document = self._script.answer(unquote(path), query)
            body = json.dumps(document, separators=(",", ":")).encode()
            is_question = self._script.questions > before
            delay_s = self._script.delay_s if is_question else 0.0
            asyncio.get_running_loop().call_later(delay_s, self._send, status, body)

    def _send(self, status: int, body: bytes) -> None:
        if not self._transport.is_closing():
            head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self._transport.write(head.encode() + body)


class Metrics:
    """The process, seen from the benchmark.

    Args:
        pipe: to the process.
        port: where the aggregator finds it.
    """

    def __init__(self, pipe: Connection, port: int) -> None:
        self._pipe = pipe
        self.port = port

    def tell(self, **what: Any) -> int:
        """Set attributes of the script (none: nothing); how many questions were answered so far."""
        self._pipe.send(what)
        answered: int = self._pipe.recv()
        return answered


def _serve(pipe: Connection, layout: objects.Layout, pair: tuple[Path, Path], authority: Path) -> None:
    async def serve() -> None:
        script = Script(layout)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_REQUIRED  # only the aggregator may ask
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Http(script), "127.0.0.1", 0, ssl=context)

        def told() -> None:
            for name, value in pipe.recv().items():
                setattr(script, name, value)
            pipe.send(script.questions)

        loop.add_reader(pipe.fileno(), told)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


@contextmanager
def scripted_metrics(layout: objects.Layout, pair: tuple[Path, Path], authority: Path) -> Iterator[Metrics]:
    """The process, which ends on leaving; `pair` is its certificate and key, `authority` who signs the aggregator's."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, layout, pair, authority), daemon=True)
    process.start()
    try:
        yield Metrics(ours, ours.recv())
    finally:
        process.terminate()
        process.join()
