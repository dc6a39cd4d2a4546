"""Converts JSON values to CEL values by their schema: times and bytes by format, member names escaped, nulls dropped.

Called by `rules` for each value that a rule reads. Values without a schema can only be compared for equality. All
functions raise EvaluationError for an object, list, text or double that does not have the type of its schema;
validation has checked the other types. `rule_types` makes the types of these values: a new type or format needs a line
in both.

Source: the API documentation of x-kubernetes-validations.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from podscaler.api.cel.library import standard
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.values import Duration, MapList, Opaque, SetList, Timestamp
from podscaler.api.crd import rule_types
from podscaler.api.crd.structural import INT_OR_STRING, Structural
from podscaler.api.machinery import duration, instants


def to_cel(value: Any, schema: Structural, *, is_root: bool = False) -> Any:
    """The CEL value of a JSON value; null and int-or-string stay as they are. Raises EvaluationError.

    Args:
        value: JSON-ready data, defaulted.
        schema: the schema of the value.
        is_root: whether it is a whole object (or an embedded one).
    """
    if value is None or schema.types == INT_OR_STRING:
        return value
    json_type = schema.types[0] if schema.types else ""
    convert = _CONVERTERS.get(json_type)
    if convert is None:
        return _opaque_value(value)
    if is_root and json_type == "object":
        schema = rule_types.with_object_fields(schema)
    return convert(value, schema)


def _opaque_value(value: Any) -> Opaque:
    """A value that rules can only compare for equality: its JSON with sorted keys."""
    return Opaque("unknown", msgspec.json.encode(value, order="sorted"))


def _object_to_cel(value: Any, schema: Structural) -> dict[str, Any]:
    """The CEL value of an object; a key with `?` holds a member that rules cannot name."""
    if not isinstance(value, dict):
        raise EvaluationError("invalid data, expected a map for the provided schema with type=object")
    if schema.additional is not None:
        additional_schema = schema.additional
        return {
            name: to_cel(member, additional_schema, is_root=additional_schema.is_embedded)
            for name, member in value.items()
        }
    members = {}
    for name, member in value.items():
        if member is None:
            continue
        member_schema = schema.properties.get(name)
        escaped_name = rule_types.escape(name)
        if member_schema is None or not escaped_name:
            members[f"?{name}"] = _opaque_value(member)
        else:
            members[escaped_name] = to_cel(member, member_schema, is_root=member_schema.is_embedded)
    return members


def _list_to_cel(value: Any, schema: Structural) -> list[Any]:
    """The CEL value of a list, as set or map where the schema says so."""
    if not isinstance(value, list) or schema.items is None:
        raise EvaluationError("invalid data, expected an array for the provided schema with type=array")
    item_schema = schema.items
    items = [to_cel(item, item_schema, is_root=item_schema.is_embedded) for item in value]
    if schema.list_type == "map":
        return MapList(items, tuple(rule_types.escape(key) or key for key in schema.list_map_keys))
    return SetList(items) if schema.list_type == "set" else items


def _text_to_cel(value: Any, schema: Structural) -> Any:
    """The CEL value of a text by its format. Raises EvaluationError if it does not have it."""
    if not isinstance(value, str):
        raise EvaluationError("invalid data, expected string")
    try:
        if schema.format == "duration":
            return Duration(duration.parse(value))
        if schema.format == "date":
            return Timestamp(instants.parse(f"{value}T00:00:00Z"))
        if schema.format == "date-time":
            return standard.parse_timestamp(value)
        return base64.b64decode(value, validate=True) if schema.format == "byte" else value
    except (ValueError, binascii.Error) as error:
        raise EvaluationError(f"Invalid {schema.format} formatted string {value}: {error}") from None


def _number_to_cel(value: Any, schema: Structural) -> float:
    """The CEL double of a JSON number. Raises EvaluationError for other values."""
    del schema
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EvaluationError("invalid data, expected float")
    return float(value)


_CONVERTERS: dict[str, Callable[[Any, Structural], Any]] = {
    "object": _object_to_cel,
    "array": _list_to_cel,
    "string": _text_to_cel,
    "number": _number_to_cel,
    "integer": lambda value, schema: value,
    "boolean": lambda value, schema: value,
}
