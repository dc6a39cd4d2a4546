"""Builds paths and queries of URLs, escaped as by Go's HTTP client: `path("apis", "a b")` is `/apis/a%20b`.

All requests to API servers get their URLs here; names from objects are checked first (`object_name`, `resource`,
`subresource`). The URLs that users give are checked by `address_error`.

Source: docs/spec/controller.md 10 (REST requests); the documentation of Go's package net/url.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from podscaler.api.machinery import names, numbers
from podscaler.api.text.quoting import quoted
from podscaler.base.errors import StatusError

PATH_SAFE = "$&+,/:;=@"
"""The characters of a path, besides letters, digits and `_.-~`, that Go does not escape."""
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_AUTHORITY = re.compile(r"[^:/?#]+://([^/?#]*)")
_PORT = re.compile(r"(:[0-9]*)?").fullmatch
_NO_HOST_CHARACTER = re.compile(r"[\x00-\x20\\^`{|}\x7f]")
_ESCAPE = re.compile(r"%.{0,2}", re.DOTALL)
_UNESCAPED = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch


def query(parameters: Iterable[tuple[str, str]]) -> str:
    """The encoded query: in alphabetical order of names, space as `+`; parameters with an empty value are left out."""
    return "&".join(f"{quote_plus(name)}={quote_plus(argument)}" for name, argument in sorted(parameters) if argument)


def path(*segments: str) -> str:
    """An absolute path of `segments`, each escaped (a star becomes `%2A`); empty segments are left out."""
    return "".join([f"/{_escaped(segment)}" for segment in segments if segment])


def _escaped(segment: str) -> str:
    """A segment with its escapes. Most segments are plain names, and the match costs a tenth of `quote`."""
    return segment if _UNESCAPED(segment) else quote(segment, safe=PATH_SAFE)


def object_name(name: str) -> str:
    """`name`, checked to be one segment of a path.

    Raises StatusError with the text of client-go's Request.Name: where paths are normalised, a name such as `../x`
    would denote another object.
    """
    return _segment(name, "resource name")


def resource(name: str) -> str:
    """`name` in place of a resource, such as an external metric. Raises StatusError as client-go's Request.Resource."""
    return _segment(name, "resource")


def subresource(name: str) -> str:
    """`name` of a subresource, such as a custom metric. Raises StatusError as client-go's Request.SubResource."""
    return _segment(name, "subresource")


def _segment(name: str, kind: str) -> str:
    """A name as a segment of a path; `kind` says what it names in the error.

    Raises StatusError (code 0) if it is invalid.
    """
    if errors := names.path_segment_errors(name):
        raise StatusError(f"invalid {kind} {quoted(name)}: [{' '.join(errors)}]", code=0)
    return name


def group_version(group: str, version: str) -> str:
    """The path under which a group's version is served: `/api/v1`, `/apis/apps/v1`."""
    return path("apis", group, version) if group else path("api", version)


def address_error(url: str) -> str:
    """The error of host and port of a URL with a scheme, in the words of Go's net/url and net; empty if both are valid.

    A URL without a host has no error here.
    """
    if _CONTROL_CHARACTER.search(url):
        return f"parse {quoted(url)}: net/url: invalid control character in URL"
    match = _AUTHORITY.match(url)
    host = match[1].rpartition("@")[2] if match else ""
    if host_error := _host_error(host):
        return f"parse {quoted(url)}: {host_error}"
    port = host.rpartition(":")[2] if _has_port(host) else ""
    try:
        numbers.parse_uint(port or "0", 16)  # 16 bits
    except ValueError:
        return f"dial tcp: address {port}: invalid port"
    return ""


def _host_error(host: str) -> str:
    """The error of net/url for a host with an optional port; empty if there is none."""
    if host.startswith("["):
        if "]" not in host:
            return "missing ']' in host"
        port = host.rpartition("]")[2]
    else:
        colon = host.find(":")
        port = host[colon:] if colon >= 0 else ""
    if not _PORT(port):
        return f"invalid port {quoted(port)} after host"
    if escape := _ESCAPE.search(host):
        return f"invalid URL escape {quoted(escape[0])}"
    if invalid_character := _NO_HOST_CHARACTER.search(host):
        return f"invalid character {quoted(invalid_character[0])} in host name"
    return ""


def _has_port(host: str) -> bool:
    """Whether `host` ends in a colon and a port, which may be empty; the colons of an IPv6 address do not count."""
    return ":" in host.rpartition("]")[2]
