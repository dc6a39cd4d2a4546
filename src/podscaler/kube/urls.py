"""Paths and queries escaped as Go's HTTP client does it.

Everything that asks an API server builds its URLs here.

Source: controller.md 10; the documentation of Go's package net/url.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

PATH_SAFE = "$&+,/:;=@"
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch


def query(parameters: Iterable[tuple[str, str]]) -> str:
    """The encoded query: in alphabetical order of names, space as `+`; parameters with an empty value are left out."""
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(parameters) if value)


def path(*segments: str) -> str:
    """An absolute path of `segments`, each escaped (a star becomes `%2A`); empty segments are left out."""
    return "".join([f"/{_escaped(segment)}" for segment in segments if segment])


def _escaped(segment: str) -> str:
    """Most segments are names of objects, which need nothing; finding that out costs a tenth of escaping."""
    return segment if _PLAIN(segment) else quote(segment, safe=PATH_SAFE)


def group_version(group: str, version: str) -> str:
    """The path under which a group's version is served: `/api/v1`, `/apis/apps/v1`."""
    return path("apis", group, version) if group else path("api", version)
