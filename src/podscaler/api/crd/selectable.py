"""The fields of custom objects by which they can be selected: `selectableFields` of a version.

Called by `records`. Source: the API documentation of field selectors for custom resources (KEP-4358).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podscaler.api.crd import json_path
from podscaler.api.resource.resources import Object


def fields(definitions: Sequence[Object]) -> Callable[[Object], Mapping[str, str]]:
    """From an object to its selectable fields: `{"spec.color": "blue"}`; an absent one is the empty text."""
    paths = {one["jsonPath"].removeprefix("."): one["jsonPath"] for one in definitions}

    def read(obj: Object) -> Mapping[str, str]:
        return {name: _text(json_path.found(obj, path)) for name, path in paths.items()}

    return read


def _text(values: list[Any]) -> str:
    if not values or values[0] is None or isinstance(values[0], dict | list):
        return ""
    first = values[0]
    return str(first).lower() if isinstance(first, bool) else str(first)
