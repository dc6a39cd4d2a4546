"""Calls the conversion webhooks of CustomResourceDefinitions (apiextensions.k8s.io ConversionReview v1 and v1beta1).

`registry.remote_conversion` calls `ConversionWebhooks.convert` for objects that a read or write needs in another
version. One call converts all of them. Another check of what a webhook returns: in `_check_converted`.

Source: kube-apiserver's webhook converter, with its checks and messages. Differs: kube-apiserver calls the webhook once
for each object of a list.
"""

import base64
import binascii
import uuid
from typing import Any

import msgspec

from podscaler.api.crd.webhook_conversion import CHANGED_METADATA, ConversionNeeded
from podscaler.api.resource import api_errors, metadata
from podscaler.api.resource.resources import Object
from podscaler.base.errors import PodscalerError
from podscaler.controlplane.apiserver.webhooks import webhook_client
from podscaler.controlplane.apiserver.webhooks.webhook_client import CallError, WebhookClient
from podscaler.controlplane.auth import authorizer

GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
VERSIONS = ("v1", "v1beta1")
TIMEOUT_S = 30
"""The timeout of kube-apiserver's clients of webhooks."""
_UNCHANGEABLE_FIELDS = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
"""Fields of the metadata that a conversion must not change, each with its name in messages."""
_VALIDATION_BY_FIELD = {
    "labels": (metadata.label_errors, "metadata.labels"),
    "annotations": (metadata.annotation_errors, "metadata.annotation"),
}
"""The validation of each field of the metadata that a conversion may change, and its path in messages."""
_GO_TYPE_NAMES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


class InvalidConversion(PodscalerError):
    """The response of a conversion webhook is invalid; the text continues `conversion webhook for KIND`."""


class ConversionWebhooks:
    """Calls conversion webhooks; implements `registry.remote_conversion.RemoteConverter`."""

    def __init__(self, client: WebhookClient) -> None:
        self._client = client

    async def convert(self, needed: ConversionNeeded) -> list[Object]:
        """The converted objects, in their order. Raises StatusError 500."""
        try:
            return await self._convert(needed)
        except InvalidConversion as error:
            first_object = needed.objects[0]
            kind_text = f"{first_object['apiVersion']}, Kind={first_object['kind']}"
            raise api_errors.error_without_reason(f"conversion webhook for {kind_text} {error}") from error

    async def _convert(self, needed: ConversionNeeded) -> list[Object]:
        """The converted objects, in their order. Raises InvalidConversion."""
        review = _review_of(needed)
        client_config = needed.webhook["clientConfig"]
        try:
            authority = base64.b64decode(client_config.get("caBundle") or "").strip()
            body = await self._client.post(client_config, authority, msgspec.json.encode(review), TIMEOUT_S)
        except (CallError, binascii.Error) as error:
            raise InvalidConversion(f"failed: {error}") from error
        converted_objects = _parse_response(body, review)
        if len(converted_objects) != len(needed.objects):
            raise InvalidConversion(f"returned {len(converted_objects)} objects, expected {len(needed.objects)}")
        for index, (obj, converted) in enumerate(zip(needed.objects, converted_objects, strict=True)):
            _check_converted(obj, converted, needed.api_version, index)
        return converted_objects


