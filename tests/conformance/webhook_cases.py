"""Cases of admission and conversion webhooks: what a webhook responds, and what the API server then answers to clients.

    answers = await play(CASES[0], request, server)

`record_webhooks.py` records the answers of a real kube-apiserver, `test_recorded_webhooks.py` compares ours with them.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from podscaler.testing.webhook_server import WebhookServer, converted, patch_response

Object = dict[str, Any]
Send = Callable[[str, str, Object | None], Awaitable[tuple[int, Any, list[str]]]]
"""Sends a request (method, path, body); returns the status, the body and the warnings."""
Prepare = Callable[[WebhookServer], None]
"""Sets what a webhook responds, before the requests."""

GROUP = "webhooks.example.com"
GEARS = f"/apis/{GROUP}/{{}}/namespaces/default/gears"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
_RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
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
        "rules": [_RULE],
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


def _rewritten(**changes: Any) -> Prepare:
    """Members of the response are replaced; None removes one."""

    def rewrite(review: Object) -> Object:
        merged = {**review["response"], **changes}
        return {**review, "response": {name: each for name, each in merged.items() if each is not None}}

    return lambda server: setattr(server, "rewrite", rewrite)


def _answers(change: Callable[[Object], Object | bytes]) -> Prepare:
    return lambda server: setattr(server, "rewrite", change)


def _responds(respond: Callable[[Object], Object]) -> Prepare:
    return lambda server: setattr(server, "respond", respond)


def _fails_with(status: int, body: bytes) -> Prepare:
    def prepare(server: WebhookServer) -> None:
        server.status = status
        server.rewrite = lambda _review: body

    return prepare


def _is_late(server: WebhookServer) -> None:
    server.delay = lambda: asyncio.sleep(1.5)


def _changes_converted(**changes: Any) -> Prepare:
    """Members of each converted object are replaced; those of metadata are merged."""

    def rewrite(review: Object) -> Object:
        for obj in review["response"]["convertedObjects"]:
            metadata = changes.get("metadata", {})
            merged = {**obj, **changes}
            merged["metadata"] = {**obj["metadata"], **metadata} if isinstance(metadata, dict) else metadata
            obj.clear()
            obj.update(merged)
        return review

    return _answers(rewrite)


def _labels_converted(review: Object) -> Object:
    for obj in review["response"]["convertedObjects"]:
        obj["metadata"] |= {"labels": {"converted": "yes"}, "finalizers": ["example.com/x"], "generation": 7}
    return review


V1, V2 = GEARS.format("v1"), GEARS.format("v2")
_CREATE_V1: tuple[str, str, Object | None] = ("POST", V1, gear("v1", size="3"))
_CREATE_V2: tuple[str, str, Object | None] = ("POST", V2, gear("v2", count=3))
_READ_V2: tuple[str, str, Object | None] = ("GET", f"{V2}/g", None)
_MERGE = "#application/merge-patch+json"
_APPLY = "#application/apply-patch+yaml"


def _bad_conversion(name: str, prepare: Prepare, **fields: Any) -> Case:
    other = ("POST", V2, gear("v2", "other", count=3))
    return Case(name, "conversion", [_CREATE_V1, _READ_V2, other], prepare, 1, fields)


def _admission(name: str, prepare: Prepare, kind: str = "validating", **fields: Any) -> Case:
    return Case(name, kind, [("POST", MAPS, config_map())], prepare, fields=fields)


CASES = [
    Case(
        "conversion: reads and writes",
        "conversion",
        [
            _CREATE_V2,
            ("GET", f"{V1}/g", None),
            _READ_V2,
            ("PUT", f"{V2}/g", gear("v2", count=4)),
            ("PATCH", f"{V2}/g{_MERGE}", {"spec": {"count": 5}}),
            ("PATCH", f"{V1}/g{_MERGE}", {"spec": {"size": "6"}}),
            ("PATCH", f"{V2}/g?fieldManager=me{_APPLY}", gear("v2", count=6, replicas=2)),
            ("PATCH", f"{V2}/g{_MERGE}", {"spec": {"count": 6}}),
            ("PATCH", f"{V2}/g{_MERGE}", {"spec": {"count": 600}}),
            ("PATCH", f"{V2}/g/status{_MERGE}", {"status": {"replicas": 1}, "spec": {"count": 9}}),
            ("GET", f"{V2}/g/scale", None),
            ("PATCH", f"{V2}/g/scale{_MERGE}", {"spec": {"replicas": 4}}),
            ("GET", f"{V2}/g/status", None),
            ("POST", V1, gear("v1", "h", size="1")),
            ("GET", V2, None),
            ("POST", f"{V2}?dryRun=All", gear("v2", "i", count=1)),
            ("DELETE", f"{V2}/g", None),
        ],
    ),
    Case(
        "conversion: apply creates",
        "conversion",
        [
            ("PATCH", f"{V2}/g?fieldManager=me{_APPLY}", gear("v2", count=6)),
            ("PATCH", f"{V1}/g?fieldManager=me{_APPLY}", gear("v1", size="7")),
            ("PATCH", f"{V2}/g?fieldManager=you{_APPLY}", gear("v2", count=8)),
        ],
    ),
    Case("conversion: v1beta1", "conversion", [_CREATE_V2, _READ_V2], fields={"conversionReviewVersions": ["v1beta1"]}),
    _bad_conversion("conversion: labels change, other metadata does not", _answers(_labels_converted)),
    _bad_conversion("conversion: failure with a message", _rewritten(result={"status": "Failure", "message": "no"})),
    _bad_conversion("conversion: failure without a message", _rewritten(result={"status": "Failure"})),
    _bad_conversion("conversion: no result", _rewritten(result=None)),
    _bad_conversion("conversion: another uid", _rewritten(uid="x")),
    _bad_conversion("conversion: no objects", _rewritten(convertedObjects=[])),
    _bad_conversion("conversion: no response", _answers(lambda review: {**review, "response": None})),
    _bad_conversion("conversion: another version of the review", _answers(lambda r: {**r, "apiVersion": "x/v1"})),
    _bad_conversion("conversion: another kind of the review", _answers(lambda r: {**r, "kind": "X"})),
    _bad_conversion("conversion: no JSON", _answers(lambda _review: b"nonsense")),
    _bad_conversion("conversion: an empty object", _answers(lambda _review: b"{}")),
    _bad_conversion("conversion: status 500", _fails_with(500, b"broken")),
    _bad_conversion("conversion: status 404", _fails_with(404, b"")),
    _bad_conversion("conversion: another group", _changes_converted(apiVersion="example.com/v2")),
    _bad_conversion("conversion: another kind", _changes_converted(kind="Cog")),
    _bad_conversion("conversion: another name", _changes_converted(metadata={"name": "other"})),
    _bad_conversion("conversion: another namespace", _changes_converted(metadata={"namespace": "other"})),
    _bad_conversion("conversion: metadata is a text", _changes_converted(metadata="x")),
    _bad_conversion("conversion: labels are a list", _changes_converted(metadata={"labels": []})),
    _bad_conversion("conversion: a label is a number", _changes_converted(metadata={"labels": {"a": 1}})),
    _bad_conversion("conversion: an invalid label", _changes_converted(metadata={"labels": {"a/b/c": "1"}})),
    _bad_conversion("conversion: an invalid annotation", _changes_converted(metadata={"annotations": {"a/b/c": "1"}})),
    _admission("denied", _rewritten(allowed=False)),
    _admission("denied with a message", _rewritten(allowed=False, status={"message": "no maps"})),
    _admission("denied with a reason", _rewritten(allowed=False, status={"reason": "NotAcceptable"})),
    _admission(
        "denied with everything",
        _rewritten(
            allowed=False,
            status={"code": 418, "reason": "Teapot", "message": "tea", "details": {"kind": "x", "name": "y"}},
        ),
    ),
    _admission("denied with a code of success", _rewritten(allowed=False, status={"code": 200, "message": "no"})),
    _admission("warnings", _rewritten(warnings=["first", "second"])),
    _admission("late", _is_late),
    _admission("late, ignored", _is_late, failurePolicy="Ignore"),
    _admission("another uid", _rewritten(uid="x")),
    _admission("no response", _answers(lambda review: {**review, "response": None})),
    _admission("another kind of the review", _answers(lambda review: {**review, "kind": "X"})),
    _admission("another version of the review", _answers(lambda review: {**review, "apiVersion": "x/v1"})),
    _admission("no JSON", _answers(lambda _review: b"nonsense")),
    _admission("an empty object", _answers(lambda _review: b"{}")),
    _admission("status 500", _fails_with(500, b"broken")),
    _admission("status 404", _fails_with(404, b"")),
    _admission("status 403", _fails_with(403, b"no")),
    _admission("status 302", _fails_with(302, b"")),
    _admission("a validating webhook patches", _responds(lambda _request: patch_response())),
    _admission(
        "a patch", _responds(lambda _: patch_response({"op": "add", "path": "/data/y", "value": "2"})), "mutating"
    ),
    _admission(
        "a patch that does not apply", _responds(lambda _: patch_response({"op": "remove", "path": "/z"})), "mutating"
    ),
    _admission("a patch that is no base64", _rewritten(patchType="JSONPatch", patch="!"), "mutating"),
    _admission("a patch that is no list", _rewritten(patchType="JSONPatch", patch="e30="), "mutating"),
    _admission("a patch without a type", _rewritten(patch="W10="), "mutating"),
    _admission("a patch of another type", _rewritten(patchType="Merge", patch="W3t9XQ=="), "mutating"),
    _admission("a type without a patch", _rewritten(patchType="JSONPatch"), "mutating"),
    _admission(
        "a patch to an invalid object",
        _responds(lambda _: patch_response({"op": "replace", "path": "/data", "value": 1})),
        "mutating",
    ),
    _admission(
        "a patch changes the name",
        _responds(lambda _: patch_response({"op": "replace", "path": "/metadata/name", "value": "other"})),
        "mutating",
    ),
    _admission(
        "a patch changes the namespace",
        _responds(lambda _: patch_response({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"})),
        "mutating",
    ),
    _admission(
        "a patch removes the namespace",
        _responds(lambda _: patch_response({"op": "remove", "path": "/metadata/namespace"})),
        "mutating",
    ),
    _admission(
        "a patch removes the metadata",
        _responds(lambda _: patch_response({"op": "remove", "path": "/metadata"})),
        "mutating",
    ),
    _admission(
        "a patch removes the name",
        _responds(lambda _: patch_response({"op": "remove", "path": "/metadata/name"})),
        "mutating",
    ),
    _admission(
        "a patch sets the uid",
        _responds(
            lambda _: patch_response(
                {"op": "add", "path": "/metadata/uid", "value": "11111111-2222-3333-4444-555555555555"}
            )
        ),
        "mutating",
    ),
    _admission(
        "a patch sets the resource version",
        _responds(lambda _: patch_response({"op": "add", "path": "/metadata/resourceVersion", "value": "7"})),
        "mutating",
    ),
    _admission(
        "a patch sets a deletion timestamp",
        _responds(
            lambda _: patch_response(
                {"op": "add", "path": "/metadata/deletionTimestamp", "value": "2026-01-01T00:00:00Z"}
            )
        ),
        "mutating",
    ),
    _admission(
        "a patch changes the kind",
        _responds(lambda _: patch_response({"op": "replace", "path": "/kind", "value": "ServiceAccount"})),
        "mutating",
    ),
    _admission(
        "a patch changes the version",
        _responds(lambda _: patch_response({"op": "replace", "path": "/apiVersion", "value": "v2"})),
        "mutating",
    ),
    *(
        Case(
            f"an update: a patch {name}",
            "mutating",
            [("POST", MAPS, config_map()), ("PUT", f"{MAPS}/a", config_map()), ("GET", f"{MAPS}/a", None)],
            _responds(lambda _, operation=operation: patch_response(operation)),
            prepared_at=1,
        )
        for name, operation in {
            "changes the name": {"op": "replace", "path": "/metadata/name", "value": "other"},
            "removes the name": {"op": "remove", "path": "/metadata/name"},
            "changes the namespace": {"op": "replace", "path": "/metadata/namespace", "value": "kube-system"},
            "removes the namespace": {"op": "remove", "path": "/metadata/namespace"},
            "changes the uid": {"op": "replace", "path": "/metadata/uid", "value": "x"},
            "removes the uid": {"op": "remove", "path": "/metadata/uid"},
            "removes the metadata": {"op": "remove", "path": "/metadata"},
            "changes the creation timestamp": {
                "op": "replace",
                "path": "/metadata/creationTimestamp",
                "value": "2026-01-01T00:00:00Z",
            },
        }.items()
    ),
    Case(
        "updates and deletes",
        "validating",
        [
            ("POST", MAPS, config_map()),
            ("PATCH", f"{MAPS}/a{_MERGE}", {"data": {"y": "2"}}),
            ("PATCH", f"{MAPS}/a?dryRun=All{_MERGE}", {"data": {"y": "3"}}),
            ("PUT", f"{MAPS}/a", config_map()),
            ("DELETE", f"{MAPS}/a?dryRun=All", None),
            ("DELETE", f"{MAPS}/a", None),
        ],
    ),
    Case(
        "connections",
        "validating",
        [
            ("GET", f"{PODS}/a/attach?stdin=true&container=c", None),
            ("GET", f"{PODS}/a/exec?command=ls&command=-l&stdout=true&stderr=true", None),
            ("GET", f"{PODS}/a/proxy/x", None),
        ],
        _rewritten(allowed=False, status={"message": "no"}),
        fields={"rules": [_RULE, {**_RULE, "operations": ["CONNECT"], "resources": ["pods/*"]}]},
    ),
    Case(
        "never called: dry run with side effects",
        "validating",
        [
            ("POST", f"{MAPS}?dryRun=All", config_map()),
            ("POST", MAPS, config_map()),
        ],
        fields={
            "sideEffects": "NoneOnDryRun",
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}],
        },
    ),
]
