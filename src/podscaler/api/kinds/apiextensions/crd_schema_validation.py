"""Validates the OpenAPI schema of a CustomResourceDefinition's version.

Called by `crd_validation`. Three passes, as in kube-apiserver: what any schema must satisfy; what a structural schema
must satisfy (`crd_structure_validation`); and, if there are no errors yet, the defaults and CEL rules.

Source: the API documentation of structural schemas and of JSONSchemaProps; kube-apiserver's validation messages.
"""

from collections.abc import Iterator
from typing import Any

from podscaler.api.crd import pruning, structural, validation
from podscaler.api.crd.structural import ABSENT, META_FIELDS, Structural
from podscaler.api.kinds.apiextensions import crd_rule_validation, crd_structure_validation
from podscaler.api.machinery import re2_patterns, string_formats
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, semantics

MAX_SELECTABLE_FIELDS = 8
TYPES = ("array", "boolean", "integer", "number", "object", "string")
_TEXT_LIMITS = ("maxLength", "minLength", "pattern")
_NUMBER_LIMITS = ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
_LIST_LIMITS = ("maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties")
_DESCRIPTIONS = ("description", "type", "format", "title")
_EXTENSIONS = {
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
_PLAIN = (*_DESCRIPTIONS, *_NUMBER_LIMITS, *_TEXT_LIMITS, *_LIST_LIMITS, "externalDocs", "example")
_AT_ROOT_WITH_STATUS = {name: f"{name[0].upper()}{name[1:]}" for name in _PLAIN} | _EXTENSIONS
"""Keyword that the root of a schema with a status subresource may have -> its name in Go."""
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
Schema = dict[str, Any]

LIST_TYPES = ("atomic", "set", "map")
_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def validate(schema: Schema | None, path: str, *, has_status: bool) -> list[FieldError]:
    """The field errors of a version's openAPIV3Schema; `has_status`: whether there is a status subresource."""
    if schema is None:
        return []
    errors = _root_errors(schema, path, has_status=has_status)
    errors += _node_errors(schema, path, is_root=True, no_default="")
    structure = [] if _is_unsupported(schema) else crd_structure_validation.validate(schema, path)
    if structure:
        return errors + structure
    parsed = structural.parse(schema)
    defaults = _default_errors(parsed, path, is_root=True) if not errors else []
    if defaults or not structural.has_rules(parsed):
        return errors + defaults
    fields = [error.field for error in errors]
    if not all(".x-kubernetes-validations[" in field for field in fields):
        return errors
    return errors + crd_rule_validation.expression_errors(parsed, path, fields)


def _is_unsupported(schema: Schema) -> bool:
    """Whether any schema in it has a keyword for which kube-apiserver skips the structural validation."""
    return any(map(schema.get, _UNSUPPORTED)) or any(_is_unsupported(child) for _, child in children(schema, ""))


def set_warnings(schema: Schema) -> list[str]:
    """The warnings about sets in a schema whose elements are objects or lists."""
    warnings = _node_set_warnings(schema)
    for _, child in children(schema, ""):
        warnings += set_warnings(child)
    return warnings


def unknown_formats(schema: Schema) -> list[str]:
    """The `format` keywords of strings in a schema that are not validated."""
    name = schema.get("format", "")
    formats = [name] if name and schema.get("type") == "string" and string_formats.find_check(name) is None else []
    return formats + [format_name for _, child in children(schema, "") for format_name in unknown_formats(child)]


def selectable_errors(json_path: str, schema: Schema, path: str) -> list[FieldError]:
    """The field errors of the path of a selectable field: it must lead to a plain value."""
    if not json_path:
        return [required(path)]
    if not json_path.startswith("."):
        return [invalid(path, json_path, f"is an invalid path: expected [ or . but got: {json_path.partition('.')[0]}")]
    node: Schema | None = schema
    if "[" in json_path:
        return [invalid(path, json_path, "is an invalid path: array notation is not allowed")]
    for name in json_path.removeprefix(".").split("."):
        node = _member(node or {}, name)
    if node is None:
        return [invalid(path, json_path, "is an invalid path: does not refer to a valid field")]
    if json_path.split(".")[1] == "metadata":
        return [invalid(path, json_path, "must not point to fields in metadata")]
    if node.get("type") not in ("string", "boolean", "integer"):
        text = (
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are"
        )
        return [invalid(path, json_path, f"{text} allowed.")]
    return []


def _member(schema: Schema, name: str) -> Schema | None:
    """The schema of a member: that in `properties`, or that of additionalProperties; None without either."""
    member = (schema.get("properties") or {}).get(name)
    additional = schema.get("additionalProperties")
    return member or (additional if isinstance(additional, dict) else None)


def children(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """The schemas in a schema, with their paths."""
    for name, member in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", member
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield f"{path}.{name}", schema[name]
    for name in ("allOf", "oneOf", "anyOf"):
        for index, subschema in enumerate(schema.get(name) or []):
            yield f"{path}.{name}[{index}]", subschema


def _root_errors(schema: Schema, path: str, *, has_status: bool) -> list[FieldError]:
    """Errors of what may not be at the root of a schema; less may be there with a status subresource."""
    errors = []
    if has_status:
        kind = schema.get("type", "")
        odd = [name for name in schema if name not in _AT_ROOT_WITH_STATUS and schema[name]]
        if kind and kind != "object":
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            errors.append(invalid(f"{path}.type", kind, text))
        elif odd:
            allowed = " ".join(_AT_ROOT_WITH_STATUS.values())
            text = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            errors.append(invalid(path, schema, text))
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors


def _node_errors(schema: Schema, path: str, *, is_root: bool, no_default: str) -> list[FieldError]:
    """The errors of a schema and all schemas in it, structural or not.

    Args:
        schema: the schema.
        path: the path of the schema.
        is_root: whether it describes the whole object.
        no_default: the end of the message that it must not have a default; empty if it may.
    """
    errors = _own_errors(schema, path)
    if "default" in schema and no_default:
        errors.append(forbidden(f"{path}.default", f"must not be set{no_default}"))
    errors += _list_type_errors(schema, path)
    rules = schema.get("x-kubernetes-validations") or []
    errors += crd_rule_validation.validate(rules, schema, f"{path}.x-kubernetes-validations")
    metadata = {f"{path}.properties[{name}]": name for name in META_FIELDS} if is_root else {}
    for below, child in children(schema, path):
        reason = f" in top-level {metadata[below]}" if below in metadata else no_default
        errors += _node_errors(child, below, is_root=False, no_default=reason)
    return errors


def _own_errors(schema: Schema, path: str) -> list[FieldError]:
    """Errors of the fields of one schema, without those of the schemas below it."""
    errors = [forbidden(f"{path}.{name}", f"{name} is not supported") for name in _UNSUPPORTED if schema.get(name)]
    kind = schema.get("type", "")
    if kind == "null":
        errors.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if kind and kind not in TYPES:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    pattern = schema.get("pattern", "")
    error = re2_patterns.find_error(pattern)
    if error:
        text = f"must be a valid regular expression, but isn't: {error}"
        errors.append(invalid(f"{path}.pattern", pattern, text))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(f"{path}.uniqueItems", text))
    additional = schema.get("additionalProperties")
    if schema.get("properties") and (additional is False or isinstance(additional, dict)):
        text = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(f"{path}.additionalProperties", text))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    return errors + _map_type_errors(schema, path)


