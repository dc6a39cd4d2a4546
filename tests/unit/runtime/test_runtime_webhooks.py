"""The subcommands `webhook` and `crd-conversion-webhook` of the image agnhost."""

import base64
import json
from email.message import Message
from typing import Any

import pytest

from podscaler.controlplane.kubelet.programs import webhooks
from podscaler.controlplane.kubelet.programs.web_server import WebRequest

Object = dict[str, Any]
GROUP = "stable.example.com"


def post(path: str, body: bytes) -> WebRequest:
    """A request with a body."""
    return WebRequest("POST", path, "", {}, Message(), body, ("127.9.9.9", 4321))


def respond(path: str, **request: Any) -> Object:
    """The response to an AdmissionReview with that request, without uid; a patch is decoded."""
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "1", **request}}
    body = json.loads(webhooks.respond(post(path, json.dumps(review).encode())).text)
    assert (body["kind"], body["apiVersion"], body["response"].pop("uid")) == (
        "AdmissionReview",
        review["apiVersion"],
        "1",
    )
    response: Object = body["response"]
    if "patch" in response:
        response["patch"] = json.loads(base64.b64decode(response["patch"]))
    return response


def pod(name: str = "a", container: str = "app", **labels: str) -> Object:
    """A pod."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": container}]}}


def data(**items: str) -> Object:
    """A ConfigMap, or the test's custom resource."""
    return {"metadata": {"name": "a"}, "data": items}


def denial(**status: str) -> Object:
    """The response that denies a request."""
    return {"allowed": False, "status": status}


MARKED = {"webhook-e2e-test": "webhook-disallow"}


@pytest.mark.parametrize(
    ("path", "request_", "response"),
    [
        ("/always-deny", {}, denial(message="this webhook denies all requests")),
        ("/pods", {"object": pod()}, {"allowed": True}),
        ("/pods", {"object": pod(**MARKED)}, denial(message="the pod contains unwanted label;")),
        (
            "/pods",
            {"object": pod(container="webhook-disallow")},
            denial(message="the pod contains unwanted container name;"),
        ),
        ("/crd", {"object": pod(**MARKED)}, denial(message="the crd contains unwanted label")),
        (
            "/configmaps",
            {"operation": "UPDATE", "object": data(**MARKED)},
            denial(reason="the configmap contains unwanted key and value"),
        ),
        (
            "/custom-resource",
            {"operation": "DELETE", "object": None, "oldObject": data(**{"webhook-e2e-test": "webhook-nondeletable"})},
            denial(reason="the custom resource cannot be deleted because it contains unwanted key and value"),
        ),
        ("/configmaps", {"operation": "DELETE", "object": None, "oldObject": data(**MARKED)}, {"allowed": True}),
        (
            "/pods/attach",
            {"name": "to-be-attached-pod", "object": {"stdin": True, "container": "container1"}},
            denial(message="attaching to pod 'to-be-attached-pod' is not allowed"),
        ),
    ],
)
def test_decisions(path: str, request_: Object, response: Object) -> None:
    """Upstream's messages."""
    assert respond(path, **request_) == response


@pytest.mark.parametrize(
    ("path", "obj", "changed", "value"),
    [
        ("/add-label", {"metadata": {}}, "/metadata/labels", {"added-label": "yes"}),
        ("/add-label", pod(a="b"), "/metadata/labels/added-label", "yes"),
        ("/mutating-configmaps", data(**{"mutation-start": "yes"}), "/data/mutation-stage-1", "yes"),
        ("/mutating-custom-resource", data(**{"mutation-stage-1": "yes"}), "/data/mutation-stage-2", "yes"),
        (
            "/mutating-pods",
            pod("webhook-to-be-mutated"),
            "/spec/initContainers",
            [{"image": "webhook-added-image", "name": "webhook-added-init-container", "resources": {}}],
        ),
    ],
)
def test_patches(path: str, obj: Object, changed: str, value: Any) -> None:
    """One value is added."""
    expected = {"allowed": True, "patchType": "JSONPatch", "patch": [{"op": "add", "path": changed, "value": value}]}
    assert respond(path, object=obj) == expected


@pytest.mark.parametrize(
    ("fields", "version", "converted"),
    [
        ({"hostPort": "a:1"}, "v2", {"host": "a", "port": "1"}),
        ({"host": "a", "port": "1"}, "v1", {"hostPort": "a:1"}),
        ({"host": "a"}, "v1", {"hostPort": "a:"}),
        ({}, "v1", {}),
    ],
)
def test_conversions(fields: Object, version: str, converted: Object) -> None:
    """Between the versions of upstream's kind."""
    response = respond("/crdconvert", desiredAPIVersion=f"{GROUP}/{version}", objects=[{"kind": "X", **fields}])
    objects = [{"kind": "X", "apiVersion": f"{GROUP}/{version}", **converted}]
    assert response == {"convertedObjects": objects, "result": {"status": "Success"}}


@pytest.mark.parametrize(
    ("fields", "version", "message"),
    [
        ({"hostPort": "a"}, f"{GROUP}/v2", "invalid hostPort value `a`"),
        ({}, "other/v2", 'unexpected conversion version "other/v2"'),
    ],
)
def test_failed_conversions(fields: Object, version: str, message: str) -> None:
    """The message says why."""
    response = respond("/crdconvert", desiredAPIVersion=version, objects=[fields])
    assert response == {"result": {"status": "Failure", "message": message}}


@pytest.mark.parametrize(("path", "status"), [("/readyz", 200), ("/other", 404), ("/pods", 400)])
def test_other_requests(path: str, status: int) -> None:
    """Probes, unknown paths, and bodies that are no review."""
    assert webhooks.respond(post(path, b"{}")).status == status
