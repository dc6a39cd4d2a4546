"""Plays a case of webhooks against an API server: what a webhook responds, and what clients are answered then.

    answers = await play(webhook_cases.CASES[0], send, server)

`record_webhooks.py` records the answers of a real kube-apiserver, `test_recorded_webhooks.py` compares ours with them.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from podscaler.testing.webhook_server import WebhookServer, converted

Object = dict[str, Any]
Send = Callable[[str, str, Object | None], Awaitable[tuple[int, Any, list[str]]]]
"""Sends a request (method, path, body); returns the status, the body and the warnings."""
Prepare = Callable[[WebhookServer], None]
"""Sets what a webhook responds, before the requests."""

GROUP = "webhooks.example.com"
GEARS = f"/apis/{GROUP}/{{}}/namespaces/default/gears"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REVISION = re.compile(r"revision=\d+")
_SERVED_WITHIN = 100


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: the key in the recorded file.
        kind: `conversion`, `mutating` or `validating`.
        requests: method, path and body, in order; those before the index `prepared_at` see a good webhook.
        prepare: makes the webhook respond badly.
        fields: of the webhook or of `spec.conversion.webhook`, instead of the usual ones.
    """

    name: str
    kind: str
    requests: list[tuple[str, str, Object | None]]
    prepare: Prepare = lambda _server: None
    prepared_at: int = 0
    fields: Object = field(default_factory=dict)


def gear(version: str, name: str = "g", **spec: Any) -> Object:
    """A custom resource: `size` is a text in v1, `count` a number in v2."""
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Gear", "metadata": {"name": name}, "spec": spec}


def config_map(name: str = "a") -> Object:
    """What admission webhooks get."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "1"}}


def convert_gear(obj: Object, api_version: str) -> None:
    """Convert a gear, in place."""
    spec = obj.get("spec") or {}
    if api_version.endswith("/v2") and "size" in spec:
        spec["count"] = int(spec.pop("size"))
    elif api_version.endswith("/v1") and "count" in spec:
        spec["size"] = str(spec.pop("count"))


def _version(name: str, *, storage: bool, **members: Object) -> Object:
    spec = {"type": "object", "properties": {**members, "replicas": {"type": "integer"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    column = {"name": name, "type": "string", "jsonPath": ".spec.size" if name == "v1" else ".spec.count"}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [column],
    }


def definition(client_config: Object, **fields: Any) -> Object:
    """A definition with two versions, v1 stored."""
    versions = [
        _version("v1", storage=True, size={"type": "string"}),
        _version("v2", storage=False, count={"type": "integer", "maximum": 100}),
    ]
    webhook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"], **fields}
    spec = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gears.{GROUP}"},
        "spec": spec,
    }


def configuration(kind: str, client_config: Object, **fields: Any) -> Object:
    """An admission webhook for ConfigMaps of the namespace default."""
    webhook = {
        "name": "check.example.com",
        "clientConfig": client_config,
        "rules": [RULE],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        **fields,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind.title()}WebhookConfiguration",
        "metadata": {"name": "checks"},
        "webhooks": [webhook],
    }


async def play(case: Case, send: Send, server: WebhookServer) -> list[Object]:
    """The normalised answers to a case's requests, and what the webhook was called with; everything is deleted then."""
    _be_good(case, server)
    place = await _configure(case, send, server)
    try:
        answers = []
        for index, (method, path, body) in enumerate(case.requests):
            if index == case.prepared_at:
                case.prepare(server)
            server.reviews.clear()
            status, content, warnings = await send(method, path, body)
            answer: Object = {"status": status, "body": content}
            if warnings:
                answer["warnings"] = warnings
            calls = [each for each in server.requests if "operation" in each]
            if calls:
                names = ("operation", "dryRun", "subResource", "kind", "options")
                answer["calls"] = [{name: each[name] for name in names if name in each} for each in calls]
                answer["connections"] = [each["object"] for each in calls if each["operation"] == "CONNECT"]
            answers.append(_normalised(answer, server.port))
        return answers
    finally:
        _be_good(case, server)
        for path in (MAPS, GEARS.format("v1")):
            await send("DELETE", path, None)
        await send("DELETE", place, None)
        await _gone(send, place)


def _be_good(case: Case, server: WebhookServer) -> None:
    server.reviews.clear()
    server.status, server.delay, server.rewrite = 200, None, lambda review: review
    server.respond = (lambda request: converted(request, convert_gear)) if case.kind == "conversion" else _allow


def _allow(_request: Object) -> Object:
    return {"allowed": True}


async def _configure(case: Case, send: Send, server: WebhookServer) -> str:
    """Create the configuration; returns its path when it has effect."""
    if case.kind == "conversion":
        collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, body, _ = await send("POST", collection, definition(server.client_config(), **case.fields))
        assert status == 201, body
        for _ in range(_SERVED_WITHIN):
            if (await send("GET", f"/apis/{GROUP}/v2/gears", None))[0] == 200:
                break
            await asyncio.sleep(0.1)
        return f"{collection}/gears.{GROUP}"
    collection = f"/apis/admissionregistration.k8s.io/v1/{case.kind}webhookconfigurations"
    status, body, _ = await send("POST", collection, configuration(case.kind, server.client_config(), **case.fields))
    assert status == 201, body
    for number in range(_SERVED_WITHIN):  # a real server reads configurations with a delay
        await send("POST", f"{MAPS}?dryRun=All", config_map(f"probe-{number}"))
        if server.reviews or case.name.startswith("never called"):
            break
        await asyncio.sleep(0.1)
    return f"{collection}/checks"


async def _gone(send: Send, path: str) -> None:
    for _ in range(_SERVED_WITHIN):
        if (await send("GET", path, None))[0] == 404:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{path} is still there")


def _normalised(value: Any, port: int) -> Any:
    """Without what differs in each run: times, versions, uids, ports."""
    if isinstance(value, dict):
        dropped = ("uid", "resourceVersion", "creationTimestamp", "time", "continue")
        return {key: _normalised(each, port) for key, each in value.items() if key not in dropped}
    if isinstance(value, list):
        return [_normalised(each, port) for each in value]
    if isinstance(value, str):
        text = _UID.sub("UID", value.replace(f":{port}", ":PORT"))
        return _REVISION.sub("revision=N", text)
    return value