def _map_type_errors(schema: Schema, path: str) -> list[FieldError]:
    """Errors of `x-kubernetes-map-type`."""
    map_type, kind = schema.get("x-kubernetes-map-type"), schema.get("type", "")
    if map_type is None:
        return []
    errors = []
    text = "must be object if x-kubernetes-map-type is specified"
    if kind != "object":
        errors.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    if map_type not in ("atomic", "granular"):
        errors.append(not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return errors


def _default_errors(schema: Structural, path: str, *, is_root: bool) -> list[FieldError]:
    """The errors of defaults: unknown fields, or values that their own schema does not allow."""
    errors = []
    if schema.default is not ABSENT:
        errors += (_of_root_default if is_root else _of_default)(schema, f"{path}.default")
    for name, member in schema.properties.items():
        if is_root and name in META_FIELDS:
            continue
        errors += _default_errors(member, f"{path}.properties[{name}]", is_root=False)
    if schema.items is not None:
        errors += _default_errors(schema.items, f"{path}.items", is_root=False)
    if schema.additional is not None:
        errors += _default_errors(schema.additional, f"{path}.additionalProperties", is_root=False)
    return errors


def _of_root_default(schema: Structural, path: str) -> list[FieldError]:
    """The errors of a default of the whole object, which must have apiVersion and kind."""
    if not isinstance(schema.default, dict):
        return []
    return [required(f"{path}.{name}") for name in ("apiVersion", "kind") if not schema.default.get(name)]


def _of_default(schema: Structural, path: str) -> list[FieldError]:
    """Errors of a default value, which must be valid by its own schema and have no unknown fields."""
    if schema.default is None and not schema.nullable:
        return _at(path, validation.value_errors(None, schema, ""))
    pruned = {"": semantics.copied(schema.default)}
    if pruning.prune(pruned, Structural(properties={"": schema})):
        return [invalid(path, schema.default, "must not have unknown fields")]
    errors = _at(path, validation.value_errors(schema.default, schema, ""))
    if errors or not structural.has_rules(schema):
        return errors
    return crd_rule_validation.default_errors(schema, path)


def _at(path: str, errors: list[FieldError]) -> list[FieldError]:
    """`errors` of a default, with paths below `path`."""
    return [
        FieldError(error.reason, path if error.field == "<nil>" else f"{path}.{error.field}", error.text)
        for error in errors
    ]


def _list_type_errors(schema: Schema, path: str) -> list[FieldError]:
    """The field errors of the list type of one node."""
    list_type, keys = schema.get(_TYPE), schema.get(_KEYS) or []
    errors = []
    if list_type is not None:
        errors += _typed_list_errors(schema, list_type, path)
    if keys and list_type is None:
        errors.append(required(f"{path}.{_TYPE}", f"must be map if {_KEYS} is non-empty"))
    elif keys and list_type != "map":
        errors.append(invalid(f"{path}.{_TYPE}", list_type, f"must be map if {_KEYS} is non-empty"))
    return errors + (_list_map_errors(schema, keys, path) if list_type == "map" else [])


def _node_set_warnings(schema: Schema) -> list[str]:
    """The warning about a set (one node) of objects or lists."""
    items = schema.get("items")
    kind = items.get("type") if isinstance(items, dict) and schema.get(_TYPE) == "set" else None
    if kind not in ("array", "object"):
        return []
    return [f'{_TYPE}: set for items of type "{kind}" is not supported by server-side apply or CEL validation rules']


def _typed_list_errors(schema: Schema, list_type: str, path: str) -> list[FieldError]:
    kind = schema.get("type", "")
    errors = []
    if kind != "array":
        text = f"must be array if {_TYPE} is specified"
        errors.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif list_type == "set" and isinstance(schema.get("items"), dict):
        errors += _set_errors(schema["items"], f"{path}.items")
    return errors + checks.one_of(list_type, f"{path}.{_TYPE}", LIST_TYPES)


def _set_errors(items: Schema, path: str) -> list[FieldError]:
    """The errors of the elements of a set, which must be atomic and not nullable."""
    if items.get("nullable"):
        return [forbidden(f"{path}.nullable", f"cannot be nullable when {_TYPE} is set")]
    kind = items.get("type")
    name = {"array": _TYPE, "object": "x-kubernetes-map-type"}.get(str(kind), "")
    if not name or items.get(name) == "atomic" or (kind == "array" and items.get(name) is None):
        return []
    text = f"must be atomic as item of a list with {_TYPE}=set"
    return [invalid(f"{path}.{name}", None if kind == "object" else items[name], text)]


def _list_map_errors(schema: Schema, keys: list[str], path: str) -> list[FieldError]:
    items = schema.get("items")
    errors = checks.present(keys, f"{path}.{_KEYS}", f"must not be empty if {_TYPE} is map")
    if items is None:
        return [*errors, required(f"{path}.items", f"must have a schema if {_TYPE} is map")]
    if not isinstance(items, dict):
        return [*errors, invalid(f"{path}.items", items, f"must only have a single schema if {_TYPE} is map")]
    if items.get("type") != "object":
        text = f"must be object if parent array's {_TYPE} is map"
        return [*errors, invalid(f"{path}.items.type", items.get("type", ""), text)]
    for index, key in enumerate(keys):
        errors += _key_errors(items, key, keys, path)
        errors += checks.holds(key not in keys[:index], f"{path}.{_KEYS}", keys, "must not contain duplicate entries")
    return errors


def _key_errors(items: Schema, key: str, keys: list[str], path: str) -> list[FieldError]:
    member = (items.get("properties") or {}).get(key)
    if member is None:
        return [invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")]
    below = f"{path}.items.properties[{key}]"
    errors = []
    if member.get("type") in ("array", "object"):
        text = f"must be a scalar type if parent array's {_TYPE} is map"
        errors.append(invalid(f"{below}.type", items.get("type"), text))
    prefix = f"this property is in {_KEYS}, so it"
    if "default" not in member and key not in (items.get("required") or []):
        errors.append(required(f"{below}.default", f"{prefix} must have a default or be a required property"))
    if member.get("nullable"):
        errors.append(forbidden(f"{below}.nullable", f"{prefix} cannot be nullable"))
    return errors
