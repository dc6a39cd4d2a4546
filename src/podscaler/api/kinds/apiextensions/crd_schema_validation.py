"""Validates the OpenAPI schema of a CustomResourceDefinition's version.

Called by `crd_validation`. Three passes, as in kube-apiserver: the requirements of any schema; those of a structural
schema (`crd_structure_validation`); and, if there are no errors yet, the defaults and CEL rules. Every schema inside a
schema, at a property, `items`, `not`, ..., is a node. A check of the keywords of one node goes into `_own_errors`.

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

SELECTABLE_FIELDS_MAX = 8
_SCHEMA_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_DESCRIPTIONS = ("description", "type", "format", "title")
_NUMBER_LIMITS = ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
_TEXT_LIMITS = ("maxLength", "minLength", "pattern")
_OTHER_KEYWORDS = ("maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items", "properties")
_EXTENSION_GO_NAMES = {
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
_PLAIN_KEYWORDS = (*_DESCRIPTIONS, *_NUMBER_LIMITS, *_TEXT_LIMITS, *_OTHER_KEYWORDS, "externalDocs", "example")
_ROOT_KEYWORDS_WITH_STATUS = {name: f"{name[0].upper()}{name[1:]}" for name in _PLAIN_KEYWORDS} | _EXTENSION_GO_NAMES
"""Keyword that the root of a schema with a status subresource may have -> its name in Go, in the message's order."""
_UNSUPPORTED_KEYWORDS = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
Schema = dict[str, Any]
"""A JSON schema, as the client sent it."""

_LIST_TYPES = ("atomic", "set", "map")
_LIST_TYPE, _LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def validate(schema: Schema | None, path: str, *, has_status: bool) -> list[FieldError]:
    """The field errors of a version's openAPIV3Schema.

    Args:
        schema: the JSON schema as the client sent it; None if the version has none.
        path: the path of the schema.
        has_status: whether the version has a status subresource.
    """
    if schema is None:
        return []
    errors = _root_errors(schema, path, has_status=has_status)
    errors += _node_errors(schema, path, is_root=True, default_ban_place="")
    structure_errors = [] if _is_unsupported(schema) else crd_structure_validation.validate(schema, path)
    if structure_errors:
        return errors + structure_errors
    structural_schema = structural.parse(schema)
    default_errors = _default_errors(structural_schema, path, is_root=True) if not errors else []
    if default_errors or not structural.has_rules(structural_schema):
        return errors + default_errors
    # rules are compiled if all errors so far are those of the form of rules
    error_paths = [error.field for error in errors]
    if not all(".x-kubernetes-validations[" in error_path for error_path in error_paths):
        return errors
    return errors + crd_rule_validation.expression_errors(structural_schema, path, error_paths)


def _is_unsupported(schema: Schema) -> bool:
    """Whether any node has one of _UNSUPPORTED_KEYWORDS, for which kube-apiserver skips the structural validation."""
    has_unsupported_keyword = any(map(schema.get, _UNSUPPORTED_KEYWORDS))
    return has_unsupported_keyword or any(_is_unsupported(child) for _, child in _child_nodes(schema, ""))


def set_warnings(schema: Schema) -> list[str]:
    """The warnings about sets in a schema whose elements are objects or lists."""
    warnings = _node_set_warnings(schema)
    for _, child in _child_nodes(schema, ""):
        warnings += set_warnings(child)
    return warnings


def unknown_formats(schema: Schema) -> list[str]:
    """The formats of strings in a schema that are unknown, and so not validated; they may repeat."""
    own_format = schema.get("format", "")
    is_unknown = own_format and schema.get("type") == "string" and string_formats.find_check(own_format) is None
    own_formats = [own_format] if is_unknown else []
    return own_formats + [
        format_name for _, child in _child_nodes(schema, "") for format_name in unknown_formats(child)
    ]


