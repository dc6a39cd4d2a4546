"""Makes the decoder of each message (API type) from the schema; decoders check types and drop unknown fields.

    decode = for_message("apps/v1.Deployment")
    decode({"kind": "Deployment", "x": 1}, state)      {"kind": "Deployment"}; state.problems has `unknown field "x"`

Called by `decoding`. Decoders are made once and refer to one another, also for recursive types (JSONSchemaProps).
A new scalar, or a new message with a JSON form of its own: `decode_values`; a new union: `_union_decoder`.

Rules: null is absent; names match exactly; a zero that means the same as a missing field (Go's omitempty without a
pointer) is dropped, an empty list or map is kept (defaulting treats it differently); fields come out in the schema's
order; of a repeated field the last one counts.

Source: encoding/json as sigs.k8s.io/json uses it, measured (tests/conformance/decoding.jsonl).
Differs: of a repeated object field the last one wins as a whole, where Go merges the objects.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from podscaler.api.schema import decode_values, schema
from podscaler.api.schema.decode_state import DecodeState, FieldLocation
from podscaler.api.schema.decode_values import ABSENT, OWN_FORMS, ZERO_VALUES, Decode
from podscaler.api.schema.schema import Field, Message
from podscaler.api.text.json_text import DecodeError, Repeated

_TYPE_META = (
    Field(name="kind", type="string", omitempty=True),
    Field(name="apiVersion", type="string", omitempty=True),
)
_EXACT_TYPES: dict[str, type] = {"string": str, "bool": bool}


@dataclass(frozen=True, slots=True)
class _FieldPlan:
    """How to decode one field.

    Attributes:
        location: how errors name the field.
        order: its position in the decoded object.
        exact_type: the type whose values need no decoder; None if all values do.
        keeps_zero: whether an empty scalar is kept.
        decode: the decoder of all other values that are not null.
    """

    location: FieldLocation
    order: int
    exact_type: type | None
    keeps_zero: bool
    decode: Decode


class _StructDecoder:
    """The decoder of a message with fields."""

    __slots__ = ("fields", "go_type")

    def __init__(self, name: str) -> None:
        self.go_type = schema.go_name(name)
        self.fields: dict[str, _FieldPlan] = {}

    def __call__(self, value: Any, state: DecodeState) -> Any:
        """The decoded object, with known fields only; ABSENT for a value that is no object.

        Unknown fields and type errors are recorded in the state.
        """
        if not isinstance(value, dict):
            state.record_mismatch(value, self.go_type)
            return ABSENT
        steps = state.steps
        steps.append(None)  # becomes the location of the field that is decoded
        decoded_fields: dict[str, Any] = {}
        last_order, is_in_order = -1, True
        members = value.items() if type(value) is dict else self._report_repeated(cast("Repeated", value), state)
        for key, field_value in members:
            plan = self.fields.get(key)
            if plan is None:
                state.record_unknown(key)
                continue
            if field_value is None:
                continue
            if type(field_value) is plan.exact_type:  # most values: a fast path
                decoded = field_value
            else:
                steps[-1] = plan.location
                decoded = plan.decode(field_value, state)
            if decoded is not ABSENT and (decoded or plan.keeps_zero):
                decoded_fields[key] = decoded
                is_in_order = is_in_order and plan.order > last_order
                last_order = plan.order
        steps.pop()
        return decoded_fields if is_in_order else self._in_schema_order(decoded_fields)

    def _report_repeated(self, value: Repeated, state: DecodeState) -> Iterator[tuple[str, Any]]:
        """Yields the members of an object with repeated names; repeated fields are reported to the state."""
        earlier_keys: set[str] = set()
        for key, member in value.pairs:
            if key in earlier_keys and key in self.fields:
                state.record_duplicate(key)
            earlier_keys.add(key)
            yield key, member

    def _in_schema_order(self, decoded_fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an object in the order of the schema."""
        names = sorted(decoded_fields, key=lambda name: self.fields[name].order)
        return {name: decoded_fields[name] for name in names}


_struct_decoders: dict[str, _StructDecoder] = {}


def for_message(name: str) -> Decode:
    """The decoder of a message. Raises KeyError if the schema has none of that name."""
    if name in OWN_FORMS:
        return OWN_FORMS[name]
    if name in schema.UNIONS:
        return _union_decoder(name)
    message = schema.get_message(name)
    return _list_decoder("string", schema.go_name(name)) if message.list else _struct_decoder(message)


def _struct_decoder(message: Message) -> _StructDecoder:
    """The decoder of a message; it is known before its fields are planned, as types contain themselves."""
    struct = _struct_decoders.get(message.name)
    if struct is None:
        struct = _struct_decoders[message.name] = _StructDecoder(message.name)
        for order, (field, location) in enumerate(_located_fields(message)):
            struct.fields[field.name] = _plan_field(field, location, order)
    return struct


def _located_fields(message: Message) -> Iterator[tuple[Field, FieldLocation]]:
    """Yields the fields of a message in the order of the schema, each with its name in errors."""
    for field in _TYPE_META if message.type_meta else ():
        yield field, FieldLocation(message.short_name, ("TypeMeta", field.name))
    yield from _own_fields(message, message.short_name, ())


