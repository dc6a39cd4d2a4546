"""Makes the decoder of each message (API type) from the schema; decoders check types and drop unknown fields.

    decode = for_message("apps/v1.Deployment")
    decode({"kind": "Deployment", "x": 1}, state)      {"kind": "Deployment"}; state.problems has `unknown field "x"`

Called by `decoding`. Decoders are made once and refer to one another, also for recursive types (JSONSchemaProps).

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


class _Struct:
    """The decoder of a message with fields."""

    __slots__ = ("fields", "go_type")

    def __init__(self, name: str) -> None:
        self.go_type = schema.go_name(name)
        self.fields: dict[str, _FieldPlan] = {}

    def __call__(self, value: Any, state: DecodeState) -> Any:
        if not isinstance(value, dict):
            state.mismatch(value, self.go_type)
            return ABSENT
        steps = state.steps
        steps.append(None)
        out: dict[str, Any] = {}
        last_order, in_order = -1, True
        for key, raw in value.items() if type(value) is dict else self._pairs(cast("Repeated", value), state):
            plan = self.fields.get(key)
            if plan is None:
                state.unknown(key)
                continue
            if raw is None:
                continue
            if type(raw) is plan.exact_type:
                item = raw
            else:
                steps[-1] = plan.location
                item = plan.decode(raw, state)
            if item is not ABSENT and (item or plan.keeps_zero):
                out[key] = item
                in_order = in_order and plan.order > last_order
                last_order = plan.order
        steps.pop()
        return out if in_order else self._sorted(out)

    def _pairs(self, value: Repeated, state: DecodeState) -> Iterator[tuple[str, Any]]:
        """The members of an object with repeated names, which are reported."""
        seen: set[str] = set()
        for key, item in value.pairs:
            if key in seen and key in self.fields:
                state.duplicate(key)
            seen.add(key)
            yield key, item

    def _sorted(self, out: dict[str, Any]) -> dict[str, Any]:
        fields = self.fields
        return dict(sorted(out.items(), key=lambda pair: fields[pair[0]].order))


_structs: dict[str, _Struct] = {}


def for_message(name: str) -> Decode:
    """The decoder of a message. Raises KeyError if the schema has none of that name."""
    if name in OWN_FORMS:
        return OWN_FORMS[name]
    if name in schema.UNIONS:
        return _union(name)
    message = schema.get_message(name)
    return _list_of("string", schema.go_name(name)) if message.list else _struct(message)


def _struct(message: Message) -> _Struct:
    """The decoder of a message; it is known before its fields are planned, as types contain themselves."""
    struct = _structs.get(message.name)
    if struct is None:
        struct = _structs[message.name] = _Struct(message.name)
        for order, (field, location) in enumerate(_located_fields(message)):
            struct.fields[field.name] = _plan(field, location, order)
    return struct


def _located_fields(message: Message) -> Iterator[tuple[Field, FieldLocation]]:
    for field in _TYPE_META if message.type_meta else ():
        yield field, FieldLocation(message.short_name, ("TypeMeta", field.name))
    yield from _own_fields(message, message.short_name, ())


def _own_fields(message: Message, struct: str, path: tuple[str, ...]) -> Iterator[tuple[Field, FieldLocation]]:
    """The fields of a message, those of inlined messages in their place."""
    for field in message.fields:
        if field.inline:
            inlined = schema.get_message(field.type)
            yield from _own_fields(inlined, struct, (*path, inlined.short_name))
        else:
            yield field, FieldLocation(struct, (*path, field.name))


def _plan(field: Field, location: FieldLocation, order: int) -> _FieldPlan:
    """How a field is decoded."""
    is_plain = not field.repeated and not field.map
    return _FieldPlan(
        location=location,
        order=order,
        exact_type=_EXACT_TYPES.get(field.type) if is_plain else None,
        keeps_zero=not (is_plain and field.is_scalar) or field.pointer or not field.omitempty,
        decode=_decoder(field),
    )


def _decoder(field: Field) -> Decode:
    if field.repeated:
        return _list_of(field.type, field.go_type, field.element_go_type)
    element = _element(field.type, field.element_go_type)
    return _map_of(field.type, field.go_type, element) if field.map else element


def _element(kind: str, go_type: str) -> Decode:
    return decode_values.scalar(kind, go_type) if kind in schema.SCALARS else for_message(kind)


def _zero(kind: str) -> Any:
    if kind in ZERO_VALUES:
        return ZERO_VALUES[kind]
    return [] if schema.get_message(kind).list else {}


def _list_of(kind: str, go_type: str, element_go_type: str = "string") -> Decode:
    """The decoder of lists; a value that is no list is a mismatch with the Go type."""
    element = _element(kind, element_go_type)

    def decode(value: Any, state: DecodeState) -> Any:
        if type(value) is not list:
            state.mismatch(value, go_type)
            return ABSENT
        state.steps.append(0)
        decoded = []
        for index, item in enumerate(value):
            state.steps[-1] = index
            decoded.append(_or_zero(item, element, kind, state))
        state.steps.pop()
        return decoded

    return decode


def _map_of(kind: str, go_type: str, element: Decode) -> Decode:
    """The decoder of maps with any keys; repeated keys are reported."""

    def decode(value: Any, state: DecodeState) -> Any:
        if not isinstance(value, dict):
            state.mismatch(value, go_type)
            return ABSENT
        state.steps.append(None)
        if type(value) is Repeated:
            _note_repeated_keys(value, state)
        decoded = {}
        for key, item in value.items():
            state.steps[-1] = key
            decoded[key] = _or_zero(item, element, kind, state)
        state.steps.pop()
        return decoded

    return decode


def _note_repeated_keys(value: Repeated, state: DecodeState) -> None:
    seen: set[str] = set()
    for key, _ in value.pairs:
        if key in seen:
            state.duplicate(key)
        seen.add(key)


def _or_zero(item: Any, element: Decode, kind: str, state: DecodeState) -> Any:
    decoded = ABSENT if item is None else element(item, state)
    return _zero(kind) if decoded is ABSENT else decoded


_JSON_SCHEMA = "apiextensions/v1.JSONSchemaProps"


def _union(name: str) -> Decode:
    """The decoder of JSONSchemaPropsOrArray, -OrBool or -OrStringArray: a schema, or what the name says."""

    def decode(value: Any, state: DecodeState) -> Any:
        if isinstance(value, dict):
            return _inner(for_message(_JSON_SCHEMA), value)
        if name == schema.SCHEMA_OR_BOOL:
            if isinstance(value, bool):
                return value
            raise state.fail("boolean or JSON schema expected")
        if not isinstance(value, list):
            return ABSENT
        kind, go_type = ("string", "[]string") if name == schema.SCHEMA_OR_STRINGS else (_JSON_SCHEMA, "")
        return _inner(_list_of(kind, go_type), value)

    return decode


def _inner(element: Decode, value: Any) -> Any:
    """Decode with a new state: Go's decoders of these types report neither the path to them nor unknown fields."""
    inner = DecodeState()
    decoded = element(value, inner)
    if inner.error:
        raise DecodeError(inner.error)
    return decoded
