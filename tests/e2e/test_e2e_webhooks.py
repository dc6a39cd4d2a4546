"""Admission and conversion webhooks on a real `up`: objects are changed, refused and converted, as kubectl shows."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from up_process import QUICK, Up, eventually

from podscaler.testing import webhook_server
from podscaler.testing.webhook_server import WebhookServer, converted, patch_response

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kubectl_present")]

Object = dict[str, Any]
GROUP = "hooks.example.com"


@contextmanager
def webhook(folder: Path) -> Iterator[WebhookServer]:
    """A webhook in a thread."""
    started, stop = threading.Event(), threading.Event()
    servers: list[WebhookServer] = []

    async def serve() -> None:
        async with webhook_server.serve_webhook(folder) as server:
            servers.append(server)
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        assert started.wait(10)
        yield servers[0]
    finally:
        stop.set()
        thread.join(10)


def configure(up: Up, kind: str, server: WebhookServer, **fields: Any) -> None:
    """A configuration for the ConfigMaps of the namespace `hooks`."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    configured = {
        "name": f"{kind}.{GROUP}",
        "clientConfig": server.client_config(),
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooks"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
    up.create(path, {"metadata": {"name": "checks"}, "webhooks": [configured]})


def test_webhooks_change_and_refuse_objects(up: Up, tmp_path: Path) -> None:
    """kubectl prints the warning and the refusal; a webhook that is gone fails the write, or is ignored."""

    def respond(request: Object) -> Object:
        if "labels" not in request["object"]["metadata"]:
            return patch_response({"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}})
        is_allowed = "forbidden" not in request["object"]["data"]
        return {"allowed": is_allowed, "status": {"message": "no such key"}, "warnings": ["a map is made"]}

    up.create("/api/v1/namespaces", {"metadata": {"name": "hooks"}})
    with webhook(tmp_path) as server:
        server.respond = respond
        configure(up, "mutating", server, failurePolicy="Ignore")
        configure(up, "validating", server)
        made = up.run_kubectl("create", "configmap", "a", "-n", "hooks", "--from-literal=x=1")
        refused = up.run_kubectl("create", "configmap", "b", "-n", "hooks", "--from-literal=forbidden=1")
    failed = up.run_kubectl("create", "configmap", "c", "-n", "hooks", "--from-literal=x=1")
    assert (made.stdout, made.stderr) == ("configmap/a created\n", "Warning: a map is made\n")
    assert up.kubectl("get", "configmap", "a", "-n", "hooks", "-o", "jsonpath={.metadata.labels}") == '{"seen":"yes"}'
    denied = f'admission webhook "validating.{GROUP}" denied the request: no such key'
    assert refused.stderr == f"Warning: a map is made\nerror: failed to create configmap: {denied}\n"
    url = f"https://127.0.0.1:{server.port}/review?timeout=10s"
    why = f'failed calling webhook "validating.{GROUP}": failed to call webhook: Post "{url}"'
    assert f"error: failed to create configmap: Internal error occurred: {why}: dial tcp" in failed.stderr
    assert "connect: connection refused" in failed.stderr


def gear_versions() -> list[Object]:
    """v1 has a text, v2 a number."""
    fields = {"v1": {"size": {"type": "string"}}, "v2": {"count": {"type": "integer"}}}
    return [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": properties}},
                }
            },
        }
        for name, properties in fields.items()
    ]


def convert_gear(obj: Object, api_version: str) -> None:
    """Convert a gear, in place."""
    spec = obj.get("spec") or {}
    if api_version == f"{GROUP}/v2" and "size" in spec:
        spec["count"] = int(spec.pop("size"))
    elif api_version == f"{GROUP}/v1" and "count" in spec:
        spec["size"] = str(spec.pop("count"))


def test_a_webhook_converts_custom_resources(up: Up, tmp_path: Path) -> None:
    """kubectl reads in one version what it applied in another; without the webhook only the stored version is read."""
    with webhook(tmp_path) as server:
        server.respond = lambda request: converted(request, convert_gear)
        conversion = {"clientConfig": server.client_config(), "conversionReviewVersions": ["v1"]}
        spec = {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "gears", "kind": "Gear"},
            "versions": gear_versions(),
            "conversion": {"strategy": "Webhook", "webhook": conversion},
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        up.create(path, {"metadata": {"name": f"gears.{GROUP}"}, "spec": spec})
        eventually(lambda: up.request("GET", f"/apis/{GROUP}/v2/gears").status, until=lambda status: status == 200)
        gear = {"apiVersion": f"{GROUP}/v2", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"count": 3}}
        for count in (3, 4):
            manifest = json.dumps({**gear, "spec": {"count": count}})
            up.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
        old, new = (
            up.kubectl("get", f"gears.{version}.{GROUP}", "g", "-o", "jsonpath={.spec}") for version in ("v1", "v2")
        )
    gone = up.request("GET", f"/apis/{GROUP}/v2/namespaces/default/gears")
    assert (old, new) == ('{"size":"4"}', '{"count":4}')
    assert gone.status == 500
    url = f"https://127.0.0.1:{server.port}/review?timeout=30s"
    assert f'conversion webhook for {GROUP}/v1, Kind=Gear failed: Post "{url}": dial tcp' in gone.body["message"]
    assert up.get(f"/apis/{GROUP}/v1/namespaces/default/gears")["items"][0]["spec"] == {"size": "4"}


def test_a_webhook_that_denies_the_node_does_not_stop_pods(tmp_path: Path) -> None:
    """After a restart the pods run though the Node cannot be written, as the webhook may be one of them."""
    up = Up(tmp_path / "data", QUICK).start()
    sleeper = {"name": "c", "image": "busybox", "command": ["sleep", "1000"]}
    up.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": {"containers": [sleeper]}})

    def container() -> Object:
        statuses = up.get("/api/v1/namespaces/default/pods/p")["status"].get("containerStatuses")
        found: Object = statuses[0] if statuses else {}
        return found

    eventually(lambda: container().get("ready"))
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["nodes", "nodes/*"]}
    unreachable = {
        "name": f"nodes.{GROUP}",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [everything],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    up.create(path, {"metadata": {"name": "nodes"}, "webhooks": [unreachable]})
    assert up.stop() == 0
    up.start()
    eventually(lambda: container().get("restartCount"), until=lambda count: count == 1)
    assert up.request("DELETE", f"{path}/nodes").status == 200
    assert up.stop() == 0
    log = up.log.read_text()
    assert "the Node cannot be written: Internal error occurred: failed calling webhook" in log
    assert "Traceback" not in log
