"""Values of expressions for which Python has no type, and the names of the types of all values.

Called by `planning` and the libraries.

bool, int, float, str, bytes, None, list and dict stand for themselves; numbers of type `Uint` are unsigned.
Lists that are sets or maps by their schema have an equality of their own (`operators`).

Source: the CEL specification, "Values"; Kubernetes' opaque types.
"""

from dataclasses import dataclass, field
from typing import Any

from podscaler.api.cel.values.numbers import Uint
from podscaler.api.machinery.quantity import Quantity


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant, nanoseconds since the epoch.

    `zone` is as it was written, for its text alone: `Z` or `+02:00`.
    """

    at_ns: int
    zone: str = field(default="Z", compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span in nanoseconds."""

    span_ns: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent."""

    value: Any = None
    is_present: bool = True


NONE = Optional(None, is_present=False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(...)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of one of Kubernetes' types, equal by `value`.

    Attributes:
        kind: `kubernetes.URL`, `net.IP`, ...
        value: what it is in Python.
        text: as it was written, where that matters.
    """

    kind: str
    value: Any
    text: str = ""


class SetList(list[Any]):
    """A list with x-kubernetes-list-type `set`: equal in any order."""

    __slots__ = ()


class MapList(list[Any]):
    """A list with x-kubernetes-list-type `map`: elements are identified by the members `keys`."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


_KINDS: dict[type, str] = {
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
    Optional: "optional_type",
    TypeValue: "type",
    Quantity: "kubernetes.Quantity",
}


def kind(value: Any) -> str:
    """The name of a value's type, as `type(...)` has it."""
    return value.kind if isinstance(value, Opaque) else _KINDS[type(value)]
