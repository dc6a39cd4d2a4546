"""Makes AdmissionReviews and checks the responses to them (admission.k8s.io v1 and v1beta1).

`webhook_admission` calls `request_of` and `review_of`, sends the review with `webhook_client`, and has the body of the
response parsed by `parse_response`.

Source: kube-apiserver's webhook requests, with its messages about invalid responses.
"""

import base64
import binascii
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podscaler.api.kinds.policy.webhook_validation import REVIEW_VERSIONS
from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controlplane.apiserver.webhooks import webhook_client
from podscaler.controlplane.apiserver.webhooks.configurations import Webhook
from podscaler.controlplane.apiserver.webhooks.matching import ServedVersion
from podscaler.controlplane.apiserver.webhooks.webhook_client import CallError
from podscaler.controlplane.registry.remote_admission import AdmittedWrite
from podscaler.controlplane.registry.users import User

GROUP = "admission.k8s.io"
STATUS_MIN = 400
STATUS_MAX = 599
"""The HTTP statuses that a webhook may reject a write with; others become the lowest of them."""
_BASE64 = re.compile("[A-Za-z0-9+/]*")
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class InvalidReview(PodscalerError):
    """The response of a webhook is invalid; the text says why."""


class UndecodablePatch(PodscalerError):
    """The patch of a webhook is no JSON patch; the text says why."""


@dataclass(frozen=True, slots=True)
class WebhookVerdict:
    """The response of a webhook.

    Attributes:
        allowed: whether it allows the write.
        patch: the operations of a JSON patch; empty without one.
        status: the metav1.Status of a rejection.
        warnings: texts for the client.
    """

    allowed: bool
    patch: list[Any] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def request_of(write: AdmittedWrite, sent: ServedVersion, requested: ServedVersion, user: User) -> Object:
    """The request of an AdmissionReview without uid and objects; also the variable `request` of match conditions.

    Args:
        write: the write.
        sent: the version in which the webhook gets the objects.
        requested: the version of the request.
        user: who writes.
    """
    options: Object | None = None
    if write.operation in _OPTIONS:
        options = {"kind": _OPTIONS[write.operation], "apiVersion": "meta.k8s.io/v1"}
        options |= {"dryRun": ["All"]} if write.is_dry else {}
    request: Object = {
        "kind": sent.kind_json(write.subresource),
        "resource": sent.resource_json(),
        "subResource": write.subresource,
        "requestKind": requested.kind_json(write.subresource),
        "requestResource": requested.resource_json(),
        "requestSubResource": write.subresource,
        "name": write.name,
        "namespace": write.namespace or (write.name if write.resource.key == "namespaces" else ""),
        "operation": write.operation,
        "userInfo": _user_json(user),
        "dryRun": write.is_dry,
        "options": options,
    }
    return {field_name: content for field_name, content in request.items() if content != ""}


def _user_json(user: User) -> Object:
    """The UserInfo of a user; empty fields are left out."""
    extra = {key: list(values) for key, values in user.extra.items()}
    user_info = {"username": user.name, "uid": user.uid, "groups": list(user.all_groups), "extra": extra}
    return {field_name: content for field_name, content in user_info.items() if content}


def review_of(webhook: Webhook, request: Object, new: Object | None, old: Object | None) -> Object:
    """The AdmissionReview to send, in the first version of the webhook that is known."""
    version = next(
        admission_review_version
        for admission_review_version in webhook.source["admissionReviewVersions"]
        if admission_review_version in REVIEW_VERSIONS
    )
    body = {"uid": str(uuid.uuid4()), **request, "object": new, "oldObject": old}
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": body}


def parse_response(body: bytes, review: Object, *, is_mutating: bool) -> WebhookVerdict:
    """The verdict in the response to `review`. Raises InvalidReview, UndecodablePatch, CallError."""
    document = webhook_client.parse_review(body, "AdmissionReview", GROUP, REVIEW_VERSIONS)
    response = document.get("response")
    if not isinstance(response, dict):
        raise InvalidReview("webhook response was absent")
    if review["apiVersion"] == f"{GROUP}/v1":
        _check_v1(document, response, review, is_mutating=is_mutating)
    status = response.get("status") if isinstance(response.get("status"), dict) else {}
    warnings = [warning for warning in response.get("warnings") or [] if isinstance(warning, str)]
    patch = _decode_patch(response["patch"]) if is_mutating and response.get("patch") else []
    patch_type = response.get("patchType") or "JSONPatch"
    if patch and patch_type != "JSONPatch":
        raise UndecodablePatch(f'unsupported patch type "{patch_type}"')
    return WebhookVerdict(response.get("allowed") is True, patch, status or {}, warnings)


def _check_v1(document: Object, response: Object, review: Object, *, is_mutating: bool) -> None:
    """Raise InvalidReview unless the response is one of v1 to this review, with a patch only where one is allowed."""
    expected_uid, uid = review["request"]["uid"], response.get("uid", "")
    if uid != expected_uid:
        raise InvalidReview(f'expected response.uid="{expected_uid}", got "{uid}"')
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if (api_version, kind) != (f"{GROUP}/v1", "AdmissionReview"):
        type_text = f"{api_version or '/'}, Kind={kind or ''}"
        raise InvalidReview(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {type_text}")
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not is_mutating and (patch or patch_type is not None):
        raise InvalidReview(f"validating webhook may not return response.{'patch' if patch else 'patchType'}")
    if patch and patch_type is None:
        raise InvalidReview("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidReview("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidReview(f'webhook returned invalid response.patchType of "{patch_type}"')


def _decode_patch(encoded_patch: str) -> list[Any]:
    """The operations of a JSON patch in base64. Raises CallError or UndecodablePatch."""
    try:
        patch_json = base64.b64decode(encoded_patch, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        valid_start = _BASE64.match(str(encoded_patch))
        raise CallError(f"illegal base64 data at input byte {valid_start.end() if valid_start else 0}") from error
    try:
        return msgspec.json.decode(patch_json, type=list[dict[str, Any]])
    except msgspec.MsgspecError as error:
        decoder_message = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        raise UndecodablePatch(f"received undecodable patch in webhook response: {decoder_message}") from error


def rejection(name: str, status: Object) -> StatusError:
    """The API error of a write that the webhook `name` rejects with a metav1.Status."""
    denied = f'admission webhook "{name}" denied the request'
    explanation = status.get("message") or status.get("reason")
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    code = status.get("code")
    is_error_code = isinstance(code, int) and STATUS_MIN <= code <= STATUS_MAX
    details = status.get("details")
    return StatusError(
        message,
        code=code if isinstance(code, int) and is_error_code else STATUS_MIN,
        reason=str(status.get("reason") or ""),
        details=details if isinstance(details, dict) else None,
    )
