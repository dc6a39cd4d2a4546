"""What goes back to a client: bytes with a status, and how data becomes bytes.

Called by every handler. JSON has Go's escapes and the order of the schema; YAML is sorted as upstream's.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml
from aiohttp import web

from podscaler.api import json_text
from podscaler.controlplane.server.negotiation import DISCOVERY_TYPE, PLAIN, Form
from podscaler.errors import StatusError

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete response.

    Attributes:
        headers: further headers.
    """

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


NOT_FOUND_PAGE = Answer(b"404 page not found\n", 404, TEXT, headers={"X-Content-Type-Options": "nosniff"})


def text(content: str, status: int = 200) -> Answer:
    """A plain text."""
    return Answer(content.encode(), status, TEXT)


async def of_json(body: bytes, form: Form, *, status: int = 200) -> Answer:
    """An answer from JSON bytes, turned into YAML where the client wants it."""
    if form.encoding == "yaml":
        return Answer(await asyncio.to_thread(_yaml_of, body), status, "application/yaml")
    content_type = DISCOVERY_TYPE if form.shape == "discovery" else "application/json"
    return Answer(body, status, content_type)


async def of(value: Any, form: Form = PLAIN, *, status: int = 200) -> Answer:
    """An answer from JSON-ready data."""
    return await of_json(json_text.encode(value), form, status=status)


async def refusal(error: StatusError, form: Form) -> Answer:
    """The Status of a failure."""
    plain = Form(form.encoding)
    answer = await of(error.to_status(), plain, status=error.code)
    answer.headers.update(error.headers)
    return answer


def add_warnings(response: web.StreamResponse, warnings: Iterable[str]) -> None:
    """Tell the client each of the warnings, once, in a header of its own."""
    for warning in dict.fromkeys(warnings):
        response.headers.add("Warning", f"299 - {_quoted(warning)}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(character if character.isprintable() else " " for character in escaped) + '"'


def indented(body: bytes) -> bytes:
    """JSON for people."""
    return msgspec.json.format(body, indent=2) + b"\n"


def _yaml_of(body: bytes) -> bytes:
    return to_yaml(msgspec.json.decode(body))


_TEXT_TAG = "tag:yaml.org,2002:str"


class _Dumper(yaml.CSafeDumper):
    """Writes YAML as Go's library does: double quotes where a text would read as something else, no line folding."""

    def ignore_aliases(self, data: Any) -> bool:
        """Equal parts are written out each time."""
        del data
        return True


_READS_AS_OTHER = re.compile(r"[yYnN]|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?0[xob][0-9a-fA-F]+")
"""Texts that Go's library quotes although PyYAML would not: old booleans, and numbers of other spellings."""


def _represent_text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = None
    if "\n" in value:
        style = "|"
    elif _READS_AS_OTHER.fullmatch(value) or _resolve(dumper, value) != _TEXT_TAG:
        style = '"'
    return dumper.represent_scalar(_TEXT_TAG, value, style=style)


def _resolve(dumper: _Dumper, value: str) -> str:
    """The tag that a reader would give to the plain text."""
    resolve: Callable[[type, str, tuple[bool, bool]], str] = dumper.resolve
    return resolve(yaml.ScalarNode, value, (True, False))


_Dumper.add_representer(str, _represent_text)


def to_yaml(value: Any) -> bytes:
    """`value` as YAML, keys sorted. Slow for large values: belongs into a thread."""
    dumped: bytes = yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=2**30, encoding="utf-8")
    return dumped
