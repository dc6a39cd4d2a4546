"""Runtime values of CEL: the Python classes for values that Python has no type for, and the type name of any value.

Called by `planning` and the function libraries.

CEL's bool, int, double, string, bytes, null, list and map are Python's bool, int, float, str, bytes, None, list and
dict; uint is `numbers.Uint`. Lists that are sets or maps by their schema are SetList and MapList, which
`operators.equal` compares in any order (Python's `==` does not). Quantities are `machinery.quantity.Quantity`, other
types of Kubernetes (URL, IP, ...) Opaque. A new type of Kubernetes is an Opaque with its own `type_name`, and an entry
of `_KUBERNETES_TYPES` in `podscaler.api.cel.library.functions`; only a type with a class of its own needs an entry of
`_TYPE_NAMES`.

Source: the CEL specification, "Values"; Kubernetes' opaque types.
"""

from dataclasses import dataclass, field
from typing import Any

from podscaler.api.cel.values.numbers import Uint
from podscaler.api.machinery.quantity import Quantity


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant.

    Attributes:
        at_ns: nanoseconds since the epoch.
        zone: the offset in which `string()` prints it: `Z` or `+02:00`; it does not count in comparisons.
    """

    at_ns: int
    zone: str = field(default="Z", compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds."""

    span_ns: int


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """A value that may be absent (`optional.of(1)`, `optional.none()`); `value` is None if it is."""

    value: Any = None
    is_present: bool = True


OPTIONAL_NONE = OptionalValue(None, is_present=False)
"""CEL's `optional.none()`."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(...)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of one of Kubernetes' types, which is equal to another by type, value and text.

    Attributes:
        type_name: the name of the type: `kubernetes.URL`, `net.IP`, ...
        value: the Python value of it: a SplitResult, an IPv4Address, ...
        text: of a URL, as it was written; empty for other types.
    """

    type_name: str
    value: Any
    text: str = ""


class SetList(list[Any]):
    """A list with x-kubernetes-list-type `set`, whose order `operators.equal` ignores."""

    __slots__ = ()


class MapList(list[Any]):
    """A list with x-kubernetes-list-type `map`: `operators.equal` pairs elements by their members `keys`."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    OptionalValue: "optional_type",
    TypeValue: "type",
    Quantity: "kubernetes.Quantity",
}


def type_name(value: Any) -> str:
    """The name of a value's type, as CEL's `type(value)` prints it. Raises KeyError for a value that is none of CEL's.

    Compared with the types of parameters (`Overload.type_names`), and shown in messages.
    """
    return value.type_name if isinstance(value, Opaque) else _TYPE_NAMES[type(value)]
