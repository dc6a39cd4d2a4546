"""Validates that the schema of a CustomResourceDefinition is structural, so that objects can be pruned and defaulted.

Called by `crd_schema_validation`. Rules: outside of `allOf`, `anyOf`, `oneOf` and `not` every node has a type (or is
int-or-string, or keeps unknown fields); inside of them only keywords that restrict values are allowed; `metadata` is
not specified. Another keyword that is not allowed inside of them is a row of _FORBIDDEN_WHEN_NESTED.

Source: the API documentation of structural schemas; kube-apiserver's validation messages.
"""

from collections.abc import Iterator
from typing import Any, Literal

from podscaler.api.machinery.field import FieldError, forbidden, invalid, required

Schema = dict[str, Any]
_Level = Literal["at the root", "for specified array items", "for specified object fields"]
"""Where a schema is, in the words of kube-apiserver's messages."""

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_FORBIDDEN_WHEN_NESTED = (  # (keyword that allOf, anyOf, oneOf and not must not contain, message)
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
    """The field errors of a version's whole schema; none if it is structural."""
    return _node_errors(schema, path, "at the root")


def _node_errors(schema: Schema, path: str, level: _Level) -> list[FieldError]:
    """Field errors of a schema, which is outside of allOf, anyOf, oneOf and not, and of all schemas below it."""
    errors = _type_errors(schema, path, level)
    errors += _extension_errors(schema, path)
    errors += _metadata_errors(schema, path, level)
    if level == "at the root" and "additionalProperties" in schema:
        errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    for child_path, child in _combined_schemas(schema, path):
        errors += _nested_errors(child, child_path)
    for name, member in (schema.get("properties") or {}).items():
        errors += _node_errors(member, f"{path}.properties[{name}]", "for specified object fields")
    if isinstance(schema.get("items"), dict):
        errors += _node_errors(schema["items"], f"{path}.items", "for specified array items")
    if isinstance(schema.get("additionalProperties"), dict):
        child_path = f"{path}.additionalProperties"
        errors += _node_errors(schema["additionalProperties"], child_path, "for specified object fields")
    return errors


def _type_errors(schema: Schema, path: str, level: _Level) -> list[FieldError]:
    """Errors of a missing type, and of a type that cannot be where the schema is."""
    schema_type = schema.get("type", "")
    may_lack_type = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and schema_type != "object":
        message = "must be object if x-kubernetes-embedded-resource is true"
        return [invalid(f"{path}.type", schema_type, message) if schema_type else required(f"{path}.type", message)]
    if not schema_type and not may_lack_type:
        return [required(f"{path}.type", f"must not be empty {level}")]
    errors = []
    if schema_type == "array" and "items" not in schema:
        errors.append(required(f"{path}.items", "must be specified"))
    if level == "at the root" and schema_type and schema_type != "object":
        errors.append(invalid(f"{path}.type", schema_type, "must be object at the root"))
    return errors


def _extension_errors(schema: Schema, path: str) -> list[FieldError]:
    """Errors of `x-kubernetes-` fields that exclude each other."""
    errors = []
    if schema.get("x-kubernetes-int-or-string"):
        message = "must be false if x-kubernetes-int-or-string is true"
        for field in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            errors += [invalid(f"{path}.{field}", True, message)] if schema.get(field) else []
    has_fields = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("properties")
    if schema.get("x-kubernetes-embedded-resource") and not has_fields:
        message = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(f"{path}.properties", message))
    return errors


def _metadata_errors(schema: Schema, path: str, level: _Level) -> list[FieldError]:
    """Field errors of `apiVersion`, `kind` and `metadata` in the schema of a whole object (root or embedded).

    The first two must be strings, the third an object; the root may restrict only the names in its metadata.
    """
    is_whole_object = level == "at the root" or schema.get("x-kubernetes-embedded-resource")
    properties = schema.get("properties") or {}
    if not is_whole_object:
        return []
    errors = []
    for name, required_type in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type", "") != required_type:
            type_path = f"{path}.properties[{name}].type"
            errors.append(invalid(type_path, properties[name].get("type", ""), f"must be {required_type}"))
    metadata = properties.get("metadata")
    if metadata is not None and level == "at the root" and not _is_plain_metadata(metadata):
        message = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(forbidden(f"{path}.properties[metadata]", message))
    return errors


def _is_plain_metadata(metadata: Schema) -> bool:
    """Whether the schema of `metadata` restricts nothing but `name` and `generateName`."""
    other_keywords = [
        keyword
        for keyword, value in metadata.items()
        if value and keyword not in ("type", "description", "properties", "default")
    ]
    return not other_keywords and set(metadata.get("properties") or ()) <= {"name", "generateName"}


def _combined_schemas(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yields (path, schema) of the parts of allOf, anyOf, oneOf and not.

    An int-or-string may say so as `anyOf: [integer, string]`, also in the first of `allOf`: these parts are left out.
    """
    is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    for keyword in ("allOf", "anyOf", "oneOf"):
        subschemas = schema.get(keyword) or []
        if is_int_or_string and keyword == "anyOf" and subschemas == _INT_OR_STRING:
            continue
        for index, subschema in enumerate(subschemas):
            is_first_of_all = keyword == "allOf" and index == 0
            if is_int_or_string and is_first_of_all and subschema.get("anyOf") == _INT_OR_STRING:
                continue
            yield f"{path}.{keyword}[{index}]", subschema
    if isinstance(schema.get("not"), dict):
        yield f"{path}.not", schema["not"]


def _nested_errors(schema: Schema, path: str) -> list[FieldError]:
    """Field errors of keywords that a schema inside of allOf, anyOf, oneOf or not must not have, nor those below it."""
    errors = [forbidden(f"{path}.{name}", message) for name, message in _FORBIDDEN_WHEN_NESTED if schema.get(name)]
    for field in ("default", "additionalProperties"):
        if field in schema:
            errors.append(forbidden(f"{path}.{field}", "must be undefined to be structural"))
    is_about_root = "properties[" not in path  # no property on the way from the root of the schema
    if is_about_root and "metadata" in (schema.get("properties") or {}):
        errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    for child_path, child in _all_subschemas(schema, path):
        errors += _nested_errors(child, child_path)
    return errors


def _all_subschemas(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yields (path, schema) of each member, of the elements, and of each part of allOf, anyOf, oneOf and not."""
    for name, member in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", member
    if isinstance(schema.get("items"), dict):
        yield f"{path}.items", schema["items"]
    yield from _combined_schemas(schema, path)
