"""The environment of CEL expressions: all functions of Kubernetes v1.37, and the identifiers that name types.

`programs` gives FUNCTIONS and TYPE_IDENTS to the type checker, `planning` evaluates with FUNCTIONS and TYPE_VALUES.
Functions that Kubernetes does not register (math, encoders, `cel.bind`) are missing. A new library: add its table to
FUNCTIONS; a new type that expressions can name: `_TYPES_BY_NAME`.

Source: Kubernetes' CEL environment for new expressions.
"""

from podscaler.api.cel.library import ip_addresses, kubernetes, lists, regex, standard, strings
from podscaler.api.cel.library.functions import RUNTIME_NAMES, join_tables
from podscaler.api.cel.values.types import DYN, Type, type_of
from podscaler.api.cel.values.values import TypeValue

FUNCTIONS = join_tables(
    standard.FUNCTIONS,
    strings.FUNCTIONS,
    lists.FUNCTIONS,
    regex.FUNCTIONS,
    kubernetes.FUNCTIONS,
    ip_addresses.FUNCTIONS,
)

_SCALARS = ("bool", "int", "uint", "double", "string", "bytes")
_TYPES_BY_NAME: dict[str, Type] = {
    **{name: Type(name) for name in _SCALARS},
    "list": Type("list", (DYN,)),
    "map": Type("map", (DYN, DYN)),
    "null_type": Type("null"),
    "type": Type("type", (DYN,)),
    "google.protobuf.Timestamp": Type("timestamp"),
    "google.protobuf.Duration": Type("duration"),
    "optional_type": Type("optional_type", (DYN,)),
    "net.IP": Type("net.IP"),
    "net.CIDR": Type("net.CIDR"),
}

TYPE_IDENTS = {name: type_of(cel_type) for name, cel_type in _TYPES_BY_NAME.items()}
"""Name of a type -> the static type of that identifier: `int` has the type `type(int)`."""

TYPE_VALUES = {name: TypeValue(RUNTIME_NAMES.get(name, name)) for name in _TYPES_BY_NAME}
"""Name of a type -> the value of that identifier in an evaluation."""
