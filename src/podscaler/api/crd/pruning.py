"""Removes the fields of custom objects that their schema does not have.

    prune({"spec": {"size": 1, "x": 2}}, schema)      ["spec.x"], which is removed

Called by `decoding` for requests, and by `records` for stored objects.

Rules: a member that is neither in `properties` nor allowed by `additionalProperties` is removed, except below
x-kubernetes-preserve-unknown-fields; apiVersion, kind and metadata stay in the root and in embedded resources.

Source: the API documentation of field pruning.
"""

from dataclasses import replace
from typing import Any

from podscaler.api.crd.structural import META_FIELDS, Structural
from podscaler.api.resource.resources import Object

NO_FIELDS = Structural()
"""The schema without fields: everything is pruned."""


def prune(obj: Object, schema: Structural) -> list[str]:
    """Remove unknown fields, in place; returns their paths (`spec.ports[0].x`), sorted."""
    pruned_paths: list[str] = []
    object_schema = replace(schema, is_embedded=True)  # the root keeps META_FIELDS, as embedded resources do
    _prune_value(obj, object_schema, "", pruned_paths)
    return sorted(pruned_paths)


def _prune_value(value: Any, schema: Structural | None, path: str, pruned_paths: list[str]) -> None:
    """Remove unknown fields of a value and all below it; their paths are added to `pruned_paths`."""
    if isinstance(value, dict):
        _prune_members(value, schema or NO_FIELDS, path, pruned_paths)
    elif isinstance(value, list):
        items = schema.items if schema else None
        if schema is not None and schema.preserves_unknown and items is None:
            return
        for index, item in enumerate(value):
            _prune_value(item, items, f"{path}[{index}]", pruned_paths)


def _prune_members(value: Object, schema: Structural, path: str, pruned_paths: list[str]) -> None:
    """Remove unknown fields of an object; apiVersion, kind and metadata of an embedded object stay."""
    for name in list(value):
        if schema.is_embedded and name in META_FIELDS:
            continue
        member_path = f"{path}.{name}" if path else name
        if name in schema.properties:
            _prune_value(value[name], schema.properties[name], member_path, pruned_paths)
        elif schema.allows_additional:
            _prune_value(value[name], schema.additional, member_path, pruned_paths)
        elif not schema.preserves_unknown:
            pruned_paths.append(member_path)
            del value[name]
