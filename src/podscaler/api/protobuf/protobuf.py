"""Encodes and decodes Kubernetes protobuf bodies (`application/vnd.kubernetes.protobuf`).

A body is an envelope with apiVersion, kind and the message of the object. Called by the API server for requests of
kubectl and client-go, and for responses to clients that prefer protobuf.

    body = protobuf.decode(b"k8s\\x00...")            Body(obj, "apps/v1", "Deployment")
    decoding.decode_value(body.obj, "apps/v1.Deployment")
    protobuf.encode(obj, "apps/v1.Deployment")      b"k8s\\x00..."

Invariants: google.protobuf is imported at the first body, since most processes need none; so the imports of
`protobuf_json` and `protobuf_types` are in functions. A malformed body raises DecodeError. The attributes `f1`, `f2` of
messages are their fields by number (`protobuf_types`): of Unknown type meta and object, of WatchEvent type and object.

Source: the envelope is pkg/runtime.Unknown after four magic bytes; the numbers are the schema's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from podscaler.api.schema import schema
from podscaler.api.text.json_text import DecodeError

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"

_UNKNOWN = "pkg/runtime.Unknown"
_LIST = "meta/v1.List"
_WATCH_EVENT = "meta/v1.WatchEvent"
_ITEM_TAG = b"\x12"
"""The protobuf tag before each item of a list: field 2, a message."""


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body.

    Attributes:
        obj: the JSON-ready object, not yet decoded by the schema, without kind and apiVersion; empty for an unknown
            kind.
        api_version, kind: those of the envelope; empty if it has none.
    """

    obj: dict[str, Any]
    api_version: str
    kind: str


def decode(body: bytes, message: str = "") -> Body:
    """The object of a body, of type `message` where the envelope has no kind. Raises DecodeError."""
    api_version, kind, raw_object = _open_envelope(body)
    message_name = (schema.find_kind(api_version, kind) or "") if kind else message
    return Body(decode_raw(raw_object, message_name) if message_name else {}, api_version, kind)


def decode_raw(raw: bytes, message: str) -> dict[str, Any]:
    """The JSON-ready object of a bare message, without envelope. Raises DecodeError; KeyError (unknown message)."""
    from podscaler.api.protobuf import protobuf_json

    value: dict[str, Any] = protobuf_json.to_value(_parse_message(raw, message), message)
    return value


def encode(obj: dict[str, Any], message: str) -> bytes:
    """The body of an object (decoded or stored form of `message`). Raises KeyError for an unknown message.

    Fields that the message does not have are left out.
    """
    from podscaler.api.protobuf import protobuf_json

    type_meta = {"apiVersion": obj.get("apiVersion", ""), "kind": obj.get("kind", "")}
    unknown = {"typeMeta": type_meta, "raw": encode_raw(obj, message)}
    return MAGIC + protobuf_json.from_value(unknown, _UNKNOWN).SerializeToString()


def encode_raw(obj: dict[str, Any], message: str) -> bytes:
    """The bare message of an object, without envelope. Raises KeyError for an unknown message."""
    from podscaler.api.protobuf import protobuf_json

    return protobuf_json.from_value(obj, message).SerializeToString(deterministic=True)


def envelope(raw: bytes, api_version: str, kind: str) -> bytes:
    """The body of an object whose bare message is `raw`."""
    from podscaler.api.protobuf import protobuf_types

    unknown: Any = protobuf_types.for_message(_UNKNOWN)()
    unknown.f1.f1, unknown.f1.f2, unknown.f2 = api_version, kind, raw
    return MAGIC + bytes(unknown.SerializeToString())


def raw_list(metadata: dict[str, Any], items: Iterable[bytes]) -> bytes:
    """The bare message of a list (of any kind: all lists have the same two fields), from bare messages of its items."""
    parts = [encode_raw({"metadata": metadata}, _LIST)]
    for item in items:
        parts += (_ITEM_TAG, _varint(len(item)), item)
    return b"".join(parts)


def raw_watch_event(event_type: str, body: bytes) -> bytes:
    """The bare message of a watch event, from the body of its object."""
    from podscaler.api.protobuf import protobuf_types

    event: Any = protobuf_types.for_message(_WATCH_EVENT)()
    event.f1, event.f2.f1 = event_type, body
    return bytes(event.SerializeToString())


def _varint(number: int) -> bytes:
    """A length as base-128 varint: seven bits in each byte, the lowest first; the high bit marks that more follow."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _open_envelope(body: bytes) -> tuple[str, str, bytes]:
    """The apiVersion, the kind and the encoded object of a body. Raises DecodeError."""
    if not body.startswith(MAGIC):
        expected = " ".join(str(byte) for byte in MAGIC)
        raise DecodeError(f"provided data does not appear to be a protobuf message, expected prefix [{expected}]")
    from podscaler.api.protobuf import protobuf_json

    unknown = _parse_message(body[len(MAGIC) :], _UNKNOWN)
    return protobuf_json.text(unknown.f1.f1), protobuf_json.text(unknown.f1.f2), unknown.f2


def _parse_message(raw: bytes, message: str) -> Any:
    """The message of the bytes. Raises DecodeError."""
    from google.protobuf.message import DecodeError as WireError

    from podscaler.api.protobuf import protobuf_types

    try:
        return protobuf_types.for_message(message).FromString(raw)
    except WireError:
        raise DecodeError("proto: the data is not a valid message") from None
