"""What goes back to a client: bytes with a status, and how data becomes bytes.

Called by every handler. JSON has Go's escapes and the order of the schema; YAML is sorted as upstream's; protobuf is
made of the JSON.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from podscaler.api.protobuf import protobuf
from podscaler.api.text import json_text, yaml_output
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import protobuf_forms, warning_headers
from podscaler.controlplane.apiserver.http.negotiation import DISCOVERY_TYPE, PLAIN, Form

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """One complete response.

    Attributes:
        headers: further headers.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def unfinished_path(path: str) -> EncodedResponse:
    """The page for a path that says that something is watched, but not what."""
    why = f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
    text = f'Internal Server Error: "{path}": {why}\n'
    return EncodedResponse(text.encode(), 500, "text/plain; charset=utf-8")


NOT_FOUND_PAGE = EncodedResponse(b"404 page not found\n", 404, TEXT, headers={"X-Content-Type-Options": "nosniff"})


def text(content: str, status: int = 200) -> EncodedResponse:
    """A plain text."""
    return EncodedResponse(content.encode(), status, TEXT)


async def of_json(body: bytes, form: Form, *, status: int = 200) -> EncodedResponse:
    """An answer from JSON bytes, turned into YAML or protobuf where the client wants it.

    What has no protobuf form stays JSON.
    """
    if form.encoding == "protobuf":
        packed = protobuf_forms.of_json(body)
        if packed is not None:
            return of_protobuf(packed, status)
    if form.encoding == "yaml":
        return EncodedResponse(await asyncio.to_thread(_yaml_of, body), status, "application/yaml")
    content_type = DISCOVERY_TYPE if form.shape == "discovery" else "application/json"
    return EncodedResponse(body, status, content_type)


def of_protobuf(body: bytes, status: int = 200) -> EncodedResponse:
    """An answer that is a protobuf body already."""
    return EncodedResponse(body, status, protobuf.MEDIA_TYPE)


async def of(value: Any, form: Form = PLAIN, *, status: int = 200) -> EncodedResponse:
    """An answer from JSON-ready data."""
    return await of_json(json_text.encode(value), form, status=status)


async def refusal(error: StatusError, form: Form) -> EncodedResponse:
    """The Status of a failure."""
    plain = Form(form.encoding)
    answer = await of(error.to_status(), plain, status=error.code)
    answer.headers.update(error.headers)
    return answer


def add_warnings(response: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Tell the client each of the warnings, once, in a header of its own."""
    for value in warning_headers.values(warnings):
        response.headers.add("Warning", value)


def indented(body: bytes) -> bytes:
    """JSON for people."""
    return msgspec.json.format(body, indent=2) + b"\n"


def _yaml_of(body: bytes) -> bytes:
    return to_yaml(msgspec.json.decode(body))


def to_yaml(value: Any) -> bytes:
    """`value` as YAML, keys sorted. Slow for large values: belongs into a thread."""
    return yaml_output.write(value, sort_keys=True)