def _review_of(needed: ConversionNeeded) -> Object:
    """The ConversionReview to send, in the first version that is known."""
    accepted_versions = needed.webhook.get("conversionReviewVersions") or []
    version = next((accepted for accepted in accepted_versions if accepted in VERSIONS), VERSIONS[0])
    request = {"uid": str(uuid.uuid4()), "desiredAPIVersion": needed.api_version, "objects": needed.objects}
    return {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": request}


def _parse_response(body: bytes, review: Object) -> list[Any]:
    """The converted objects of a response. Raises InvalidConversion."""
    try:
        document = webhook_client.parse_review(body, KIND, GROUP, VERSIONS)
    except CallError as error:
        raise InvalidConversion(f"failed: {error}") from error
    response = document.get("response")
    is_v1 = review["apiVersion"] == f"{GROUP}/v1"
    stated_type = f"{document.get('apiVersion') or '/'}, Kind={document.get('kind') or ''}"
    if is_v1 and stated_type != f"{GROUP}/v1, Kind={KIND}":
        raise InvalidConversion(f"failed: expected webhook response of {GROUP}/v1, Kind={KIND}, got {stated_type}")
    if not isinstance(response, dict):
        raise InvalidConversion("failed: no response provided")
    expected_uid, uid = review["request"]["uid"], response.get("uid") or ""
    if is_v1 and uid != expected_uid:
        raise InvalidConversion(f'failed: expected response.uid="{expected_uid}", got "{uid}"')
    result: Object = response["result"] if isinstance(response.get("result"), dict) else {}
    status, message = (str(result.get(field) or "") for field in ("status", "message"))
    if status != "Success":
        failure_message = message or f"response.result.status was '{status}', not 'Success'"
        raise InvalidConversion(f"failed: {failure_message}")
    converted_objects = response.get("convertedObjects") or []
    return converted_objects if isinstance(converted_objects, list) else []


def _check_converted(obj: Object, converted: Any, api_version: str, index: int) -> None:
    """Raise InvalidConversion unless `converted` is `obj` in that version, with valid labels and annotations.

    Args:
        obj: the object that was sent.
        converted: the JSON value at the same position of the response.
        api_version: the requested one.
        index: the position, for messages.
    """
    converted = converted if isinstance(converted, dict) else {}
    invalid_text, received_version = f"returned invalid object at index {index}", converted.get("apiVersion") or ""
    if received_version != api_version:
        problem = f"invalid groupVersion (expected {api_version}, received {received_version})"
        raise InvalidConversion(f"{invalid_text}: {problem}")
    if converted.get("kind") != obj["kind"]:
        received_kind = converted.get("kind") or ""
        problem = f"invalid kind (expected {obj['kind']}, received {received_kind})"
        raise InvalidConversion(f"{invalid_text}: {problem}")
    new_metadata = converted.get("metadata")
    new_fields = new_metadata if isinstance(new_metadata, dict) else {}
    for field, name_in_messages in _UNCHANGEABLE_FIELDS:
        before, after = obj["metadata"].get(field) or "", new_fields.get(field) or ""
        if before != after:
            problem = f"must have the same {name_in_messages}: {before} != {after}"
            raise InvalidConversion(f"returned invalid object: {problem}")
    if not isinstance(new_metadata, dict):
        problem = "missing metadata in"
        if "metadata" in converted:
            problem = f"invalid metadata of type {_go_type(new_metadata)} in"
        raise InvalidConversion(f"returned invalid metadata: {problem} converted object")
    for field in CHANGED_METADATA:
        _check_string_map(field, new_metadata.get(field), obj["metadata"].get(field) or {})


def _check_string_map(field: str, string_map: Any, before: Object) -> None:
    """Raise InvalidConversion for invalid labels or annotations (`field`), unless they are the same as `before`."""
    if string_map is None or string_map == before:
        return
    if not isinstance(string_map, dict):
        problem = f"invalid metadata.{field} of type {_go_type(string_map)} in converted object"
        raise InvalidConversion(f"returned invalid metadata: {problem}")
    for key, content in string_map.items():
        if not isinstance(content, str):
            problem = f"metadata.{field}[{key}] must be a string, but is {_go_type(content)} in converted object"
            raise InvalidConversion(f"returned invalid metadata: {problem}")
    check, path = _VALIDATION_BY_FIELD[field]
    errors = [str(field_error) for field_error in check(string_map, path)]
    if errors:
        raise InvalidConversion(f"returned invalid metadata: {authorizer.join_errors(errors)}")


def _go_type(value: Any) -> str:
    """The Go type of a parsed JSON value."""
    return "<nil>" if value is None else _GO_TYPE_NAMES[type(value)]
