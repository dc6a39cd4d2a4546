"""Builds complete responses (body, status, content type, headers) from JSON, text, protobuf or an API error.

Every handler returns an `EncodedResponse` of this module, or a stream. JSON has Go's escapes and the order of the
schema; the keys of YAML are sorted, as kube-apiserver's; protobuf is encoded from the JSON.

Source for warnings: kube-apiserver's warning filter and apimachinery's NewWarningHeader (RFC 9111's `warning-value`).
"""

import asyncio
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from podscaler.api.protobuf import protobuf
from podscaler.api.text import json_text, yaml_output
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import protobuf_encoding
from podscaler.controlplane.apiserver.http.negotiation import DISCOVERY_TYPE, PLAIN_JSON, Form

TEXT_TYPE = "text/plain; charset=utf-8"
WARNINGS_MAX_CHARACTERS = 4 * 1024
"""The most characters of all warnings together; if there are more, each warning is cut to `WARNING_CUT_CHARACTERS`, and
the warnings past the limit are dropped."""
WARNING_CUT_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """One complete response; `headers` are the headers besides Content-Type and Content-Length."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def watch_without_resource(path: str) -> EncodedResponse:
    """The 500 for a path that ends at `/watch`."""
    why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
    text = f'Internal Server Error: "{path}": {why}\n'
    return EncodedResponse(text.encode(), 500, TEXT_TYPE)


NOT_FOUND_PAGE = EncodedResponse(b"404 page not found\n", 404, TEXT_TYPE, headers={"X-Content-Type-Options": "nosniff"})


def text(content: str, status: int = 200) -> EncodedResponse:
    """A plain text."""
    return EncodedResponse(content.encode(), status, TEXT_TYPE)


async def from_json(body: bytes, form: Form, *, status: int = 200) -> EncodedResponse:
    """A response with the JSON `body`, converted to the encoding of `form`; without a protobuf form it stays JSON."""
    if form.encoding == "protobuf":
        packed = protobuf_encoding.from_json(body)
        if packed is not None:
            return from_protobuf(packed, status)
    if form.encoding == "yaml":
        return EncodedResponse(
            await asyncio.to_thread(lambda: to_yaml(msgspec.json.decode(body))), status, "application/yaml"
        )
    content_type = DISCOVERY_TYPE if form.shape == "discovery" else "application/json"
    return EncodedResponse(body, status, content_type)


def from_protobuf(body: bytes, status: int = 200) -> EncodedResponse:
    """A response with a protobuf body (in its envelope)."""
    return EncodedResponse(body, status, protobuf.MEDIA_TYPE)


async def encode_object(value: Any, form: Form = PLAIN_JSON, *, status: int = 200) -> EncodedResponse:
    """A response with JSON-ready data in the encoding of `form`."""
    return await from_json(json_text.encode(value), form, status=status)


async def from_error(error: StatusError, form: Form) -> EncodedResponse:
    """The response for an API error: its Status object and its headers."""
    response = await encode_object(error.to_status(), Form(form.encoding), status=error.code)
    response.headers.update(error.headers)
    return response


def add_warnings(response: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Add one `Warning` header for each different warning."""
    for value in warning_values(warnings):
        response.headers.add("Warning", value)


def warning_values(warnings: Iterable[str]) -> list[str]:
    """The values of the `Warning` headers; texts with control characters or surrogates are left out."""
    texts = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, texts)) > WARNINGS_MAX_CHARACTERS:
        texts = list(_shorten_all(texts))
    return [f"299 - {_quoted(text)}" for text in texts if _is_sendable(text)]


def _shorten_all(texts: Iterable[str]) -> Iterator[str]:
    length = 0
    for text in texts:
        if length >= WARNINGS_MAX_CHARACTERS:
            return
        yield text[:WARNING_CUT_CHARACTERS]
        length += len(text[:WARNING_CUT_CHARACTERS])


def _is_sendable(text: str) -> bool:
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def indented(body: bytes) -> bytes:
    """JSON with line breaks and indentation."""
    return msgspec.json.format(body, indent=2) + b"\n"


def to_yaml(value: Any) -> bytes:
    """`value` as YAML with sorted keys. Slow for large values: call it in a thread."""
    return yaml_output.write(value, sort_keys=True)
