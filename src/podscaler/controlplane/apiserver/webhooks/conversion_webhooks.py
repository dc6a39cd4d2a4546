"""Calls the conversion webhooks of CustomResourceDefinitions (apiextensions.k8s.io ConversionReview v1 and v1beta1).

`registry.remote_conversion` calls `ConversionWebhooks.convert` for objects that a read or write needs in another
version. One call converts all of them.

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
_SAME_FIELDS = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
_CHECKS = {
    "labels": (metadata.label_errors, "metadata.labels"),
    "annotations": (metadata.annotation_errors, "metadata.annotation"),
}
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
    """Calls conversion webhooks; a RemoteConverter.

    Args:
        client: the connections to webhooks.
    """

    def __init__(self, client: WebhookClient) -> None:
        self._client = client

    async def convert(self, needed: ConversionNeeded) -> list[Object]:
        """The converted objects, in their order. Raises StatusError 500."""
        try:
            return await self._convert(needed)
        except InvalidConversion as error:
            first = needed.objects[0]
            named = f"{first['apiVersion']}, Kind={first['kind']}"
            raise api_errors.error_without_reason(f"conversion webhook for {named} {error}") from error

    async def _convert(self, needed: ConversionNeeded) -> list[Object]:
        """The converted objects, in their order. Raises InvalidConversion."""
        review = _review_of(needed)
        config = needed.webhook["clientConfig"]
        try:
            authority = base64.b64decode(config.get("caBundle") or "").strip()
            body = await self._client.post(config, authority, msgspec.json.encode(review), TIMEOUT_S)
        except (CallError, binascii.Error) as error:
            raise InvalidConversion(f"failed: {error}") from error
        results = _parse_response(body, review)
        if len(results) != len(needed.objects):
            raise InvalidConversion(f"returned {len(results)} objects, expected {len(needed.objects)}")
        for index, (obj, result) in enumerate(zip(needed.objects, results, strict=True)):
            _check_converted(obj, result, needed.api_version, index)
        return results


def _review_of(needed: ConversionNeeded) -> Object:
    """The ConversionReview to send, in the first version that is known."""
    listed = needed.webhook.get("conversionReviewVersions") or []
    version = next((each for each in listed if each in VERSIONS), VERSIONS[0])
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
    wanted, given = review["request"]["uid"], response.get("uid") or ""
    if is_v1 and given != wanted:
        raise InvalidConversion(f'failed: expected response.uid="{wanted}", got "{given}"')
    result: Object = response["result"] if isinstance(response.get("result"), dict) else {}
    status, message = (str(result.get(name) or "") for name in ("status", "message"))
    if status != "Success":
        why = message or f"response.result.status was '{status}', not 'Success'"
        raise InvalidConversion(f"failed: {why}")
    converted = response.get("convertedObjects") or []
    return converted if isinstance(converted, list) else []


def _check_converted(obj: Object, result: Any, api_version: str, index: int) -> None:
    """Raise InvalidConversion unless `result` is `obj` in that version, with valid labels and annotations."""
    result = result if isinstance(result, dict) else {}
    invalid, stated = f"returned invalid object at index {index}", result.get("apiVersion") or ""
    if stated != api_version:
        raise InvalidConversion(f"{invalid}: invalid groupVersion (expected {api_version}, received {stated})")
    if result.get("kind") != obj["kind"]:
        stated = result.get("kind") or ""
        raise InvalidConversion(f"{invalid}: invalid kind (expected {obj['kind']}, received {stated})")
    converted = result.get("metadata")
    members = converted if isinstance(converted, dict) else {}
    for name, shown in _SAME_FIELDS:
        before, after = obj["metadata"].get(name) or "", members.get(name) or ""
        if before != after:
            raise InvalidConversion(f"returned invalid object: must have the same {shown}: {before} != {after}")
    if not isinstance(converted, dict):
        why = (
            "missing metadata in" if "metadata" not in result else f"invalid metadata of type {_go_type(converted)} in"
        )
        raise InvalidConversion(f"returned invalid metadata: {why} converted object")
    for member in CHANGED_METADATA:
        _check_texts(member, converted.get(member), obj["metadata"].get(member) or {})


def _check_texts(member: str, texts: Any, before: Object) -> None:
    """Raise InvalidConversion for invalid labels or annotations, unless they are unchanged."""
    if texts is None or texts == before:
        return
    if not isinstance(texts, dict):
        why = f"invalid metadata.{member} of type {_go_type(texts)} in converted object"
        raise InvalidConversion(f"returned invalid metadata: {why}")
    for key, text in texts.items():
        if not isinstance(text, str):
            why = f"metadata.{member}[{key}] must be a string, but is {_go_type(text)} in converted object"
            raise InvalidConversion(f"returned invalid metadata: {why}")
    check, path = _CHECKS[member]
    errors = [str(each) for each in check(texts, path)]
    if errors:
        raise InvalidConversion(f"returned invalid metadata: {authorizer.join_errors(errors)}")


def _go_type(value: Any) -> str:
    """The Go type of a parsed JSON value."""
    return "<nil>" if value is None else _GO_TYPE_NAMES[type(value)]
