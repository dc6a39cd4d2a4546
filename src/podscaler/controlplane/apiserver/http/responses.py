"""Builds complete responses (body, status, content type, headers) from JSON, text, protobuf or an API error.

Every handler returns an `EncodedResponse` of this module, or a stream. JSON has Go's escapes and the order of the
schema; the keys of YAML are sorted, as kube-apiserver's; protobuf is encoded from the JSON. A new encoding: a case in
`from_json`.

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
_WARNING_CODE = 299
"""The code of a miscellaneous persistent warning (RFC 7234, section 5.5.7)."""
_UNSENDABLE_CATEGORIES = ("Cc", "Cs")
"""Unicode categories of control characters and surrogates."""


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """One complete response; `headers` are the headers besides Content-Type and Content-Length."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def watch_without_resource(path: str) -> EncodedResponse:
    """The 500 for a path that ends at `/watch`."""
    problem = f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
    message = f'Internal Server Error: "{path}": {problem}\n'
    return EncodedResponse(message.encode(), 500, TEXT_TYPE)


NOT_FOUND_PAGE = EncodedResponse(b"404 page not found\n", 404, TEXT_TYPE, headers={"X-Content-Type-Options": "nosniff"})


def text(content: str, status: int = 200) -> EncodedResponse:
    """A plain text."""
    return EncodedResponse(content.encode(), status, TEXT_TYPE)


async def from_json(body: bytes, form: Form, *, status: int = 200) -> EncodedResponse:
    """A response with the JSON `body`, converted to the encoding of `form`; without a protobuf form it stays JSON."""
    if form.encoding == "protobuf":
        protobuf_body = protobuf_encoding.from_json(body)
        if protobuf_body is not None:
            return from_protobuf(protobuf_body, status)
    if form.encoding == "yaml":
        yaml_body = await asyncio.to_thread(lambda: to_yaml(msgspec.json.decode(body)))
        return EncodedResponse(yaml_body, status, "application/yaml")
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
    response = await encode_object(error.to_status(), Form(form.encoding), status=error.code)  # a Status has one shape
    response.headers.update(error.headers)
    return response


def add_warnings(response: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Add one `Warning` header for each different warning."""
    for header_value in warning_values(warnings):
        response.headers.add("Warning", header_value)


def warning_values(warnings: Iterable[str]) -> list[str]:
    """The values of the `Warning` headers; warnings with control characters or surrogates are left out."""
    distinct = [warning for warning in dict.fromkeys(warnings) if warning]
    if sum(map(len, distinct)) > WARNINGS_MAX_CHARACTERS:
        distinct = list(_shorten_all(distinct))
    return [f"{_WARNING_CODE} - {_quoted(warning)}" for warning in distinct if _is_sendable(warning)]


def _shorten_all(warnings: Iterable[str]) -> Iterator[str]:
    """The warnings cut to `WARNING_CUT_CHARACTERS`, until `WARNINGS_MAX_CHARACTERS` are reached."""
    total_characters = 0
    for warning in warnings:
        if total_characters >= WARNINGS_MAX_CHARACTERS:
            return
        shortened = warning[:WARNING_CUT_CHARACTERS]
        yield shortened
        total_characters += len(shortened)


def _is_sendable(warning: str) -> bool:
    """Whether a warning has no character that is not allowed in headers."""
    return not any(unicodedata.category(character) in _UNSENDABLE_CATEGORIES for character in warning)


def _quoted(warning: str) -> str:
    """The warning as a quoted-string of HTTP."""
    escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def indented(body: bytes) -> bytes:
    """JSON with line breaks and indentation."""
    return msgspec.json.format(body, indent=2) + b"\n"


def to_yaml(value: Any) -> bytes:
    """`value` as YAML with sorted keys. Slow for large values: call it in a thread."""
    return yaml_output.write(value, sort_keys=True)