def selectable_path_errors(json_path: str, schema: Schema, path: str) -> list[FieldError]:
    """The field errors of the path of a selectable field, which must lead to a string, boolean or integer.

    Args:
        json_path: the simple JSON path, such as `.spec.color`.
        schema: the whole schema of the version.
        path: the path of the field error.
    """
    if not json_path:
        return [required(path)]
    if not json_path.startswith("."):
        return [invalid(path, json_path, f"is an invalid path: expected [ or . but got: {json_path.partition('.')[0]}")]
    if "[" in json_path:
        return [invalid(path, json_path, "is an invalid path: array notation is not allowed")]
    members = json_path.removeprefix(".").split(".")
    node: Schema | None = schema
    for name in members:
        node = _member_schema(node or {}, name)
    if node is None:
        return [invalid(path, json_path, "is an invalid path: does not refer to a valid field")]
    if members[0] == "metadata":
        return [invalid(path, json_path, "must not point to fields in metadata")]
    if node.get("type") not in ("string", "boolean", "integer"):
        types = "must point to a field of type string, boolean or integer"
        return [invalid(path, json_path, f"{types}. Enum string fields and strings with formats are allowed.")]
    return []


def _member_schema(schema: Schema, name: str) -> Schema | None:
    """The schema of a member: that in `properties`, or that of additionalProperties; None without either."""
    member = (schema.get("properties") or {}).get(name)
    additional = schema.get("additionalProperties")
    return member or (additional if isinstance(additional, dict) else None)


