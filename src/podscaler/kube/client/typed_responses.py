"""Answers as typed objects, and the texts for answers of success that cannot be used.

The metrics clients and the scale client read answers here. Upstream reads the resource and external metrics APIs with
typed clients, which take an answer without a kind for what was asked for; the custom metrics API and scales with
clients that want a kind. Their texts differ.

Source: docs/spec/decision.md 7.6 (How an HTTP failure becomes text, rule 3).
"""

from typing import TypeVar

import msgspec

from podscaler.base.errors import StatusError
from podscaler.kube.client import api_errors
from podscaler.kube.transport.transport import Response

T = TypeVar("T")


class _Kind(msgspec.Struct):
    kind: str = ""


def typed(answer: Response, decoder: "msgspec.json.Decoder[T]") -> T:
    """The object in an answer that may leave out its kind (resource and external metrics). Raises StatusError."""
    content_type = answer.headers.get("content-type", "application/json").partition(";")[0].strip()
    if not answer.body:
        raise _unusable(f"0-length response with status code: {answer.status} and content type: {content_type}")
    if content_type != "application/json":
        raise _unusable(f"serializer for {content_type} doesn't exist")
    return _decoded(answer.body, decoder)


def with_kind(answer: Response, decoder: "msgspec.json.Decoder[T]") -> T:
    """The object in an answer that must name its kind (custom metrics, scale). Raises StatusError."""
    try:
        kind = msgspec.json.decode(answer.body, type=_Kind).kind if answer.body else ""
    except msgspec.DecodeError as error:
        raise _unusable(f"couldn't get version/kind; json parse error: {error}") from error
    if not kind:
        raise _unusable(f"Object 'Kind' is missing in '{answer.body.decode(errors='replace')}'")
    return _decoded(answer.body, decoder)


def _decoded(body: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise api_errors.of_status(body) or _unusable(f"unable to decode the answer: {error}") from error


def _unusable(text: str) -> StatusError:
    return StatusError(text, code=0)
