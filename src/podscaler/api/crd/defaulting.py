"""Defaults of custom objects, and the nulls that nothing allows.

Called by `decoding` (nulls) and `records` (defaults, for what clients send and for what is read from the store).

Rules: a null where the schema does not say `nullable` is as good as absent; an absent member becomes its default;
defaults apply below defaults, too.

Source: the API documentation of defaulting and nullable.
"""

from typing import Any

from podscaler.api.crd.structural import ABSENT, Structural
from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object


def drop_nulls(value: Any, schema: Structural | None) -> None:
    """Take off, in place, members that are null and neither may be so nor have a default."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name in list(value):
            member = schema.properties.get(name, schema.additional)
            if _is_idle_null(value[name], member) and member is not None and member.default is ABSENT:
                del value[name]
            else:
                drop_nulls(value[name], member)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, schema.items)


def fill(value: Any, schema: Structural | None) -> None:
    """Fill in defaults, in place."""
    if schema is None:
        return
    if isinstance(value, dict):
        _fill_members(value, schema)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if _is_idle_null(item, schema.items) and schema.items is not None and schema.items.default is not ABSENT:
                value[index] = semantics.copied(schema.items.default)
            fill(value[index], schema.items)


def _fill_members(value: Object, schema: Structural) -> None:
    for name, member in schema.properties.items():
        if member.default is not ABSENT and (name not in value or _is_idle_null(value[name], member)):
            value[name] = semantics.copied(member.default)
    for name in value:
        known = schema.properties.get(name, schema.additional)
        is_other = name not in schema.properties and known is not None
        if is_other and known is not None and known.default is not ABSENT and _is_idle_null(value[name], known):
            value[name] = semantics.copied(known.default)
        fill(value[name], known)


def _is_idle_null(value: Any, schema: Structural | None) -> bool:
    return value is None and schema is not None and not schema.nullable
