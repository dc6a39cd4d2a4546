"""Definitions of OpenAPI 2.0 of custom resources, as kube-apiserver v1.37 publishes them."""

from typing import Any

import pytest

from podscaler.api.crd import openapi
from podscaler.api.openapi.openapi_definitions import definition

TEXT = {"type": "string"}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
GVK = [{"group": "example.com", "kind": "Web", "version": "v1"}]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {**TEXT, "pattern": "^a$", "minLength": 1, "maxLength": 3, "default": "a", "title": "A"},
            {**TEXT, "pattern": "^a$", "minLength": 1, "maxLength": 3},
            id="validations stay, defaults and titles go",
        ),
        pytest.param(
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "multipleOf": 2, "oneOf": [{"maximum": 1}]},
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "multipleOf": 2},
            id="alternatives go",
        ),
        pytest.param(
            {"oneOf": [{"type": "integer"}, TEXT]}, TEXT, id="a type of a built-in kind that is one of several"
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-group-version-kind": GVK, "properties": {"spec": TEXT}, **OPEN},
            {"type": "object", "x-kubernetes-group-version-kind": GVK},
            id="a kind with unknown fields",
        ),
        pytest.param({"type": "object", "properties": {"a": TEXT}, **OPEN}, OPEN, id="an object with unknown fields"),
        pytest.param(
            {"type": "object", "nullable": True, "properties": {"a": TEXT}, "description": "d"},
            {"description": "d"},
            id="an object that may be null",
        ),
        pytest.param(
            {"type": "object", "required": ["a", "b"], "properties": {"a": {**TEXT, "nullable": True}, "b": TEXT}},
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": TEXT}},
            id="a property that may be null is not required",
        ),
        pytest.param(
            {"allOf": [{"$ref": "#/components/schemas/S"}], "default": {}, "x-kubernetes-patch-strategy": "retainKeys"},
            {"$ref": "#/definitions/S", "x-kubernetes-patch-strategy": "retainKeys"},
            id="a reference with an extension",
        ),
        pytest.param(
            {"type": "array", "minItems": 1, "items": {**TEXT, "pattern": "x"}},
            {"type": "array", "minItems": 1, "items": {**TEXT, "pattern": "x"}},
            id="items",
        ),
    ],
)
def test_definition(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    """A definition has what OpenAPI 2.0 can say of the schema and kubectl does not misread."""
    assert definition(schema) == expected


def test_implied_parts_of_custom_schemas() -> None:
    """An embedded object has the fields of objects, and an int-or-string both types."""
    schema = {
        "type": "object",
        "properties": {"port": {"x-kubernetes-int-or-string": True}, "part": {"x-kubernetes-embedded-resource": True}},
    }
    found = openapi.components(schema, GVK[0], plural="webs", list_kind="WebList")["com.example.v1.Web"]["properties"]
    assert found["port"]["anyOf"] == [{"type": "integer"}, TEXT]
    assert found["part"]["required"] == ["kind", "apiVersion"]
    assert list(found["part"]["properties"]) == ["apiVersion", "kind", "metadata"]
