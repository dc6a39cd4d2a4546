"""Converts protobuf messages to JSON-ready data and back.

    to_value(from_value({"name": "a"}, "meta/v1.ObjectMeta"), "meta/v1.ObjectMeta")      {"name": "a"}

Called by `protobuf`. `podscaler.api.schema.decoding` normalizes the data afterwards. `proto.f1` is the field with the
number 1 (`protobuf_types`). A message with a JSON form of its own: `_SPECIAL_FORMS`.

Source: the protobuf messages of the Go types that have a JSON form of their own (meta/v1 Time in seconds and nanos,
...).
"""

import base64
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.message import Message as Proto

from podscaler.api.machinery import duration, instants
from podscaler.api.protobuf import protobuf_types
from podscaler.api.schema import schema
from podscaler.api.schema.schema import Field
from podscaler.api.text import json_text
from podscaler.api.text.json_text import DecodeError
from podscaler.base import clock

_INT, _STRING = 0, 1
"""The values of IntOrString's field `type`, which is `f1`; `f2` is the number, `f3` the text."""


def to_value(proto: Any, message: str) -> Any:
    """The JSON-ready form of a message, not yet canonical. Raises DecodeError if parts of it cannot be read."""
    special_form = _SPECIAL_FORMS.get(message)
    if special_form is not None:
        read, _ = special_form
        return read(proto)
    if schema.get_message(message).list:
        return [text(item) for item in proto.f1]
    members: dict[str, Any] = {}
    fields = _fields_by_number(message)
    for descriptor, value in proto.ListFields():
        field = fields.get(descriptor.number)
        if field is None:
            continue
        if field.inline:
            members |= to_value(value, field.type)
        else:
            members[field.name] = _field_value(value, field)
    return members


def from_value(value: Any, message: str) -> Proto:
    """The message of JSON-ready data in canonical form (unknown fields are left out)."""
    proto = protobuf_types.for_message(message)()
    _fill_message(proto, value, message)
    return proto


@cache
def _fields_by_number(message: str) -> dict[int, Field]:
    return {field.number: field for field in schema.get_message(message).fields if field.number}


def _field_value(value: Any, field: Field) -> Any:
    """The JSON-ready value of a field: a list, a map, a scalar or an object."""
    if field.repeated:
        return [_to_json_value(item, field.type) for item in value]
    if field.map:
        return {text(map_entry.f1): _to_json_value(map_entry.f2, field.type) for map_entry in value}
    return _to_json_value(value, field.type)


def _to_json_value(value: Any, type_name: str) -> Any:
    """The JSON-ready form of a scalar or message of that type."""
    if type_name == "bytes":
        return base64.b64encode(value).decode()
    if type_name == "string":
        return text(value)
    return value if type_name in schema.SCALARS else to_value(value, type_name)


def text(value: str | bytes) -> str:
    """A string field as text: the library returns bytes where it is not valid UTF-8 (U+FFFD, as in Go's JSON)."""
    return json_text.decode_utf8(value) if isinstance(value, bytes) else value


def _fill_message(proto: Any, value: Any, message: str) -> None:
    """Set the fields of a protobuf message from a JSON-ready value."""
    special_form = _SPECIAL_FORMS.get(message)
    if special_form is not None:
        _, fill = special_form
        fill(proto, value)
        return
    message_type = schema.get_message(message)
    if message_type.list:
        proto.f1.extend(value)
        return
    for field in message_type.fields:
        if field.inline and field.number:
            inline_message = getattr(proto, protobuf_types.field_name(field.number))
            inline_message.SetInParent()
            _fill_message(inline_message, value, field.type)
        elif field.number and value.get(field.name) is not None:
            _set_field(proto, protobuf_types.field_name(field.number), value[field.name], field)


def _set_field(proto: Any, name: str, value: Any, field: Field) -> None:
    """Set one field: a list, a map, a scalar or a message."""
    container = getattr(proto, name)
    if field.repeated and field.is_scalar:
        container.extend(_to_proto_scalar(item, field.type) for item in value)
    elif field.repeated:
        for item in value:
            _fill_message(container.add(), item, field.type)
    elif field.map:
        _set_entries(container, value, field)
    elif field.is_scalar:
        setattr(proto, name, _to_proto_scalar(value, field.type))
    else:
        container.SetInParent()
        _fill_message(container, value, field.type)


def _set_entries(entries: Any, map_value: dict[str, Any], field: Field) -> None:
    """The entries of a map, in the order of their keys, as Go writes them."""
    for key in sorted(map_value):
        if field.is_scalar:
            entries.add(f1=key, f2=_to_proto_scalar(map_value[key], field.type))
        else:
            message_value = entries.add(f1=key).f2
            message_value.SetInParent()
            _fill_message(message_value, map_value[key], field.type)


