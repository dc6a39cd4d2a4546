"""Converts decoded objects to the form in which the API server stores and prints them, that of a round trip through Go.

    canonical({"kind": "Pod", "metadata": {"labels": {}}}, "core/v1.Pod")

    {"kind": "Pod", "metadata": {}, "spec": {"containers": None}, "status": {}}

Called by the registry for objects to be stored, and where the server makes objects (Scales, conversions, watch events).
A new message with a JSON form of its own has its zero value in `decode_values`.

Rules: an empty list or map is removed where the Go field has the tag `omitempty`, and becomes null elsewhere; a field
without `omitempty` is always present; so is a struct that is not behind a pointer, with its own fields of that kind. An
unset time without `omitempty` is null.

Source: Go's encoding/json on the API types.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from podscaler.api.schema import schema
from podscaler.api.schema.decode_values import ZERO_VALUES
from podscaler.api.schema.schema import Field

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Rule:
    """The canonical form of one field.

    Attributes:
        message: the message of its value or elements; empty for scalars and messages with a JSON form of their own.
        is_list, is_map: its shape.
        is_always_present: whether the field is present even if the object does not have it.
        is_filled: whether the missing value is then an object, in canonical form.
        empty: the missing value otherwise.
    """

    message: str
    is_list: bool
    is_map: bool
    is_always_present: bool
    is_filled: bool
    empty: Any


def canonical(obj: Object, message: str, *, stored: Object | None = None) -> Object:
    """The canonical form of an object.

    Args:
        obj: a decoded object of `message`; it is not changed.
        message: the name of its type: `core/v1.Pod`.
        stored: an object in canonical form; members that `obj` shares with it (the same Python value) are kept.

    Raises:
        KeyError: the schema does not have `message`.
    """
    rules = _rules_of_message(message)
    canonical_object: Object = {key: obj[key] for key in ("kind", "apiVersion") if obj.get(key)}
    stored_members = stored or {}
    for name, rule in rules.items():
        value = obj.get(name)
        is_shared = value is not None and value is stored_members.get(name)
        canonical_value = value if is_shared else _canonical_value(value, rule)
        if canonical_value is not None:
            canonical_object[name] = canonical_value
        elif rule.is_always_present:
            canonical_object[name] = None
    return canonical_object


def _canonical_value(value: Any, rule: _Rule) -> Any:
    """The canonical form of the value of a field; None is a missing one."""
    if value is None:
        return canonical({}, rule.message) if rule.is_filled else rule.empty
    if rule.is_list or rule.is_map:
        return _canonical_elements(value, rule) if value else None
    return canonical(value, rule.message) if rule.message else value


def _canonical_elements(value: Any, rule: _Rule) -> Any:
    """The canonical form of the elements of a list or map that is not empty."""
    if not rule.message:
        return value
    if rule.is_list:
        return [canonical(element, rule.message) for element in value]
    return {key: canonical(element, rule.message) for key, element in value.items()}


@cache
def _rules_of_message(message: str) -> dict[str, _Rule]:
    """Field of a message -> its rule."""
    return {field.name: _rule_of_field(field) for field in schema.get_message(message).json_fields()}


def _rule_of_field(field: Field) -> _Rule:
    """How a field is written: whether it is there without value, and as what."""
    is_plain = not field.repeated and not field.map and not field.pointer
    is_go_struct = is_plain and not field.is_scalar and not schema.get_message(field.type).list
    is_always_present = not field.omitempty or (is_go_struct and not field.omitzero)  # omitempty keeps Go structs
    has_zero_value = is_plain and is_always_present
    return _Rule(
        message=field.type if field.is_object else "",
        is_list=field.repeated,
        is_map=field.map,
        is_always_present=is_always_present,
        is_filled=has_zero_value and field.is_object,
        empty=ZERO_VALUES.get(field.type) if has_zero_value and not field.is_object else None,
    )
