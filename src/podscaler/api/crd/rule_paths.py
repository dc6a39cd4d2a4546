"""Resolves the `fieldPath` of CEL rules, the path of the field that the error of a rule names.

    normalize(".labels['a/b']", schema)      "labels[a/b]"

Called by `podscaler.api.kinds.apiextensions.crd_rule_validation` and by `rules`.

Source: the API documentation of x-kubernetes-validations.
"""

import re
from typing import Any

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:\\.|[^'\\])*)'\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def normalize(path: str, root_schema: dict[str, Any]) -> str | None:
    """The path in the form of field errors (`spec.ports`, `labels[a/b]`); None if the schema has no such field.

    Args:
        path: the fieldPath: `.spec.ports` or `['spec']['a.b']`.
        root_schema: the JSON-ready schema that has the rule.
    """
    normalized_path, position, schema_node = "", 0, root_schema
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return None
        name = match.group(1) if match.group(1) is not None else _unescape(match.group(2))
        child = _child_schema(schema_node, name)
        if child is None:
            return None
        schema_node, is_member = child
        if not is_member:
            normalized_path += f"[{name}]"
        else:
            normalized_path += f".{name}" if normalized_path else name
        position = match.end()
    return normalized_path


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match.group(1), match.group()), text)


def _child_schema(node: dict[str, Any], name: str) -> tuple[dict[str, Any], bool] | None:
    """The schema of a member, and whether it is one of `properties` (else of `additionalProperties`), or None."""
    properties = node.get("properties")
    if properties:
        return (properties[name], True) if name in properties else None
    additional = node.get("additionalProperties")
    return (additional, False) if isinstance(additional, dict) else None
