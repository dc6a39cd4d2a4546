"""Decodes objects of clients by the schema: checks types, drops unknown fields, normalizes quantities and times.

The API server calls `decode_value` for each parsed request body, patch and webhook response, before defaulting and
validation; lint, convert and simulation for files. `decode_json` and `decode_yaml` parse, too: tests call them.

    decoded = decoding.decode_json(body, "autoscaling/v2.HorizontalPodAutoscaler")
    decoded.obj          {"kind": ..., "apiVersion": ..., "metadata": {...}, "spec": {...}}
    decoded.problems     ('unknown field "spec.foo"', 'duplicate field "metadata.name"')

For problems the server responds `strict decoding error: a, b` (400) for fieldValidation=Strict, with one Warning header
each for Warn, and ignores them for Ignore. A DecodeError is always 400. Before its text the server writes
`HorizontalPodAutoscaler in version "v2" cannot be handled as a HorizontalPodAutoscaler: ` where apiVersion and kind are
known; otherwise the message is `the object provided is unrecognized (must be of type KIND): TEXT (SUMMARY)`, with
`summary(body)` as SUMMARY and, for syntax errors, `no_type_meta(error)` as TEXT.

Source: docs/spec/api.md 2.9 (Other errors), golden create-hpa.jsonl and errors.jsonl.
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.schema import decode_plan
from podscaler.api.schema.decode_state import DecodeState
from podscaler.api.schema.decode_values import ABSENT
from podscaler.api.text import json_text, yaml_text
from podscaler.api.text.json_text import DecodeError

Object = dict[str, Any]

_SUMMARY_BYTES = 30
"""The length of the beginning of a body that `summary` shows."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded object, with its unknown and duplicate fields.

    Attributes:
        obj: only known fields, in the schema's order, without nulls; quantities and times as the server prints them.
        problems: unknown and duplicate fields, in the order of the text, each once: `unknown field "spec.foo"`.
    """

    obj: Object
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeMeta:
    """The apiVersion and kind of a body; empty texts where it has none."""

    api_version: str
    kind: str


def decode_json(body: bytes, message: str) -> Decoded:
    """The object of a JSON body. Raises DecodeError; KeyError for a message that the schema does not have."""
    return decode_value(json_text.parse(body), message)


def decode_yaml(body: bytes, message: str) -> Decoded:
    """The object of a YAML body (the first document). Raises DecodeError; KeyError for an unknown message."""
    document = yaml_text.parse(body)
    decoded = decode_value(document.value, message)
    if not document.duplicates:
        return decoded
    return Decoded(decoded.obj, (document.duplicates_text(), *decoded.problems))


def decode_value(value: Any, message: str) -> Decoded:
    """The object of a parsed value (after a patch, for example); shares parts with `value`, which is not changed.

    Raises DecodeError; KeyError for a message that the schema does not have.
    """
    state = DecodeState()
    obj = decode_plan.for_message(message)({} if value is None else value, state)
    if state.error:
        raise DecodeError(state.error)
    return Decoded({} if obj is ABSENT else obj, tuple(state.problems))


def parse_json(body: bytes) -> Any:
    """The value of a JSON body as plain data. Raises DecodeError with Go's message."""
    return json_text.plain(json_text.parse(body))


def read_type_meta(value: Any) -> TypeMeta:
    """apiVersion and kind of a parsed body. Raises DecodeError for a body that is no object, or has no texts there."""
    if value is None:
        return TypeMeta("", "")
    if not isinstance(value, dict):
        json_type = _json_type(value)
        raise no_type_meta(f"json: cannot unmarshal {json_type} into Go value of type {_GO_TYPE_OF_TYPE_META}")
    return TypeMeta(_read_text(value, "apiVersion"), _read_text(value, "kind"))


_GO_TYPE_OF_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def _read_text(body: Object, field: str) -> str:
    """The text of a field of the type meta; empty if it is absent. Raises for another JSON type."""
    field_value = body.get(field)
    if field_value is None:
        return ""
    if not isinstance(field_value, str):
        json_type = _json_type(field_value)
        raise no_type_meta(f"json: cannot unmarshal {json_type} into Go struct field .{field} of type string")
    return field_value


def _json_type(value: Any) -> str:
    """Go's name of the JSON type of a value that is not null."""
    names = ((bool, "bool"), (str, "string"), (list, "array"), (dict, "object"))  # bool first: it is an int, too
    return next((name for python_type, name in names if isinstance(value, python_type)), "number")


def no_type_meta(reason: object) -> DecodeError:
    """The error about a JSON body whose apiVersion and kind cannot be read; `reason` is the error or its message."""
    return DecodeError(f"couldn't get version/kind; json parse error: {reason}")


def summary(body: bytes) -> str:
    """The beginning of a body, as `the object provided is unrecognized` ends with it; `<empty>` for an empty one."""
    if not body:
        return "<empty>"
    beginning, ellipsis = body[:_SUMMARY_BYTES], " ..." if len(body) > _SUMMARY_BYTES else ""
    beginning_text = json_text.decode_utf8(beginning) if body.startswith(b"{") else beginning.hex()
    return beginning_text + ellipsis
