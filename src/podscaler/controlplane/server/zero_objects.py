"""An object of a kind with nothing in it: what a bookmark shows besides its resourceVersion.

Called by `streams`. Go writes the fields of an empty struct that are not marked to be left out; clients decode
bookmarks as objects of the kind and rely on required fields being there.
"""

from functools import cache
from typing import Any

from podscaler.api import schema
from podscaler.api.resources import Object
from podscaler.api.schema import Field

_SCALARS: dict[str, Any] = {"string": "", "bool": False, "double": 0}


@cache
def fields_of(message: str) -> Object:
    """The fields that an empty message has in JSON, without kind, apiVersion and metadata; empty where unknown.

    The result is shared: it must not be changed.
    """
    found = schema.find_message(message)
    if found is None:
        return {}
    return {
        field.name: _zero(field)
        for field in found.json_fields()
        if field.name != "metadata" and not _is_left_out(field)
    }


def _is_left_out(field: Field) -> bool:
    if field.omitzero:
        return True
    is_struct = not (field.is_scalar or field.pointer or field.repeated or field.map)
    return field.omitempty and (not is_struct or field.type in schema.OPAQUE)


def _zero(field: Field) -> Any:
    if field.repeated or field.map or field.pointer:
        return None
    if field.is_scalar:
        return _SCALARS.get(field.type, 0)
    if field.type == schema.QUANTITY:
        return "0"
    return None if field.type in schema.OPAQUE else fields_of(field.type)
