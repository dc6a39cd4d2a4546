"""Sets the defaults of a schema on custom objects, and drops nulls that the schema does not allow.

`decoding` drops nulls; `records` sets defaults on requests and on stored objects. Both change objects in place.

Rules: a null where the schema does not say `nullable` counts as absent; an absent member becomes its default;
defaults apply below defaults, too.

Source: the API documentation of defaulting and nullable.
"""

from typing import Any

from podscaler.api.crd.structural import ABSENT, Structural
from podscaler.api.resource import semantics


def drop_nulls(value: Any, schema: Structural | None) -> None:
    """Remove, in place, members that are null, are not nullable and have no default."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name in list(value):
            member = schema.member(name)
            if member is not None and member.default is ABSENT and _is_unwanted_null(value[name], member):
                del value[name]
            else:
                drop_nulls(value[name], member)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(item, schema.items)


def set_defaults(value: Any, schema: Structural) -> None:
    """Set defaults, in place."""
    if isinstance(value, dict):
        for name, member in schema.properties.items():
            if name not in value and member.default is not ABSENT:
                value[name] = semantics.copied(member.default)
        for name, item in value.items():
            member_schema = schema.member(name)
            if member_schema is not None:
                value[name] = _fill_defaults(item, member_schema)
    elif isinstance(value, list) and schema.items is not None:
        value[:] = [_fill_defaults(item, schema.items) for item in value]


def _fill_defaults(value: Any, schema: Structural) -> Any:
    """The value, or the default in place of a null; with defaults below it."""
    if schema.default is not ABSENT and _is_unwanted_null(value, schema):
        value = semantics.copied(schema.default)
    if isinstance(value, dict | list):
        set_defaults(value, schema)
    return value


def _is_unwanted_null(value: Any, schema: Structural) -> bool:
    return value is None and not schema.nullable
