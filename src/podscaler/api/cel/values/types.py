"""Static types of CEL expressions: constructors, and assignability with type parameters (unification).

    find_bindings({}, list_of(T), list_of(INT))      {"T": INT}      T is a type parameter
    find_bindings({}, STRING, INT)                   None

Called by `checking`, by the function libraries for their signatures, and by callers that declare variables.

A type is a name with type arguments: `list(string)`, `map(string, int)`, `optional_type(int)`. `dyn` (known at
evaluation only) is assignable to and from every type. A new type: a constant here, its values in `values`, and where
expressions can name it, `podscaler.api.cel.library.environment`.

Source: the CEL specification, "Type checking"; cel-go's assignability.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    """One type.

    Attributes:
        name: `int`, `list`, ..., the name of an object's or Kubernetes' own type (`net.IP`), or of a type parameter.
        type_args: the types in parentheses: of elements, of keys and values, ...; empty for a type without.
        fields: the members of an object, by escaped name; None for everything else.
        is_param: whether it is a type parameter, which stands for any type.
    """

    name: str
    type_args: tuple["Type", ...] = ()
    fields: Mapping[str, "Type"] | None = field(default=None, compare=False, hash=False)
    is_param: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.type_args))})" if self.type_args else self.name


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL, DYN = Type("string"), Type("bytes"), Type("null"), Type("dyn")
TIMESTAMP, DURATION, ERROR = Type("timestamp"), Type("duration"), Type("!error!")
TYPE = "type"
OPTIONAL = "optional_type"
"""The names of the types of types and of optional values, which have a type argument."""

_NOT_NULLABLE = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "dyn", "!error!"})
"""Types to which null is not assignable."""

Bindings = dict[str, Type]
"""Name of a type parameter -> the type that is bound to it."""


def list_of(element: Type) -> Type:
    """`list(element)`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """`map(key, value)`."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """`optional_type(value)`: a value that may be absent."""
    return Type(OPTIONAL, (value,))


def type_of(value: Type) -> Type:
    """`type(value)`: the type of an expression whose value is a type."""
    return Type(TYPE, (value,))


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """An object with known members, by escaped name."""
    return Type(name, (), fields)


def is_dynamic(cel_type: Type) -> bool:
    """Whether the type is known at evaluation only."""
    return cel_type.name in ("dyn", "!error!")


def resolve(bindings: Bindings, cel_type: Type, *, free_is_dynamic: bool = False) -> Type:
    """The type with its bound parameters replaced; `free_is_dynamic` replaces a parameter without binding by dyn."""
    while cel_type.is_param and cel_type.name in bindings:
        cel_type = bindings[cel_type.name]
    if cel_type.is_param:
        return DYN if free_is_dynamic else cel_type
    if not cel_type.type_args:
        return cel_type
    type_args = tuple(resolve(bindings, type_arg, free_is_dynamic=free_is_dynamic) for type_arg in cel_type.type_args)
    return Type(cel_type.name, type_args, cel_type.fields)


def find_bindings(bindings: Bindings, expected: Type, actual: Type) -> Bindings | None:
    """`bindings` with those added with which `actual` is assignable to `expected`; None if it is not assignable."""
    extended_bindings = dict(bindings)
    return extended_bindings if _bind_if_assignable(extended_bindings, expected, actual) else None


def find_bindings_of_args(bindings: Bindings, expected: tuple[Type, ...], actual: tuple[Type, ...]) -> Bindings | None:
    """As `find_bindings`, for the types of all arguments of a call; None also if their counts differ."""
    if len(expected) != len(actual):
        return None
    extended_bindings = dict(bindings)
    are_assignable = all(_bind_if_assignable(extended_bindings, *pair) for pair in zip(expected, actual, strict=True))
    return extended_bindings if are_assignable else None


def _bind_if_assignable(bindings: Bindings, expected: Type, actual: Type) -> bool:
    """Whether `actual` is assignable to `expected`; adds to `bindings`, also where it is not."""
    if expected.is_param:
        return _bind_param(bindings, expected, actual)
    if actual.is_param:
        return _bind_param(bindings, actual, expected)
    if is_dynamic(expected) or is_dynamic(actual):
        return True
    if NULL in (actual, expected):
        concrete = expected if actual == NULL else actual
        return concrete == NULL or concrete.name not in _NOT_NULLABLE
    if expected.name != actual.name or len(expected.type_args) != len(actual.type_args):
        return False
    return expected.name == TYPE or all(
        _bind_if_assignable(bindings, *pair) for pair in zip(expected.type_args, actual.type_args, strict=True)
    )


def _bind_param(bindings: Bindings, param: Type, cel_type: Type) -> bool:
    """Bind a type parameter to a type, unless it is bound to one that does not fit; returns whether it is bound."""
    bound_type = bindings.get(param.name)
    if bound_type is not None:
        if not _bind_if_assignable(bindings, bound_type, cel_type):
            return False
        bindings[param.name] = most_general(bound_type, cel_type)
        return True
    if param == cel_type:
        return True
    if _contains_param(bindings, cel_type, param):
        return False
    bindings[param.name] = cel_type
    return True


def _contains_param(bindings: Bindings, cel_type: Type, param: Type) -> bool:
    """Whether `cel_type` contains `param`, to which it must not be bound then."""
    if cel_type == param:
        return True
    if cel_type.is_param:
        return cel_type.name in bindings and _contains_param(bindings, bindings[cel_type.name], param)
    return any(_contains_param(bindings, type_arg, param) for type_arg in cel_type.type_args)


def most_general(left: Type, right: Type) -> Type:
    """The more general of two types that are assignable to each other."""
    return left if _is_more_general(left, right) else right


def _is_more_general(left: Type, right: Type) -> bool:
    """Whether `left` accepts all values of `right`; the types are assignable to each other."""
    if left.is_param or is_dynamic(left):
        return True
    if right.is_param or is_dynamic(right):
        return False
    if NULL in (left, right):
        return left != NULL or right == NULL
    if left.name != right.name or len(left.type_args) != len(right.type_args):
        return False
    return all(_is_more_general(*pair) for pair in zip(left.type_args, right.type_args, strict=True))
