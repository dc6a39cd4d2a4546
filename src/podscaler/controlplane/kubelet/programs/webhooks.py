"""`agnhost webhook` and `agnhost crd-conversion-webhook`: HTTPS servers for tests of admission and of conversion.

`programs.agnhost` calls `main` for both. The tests register each path of REVIEW_FUNCTIONS for certain objects;
`/crdconvert` converts the kind of the test. A new webhook: a function and an entry of REVIEW_FUNCTIONS.

Source: test/images/agnhost/webhook and crd-conversion-webhook of Kubernetes v1.37 (flags, paths, labels, messages).
"""

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser
from podscaler.controlplane.kubelet.programs.web_server import WebRequest, WebResponse, error_response, serve

Object = dict[str, Any]
"""A JSON object."""
ReviewFunction = Callable[[Object], Object]
"""`request` of an AdmissionReview or ConversionReview -> `response` without uid."""
DELAY_S: Final = 5.0
FOREVER_S: Final = 3600.0
"""Longer than the timeout of any webhook."""
V1, V2 = "stable.example.com/v1", "stable.example.com/v2"
ALLOWED: Final[Object] = {"allowed": True}


def _deny(**status: str) -> Object:
    """The response that denies a request; `status` are fields of its metav1 Status."""
    return {"allowed": False, "status": status}


def _allow_and_add(path: str, value: Any) -> Object:
    """The response that allows a request, and adds a value at a JSON pointer of the object."""
    operations = json.dumps([{"op": "add", "path": path, "value": value}])
    return {**ALLOWED, "patchType": "JSONPatch", "patch": base64.b64encode(operations.encode()).decode()}


def _test_label(request: Object) -> str:
    """The value of the label by which upstream's test marks objects, empty without it."""
    return str((request["object"]["metadata"].get("labels") or {}).get("webhook-e2e-test", ""))


def _allow_later(_request: Object) -> Object:
    """Allow every request after DELAY_S seconds."""
    time.sleep(DELAY_S)
    return ALLOWED


def _add_label(request: Object) -> Object:
    """Add the label `added-label` to the object, unless it has it."""
    labels = request["object"]["metadata"].get("labels")
    if not labels:
        return _allow_and_add("/metadata/labels", {"added-label": "yes"})
    return ALLOWED if labels.get("added-label") == "yes" else _allow_and_add("/metadata/labels/added-label", "yes")


def _admit_pod(request: Object) -> Object:
    """Deny pods with a certain label or container name; one label makes the webhook wait."""
    label = _test_label(request)
    if label == "wait-forever":
        time.sleep(FOREVER_S)
    denials = ["the pod contains unwanted label;"] if label == "webhook-disallow" else []
    names = [container["name"] for container in request["object"]["spec"]["containers"]]
    denials += ["the pod contains unwanted container name;" for name in names if "webhook-disallow" in name]
    return _deny(message=" ".join(denials)) if denials else ALLOWED


def _admit_attach(request: Object) -> Object:
    """Deny `kubectl attach -i` to a container of the pod of the test."""
    attach_options, is_tested = request["object"], request.get("name") == "to-be-attached-pod"
    if is_tested and attach_options.get("stdin") and attach_options.get("container") == "container1":
        return _deny(message="attaching to pod 'to-be-attached-pod' is not allowed")
    return ALLOWED


def _add_init_container(request: Object) -> Object:
    """Add an init container to the pod of the test, unless it has it."""
    pod, name = request["object"], "webhook-added-init-container"
    present_names = [container["name"] for container in pod["spec"].get("initContainers") or ()]
    if pod["metadata"].get("name") != "webhook-to-be-mutated" or name in present_names:
        return ALLOWED
    return _allow_and_add("/spec/initContainers", [{"image": "webhook-added-image", "name": name, "resources": {}}])


