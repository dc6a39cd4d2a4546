"""Builds the document of `/openapi/v2`: the part of OpenAPI v2 that clients still read, as JSON and as protobuf.

`non_resource_handlers` serves it. kubectl reads OpenAPI v3, except for a `List` and for kinds that v3 does not have:
there it looks in the v2 document for a PATCH operation of the kind with the parameter `fieldValidation`. `kubectl
explain --output=plaintext-openapiv2` reads the definitions. A new field of schemas: its number in `_MESSAGES`, its
value in `_schema_fields`.

Source: OpenAPI 2.0; the protobuf form is that of github.com/google/gnostic-models (openapiv2/OpenAPIv2.proto), of which
the messages below are the part that is used, with its names and numbers.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from podscaler.api.openapi import openapi_definitions
from podscaler.api.openapi.openapi_definitions import GVK_EXTENSION
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http.routes import Routes, ServedResource

if TYPE_CHECKING:
    from google.protobuf.message import Message

PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""The media type in `Accept` headers; responses have `RESPONSE_TYPE`, as an `@` is not allowed in media types."""

RESPONSE_TYPE = PROTOBUF_TYPE.replace("@", ".")
_PARAMETER_NAME = "fieldValidation"
"""The only parameter of operations that the document has: kubectl looks for it."""

_INFO = {"title": "Kubernetes", "version": "v1.37.0"}
_PACKAGE = "openapi.v2"
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Document": {
        "swagger": (1, ""),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "Definitions"),
    },
    "Info": {"title": (1, ""), "version": (2, "")},
    "Paths": {"path": (2, "NamedPathItem*")},
    "NamedPathItem": {"name": (1, ""), "value": (2, "PathItem")},
    "PathItem": {"patch": (8, "Operation")},
    "Operation": {"operation_id": (5, ""), "parameters": (8, "ParametersItem*"), "vendor_extension": (13, "NamedAny*")},
    "ParametersItem": {"parameter": (1, "Parameter")},
    "Parameter": {"non_body_parameter": (2, "NonBodyParameter")},
    "NonBodyParameter": {"query_parameter_sub_schema": (3, "QueryParameterSubSchema")},
    "QueryParameterSubSchema": {"in": (2, ""), "name": (4, ""), "type": (6, "")},
    "NamedAny": {"name": (1, ""), "value": (2, "Any")},
    "Any": {"yaml": (2, "")},
    "Definitions": {"additional_properties": (1, "NamedSchema*")},
    "NamedSchema": {"name": (1, ""), "value": (2, "Schema")},
    "Schema": {
        "_ref": (1, ""),
        "format": (2, ""),
        "description": (4, ""),
        "multiple_of": (6, "double"),
        "maximum": (7, "double"),
        "exclusive_maximum": (8, "bool"),
        "minimum": (9, "double"),
        "exclusive_minimum": (10, "bool"),
        "max_length": (11, "int64"),
        "min_length": (12, "int64"),
        "pattern": (13, ""),
        "max_items": (14, "int64"),
        "min_items": (15, "int64"),
        "unique_items": (16, "bool"),
        "max_properties": (17, "int64"),
        "min_properties": (18, "int64"),
        "required": (19, "*"),
        "enum": (20, "Any*"),
        "additional_properties": (21, "AdditionalPropertiesItem"),
        "type": (22, "TypeItem"),
        "items": (23, "ItemsItem"),
        "properties": (25, "Definitions"),
        "vendor_extension": (31, "NamedAny*"),
    },
    "AdditionalPropertiesItem": {"schema": (1, "Schema")},
    "TypeItem": {"value": (1, "*")},
    "ItemsItem": {"schema": (1, "Schema*")},
}
"""Fields by message: number, and type (`""`: a string; a scalar type like `int64`; a message; with `*`: repeated).

For example `"path": (2, "NamedPathItem*")` is `repeated NamedPathItem path = 2`.
"""

_VALIDATIONS = {
    name: re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)
    for name in (
        *openapi_definitions.NUMBER_LIMITS,
        *openapi_definitions.COUNT_LIMITS,
        *openapi_definitions.FLAGS,
    )
}
"""The fields of `Schema` by the names of the validations in JSON: `max_length` of `maxLength`."""

Schemas = Mapping[str, dict[str, Any]]
"""Schemas by name: of OpenAPI v3 as arguments of the public functions, of OpenAPI 2.0 in the private ones."""