def _child_nodes(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yields (path, schema) of each node directly below `schema`."""
    for name, member in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", member
    for field in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(field), dict):
            yield f"{path}.{field}", schema[field]
    for field in ("allOf", "oneOf", "anyOf"):
        for index, subschema in enumerate(schema.get(field) or []):
            yield f"{path}.{field}[{index}]", subschema


def _root_errors(schema: Schema, path: str, *, has_status: bool) -> list[FieldError]:
    """Field errors of keywords that the root of a schema may not have; a status subresource allows fewer."""
    errors = []
    if has_status:
        schema_type = schema.get("type", "")
        unexpected_keywords = [name for name in schema if name not in _ROOT_KEYWORDS_WITH_STATUS and schema[name]]
        if schema_type and schema_type != "object":
            message = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            errors.append(invalid(f"{path}.type", schema_type, message))
        elif unexpected_keywords:
            allowed = " ".join(_ROOT_KEYWORDS_WITH_STATUS.values())
            message = (
                f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            errors.append(invalid(path, schema, message))
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    return errors


def _node_errors(schema: Schema, path: str, *, is_root: bool, default_ban_place: str) -> list[FieldError]:
    """The errors of a schema and all schemas in it, structural or not.

    Args:
        is_root: whether it describes the whole object.
        default_ban_place: where defaults are forbidden, such as ` in top-level metadata`; empty where they are not.
    """
    errors = _own_errors(schema, path)
    if "default" in schema and default_ban_place:
        errors.append(forbidden(f"{path}.default", f"must not be set{default_ban_place}"))
    errors += _list_type_errors(schema, path)
    rules = schema.get("x-kubernetes-validations") or []
    errors += crd_rule_validation.validate(rules, schema, f"{path}.x-kubernetes-validations")
    metadata_members = {f"{path}.properties[{name}]": name for name in META_FIELDS} if is_root else {}
    for child_path, child in _child_nodes(schema, path):
        child_default_ban_place = default_ban_place
        if child_path in metadata_members:
            child_default_ban_place = f" in top-level {metadata_members[child_path]}"
        errors += _node_errors(child, child_path, is_root=False, default_ban_place=child_default_ban_place)
    return errors


def _own_errors(schema: Schema, path: str) -> list[FieldError]:
    """Field errors of the keywords of one schema, without those of the schemas below it."""
    errors = [
        forbidden(f"{path}.{name}", f"{name} is not supported") for name in _UNSUPPORTED_KEYWORDS if schema.get(name)
    ]
    schema_type = schema.get("type", "")
    if schema_type == "null":
        errors.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if schema_type and schema_type not in _SCHEMA_TYPES:
        errors.append(not_supported(f"{path}.type", schema_type, _SCHEMA_TYPES))
    pattern = schema.get("pattern", "")
    pattern_error = re2_patterns.find_error(pattern)
    if pattern_error:
        message = f"must be a valid regular expression, but isn't: {pattern_error}"
        errors.append(invalid(f"{path}.pattern", pattern, message))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if schema.get("uniqueItems"):
        message = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(f"{path}.uniqueItems", message))
    additional = schema.get("additionalProperties")
    if schema.get("properties") and (additional is False or isinstance(additional, dict)):
        message = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(f"{path}.additionalProperties", message))
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        errors.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    return errors + _map_type_errors(schema, path)


def _map_type_errors(schema: Schema, path: str) -> list[FieldError]:
    """Errors of `x-kubernetes-map-type`: `atomic` or `granular`, in the schema of an object only."""
    map_type, schema_type = schema.get("x-kubernetes-map-type"), schema.get("type", "")
    if map_type is None:
        return []
    errors = []
    message = "must be object if x-kubernetes-map-type is specified"
    if schema_type != "object":
        errors.append(
            invalid(f"{path}.type", schema_type, message) if schema_type else required(f"{path}.type", message)
        )
    if map_type not in ("atomic", "granular"):
        errors.append(not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return errors


def _default_errors(schema: Structural, path: str, *, is_root: bool) -> list[FieldError]:
    """The errors of the defaults of a schema and of those below it, without those of the root's metadata."""
    errors = []
    if schema.default is not ABSENT:
        check_default = _root_default_errors if is_root else _default_value_errors
        errors += check_default(schema, f"{path}.default")
    for name, member in schema.properties.items():
        if is_root and name in META_FIELDS:
            continue
        errors += _default_errors(member, f"{path}.properties[{name}]", is_root=False)
    if schema.items is not None:
        errors += _default_errors(schema.items, f"{path}.items", is_root=False)
    if schema.additional is not None:
        errors += _default_errors(schema.additional, f"{path}.additionalProperties", is_root=False)
    return errors


def _root_default_errors(schema: Structural, path: str) -> list[FieldError]:
    """The errors of a default of the whole object, of which only apiVersion and kind are checked."""
    if not isinstance(schema.default, dict):
        return []
    return [required(f"{path}.{name}") for name in ("apiVersion", "kind") if not schema.default.get(name)]


def _default_value_errors(schema: Structural, path: str) -> list[FieldError]:
    """Errors of a default value, which must be valid by its own schema and have no unknown fields."""
    if schema.default is None and not schema.nullable:
        return _moved_below(path, validation.value_errors(None, schema, ""))
    # `prune` keeps apiVersion, kind and metadata at the root of an object; inside of a holder the default is no root.
    holder = {"": semantics.copied(schema.default)}
    if pruning.prune(holder, Structural(properties={"": schema})):
        return [invalid(path, schema.default, "must not have unknown fields")]
    errors = _moved_below(path, validation.value_errors(schema.default, schema, ""))
    if errors or not structural.has_rules(schema):
        return errors
    return crd_rule_validation.default_errors(schema, path)


def _moved_below(path: str, errors: list[FieldError]) -> list[FieldError]:
    """`errors` of a value, whose paths are relative to it (`<nil>` is the value itself), with paths below `path`."""
    return [
        FieldError(error.reason, path if error.field == "<nil>" else f"{path}.{error.field}", error.text)
        for error in errors
    ]


def _list_type_errors(schema: Schema, path: str) -> list[FieldError]:
    """The field errors of the list type of one node."""
    list_type, keys = schema.get(_LIST_TYPE), schema.get(_LIST_KEYS) or []
    errors = []
    if list_type is not None:
        errors += _typed_list_errors(schema, list_type, path)
    if keys and list_type is None:
        errors.append(required(f"{path}.{_LIST_TYPE}", f"must be map if {_LIST_KEYS} is non-empty"))
    elif keys and list_type != "map":
        errors.append(invalid(f"{path}.{_LIST_TYPE}", list_type, f"must be map if {_LIST_KEYS} is non-empty"))
    return errors + (_list_map_errors(schema, keys, path) if list_type == "map" else [])


def _node_set_warnings(schema: Schema) -> list[str]:
    """The warning about a set (one node) of objects or lists."""
    items = schema.get("items")
    items_type = items.get("type") if isinstance(items, dict) and schema.get(_LIST_TYPE) == "set" else None
    if items_type not in ("array", "object"):
        return []
    problem = "is not supported by server-side apply or CEL validation rules"
    return [f'{_LIST_TYPE}: set for items of type "{items_type}" {problem}']


def _typed_list_errors(schema: Schema, list_type: str, path: str) -> list[FieldError]:
    """Field errors of a node with a list type: it must be an array, and the list type must be a known one."""
    schema_type = schema.get("type", "")
    errors = []
    if schema_type != "array":
        message = f"must be array if {_LIST_TYPE} is specified"
        errors.append(
            invalid(f"{path}.type", schema_type, message) if schema_type else required(f"{path}.type", message)
        )
    elif list_type == "set" and isinstance(schema.get("items"), dict):
        errors += _set_errors(schema["items"], f"{path}.items")
    return errors + checks.one_of(list_type, f"{path}.{_LIST_TYPE}", _LIST_TYPES)


def _set_errors(items: Schema, path: str) -> list[FieldError]:
    """The errors of the elements of a set, which must be atomic and not nullable."""
    if items.get("nullable"):
        return [forbidden(f"{path}.nullable", f"cannot be nullable when {_LIST_TYPE} is set")]
    items_type = items.get("type")
    type_keyword = {"array": _LIST_TYPE, "object": "x-kubernetes-map-type"}.get(str(items_type), "")
    is_atomic_by_default = items_type == "array" and items.get(type_keyword) is None
    if not type_keyword or items.get(type_keyword) == "atomic" or is_atomic_by_default:
        return []
    message = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    shown_value = None if items_type == "object" else items[type_keyword]  # as in kube-apiserver
    return [invalid(f"{path}.{type_keyword}", shown_value, message)]


def _list_map_errors(schema: Schema, keys: list[str], path: str) -> list[FieldError]:
    """Field errors of a list of type `map`: its elements must be objects that have all `keys`."""
    items = schema.get("items")
    errors = checks.present(keys, f"{path}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if items is None:
        return [*errors, required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")]
    if not isinstance(items, dict):
        return [*errors, invalid(f"{path}.items", items, f"must only have a single schema if {_LIST_TYPE} is map")]
    if items.get("type") != "object":
        message = f"must be object if parent array's {_LIST_TYPE} is map"
        return [*errors, invalid(f"{path}.items.type", items.get("type", ""), message)]
    for index, key in enumerate(keys):
        errors += _key_errors(items, key, keys, path)
        errors += checks.holds(
            key not in keys[:index], f"{path}.{_LIST_KEYS}", keys, "must not contain duplicate entries"
        )
    return errors


def _key_errors(items: Schema, key: str, keys: list[str], path: str) -> list[FieldError]:
    """Field errors of one key of a list of type `map`.

    Args:
        items: the schema of the elements.
        key: the name of the member of each element by which elements are told apart.
        keys: all keys, for the message.
        path: the path of the list's schema.
    """
    key_schema = (items.get("properties") or {}).get(key)
    if key_schema is None:
        return [invalid(f"{path}.{_LIST_KEYS}", keys, "entries must all be names of item properties")]
    member_path = f"{path}.items.properties[{key}]"
    errors = []
    if key_schema.get("type") in ("array", "object"):
        message = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
        errors.append(invalid(f"{member_path}.type", items.get("type"), message))  # of the elements, as upstream
    message_start = f"this property is in {_LIST_KEYS}, so it"
    if "default" not in key_schema and key not in (items.get("required") or []):
        errors.append(
            required(f"{member_path}.default", f"{message_start} must have a default or be a required property")
        )
    if key_schema.get("nullable"):
        errors.append(forbidden(f"{member_path}.nullable", f"{message_start} cannot be nullable"))
    return errors
