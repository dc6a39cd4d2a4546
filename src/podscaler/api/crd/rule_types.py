"""Converts OpenAPI schemas to CEL types, with member names escaped for expressions.

    cel_type_of(parse({"type": "array", "items": {"type": "string"}}), "t")      list(string)
    escape("my-name")                                                            "my__dash__name"

Called by `rules`, and by `podscaler.api.kinds.apiextensions.crd_rule_validation`.

Rules: a node without a type (preserved unknown fields) has no CEL type; the root and embedded resources have
apiVersion, kind, metadata.name and metadata.generateName; int-or-string is dyn.

Source: the API documentation of x-kubernetes-validations: types, and how names are escaped.
"""

import re
from dataclasses import replace

from podscaler.api.cel.compile.checking import KEYWORDS
from podscaler.api.cel.values import types
from podscaler.api.cel.values.types import Type
from podscaler.api.crd.structural import INT_OR_STRING, Structural

_RESERVED = frozenset({"true", "false", "null", "in", *KEYWORDS})
_TO_ESCAPE = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_FORMATS = {"byte": types.BYTES, "duration": types.DURATION, "date": types.TIMESTAMP, "date-time": types.TIMESTAMP}
_SCALAR_TYPES = {"boolean": types.BOOL, "number": types.DOUBLE, "integer": types.INT}
_STRING_SCHEMA = Structural(types=("string",))
_METADATA_NAMES = Structural(types=("object",), properties={"name": _STRING_SCHEMA, "generateName": _STRING_SCHEMA})


def escape(name: str) -> str:
    """The name of a member in expressions; empty if none is possible."""
    if name in _RESERVED:
        return f"__{name}__"
    return _TO_ESCAPE.sub(lambda match: _ESCAPES[match.group()], name) if _NAME.fullmatch(name) else ""


def with_object_fields(schema: Structural) -> Structural:
    """The schema of a whole object as rules see it: with apiVersion and kind, and metadata reduced to names."""
    metadata_schema = schema.properties.get("metadata")
    is_named = metadata_schema is not None and {"name", "generateName"} <= metadata_schema.properties.keys()
    metadata = metadata_schema if metadata_schema is not None and is_named else _METADATA_NAMES
    properties = {**schema.properties, "apiVersion": _STRING_SCHEMA, "kind": _STRING_SCHEMA, "metadata": metadata}
    return replace(schema, properties=properties)


def cel_type_of(schema: Structural, name: str, *, is_root: bool = False) -> Type | None:
    """The CEL type of the values of a schema; None where rules cannot access them.

    Args:
        schema: the schema.
        name: the name of the type of an object; objects in it append their path.
        is_root: whether it is a whole object (or an embedded one).
    """
    if schema.types == INT_OR_STRING:
        return types.DYN
    kind = schema.types[0] if schema.types else ""
    if kind == "array":
        return _list_type(schema, name)
    if kind == "object":
        return _object_type(with_object_fields(schema) if is_root else schema, name)
    if kind == "string":
        return _FORMATS.get(schema.format, types.STRING)
    return _SCALAR_TYPES.get(kind)


def _list_type(schema: Structural, name: str) -> Type | None:
    """The type of a list; None where rules cannot access its elements."""
    if schema.items is None:
        return None
    element_type = cel_type_of(schema.items, f"{name}.@idx", is_root=schema.items.is_embedded)
    return None if element_type is None else types.list_of(element_type)


def _object_type(schema: Structural, name: str) -> Type | None:
    """The type of an object: a map, or its properties; those that CEL cannot name are left out."""
    if schema.additional is not None:
        value_type = cel_type_of(schema.additional, f"{name}.@elem", is_root=schema.additional.is_embedded)
        return None if value_type is None else types.map_of(types.STRING, value_type)
    fields = {}
    for member, member_schema in schema.properties.items():
        escaped_name = escape(member)
        member_type = (
            cel_type_of(member_schema, f"{name}.{escaped_name}", is_root=member_schema.is_embedded)
            if escaped_name
            else None
        )
        if member_type is not None:
            fields[escaped_name] = member_type
    return types.object_of(name, fields)
