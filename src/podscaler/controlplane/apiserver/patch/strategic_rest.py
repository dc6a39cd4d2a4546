"""What a strategic merge leaves of its patch: refusals of the outcome show that, not what the client sent.

Called by `handlers.patching`. Upstream's merge takes directives and ordered lists out of the patch while it applies
them.

Source: measured with kube-apiserver's `The request is invalid: patch: Invalid value: "map[...]"`.
"""

from collections.abc import Sequence
from typing import Any

from podscaler.controlplane.apiserver.patch.strategic import DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER, Object, Schema


def rest(original: Object, patch: Object, schema: Schema) -> Object:
    """The patch (left as it is, as `original` is) without what the merge into `original` took out of it."""
    directive = patch.get(DIRECTIVE)
    if directive is not None:
        return {key: value for key, value in patch.items() if key != DIRECTIVE or directive != "replace"}
    ordered = {key.removeprefix(SET_ELEMENT_ORDER) for key in patch if key.startswith(SET_ELEMENT_ORDER)}
    return {
        key: _rest_of(original[key], value, key, schema) if key in original else _without_nulls(value)
        for key, value in patch.items()
        if key != RETAIN_KEYS and key not in ordered and not key.startswith(SET_ELEMENT_ORDER)
    }


def _rest_of(original: Any, value: Any, key: str, schema: Schema) -> Any:
    if isinstance(original, dict) and isinstance(value, dict) and schema.merges_object(key):
        return rest(original, value, schema.member(key))
    if isinstance(original, list) and isinstance(value, list) and schema.merges_list(key):
        return [_rest_of_element(original, each, schema.merge_key(key), schema.member(key)) for each in value]
    return value


def _rest_of_element(originals: Sequence[Any], value: Any, merge_key: str, schema: Schema) -> Any:
    """An element of a merged list: one that is merged into another loses what that takes out."""
    if not isinstance(value, dict) or DIRECTIVE in value:
        return value
    same = (each for each in originals if isinstance(each, dict) and each.get(merge_key) == value.get(merge_key))
    found = next(same, None)
    return value if found is None else rest(found, value, schema)


def _without_nulls(value: Any) -> Any:
    """A value that is new to the object: the merge drops what is null in it."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
