"""Decodes pages of lists and events of watches, and classifies their errors.

`informers.reflector` uses it. After a failed watch it asks `needs_new_list`, and then `is_expired` for the version to
list from. Objects stay undecoded, as their fields depend on the kind.

Source: the API concepts page of the Kubernetes documentation (efficient detection of changes); KEP-3157.
"""

import msgspec

from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.kube.client import api_errors
from podscaler.kube.transport.transport import TransportError

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the initial events."""
NO_STREAMED_LISTS = frozenset({400, 405, 406, 415, 422})
"""Status codes of servers that do not know `sendInitialEvents`, or have it disabled."""
_RESUMED_CODES = frozenset({401, 429, 500, 502, 503})
"""Status codes that say nothing about our version: of rejected credentials, busy servers, and gateways."""


class ListMeta(msgspec.Struct, rename="camel"):
    """`metadata` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct):
    """A list, or a page of one; its objects are not decoded."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch: `{"type": "ADDED", "object": {...}}`."""

    type: str
    object: msgspec.Raw


class _VersionMeta(msgspec.Struct, rename="camel"):
    """The fields of an object's metadata that are read; only those of bookmarks have the annotation."""

    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Versioned(msgspec.Struct):
    """An object of a watch event, such as a bookmark."""

    metadata: _VersionMeta


class EndedEarly(StatusError):
    """A watch with initial events ended before they were complete."""

    def __init__(self) -> None:
        super().__init__("the watch ended before its initial events were complete", code=0)


_PAGE_DECODER = msgspec.json.Decoder(Page)
_EVENT_DECODER = msgspec.json.Decoder(WatchEvent)
_VERSIONED_DECODER = msgspec.json.Decoder(_Versioned)


def page(body: bytes) -> Page:
    """The list in a response's body. Raises StatusError."""
    try:
        return _PAGE_DECODER.decode(body)
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"unable to decode a list: {error}", code=0) from error


def event(line: bytes) -> WatchEvent:
    """The event in a line. Raises StatusError for one of type ERROR, and for a line that is not an event."""
    try:
        watch_event = _EVENT_DECODER.decode(line)
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"unable to decode an event of the watch stream: {error}", code=0) from error
    if watch_event.type == "ERROR":
        raise api_errors.of_status(bytes(watch_event.object)) or StatusError(
            "unknown error in the watch stream", code=500
        )
    return watch_event


def version_of(object_json: msgspec.Raw) -> str:
    """The resource version of an object; empty if it cannot be read."""
    try:
        return _VERSIONED_DECODER.decode(object_json).metadata.resource_version
    except JSON_DECODE_ERRORS:
        return ""


def ends_initial_events(bookmark_json: msgspec.Raw) -> bool:
    """Whether a bookmark marks the end of the initial events."""
    try:
        return (_VERSIONED_DECODER.decode(bookmark_json).metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
    except JSON_DECODE_ERRORS:
        return False


def is_expired(error: StatusError) -> bool:
    """Whether to list again without a version: ours is too old (410), or too new for this server (504)."""
    is_too_large = any("Too large resource version" in cause.message for cause in error.causes)
    return error.code == 410 or error.reason in ("Expired", "Gone") or is_too_large or error.code == 504


def needs_new_list(error: StatusError) -> bool:
    """Whether a failure needs a new list; False if the server is unreachable or busy, as the watch is resumed then."""
    if isinstance(error, TransportError) or error.code == 0:  # 0: no response, or none that can be decoded
        return False
    return error.code not in _RESUMED_CODES


def refuses_streamed_lists(error: StatusError) -> bool:
    """Whether the server does not support streamed lists."""
    return error.code in NO_STREAMED_LISTS
