"""Converts the OpenAPI schemas of custom resources to CEL types, for the type check of their validation rules.

    cel_type_of(parse({"type": "array", "items": {"type": "string"}}), "selfType0")      list(string)
    escape("my-name")                                                                    "my__dash__name"

Called by `rules`, and by `podscaler.api.kinds.apiextensions.crd_rule_validation`. `rule_values` converts values to
these types: a new type or format needs a line in both.

Rules: a schema without a type (preserved unknown fields) has no CEL type; the whole object and embedded resources have
apiVersion, kind, metadata.name and metadata.generateName; int-or-string is dyn.

Source: the API documentation of x-kubernetes-validations: types, and how names are escaped; kube-apiserver's names of
types in messages.
"""

import re
from dataclasses import replace

from podscaler.api.cel.compile.checking import KEYWORDS
from podscaler.api.cel.values import types
from podscaler.api.cel.values.types import Type
from podscaler.api.crd.structural import INT_OR_STRING, Structural

_RESERVED_WORDS = frozenset({"true", "false", "null", "in", *KEYWORDS})
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED_PARTS = re.compile(r"__|[-./]")
_ESCAPABLE_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_TYPES_BY_FORMAT = {
    "byte": types.BYTES,
    "duration": types.DURATION,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
}
_SCALAR_TYPES = {"boolean": types.BOOL, "number": types.DOUBLE, "integer": types.INT}
_STRING_SCHEMA = Structural(types=("string",))
_METADATA_SCHEMA = Structural(types=("object",), properties={"name": _STRING_SCHEMA, "generateName": _STRING_SCHEMA})


def escape(name: str) -> str:
    """The name of a member in expressions; empty for one that expressions cannot name, such as `a b`."""
    if name in _RESERVED_WORDS:
        return f"__{name}__"
    if not _ESCAPABLE_NAME.fullmatch(name):
        return ""
    return _ESCAPED_PARTS.sub(lambda match: _ESCAPES[match.group()], name)


def with_object_fields(schema: Structural) -> Structural:
    """The schema of a whole (or embedded) object, with the fields that rules can read even if it does not declare them.

    These are apiVersion, kind and metadata, reduced to name and generateName unless the schema declares both of them.
    """
    declared_metadata = schema.properties.get("metadata")
    declares_names = declared_metadata is not None and {"name", "generateName"} <= declared_metadata.properties.keys()
    metadata = declared_metadata if declared_metadata is not None and declares_names else _METADATA_SCHEMA
    properties = {**schema.properties, "apiVersion": _STRING_SCHEMA, "kind": _STRING_SCHEMA, "metadata": metadata}
    return replace(schema, properties=properties)


def cel_type_of(schema: Structural, name: str, *, is_root: bool = False) -> Type | None:
    """The CEL type of the values of a schema; None where rules cannot access them.

    Args:
        schema: the schema.
        name: the name that messages show for the type, if it is an object. Objects within it are named by their path:
            `selfType0.spec`, `selfType0.ports.@idx` (elements), `selfType0.labels.@elem` (values of a map).
        is_root: whether the values are whole (or embedded) objects.
    """
    if schema.types == INT_OR_STRING:
        return types.DYN
    json_type = schema.types[0] if schema.types else ""
    if json_type == "array":
        return _list_type(schema, name)
    if json_type == "object":
        return _object_type(with_object_fields(schema) if is_root else schema, name)
    if json_type == "string":
        return _TYPES_BY_FORMAT.get(schema.format, types.STRING)
    return _SCALAR_TYPES.get(json_type)


def _list_type(schema: Structural, name: str) -> Type | None:
    """The type of a list; None where rules cannot access its elements."""
    if schema.items is None:
        return None
    element_type = cel_type_of(schema.items, f"{name}.@idx", is_root=schema.items.is_embedded)
    return None if element_type is None else types.list_of(element_type)


def _object_type(schema: Structural, name: str) -> Type | None:
    """The type of an object: a map, or its properties, without those that expressions cannot name or access.

    None for a map whose values rules cannot access.
    """
    if schema.additional is not None:
        value_type = cel_type_of(schema.additional, f"{name}.@elem", is_root=schema.additional.is_embedded)
        return None if value_type is None else types.map_of(types.STRING, value_type)
    fields = {}
    for member, member_schema in schema.properties.items():
        escaped_name = escape(member)
        if not escaped_name:
            continue
        member_type = cel_type_of(member_schema, f"{name}.{escaped_name}", is_root=member_schema.is_embedded)
        if member_type is not None:
            fields[escaped_name] = member_type
    return types.object_of(name, fields)
