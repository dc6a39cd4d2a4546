"""Validates that the schema of a CustomResourceDefinition is structural, so that objects can be pruned and defaulted.

Called by `crd_schema_validation`. Rules: outside of `allOf`, `anyOf`, `oneOf` and `not` every node has a type (or is
int-or-string, or keeps unknown fields); inside of them only keywords that restrict values are allowed; `metadata` is
not specified.

Source: the API documentation of structural schemas; kube-apiserver's validation messages.
"""

from collections.abc import Iterator
from typing import Any, Literal

from podscaler.api.machinery.field import FieldError, forbidden, invalid, required

Schema = dict[str, Any]
Level = Literal["at the root", "for specified array items", "for specified object fields"]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_INSIDE = (
    ("description", "must be empty to be structural"),
    ("type", "must be empty to be structural"),
    ("title", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def validate(schema: Schema, path: str) -> list[FieldError]:
    """The field errors of a whole schema that is not structural."""
    return _node(schema, path, "at the root")


def _node(schema: Schema, path: str, level: Level) -> list[FieldError]:
    """Errors of a schema and all below it; `level` says where it is, in upstream's words."""
    errors = _type_errors(schema, path, level)
    errors += _extension_errors(schema, path)
    errors += _metadata_errors(schema, path, level)
    if level == "at the root" and "additionalProperties" in schema:
        errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    errors += [error for below, child in _logic(schema, path) for error in _inside(child, below)]
    for name, member in (schema.get("properties") or {}).items():
        errors += _node(member, f"{path}.properties[{name}]", "for specified object fields")
    if isinstance(schema.get("items"), dict):
        errors += _node(schema["items"], f"{path}.items", "for specified array items")
    if isinstance(schema.get("additionalProperties"), dict):
        below = f"{path}.additionalProperties"
        errors += _node(schema["additionalProperties"], below, "for specified object fields")
    return errors


def _type_errors(schema: Schema, path: str, level: Level) -> list[FieldError]:
    """Errors of a missing type, and of a type that cannot be where the schema is."""
    kind = schema.get("type", "")
    is_free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        return [invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)]
    if not kind and not is_free:
        return [required(f"{path}.type", f"must not be empty {level}")]
    errors = []
    if kind == "array" and "items" not in schema:
        errors.append(required(f"{path}.items", "must be specified"))
    if level == "at the root" and kind and kind != "object":
        errors.append(invalid(f"{path}.type", kind, "must be object at the root"))
    return errors


def _extension_errors(schema: Schema, path: str) -> list[FieldError]:
    """Errors of `x-kubernetes-` fields that exclude each other."""
    errors = []
    if schema.get("x-kubernetes-int-or-string"):
        text = "must be false if x-kubernetes-int-or-string is true"
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            errors += [invalid(f"{path}.{name}", True, text)] if schema.get(name) else []
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("properties")
    if schema.get("x-kubernetes-embedded-resource") and not keeps:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(f"{path}.properties", text))
    return errors


def _metadata_errors(schema: Schema, path: str, level: Level) -> list[FieldError]:
    """The errors of apiVersion and kind that are no texts, and of metadata with other keywords than those of names."""
    is_object = level == "at the root" or schema.get("x-kubernetes-embedded-resource")
    properties = schema.get("properties") or {}
    if not is_object:
        return []
    errors = []
    for name, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type", "") != kind:
            below = f"{path}.properties[{name}].type"
            errors.append(invalid(below, properties[name].get("type", ""), f"must be {kind}"))
    metadata = properties.get("metadata")
    if metadata is not None and level == "at the root" and not _is_plain_metadata(metadata):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(forbidden(f"{path}.properties[metadata]", text))
    return errors


def _is_plain_metadata(metadata: Schema) -> bool:
    """Whether the schema of `metadata` restricts nothing but `name` and `generateName`."""
    odd = [
        name
        for name, value in metadata.items()
        if value and name not in ("type", "description", "properties", "default")
    ]
    return not odd and set(metadata.get("properties") or ()) <= {"name", "generateName"}


def _logic(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """The schemas of allOf, anyOf, oneOf and not of a node, except for the two notations of int-or-string."""
    is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    for name in ("allOf", "anyOf", "oneOf"):
        subschemas = schema.get(name) or []
        if is_int_or_string and name == "anyOf" and subschemas == _INT_OR_STRING:
            continue
        for index, subschema in enumerate(subschemas):
            if is_int_or_string and name == "allOf" and not index and subschema.get("anyOf") == _INT_OR_STRING:
                continue
            yield f"{path}.{name}[{index}]", subschema
    if isinstance(schema.get("not"), dict):
        yield f"{path}.not", schema["not"]


def _inside(schema: Schema, path: str) -> list[FieldError]:
    """The errors of keywords that are forbidden inside of allOf, anyOf, oneOf and not."""
    errors = [forbidden(f"{path}.{name}", text) for name, text in _FORBIDDEN_INSIDE if schema.get(name)]
    for name in ("default", "additionalProperties"):
        if name in schema:
            errors.append(forbidden(f"{path}.{name}", "must be undefined to be structural"))
    if "metadata" in (schema.get("properties") or {}) and path.count("properties[") == 0:
        errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    for below, child in _below(schema, path):
        errors += _inside(child, below)
    return errors


def _below(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    for name, member in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", member
    if isinstance(schema.get("items"), dict):
        yield f"{path}.items", schema["items"]
    yield from _logic(schema, path)
