"""Defines the field types of server-side apply: scalars, lists and maps, and which of them have one owner.

    FieldType(list=ListType(get_item_type, atomic=False, keys=("name",)))     a list of items identified by `name`

`message_types` makes types from the API types, `structural_types` from the schema of a custom resource; all other
modules of this package recurse into objects by their types. A new shape: `shape_of`, and every module that calls it.

Rules: a type may allow several shapes (scalar, list, map), of which a value has one (`shape_of`). An atomic map or list
has one owner, as a whole. A list that is not atomic is associative: its items are identified by path elements.

Source: structured-merge-diff's schema and typed packages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from podscaler.api.managed_fields import path_elements

Scalar = Literal["", "string", "numeric", "boolean", "untyped"]


class AtomError(ValueError):
    """An item of an associative list has no path element; str() is structured-merge-diff's message."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """The shapes that a value may have.

    Attributes:
        scalar: the kind of scalar; empty if scalars are not allowed.
        list, map: the type of a list, of a map or object; None if these are not allowed.
        has_one_shape: whether at most one of the three is allowed; set by the constructor.
    """

    scalar: Scalar = ""
    list: "ListType | None" = None
    map: "MapType | None" = None
    has_one_shape: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        shape_count = (self.scalar != "") + (self.list is not None) + (self.map is not None)
        object.__setattr__(self, "has_one_shape", shape_count < 2)


@dataclass(frozen=True, slots=True)
class ListType:
    """A list.

    Attributes:
        get_item_type: returns the type of the items.
        atomic: whether it has one owner; else items are identified by `keys`, or without keys (a set) by their value.
        keys: the fields that identify an item, in the order in which they are declared.
        defaults: (key, value of an item without that key) of the keys with a default.
    """

    get_item_type: Callable[[], FieldType]
    atomic: bool = True
    keys: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class MapType:
    """A map or an object.

    Attributes:
        find_declared: returns the type of a declared field; None for other fields.
        get_undeclared: returns the type of other fields; None where these are not allowed.
        atomic: whether it has one owner.
    """

    find_declared: Callable[[str], FieldType | None]
    get_undeclared: Callable[[], FieldType] | None = None
    atomic: bool = False

    def child(self, name: str) -> FieldType | None:
        """The type of the field `name`; None if it is not allowed."""
        declared_type = self.find_declared(name)
        if declared_type is None and self.get_undeclared is not None:
            return self.get_undeclared()
        return declared_type


def _declares_nothing(_name: str) -> FieldType | None:
    return None


def map_of(get_value_type: Callable[[], FieldType], *, atomic: bool = False) -> FieldType:
    """A map whose values all have the type that `get_value_type` returns."""
    return FieldType(map=MapType(_declares_nothing, get_value_type, atomic))


def _get_deduced() -> FieldType:
    return DEDUCED


def _get_anything() -> FieldType:
    return _ANYTHING


STRING = FieldType(scalar="string")
UNTYPED = FieldType(scalar="untyped")
_ANYTHING = FieldType("untyped", ListType(_get_anything), MapType(_declares_nothing, _get_anything, atomic=True))
"""A value without a schema that has one owner (kube-openapi's `__untyped_atomic_`)."""
DEDUCED = FieldType("untyped", ListType(_get_anything), MapType(_declares_nothing, _get_deduced))
"""A value without a schema: fields of maps have owners, lists are atomic (kube-openapi's `__untyped_deduced_`)."""
FREE_OBJECT = map_of(_get_deduced)
"""An object whose members have no schema."""
WHOLE_OBJECT = map_of(_get_deduced, atomic=True)
"""An object with one owner."""


def shape_of(field_type: FieldType, value: Any) -> FieldType:
    """`field_type` with only the shape that `value` has; `field_type` itself for null and for a wrong shape."""
    if field_type.has_one_shape or value is None:
        return field_type
    if isinstance(value, dict):
        return FieldType(map=field_type.map) if field_type.map else field_type
    if isinstance(value, list):
        return FieldType(list=field_type.list) if field_type.list else field_type
    return FieldType(scalar=field_type.scalar) if field_type.scalar else field_type


def item_element(list_type: ListType, item: Any) -> str:
    """The path element of an item of an associative list. Raises AtomError for one that has none."""
    return _keyed_element(list_type, item) if list_type.keys else _set_element(item)


def _keyed_element(list_type: ListType, item: Any) -> str:
    """The path element of an item of a list with keys; defaults stand for missing keys. Raises AtomError."""
    if item is None:
        raise AtomError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise AtomError("associative list with keys may not have non-map elements")
    if len(list_type.keys) == 1 and list_type.keys[0] in item:
        return path_elements.keyed_by(list_type.keys[0], item[list_type.keys[0]])
    defaults = dict(list_type.defaults)
    key_values = {
        name: item.get(name, defaults.get(name)) for name in list_type.keys if name in item or name in defaults
    }
    if not key_values:
        names = " ".join(f'"{name}"' for name in list_type.keys)
        message_start = f"associative list with keys has an element that omits all key fields [{names}]"
        raise AtomError(f"{message_start} (and doesn't have default values for any key fields)")
    return path_elements.keyed(key_values)


def _set_element(item: Any) -> str:
    """The path element of an item of a set. Raises AtomError for items that are no scalars."""
    if isinstance(item, dict):
        raise AtomError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise AtomError("not supported: associative list with lists as elements")
    if item is None:
        raise AtomError("associative list without keys has an element that's an explicit null")
    return path_elements.value(item)


def index_items(list_type: ListType, items: Sequence[Any]) -> dict[str, list[Any]]:
    """The items of an associative list by path element, in order of first appearance, without items that have none.

    Each path element has one item, unless the stored list has duplicates.
    """
    items_by_element: dict[str, list[Any]] = {}
    for item in items:
        try:
            element = item_element(list_type, item)
        except AtomError:
            continue
        items_by_element.setdefault(element, []).append(item)
    return items_by_element
