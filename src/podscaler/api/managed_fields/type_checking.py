"""Checks that a configuration for server-side apply has the types of its kind, before it is merged.

    errors({"spec": {"replicas": "3"}}, kind)      [".spec.replicas: expected numeric (int or float), got string"]

Called by `applying` and `last_applied`. A new scalar of `field_types`: its check and message in `_scalar_error`.

Source: structured-merge-diff's validation of typed values.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.managed_fields import field_types, path_elements
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType, Scalar


def errors(value: Any, field_type: FieldType) -> list[str]:
    """The errors of `value`, each like `.spec.replicas: expected numeric (int or float), got string`.

    Empty if it is valid; so is null, except as an item of an associative list.
    """
    return [f"{path}: {message}" if path else message for path, message in _value_errors(value, field_type, "")]


def summary(type_errors: list[str]) -> str:
    """`type_errors`, the result of `errors` (not empty), as one text."""
    return type_errors[0] if len(type_errors) == 1 else "\n  ".join(["errors:", *type_errors])


def _value_errors(value: Any, field_type: FieldType, path: str) -> Iterator[tuple[str, str]]:
    """The (path, message) of the value, or of each value in it, that does not have its type."""
    shape = field_types.shape_of(field_type, value)
    if shape.map is not None:
        yield from _map_errors(value, shape.map, path)
    elif shape.scalar:
        message = _scalar_error(value, shape.scalar)
        if message:
            yield path, message
    elif shape.list is not None:
        yield from _list_errors(value, shape.list, path)


def _map_errors(value: Any, map_type: MapType, path: str) -> Iterator[tuple[str, str]]:
    """The errors of a map, up to the first field that its type does not allow."""
    if value is None:
        return
    if not isinstance(value, dict):
        yield path, f"expected map, got {_go_pointer(value)}"
        return
    for name in sorted(value):
        member_type = map_type.child(name)
        member_path = f"{path}.{name}"
        if member_type is None:
            yield member_path, "field not declared in schema"
            return
        yield from _value_errors(value[name], member_type, member_path)


def _list_errors(value: Any, list_type: ListType, path: str) -> Iterator[tuple[str, str]]:
    """The errors of a list: repeated items, and errors of the items, up to the first that has no path element."""
    if value is None:
        return
    if not isinstance(value, list):
        yield path, f"expected list, got {_go_pointer(value)}"
        return
    seen_elements: set[str] = set()
    for index, item in enumerate(value):
        try:
            element = f"i:{index}" if list_type.atomic else field_types.item_element(list_type, item)
        except field_types.AtomError as error:
            yield path, f"element {index}: {error}"
            return
        element_text = path_elements.path_text((element,))
        if element in seen_elements:
            yield path, f"duplicate entries for key {element_text}"
        seen_elements.add(element)
        yield from _value_errors(item, list_type.get_item_type(), path + element_text)


def _scalar_error(value: Any, scalar: Scalar) -> str:
    """The message for a value that is not the scalar; empty if it is, and for null."""
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match scalar:
        case "numeric":
            return "" if is_number else f"expected numeric (int or float), got {_go_type(value)}"
        case "string":
            if isinstance(value, str):
                return ""
            return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case "boolean":
            return "" if isinstance(value, bool) else f"expected boolean, got {_go_pointer(value)}"
        case _:  # untyped
            is_scalar = isinstance(value, bool | int | float | str)
            return "" if is_scalar else f"expected any scalar, got {_go_pointer(value)}"


def _go_type(value: Any) -> str:
    """The Go type (`%T`) of a value that is no number and not null."""
    if isinstance(value, str | bool):
        return "string" if isinstance(value, str) else "bool"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _go_pointer(value: Any) -> str:
    """A value as Go prints it behind a pointer (`%v`)."""
    return f"&{{{_go_value(value)}}}"


def _go_value(value: Any) -> str:
    """A value as Go prints it (`%v`)."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_value(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_value, value))}]"
    return str(value)


def _go_syntax(value: Any) -> str:
    """A value as Go's syntax has it (`%#v`)."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return path_elements.value_text(value)
    if isinstance(value, dict):
        members = ", ".join(f"{path_elements.value_text(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return _go_value(value)
