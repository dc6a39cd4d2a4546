"""Decodes responses into typed objects, with the error texts for bodies that cannot be decoded.

`podscaler.metrics.metrics_apis` and `podscaler.controller.informers.scale_client` use it. The HPA controller reads the
resource and external metrics APIs with typed clients, which accept a body without a kind (`typed`); the custom metrics
API and scales with clients that need a kind (`with_kind`). Their error texts differ.

Source: docs/spec/decision.md 7.6 (How an HTTP failure becomes text, rule 3).
"""

from typing import TypeVar

import msgspec

from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client import api_errors
from podscaler.kube.transport.transport import Response

T = TypeVar("T")


class _Kind(msgspec.Struct):
    """The kind of a response, by which a Status is distinguished from an object."""

    kind: str = ""


def typed(response: Response, decoder: "msgspec.json.Decoder[T]") -> T:
    """The object in a response whose kind is optional (resource and external metrics).

    Raises StatusError for an empty body, another type than JSON, and another object.
    """
    content_type = response.headers.get("content-type", "application/json").partition(";")[0].strip()
    if not response.body:
        raise _unusable(f"0-length response with status code: {response.status} and content type: {content_type}")
    if content_type != "application/json":
        raise _unusable(f"serializer for {content_type} doesn't exist")
    return _decode(response.body, decoder)


def with_kind(response: Response, decoder: "msgspec.json.Decoder[T]") -> T:
    """The object in a response whose kind is required (custom metrics, scale). Raises StatusError for other bodies."""
    try:
        kind = msgspec.json.decode(response.body, type=_Kind).kind if response.body else ""
    except JSON_DECODE_ERRORS as error:
        raise _unusable(f"couldn't get version/kind; json parse error: {error}") from error
    if not kind:
        raise _unusable(f"Object 'Kind' is missing in '{response.body.decode(errors='replace')}'")
    return _decode(response.body, decoder)


def _decode(body: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    """The object in a body. Raises StatusError: that of the body if it is the Status of a failure, else one of ours."""
    try:
        return decoder.decode(body)
    except JSON_DECODE_ERRORS as error:
        raise api_errors.of_status(body) or _unusable(f"unable to decode the answer: {error}") from error


def _unusable(message: str) -> StatusError:
    """The error of a body; its code 0 says that it is no response of the server."""
    return StatusError(message, code=0)