def _admit_data(noun: str, unwanted: str, request: Object) -> Object:
    """Deny writes and deletes of objects whose data has certain values under the key of the test.

    Args:
        noun, unwanted: how the message calls the object, and the denied part of it.
    """
    operation = request["operation"]
    reviewed = request["oldObject"] if operation == "DELETE" else request["object"]
    test_value = (reviewed.get("data") or {}).get("webhook-e2e-test")
    if test_value == "webhook-disallow" and operation in ("CREATE", "UPDATE"):
        return _deny(reason=f"the {noun} contains unwanted {unwanted}")
    if test_value == "webhook-nondeletable" and operation == "DELETE":
        return _deny(reason=f"the {noun} cannot be deleted because it contains unwanted key and value")
    return ALLOWED


def _add_stage(request: Object) -> Object:
    """Add stage 1 to data that asks for it, and stage 2 to data with stage 1: the test calls two webhooks in a row."""
    data = request["object"].get("data") or {}
    if data.get("mutation-stage-1") == "yes":
        return _allow_and_add("/data/mutation-stage-2", "yes")
    return _allow_and_add("/data/mutation-stage-1", "yes") if data.get("mutation-start") == "yes" else ALLOWED


def _admit_definition(request: Object) -> Object:
    """Deny a CustomResourceDefinition with the label of the test."""
    is_unwanted = _test_label(request) == "webhook-disallow"
    return _deny(message="the crd contains unwanted label") if is_unwanted else ALLOWED


def _convert_object(custom_object: Object, version: str) -> Object:
    """A converted copy: v1 has `hostPort`, v2 `host` and `port`. Raises ValueError for other versions and values."""
    converted = {**custom_object, "apiVersion": version}
    if version not in (V1, V2):
        raise ValueError(f'unexpected conversion version "{version}"')
    if version == V2 and "hostPort" in converted:
        host, colon, port = converted.pop("hostPort").partition(":")
        if not colon or ":" in port:
            raise ValueError(f"invalid hostPort value `{custom_object['hostPort']}`")
        converted |= {"host": host, "port": port}
    elif version == V1 and ("host" in converted or "port" in converted):
        converted["hostPort"] = f"{converted.pop('host', '')}:{converted.pop('port', '')}"
    return converted


def _convert_objects(request: Object) -> Object:
    """The response to a ConversionReview, with all objects converted or with a failure."""
    version = request["desiredAPIVersion"]
    try:
        objects = [_convert_object(custom_object, version) for custom_object in request["objects"]]
    except ValueError as failure:
        return {"result": {"status": "Failure", "message": str(failure)}}
    return {"convertedObjects": objects, "result": {"status": "Success"}}


REVIEW_FUNCTIONS: Final[Mapping[str, ReviewFunction]] = {
    "/always-allow-delay-5s": _allow_later,
    "/always-deny": lambda _request: _deny(message="this webhook denies all requests"),
    "/add-label": _add_label,
    "/pods": _admit_pod,
    "/pods/attach": _admit_attach,
    "/mutating-pods": _add_init_container,
    "/configmaps": partial(_admit_data, "configmap", "key and value"),
    "/mutating-configmaps": _add_stage,
    "/custom-resource": partial(_admit_data, "custom resource", "data"),
    "/mutating-custom-resource": _add_stage,
    "/crd": _admit_definition,
    "/crdconvert": _convert_objects,
}


def respond(request: WebRequest) -> WebResponse:
    """The response to a review, or to a probe; 404 for another path, 400 for a body that is no review."""
    if request.path == "/readyz":
        return WebResponse("ok")
    if request.path not in REVIEW_FUNCTIONS:
        return error_response("404 page not found", 404)
    try:
        review = json.loads(request.body)
        review_function = REVIEW_FUNCTIONS[request.path]
        response = {"uid": review["request"]["uid"], **review_function(review["request"])}
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        return error_response(f"Request could not be decoded: {failure!r}", 400)
    body = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
    return WebResponse(json.dumps(body), headers={"Content-Type": "application/json"})


def main(args: Sequence[str]) -> int:
    """Serve webhooks over HTTPS; returns the exit status. Raises OSError for a certificate that cannot be read."""
    parser = ArgumentParser(prog="webhook")
    for name in ("tls-cert-file", "tls-private-key-file"):
        parser.add_flag(name, "")
    parser.add_flag("port", 443)
    options, _ = parser.parse_known_args(args)  # upstream's webhook has further flags
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.tls_cert_file, options.tls_private_key_file)
    return serve(respond, options.port, tls_context=context)
