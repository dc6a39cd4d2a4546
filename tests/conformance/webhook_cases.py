"""Cases of admission and conversion webhooks, which `webhook_play.play` plays: a good one, and many bad ones."""

import asyncio
from collections.abc import Callable
from typing import Any

from webhook_play import (
    CONTROLLERS,
    GEARS,
    MAPS,
    PODS,
    RULE,
    Case,
    Object,
    Prepare,
    config_map,
    gear,
)

from podscaler.testing.webhook_server import WebhookServer, patch_response


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


def _replaces(path: str, value: Any) -> Object:
    return {"op": "replace", "path": path, "value": value}


def controller() -> Object:
    """A ReplicationController, which has a scale and a status."""
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"app": "a"}, "template": template}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}, "spec": spec}


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
    *(
        Case(
            f"a {subresource}: {name}",
            "mutating",
            [
                ("POST", CONTROLLERS, controller()),
                ("PATCH", f"{CONTROLLERS}/a/{subresource}{_MERGE}", change),
                ("GET", f"{CONTROLLERS}/a", None),
                ("DELETE", f"{CONTROLLERS}/a?propagationPolicy=Background", None),
            ],
            _responds(lambda _, operations=operations: patch_response(*operations)),
            prepared_at=1,
            fields={"rules": [RULE, {**RULE, "resources": [f"replicationcontrollers/{subresource}"]}]},
        )
        for subresource, name, change, operations in [
            ("scale", "a patch", {"spec": {"replicas": 3}}, [_replaces("/spec/replicas", 7)]),
            ("scale", "a patch to a negative number", {"spec": {"replicas": 3}}, [_replaces("/spec/replicas", -7)]),
            ("scale", "a patch to a text", {"spec": {"replicas": 3}}, [_replaces("/spec/replicas", "x")]),
            ("scale", "a patch changes the name", {"spec": {"replicas": 3}}, [_replaces("/metadata/name", "b")]),
            (
                "scale",
                "a patch changes the namespace",
                {"spec": {"replicas": 3}},
                [_replaces("/metadata/namespace", "b")],
            ),
            ("scale", "a patch changes the kind", {"spec": {"replicas": 3}}, [_replaces("/kind", "ConfigMap")]),
            (
                "scale",
                "a patch removes the metadata",
                {"spec": {"replicas": 3}},
                [{"op": "remove", "path": "/metadata"}],
            ),
            ("status", "a patch", {"status": {"replicas": 2}}, [_replaces("/status/replicas", 5)]),
            ("status", "a patch changes the spec", {"status": {"replicas": 2}}, [_replaces("/spec/replicas", 9)]),
            (
                "status",
                "a patch to a negative number",
                {"status": {"replicas": 2}},
                [_replaces("/status/replicas", -5)],
            ),
            ("status", "a patch changes the name", {"status": {"replicas": 2}}, [_replaces("/metadata/name", "b")]),
            (
                "status",
                "a patch adds a label",
                {"status": {"replicas": 2}},
                [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
            ),
        ]
    ),
    Case(
        "a patch gives a name in place of a generated one",
        "mutating",
        [("POST", MAPS, {**config_map(), "metadata": {"generateName": "a-"}}), ("GET", f"{MAPS}/fixed", None)],
        _responds(lambda _: patch_response({"op": "add", "path": "/metadata/name", "value": "fixed"})),
    ),
    Case(
        "a patch of a deletion",
        "mutating",
        [("POST", MAPS, config_map()), ("DELETE", f"{MAPS}/a", None), ("GET", f"{MAPS}/a", None)],
        _responds(lambda _: patch_response(_replaces("/data", {}))),
        prepared_at=1,
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
        fields={"rules": [RULE, {**RULE, "operations": ["CONNECT"], "resources": ["pods/*"]}]},
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
