"""Makes AdmissionReviews and checks the responses to them (admission.k8s.io v1 and v1beta1).

`webhook_admission` calls it; `admission_policies` calls `request_of`. A new version: in
`api.kinds.policy.webhook_validation.REVIEW_VERSIONS`, with its checks beside `_check_v1`.

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
from podscaler.api.schema import decoding
from podscaler.api.text.json_text import DecodeError
from podscaler.base.errors import PodscalerError, StatusError
from podscaler.controlplane.apiserver.webhooks import webhook_client
from podscaler.controlplane.apiserver.webhooks.configurations import Webhook
from podscaler.controlplane.apiserver.webhooks.matching import ServedVersion
from podscaler.controlplane.apiserver.webhooks.webhook_client import CallError
from podscaler.controlplane.registry.remote_admission import AdmittedWrite
from podscaler.controlplane.registry.users import User

GROUP = "admission.k8s.io"
ERROR_CODES = range(400, 600)
DEFAULT_ERROR_CODE = 400
"""The code of a rejection whose status has none of ERROR_CODES."""
_BASE64 = re.compile("[A-Za-z0-9+/]*")
_NO_PATCH = "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
"""The message of Go for a JSON object in place of a patch; other values have the same one here."""
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class InvalidReview(PodscalerError):
    """The response of a webhook is invalid; the text says why."""


class UndecodablePatch(PodscalerError):
    """The patch of a webhook is no JSON patch; the text says why."""


@dataclass(frozen=True, slots=True)
class WebhookVerdict:
    """What a webhook responds; `auditAnnotations` are not read.

    Attributes:
        allowed: whether it allows the write.
        patch: the operations of a JSON patch; empty for a rejection, and without one.
        status: the metav1.Status of a rejection.
        warnings: texts for the client.
    """

    allowed: bool
    patch: list[Any] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def request_of(
    write: AdmittedWrite, sent_version: ServedVersion, requested_version: ServedVersion, user: User
) -> Object:
    """The request of an AdmissionReview without uid and objects; also the CEL variable `request` of matchConditions.

    Of the options of the write only `dryRun` is contained.

    Args:
        write: operation, resource and name of the write.
        sent_version: the version in which the webhook gets the objects.
        requested_version: the version in the client's request, before the conversion to `sent_version`.
        user: who writes.
    """
    options: Object | None = None
    if write.operation in _OPTIONS:
        options = {"kind": _OPTIONS[write.operation], "apiVersion": "meta.k8s.io/v1"}
        options |= {"dryRun": ["All"]} if write.is_dry else {}
    request: Object = {
        "kind": sent_version.kind_json(write.subresource),
        "resource": sent_version.resource_json(),
        "subResource": write.subresource,
        "requestKind": requested_version.kind_json(write.subresource),
        "requestResource": requested_version.resource_json(),
        "requestSubResource": write.subresource,
        "name": write.name,
        "namespace": write.namespace or (write.name if write.resource.key == "namespaces" else ""),
        "operation": write.operation,
        "userInfo": _user_json(user),
        "dryRun": write.is_dry,
        "options": options,
    }
    return {name: value for name, value in request.items() if value != ""}


def _user_json(user: User) -> Object:
    """A user as authentication.k8s.io/v1 UserInfo, without empty members."""
    members = {"username": user.name, "uid": user.uid, "groups": list(user.all_groups)}
    extra = {key: list(values) for key, values in user.extra.items()}
    return {name: value for name, value in {**members, "extra": extra}.items() if value}


def review_of(webhook: Webhook, request: Object, new: Object | None, old: Object | None) -> Object:
    """The AdmissionReview to send, in the first of its `admissionReviewVersions` that this API server supports.

    Validation guarantees that there is one.
    """
    version = next(version for version in webhook.source["admissionReviewVersions"] if version in REVIEW_VERSIONS)
    full_request = {"uid": str(uuid.uuid4()), **request, "object": new, "oldObject": old}
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": full_request}


def parse_response(body: bytes, review: Object, *, is_mutating: bool) -> WebhookVerdict:
    """The verdict in the response to `review`. Raises InvalidReview, UndecodablePatch, CallError."""
    document = webhook_client.parse_review(body, "AdmissionReview", GROUP, REVIEW_VERSIONS)
    response = document.get("response")
    if not isinstance(response, dict):
        raise InvalidReview("webhook response was absent")
    if review["apiVersion"] == f"{GROUP}/v1":
        _check_v1(document, response, review, is_mutating=is_mutating)
    warnings = _parse_warnings(response)
    patch_json = _decode_base64(response["patch"]) if is_mutating and response.get("patch") else b""
    is_allowed = response.get("allowed") is True
    return WebhookVerdict(
        is_allowed,
        _parse_operations(patch_json, response.get("patchType") or "JSONPatch") if is_allowed and patch_json else [],
        _parse_status(response),
        warnings,
    )


def _parse_status(response: Object) -> Object:
    """The metav1.Status of a response; empty without one. Raises CallError if a field is of another type."""
    try:
        return decoding.decode_value(response.get("status"), "meta/v1.Status").obj
    except DecodeError as error:
        raise CallError(str(error)) from error


def _parse_warnings(response: Object) -> list[str]:
    """The warnings of a response. Raises CallError unless they are a list of texts."""
    try:
        return msgspec.convert(response.get("warnings") or [], list[str])
    except msgspec.ValidationError as error:
        raise CallError(f"invalid response.warnings: {error}") from error


def _check_v1(document: Object, response: Object, review: Object, *, is_mutating: bool) -> None:
    """Raise InvalidReview unless this is a v1 response to this review, with a patch only where one is allowed.

    In v1beta1 a patch may lack its `patchType`; its value is checked for both versions by `_parse_operations`.
    """
    request_uid, response_uid = review["request"]["uid"], response.get("uid", "")
    if response_uid != request_uid:
        raise InvalidReview(f'expected response.uid="{request_uid}", got "{response_uid}"')
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if (api_version, kind) != (f"{GROUP}/v1", "AdmissionReview"):
        actual = f"{api_version or '/'}, Kind={kind or ''}"
        raise InvalidReview(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {actual}")
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not is_mutating and (patch or patch_type is not None):
        raise InvalidReview(f"validating webhook may not return response.{'patch' if patch else 'patchType'}")
    if patch and patch_type is None:
        raise InvalidReview("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidReview("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidReview(f'webhook returned invalid response.patchType of "{patch_type}"')


def _decode_base64(text: str) -> bytes:
    """The bytes of `response.patch`. Raises CallError with the position of the first invalid character."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        valid_prefix = _BASE64.match(str(text))
        raise CallError(f"illegal base64 data at input byte {valid_prefix.end() if valid_prefix else 0}") from error


def _parse_operations(patch_json: bytes, patch_type: str) -> list[Any]:
    """The operations of a JSON patch. Raises UndecodablePatch, also for other types of patches."""
    if patch_type != "JSONPatch":
        raise UndecodablePatch(f'unsupported patch type "{patch_type}"')
    try:
        operations = decoding.parse_json(patch_json)
    except DecodeError as error:
        raise UndecodablePatch(f"received undecodable patch in webhook response: {error}") from error
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise UndecodablePatch(f"received undecodable patch in webhook response: {_NO_PATCH}")
    return operations


def rejection(name: str, status: Object) -> StatusError:
    """The API error of a write that the webhook `name` rejects with a metav1.Status."""
    denied = f'admission webhook "{name}" denied the request'
    explanation = status.get("message") or status.get("reason")
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    code = status.get("code")
    details = status.get("details")
    return StatusError(
        message,
        code=code if isinstance(code, int) and code in ERROR_CODES else DEFAULT_ERROR_CODE,
        reason=str(status.get("reason") or ""),
        details=details if isinstance(details, dict) else None,
    )