def _own_fields(message: Message, struct: str, path: tuple[str, ...]) -> Iterator[tuple[Field, FieldLocation]]:
    """Yields the fields of a message; those of inlined messages stand in their place."""
    for field in message.fields:
        if field.inline:
            inlined = schema.get_message(field.type)
            yield from _own_fields(inlined, struct, (*path, inlined.short_name))
        else:
            yield field, FieldLocation(struct, (*path, field.name))


def _plan_field(field: Field, location: FieldLocation, order: int) -> _FieldPlan:
    """The plan of one field; `order` is its position in the decoded object."""
    is_plain = not field.repeated and not field.map
    return _FieldPlan(
        location=location,
        order=order,
        exact_type=_EXACT_TYPES.get(field.type) if is_plain else None,
        keeps_zero=not (is_plain and field.is_scalar) or field.pointer or not field.omitempty,
        decode=_field_decoder(field),
    )


def _field_decoder(field: Field) -> Decode:
    """The decoder of a field: of a list, a map or a single value."""
    if field.repeated:
        return _list_decoder(field.type, field.go_type, field.element_go_type)
    decode_element = _element_decoder(field.type, field.element_go_type)
    return _map_decoder(field.type, field.go_type, decode_element) if field.map else decode_element


def _element_decoder(type_name: str, go_type: str) -> Decode:
    return decode_values.scalar_decoder(type_name, go_type) if type_name in schema.SCALARS else for_message(type_name)


def _zero_value(type_name: str) -> Any:
    """The JSON form of Go's zero value of a type."""
    if type_name in ZERO_VALUES:
        return ZERO_VALUES[type_name]
    return [] if schema.get_message(type_name).list else {}


def _list_decoder(type_name: str, go_type: str, element_go_type: str = "string") -> Decode:
    """The decoder of lists.

    Args:
        type_name: the type of the elements: a scalar or a message.
        go_type: the Go type of the list, for errors.
        element_go_type: the Go type of an element, for errors.
    """
    decode_element = _element_decoder(type_name, element_go_type)

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is not list:
            state.record_mismatch(value, go_type)
            return ABSENT
        state.steps.append(0)
        decoded = []
        for index, member in enumerate(value):
            state.steps[-1] = index
            decoded.append(_decode_or_zero(member, decode_element, type_name, state))
        state.steps.pop()
        return decoded

    return decode


def _map_decoder(type_name: str, go_type: str, decode_element: Decode) -> Decode:
    """The decoder of maps with any keys; repeated keys are reported.

    Args:
        type_name: the type of the elements: a scalar or a message.
        go_type: the Go type of the map, for errors.
        decode_element: the decoder of an element.
    """

    def decode(value: Any, state: DecodeState) -> Any:
        if not isinstance(value, dict):
            state.record_mismatch(value, go_type)
            return ABSENT
        state.steps.append(None)
        if type(value) is Repeated:
            _report_repeated_keys(value, state)
        decoded = {}
        for key, member in value.items():
            state.steps[-1] = key
            decoded[key] = _decode_or_zero(member, decode_element, type_name, state)
        state.steps.pop()
        return decoded

    return decode


def _report_repeated_keys(value: Repeated, state: DecodeState) -> None:
    """Report the repeated keys of a map to the state."""
    earlier_keys: set[str] = set()
    for key, _ in value.pairs:
        if key in earlier_keys:
            state.record_duplicate(key)
        earlier_keys.add(key)


def _decode_or_zero(value: Any, decode_element: Decode, type_name: str, state: DecodeState) -> Any:
    """The decoded element of a list or map; Go's zero value for null, and for one that cannot be decoded."""
    decoded = ABSENT if value is None else decode_element(value, state)
    return _zero_value(type_name) if decoded is ABSENT else decoded


_JSON_SCHEMA = "apiextensions/v1.JSONSchemaProps"


def _union_decoder(name: str) -> Decode:
    """The decoder of JSONSchemaPropsOrArray, -OrBool or -OrStringArray: a schema, or the other type in the name.

    A value of another type is dropped, or for -OrBool an error, as in Go.
    """

    def decode(value: Any, state: DecodeState) -> Any:
        if isinstance(value, dict):
            return _decode_separately(for_message(_JSON_SCHEMA), value)
        if name == schema.SCHEMA_OR_BOOL:
            if isinstance(value, bool):
                return value
            raise DecodeError("boolean or JSON schema expected")
        if not isinstance(value, list):
            return ABSENT
        element_type = "string" if name == schema.SCHEMA_OR_STRINGS else _JSON_SCHEMA
        return _decode_separately(_list_decoder(element_type, go_type=""), value)  # a list: no error names its type

    return decode


def _decode_separately(decode_element: Decode, value: Any) -> Any:
    """Decode with a new state: Go's decoders of these types report neither the path to them nor unknown fields.

    Raises DecodeError for any type error.
    """
    separate_state = DecodeState()
    decoded = decode_element(value, separate_state)
    if separate_state.error:
        raise DecodeError(separate_state.error)
    return decoded