def json_document(routes: Routes, schemas: Schemas) -> bytes:
    """The document as JSON."""
    paths = {path: {"patch": _json_operation(served)} for path, served in _patchable_kinds(routes)}
    definitions = openapi_definitions.definitions(schemas)
    return json_text.encode({"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions})


def protobuf_document(routes: Routes, schemas: Schemas) -> bytes:
    """The document as protobuf, the form that kubectl reads. Imports google.protobuf."""
    document = {
        "swagger": "2.0",
        "info": _INFO,
        "paths": {"path": [_protobuf_path(path, served) for path, served in _patchable_kinds(routes)]},
        "definitions": _named_schemas(openapi_definitions.definitions(schemas)),
    }
    message: Any = _message_class("Document")()
    _fill_message(message, document)
    serialized: bytes = message.SerializeToString()
    return serialized


def _patchable_kinds(routes: Routes) -> Iterable[tuple[str, ServedResource]]:
    """Every kind that can be patched, with the path of its objects."""
    for served in routes.all_resources():
        if "PATCH" in served.object_methods:
            root = f"/apis/{served.api_version}" if served.resource.group else f"/api/{served.api_version}"
            scope = "/namespaces/{namespace}" if served.resource.namespaced else ""
            yield f"{root}{scope}/{served.resource.plural}/{{name}}", served


def _gvk(served: ServedResource) -> dict[str, str]:
    """The group, version and kind of a served resource."""
    return {"group": served.resource.group, "version": served.version.version, "kind": served.resource.kind}


def _json_operation(served: ServedResource) -> dict[str, Any]:
    """The PATCH operation of a kind, in JSON; `_protobuf_path` has the protobuf form."""
    parameter = {"in": "query", "name": _PARAMETER_NAME, "type": "string"}
    return {"parameters": [parameter], "responses": {}, GVK_EXTENSION: _gvk(served)}


def _protobuf_path(path: str, served: ServedResource) -> dict[str, Any]:
    """The path of a kind with its PATCH operation, as fields of the message `NamedPathItem`."""
    query = {"in": "query", "name": _PARAMETER_NAME, "type": "string"}
    parameter = {"parameter": {"non_body_parameter": {"query_parameter_sub_schema": query}}}
    extension = {"name": GVK_EXTENSION, "value": {"yaml": json_text.encode(_gvk(served)).decode()}}
    return {"name": path, "value": {"patch": {"parameters": [parameter], "vendor_extension": [extension]}}}


def _named_schemas(schemas: Schemas) -> dict[str, Any]:
    """Schemas by name as fields of the message `Definitions`."""
    return {
        "additional_properties": [{"name": name, "value": _schema_fields(schema)} for name, schema in schemas.items()]
    }


def _schema_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A definition as fields of the protobuf message `Schema`."""
    fields = {name: schema[name] for name in ("format", "description", "required", "pattern") if name in schema}
    fields |= {field: schema[name] for name, field in _VALIDATIONS.items() if name in schema}
    if "$ref" in schema:
        fields["_ref"] = schema["$ref"]
    if "type" in schema:
        fields["type"] = {"value": [schema["type"]]}
    if "enum" in schema:
        fields["enum"] = [_any_fields(choice) for choice in schema["enum"]]
    fields |= _subschema_fields(schema)
    extensions = [
        {"name": name, "value": _any_fields(value)} for name, value in schema.items() if name.startswith("x-")
    ]
    if extensions:
        fields["vendor_extension"] = extensions
    return fields


def _subschema_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the message `Schema` that contain other schemas."""
    subschemas: dict[str, Any] = {}
    if "properties" in schema:
        subschemas["properties"] = _named_schemas(schema["properties"])
    if "items" in schema:
        subschemas["items"] = {"schema": [_schema_fields(schema["items"])]}
    if "additionalProperties" in schema:
        subschemas["additional_properties"] = {"schema": _schema_fields(schema["additionalProperties"])}
    return subschemas


def _any_fields(value: Any) -> dict[str, str]:
    """A JSON value as fields of the message `Any`."""
    return {"yaml": json_text.encode(value).decode()}


def _fill_message(message: Any, values: Mapping[str, Any]) -> None:
    """Set the fields of a protobuf message from nested dicts (messages) and lists (repeated fields)."""
    for name, value in values.items():
        if isinstance(value, dict):
            submessage = getattr(message, name)
            submessage.SetInParent()  # an empty one is present, too
            _fill_message(submessage, value)
        elif isinstance(value, list) and value and isinstance(value[0], str):
            getattr(message, name).extend(value)
        elif isinstance(value, list):
            for element in value:
                _fill_message(getattr(message, name).add(), element)
        else:
            setattr(message, name, value)


@cache
def _message_class(name: str) -> "type[Message]":
    """The class of a message of `_MESSAGES`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="podscaler/openapi_v2.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        descriptor = file.message_type.add(name=message_name)
        for field_name, (number, field_type) in fields.items():
            _describe_field(descriptor.field.add(name=field_name, number=number), field_type)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _describe_field(field: Any, field_type: str) -> None:
    """Set label and type of a FieldDescriptorProto, in place; `field_type` is that of `_MESSAGES`."""
    field.label = field.LABEL_REPEATED if field_type.endswith("*") else field.LABEL_OPTIONAL
    type_name = field_type.removesuffix("*")
    if type_name in ("double", "int64", "bool"):
        field.type = getattr(field, f"TYPE_{type_name.upper()}")
    elif type_name:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"
    else:
        field.type = field.TYPE_STRING
