"""Encodes objects, lists and watch events as protobuf, from their stored JSON.

`responses`, `object_responses` and `watch_streams` call it. Encoding takes some fifty microseconds for each kilobyte of
JSON, so the messages of recently requested objects are cached.

Source: KEP-1152 and the API concepts on protobuf: lists and objects in an envelope with magic bytes, watch events with
a prefix of four bytes for their length.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from podscaler.api.protobuf import protobuf
from podscaler.api.resource.resources import Object
from podscaler.api.schema import schema

STREAM_TYPE = f"{protobuf.MEDIA_TYPE};stream=watch"
_PARTIAL_OBJECT = "PartialObjectMetadata"
_META_PACKAGE = "meta/v1"
CACHE_MAX_BYTES = 32 << 20
"""The most bytes of JSON and messages together in a cache."""

_decode = msgspec.json.Decoder().decode


class MessageCache:
    """Protobuf messages by the JSON of their objects; the least recently used are dropped beyond `max_bytes`."""

    def __init__(self, max_bytes: int = CACHE_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._cache: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()

    def encode(self, body: bytes, type_name: str) -> bytes:
        """The message of an object's JSON (`body`), without an envelope; `type_name` is its type in the schema."""
        key = (type_name, body)
        cached = self._cache.get(key)
        if cached is not None:
            self._cache.move_to_end(key)
            return cached
        encoded = self._cache[key] = protobuf.encode_raw(_decode(body), type_name)
        self._bytes += len(body) + len(encoded)
        while self._bytes > self._max_bytes:
            (_, oldest_body), oldest_encoded = self._cache.popitem(last=False)
            self._bytes -= len(oldest_body) + len(oldest_encoded)
        return encoded


def from_json(body: bytes) -> bytes | None:
    """The protobuf body, in an envelope, of a JSON object with a `kind`; None if the kind has no protobuf form."""
    obj = {"apiVersion": "v1", **_decode(body)}
    type_name = _find_type_name(obj["apiVersion"], obj.get("kind", ""))
    return protobuf.encode(obj, type_name) if type_name is not None else None


def _find_type_name(api_version: str, kind: str) -> str | None:
    """The schema's name of a kind's type, None if it has none; PartialObjectMetadata is of `meta/v1`."""
    if kind.startswith(_PARTIAL_OBJECT):  # also PartialObjectMetadataList
        return f"{_META_PACKAGE}.{kind}"
    return schema.find_kind(api_version, kind)


def encode_list(api_version: str, kind: str, metadata: Object, items: Iterable[bytes]) -> bytes:
    """The protobuf body, in an envelope, of a list of `items` (messages without envelope)."""
    return protobuf.envelope(protobuf.raw_list(metadata, items), api_version, kind)


def encode_watch_event(event_type: str, body: bytes) -> bytes:
    """A watch event with its length prefix; `body` is the protobuf body of the object."""
    event = protobuf.raw_watch_event(event_type, body)
    return struct.pack(">I", len(event)) + event