def _to_proto_scalar(value: Any, type_name: str) -> Any:
    """A scalar as protobuf has it: bytes, which are base64 in JSON, are decoded."""
    if type_name != "bytes":
        return value
    return value if isinstance(value, bytes) else base64.b64decode(value)


def _quantity_value(proto: Any) -> Any:
    return text(proto.f1) or "0"


def _fill_quantity(proto: Any, value: Any) -> None:
    proto.f1 = value


def _time_value(format_instant: Callable[[int], str]) -> Callable[[Any], Any]:
    """Makes the conversion of a time to text; None for an unset one. It raises DecodeError."""

    def convert(proto: Any) -> Any:
        if not proto.ListFields():
            return None
        try:
            return format_instant(proto.f1 * clock.NANOSECONDS + proto.f2)
        except (OverflowError, ValueError, OSError):
            raise DecodeError("proto: a time is out of range") from None

    return convert


def _fill_time(proto: Any, value: Any) -> None:
    """Set the seconds and nanoseconds of a time; the message of None is empty."""
    if value is not None:
        proto.f1, proto.f2 = divmod(instants.parse(value), clock.NANOSECONDS)


def _duration_value(proto: Any) -> Any:
    return duration.text(proto.f1)


def _fill_duration(proto: Any, value: Any) -> None:
    proto.f1 = duration.parse(value)


def _int_or_string_value(proto: Any) -> Any:
    return text(proto.f3) if proto.f1 == _STRING else proto.f2


def _fill_int_or_string(proto: Any, value: Any) -> None:
    """Set the kind of value (`_INT` or `_STRING`), and the field of that kind."""
    proto.f1 = _STRING if isinstance(value, str) else _INT
    if isinstance(value, str):
        proto.f3 = value
    else:
        proto.f2 = value


def _raw_value(proto: Any) -> Any:
    return json_text.plain(json_text.parse(proto.f1)) if proto.f1 else None


def _fill_raw(proto: Any, value: Any) -> None:
    proto.f1 = json_text.encode(value)


_SCHEMA = "apiextensions/v1.JSONSchemaProps"


def _schema_or_array_value(proto: Any) -> Any:
    return [to_value(item, _SCHEMA) for item in proto.f2] or _own_schema_value(proto)


def _schema_or_strings_value(proto: Any) -> Any:
    return [text(item) for item in proto.f2] or _own_schema_value(proto)


def _own_schema_value(proto: Any) -> Any:
    return to_value(proto.f1, _SCHEMA) if proto.HasField("f1") else None


def _fill_schema_or_list(proto: Any, value: Any) -> None:
    """A schema, or a list of schemas or of strings."""
    if not isinstance(value, list):
        proto.f1.SetInParent()
        _fill_message(proto.f1, value, _SCHEMA)
        return
    for item in value:
        if isinstance(item, str):
            proto.f2.append(item)
        else:
            _fill_message(proto.f2.add(), item, _SCHEMA)


def _schema_or_bool_value(proto: Any) -> Any:
    return to_value(proto.f2, _SCHEMA) if proto.HasField("f2") else proto.f1


def _fill_schema_or_bool(proto: Any, value: Any) -> None:
    """Set a boolean, or a schema, which counts as true."""
    proto.f1 = value is not False
    if isinstance(value, dict):
        proto.f2.SetInParent()
        _fill_message(proto.f2, value, _SCHEMA)


_SPECIAL_FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    schema.QUANTITY: (_quantity_value, _fill_quantity),
    schema.TIME: (_time_value(clock.rfc3339), _fill_time),
    schema.MICRO_TIME: (_time_value(clock.rfc3339_micro), _fill_time),
    schema.DURATION: (_duration_value, _fill_duration),
    schema.INT_OR_STRING: (_int_or_string_value, _fill_int_or_string),
    schema.RAW_EXTENSION: (_raw_value, _fill_raw),
    schema.FIELDS_V1: (_raw_value, _fill_raw),
    schema.JSON: (_raw_value, _fill_raw),
    schema.SCHEMA_OR_ARRAY: (_schema_or_array_value, _fill_schema_or_list),
    schema.SCHEMA_OR_BOOL: (_schema_or_bool_value, _fill_schema_or_bool),
    schema.SCHEMA_OR_STRINGS: (_schema_or_strings_value, _fill_schema_or_list),
}
"""Message with a JSON form of its own -> (function that reads it to JSON, function that fills it)."""
