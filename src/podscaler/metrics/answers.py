"""Answers of metrics APIs as typed lists, and the texts for answers that cannot be used.

Upstream reads the resource and external APIs with typed clients, which take an answer without a kind for the list that
was asked for, and the custom API with one that wants a kind; their texts differ.

Source: decision.md 7.6 rule 3.
"""

from typing import TypeVar

import msgspec

from podscaler.errors import StatusError
from podscaler.kube import failures
from podscaler.kube.transport import Answer

L = TypeVar("L")


class _Kind(msgspec.Struct):
    kind: str = ""


def typed(answer: Answer, decoder: "msgspec.json.Decoder[L]") -> L:
    """The list in an answer of the resource or external metrics API. Raises StatusError."""
    content_type = answer.headers.get("content-type", "application/json").partition(";")[0].strip()
    if not answer.body:
        raise _unusable(f"0-length response with status code: {answer.status} and content type: {content_type}")
    if content_type != "application/json":
        raise _unusable(f"serializer for {content_type} doesn't exist")
    return _decoded(answer.body, decoder)


def with_kind(answer: Answer, decoder: "msgspec.json.Decoder[L]") -> L:
    """The list in an answer of the custom metrics API. Raises StatusError."""
    try:
        kind = msgspec.json.decode(answer.body, type=_Kind).kind if answer.body else ""
    except msgspec.DecodeError as error:
        raise _unusable(f"couldn't get version/kind; json parse error: {error}") from error
    if not kind:
        raise _unusable(f"Object 'Kind' is missing in '{answer.body.decode(errors='replace')}'")
    return _decoded(answer.body, decoder)


def _decoded(body: bytes, decoder: "msgspec.json.Decoder[L]") -> L:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise failures.of_status(body) or _unusable(f"unable to decode the answer: {error}") from error


def _unusable(text: str) -> StatusError:
    return StatusError(text, code=0)
