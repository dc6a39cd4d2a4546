"""The environment of expressions: all functions of Kubernetes v1.37, and the names of types.

Called by `planning` and `programs`. Functions that upstream does not register (math, encoders, `cel.bind`) are missing.

Source: Kubernetes' CEL environment for new expressions.
"""

from podscaler.api.cel.library import ip_addresses, kubernetes, lists, regex, standard, strings
from podscaler.api.cel.library.functions import KINDS, joined
from podscaler.api.cel.values.types import DYN, Type, type_of
from podscaler.api.cel.values.values import TypeValue

FUNCTIONS = joined(
    standard.FUNCTIONS,
    strings.FUNCTIONS,
    lists.FUNCTIONS,
    regex.FUNCTIONS,
    kubernetes.FUNCTIONS,
    ip_addresses.FUNCTIONS,
)

_PLAIN = ("bool", "int", "uint", "double", "string", "bytes")
_NAMES: dict[str, Type] = {
    **{name: Type(name) for name in _PLAIN},
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

TYPE_IDENTS = {name: type_of(one) for name, one in _NAMES.items()}
"""The types of the names of types, for the checker."""

TYPE_VALUES = {name: TypeValue(KINDS.get(name, name)) for name in _NAMES}
"""The values of the names of types."""
