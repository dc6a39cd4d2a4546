"""Answers as protobuf: objects, lists of them and events of watches, made of the JSON that is stored.

Called by `responses`, `rendering` and `streams`. Turning JSON into a message takes some fifty microseconds a kilobyte:
the messages of objects, which many clients list again and again, are therefore kept for a while.

Source: KEP-1152 and the API concepts on protobuf: lists and objects in an envelope with magic bytes, frames of a watch
behind four bytes with their length.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from podscaler.api.protobuf import protobuf
from podscaler.api.resource.resources import Object
from podscaler.api.schema import schema

STREAM_TYPE = f"{protobuf.MEDIA_TYPE};stream=watch"
PARTIAL = "PartialObjectMetadata"
META = "meta/v1"
MEMO_MAX_BYTES = 32 << 20

_decode = msgspec.json.Decoder().decode


class Memo:
    """Bare messages of objects by their JSON; remembers those that were wanted last."""

    def __init__(self, max_bytes: int = MEMO_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._known: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()

    def raw(self, body: bytes, message: str) -> bytes:
        """The bare message of an object's JSON."""
        key = (message, body)
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        made = self._known[key] = protobuf.encode_raw(_decode(body), message)
        self._bytes += len(body) + len(made)
        while self._bytes > self._max_bytes:
            (_, old), dropped = self._known.popitem(last=False)
            self._bytes -= len(old) + len(dropped)
        return made


def of_json(body: bytes) -> bytes | None:
    """The body of a JSON object that names its kind, None where that has no protobuf form."""
    obj = {"apiVersion": "v1", **_decode(body)}
    message = message_of(obj["apiVersion"], obj.get("kind", ""))
    return protobuf.encode(obj, message) if message is not None else None


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind, None where it has none; what belongs to every group is of `meta/v1`."""
    if kind.startswith(PARTIAL):
        return f"{META}.{kind}"
    return schema.find_kind(api_version, kind)


def listed(api_version: str, kind: str, metadata: Object, items: Iterable[bytes]) -> bytes:
    """The body of a list of bare messages."""
    return protobuf.envelope(protobuf.raw_list(metadata, items), api_version, kind)


def frame(event_type: str, body: bytes) -> bytes:
    """A frame of a watch: an event with the body of its object, behind its length."""
    event = protobuf.raw_watch_event(event_type, body)
    return struct.pack(">I", len(event)) + event
