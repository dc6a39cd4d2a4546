"""Applies strategic merge patches (`application/strategic-merge-patch+json`): merge patches that merge lists by key.

`patching` calls it; `strategic_lists` merges and orders lists. The patch {"spec": {"containers": [{"name": "web",
"image": "b"}]}} changes the image of the container `web` and no other container. The rules, in the order in which they
apply to one object of the document:

1. `$patch: replace` takes the patch's object instead of merging, `$patch: delete` leaves an empty one.
2. `$retainKeys: [...]` drops every member that it does not name (a union that changes its kind).
3. `$setElementOrder/LIST: [...]` merges LIST and sorts it in that order; unnamed elements keep their position.
4. `$deleteFromPrimitiveList/LIST: [...]` removes values from a list of scalars.
5. null removes; objects merge; lists merge where the schema says so, else replace; scalars replace.

Source: the API conventions on strategic merge patch, and what the API server does with each directive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.schema import merge_keys
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import strategic_lists as lists

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ELEMENT_ORDER = "$setElementOrder/"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList/"

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """The merge rules of one type of the API.

    Attributes:
        message: the schema's name (`core/v1.PodSpec`); empty for data without a schema.
        is_map: whether the value is a map whose values have that type.
    """

    message: str
    is_map: bool = False

    def merges_list(self, key: str) -> bool:
        """Whether the list `key` is merged; lists are replaced unless declared otherwise."""
        strategy = None if self.is_map else merge_keys.merge_strategy(self.message, key)
        return strategy is not None and strategy.merge

    def merges_object(self, key: str) -> bool:
        """Whether the object or map `key` is merged; they are unless declared otherwise."""
        strategy = None if self.is_map else merge_keys.merge_strategy(self.message, key)
        return strategy is None or not strategy.replace

    def merge_key(self, key: str) -> str:
        """The member that identifies an element of the list `key`; empty for lists of scalars."""
        strategy = None if self.is_map else merge_keys.merge_strategy(self.message, key)
        return strategy.key if strategy else ""

    def member(self, key: str) -> "MessageSchema":
        """The type of the value of `key`, or of its elements."""
        if self.is_map:
            return MessageSchema(self.message)
        return MessageSchema(merge_keys.element_message(self.message, key), merge_keys.is_map(self.message, key))


def apply_strategic_merge(original: Object, patch: Object, schema: MessageSchema) -> Object:
    """`original` with `patch` applied.

    Args:
        original: JSON-ready object; left as it is.
        patch: JSON-ready object; left as it is.
        schema: the type of both.

    Raises StatusError 400 or 422 for invalid directives, 500 for errors that kube-apiserver reports as internal.
    """
    directive = patch.get(DIRECTIVE)
    if directive is not None:
        return _apply_object_directive(directive, patch)
    result = _drop_unretained(dict(original), patch)
    handled = _order_lists(result, patch, schema)
    for key, value in patch.items():
        if key not in handled:
            _merge_member(result, key, value, schema)
    return result


def _apply_object_directive(directive: Any, patch: Object) -> Object:
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise lists.unknown_directive(directive, patch)


def _drop_unretained(result: Object, patch: Object) -> Object:
    """`result` without the members that `$retainKeys` does not name."""
    if RETAIN_KEYS not in patch:
        return result
    keys = patch[RETAIN_KEYS]
    if not isinstance(keys, list):
        raise _bad_request("invalid patch format of retainKeys")
    kept = {key for key in keys if isinstance(key, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            text = "the server rejected our request due to an error in our request"
            raise StatusError(text, code=422, reason="Invalid", details={})
    return {key: value for key, value in result.items() if key in kept}


def _order_lists(result: Object, patch: Object, schema: MessageSchema) -> set[str]:
    """Merge and sort the lists with an order directive, in `result`; returns the members of the patch that are done."""
    handled = {RETAIN_KEYS}
    for directive, order in patch.items():
        if directive.startswith(SET_ELEMENT_ORDER):
            handled.add(directive)
            key = directive.removeprefix(SET_ELEMENT_ORDER)
            lists.check_is_list(order)
            if key in patch or key in result:
                handled.add(key)
                for obj in (result, patch):
                    lists.check_is_list(obj.get(key, []))
                result[key] = _ordered_list(key, result.get(key), patch.get(key), order, schema)
    return handled


Values = Sequence[Any] | None


def _ordered_list(
    key: str, original: Values, changes: Values, order: Sequence[Any], schema: MessageSchema
) -> list[Any]:
    """The merged list, in the order of `$setElementOrder`."""
    merge_key = schema.merge_key(key)
    lists.check_order(changes or [], order, merge_key)
    if original is not None and changes is not None:
        values = _merged_list(key, original, changes, schema)
    else:
        values = list(original or []) if changes is None else _without_directives(changes)
    lists.check_types(original or [], changes or [])
    return lists.sort_list(values, order, original or [], merge_key)


def _merge_member(result: Object, key: str, value: Any, schema: MessageSchema) -> None:
    """Merge one member of a patch into `result`; null removes it."""
    if key.startswith(DELETE_FROM_PRIMITIVE_LIST):
        _delete_from_primitive_list(result, key.removeprefix(DELETE_FROM_PRIMITIVE_LIST), value)
    elif value is None:
        result.pop(key, None)
    elif key not in result:
        result[key] = _without_directives(value)
    else:
        result[key] = _merged_value(key, result[key], value, schema)


def _delete_from_primitive_list(result: Object, key: str, values: Any) -> None:
    if not isinstance(values, list):
        raise _bad_request("invalid patch format of primitive list")
    if isinstance(result.get(key), list):
        result[key] = [item for item in result[key] if item not in values]


def _merged_value(key: str, original: Any, value: Any, schema: MessageSchema) -> Any:
    if isinstance(original, dict) and isinstance(value, dict) and schema.merges_object(key):
        return apply_strategic_merge(original, value, schema.member(key))
    if isinstance(original, list) and isinstance(value, list) and schema.merges_list(key):
        changed = _merged_list(key, original, value, schema)
        return lists.sort_list(changed, value, original, schema.merge_key(key))
    return value if isinstance(original, dict | list) and type(original) is type(value) else _without_directives(value)


def _merged_list(key: str, original: Sequence[Any], changes: Sequence[Any], schema: MessageSchema) -> list[Any]:
    """The merged list, still unsorted; `changes` where the schema replaces the list."""
    if not schema.merges_list(key):
        return list(changes)
    if not original and not changes:
        return []
    lists.check_types(original, changes)
    if not any(isinstance(item, dict) for item in (*original, *changes)):
        return lists.merge_scalars(original, changes)
    merge_key = schema.merge_key(key)
    if not merge_key:  # in kube-apiserver only lists of strings have none
        raise StatusError("cannot merge lists without merge key for type string", code=500)
    kept, additions = lists.apply_directives(original, changes, merge_key)
    for addition in additions:
        position = lists.find_element(kept, merge_key, addition[merge_key])
        if position is None:
            kept.append(_without_directives(addition))
        else:
            kept[position] = apply_strategic_merge(kept[position], addition, schema.member(key))
    return kept


def _without_directives(value: Any) -> Any:
    """A value that is new to the object, without nulls, directives, and objects with a `$patch`."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return {}
        return {
            key: _without_directives(item) for key, item in value.items() if item is not None and not _is_directive(key)
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and DIRECTIVE in item)]
    return value


def _is_directive(key: str) -> bool:
    return key == RETAIN_KEYS or key.startswith((SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST))


def _bad_request(text: str) -> StatusError:
    return StatusError(text, code=400, reason="BadRequest")


def patch_in_errors(original: Object, patch: Object, schema: MessageSchema) -> Object:
    """The part of `patch` that error messages about the result show; both arguments are left as they are.

    kube-apiserver's merge removes directives and ordered lists from the patch while it applies it, and reports the
    rest.

    Source: measured with kube-apiserver's `The request is invalid: patch: Invalid value: "map[...]"`.
    """
    directive = patch.get(DIRECTIVE)
    if directive is not None:
        return {key: value for key, value in patch.items() if key != DIRECTIVE or directive != "replace"}
    ordered = {key.removeprefix(SET_ELEMENT_ORDER) for key in patch if key.startswith(SET_ELEMENT_ORDER)}
    return {
        key: _rest_of(original[key], value, key, schema) if key in original else _without_nulls(value)
        for key, value in patch.items()
        if key != RETAIN_KEYS and key not in ordered and not key.startswith(SET_ELEMENT_ORDER)
    }


def _rest_of(original: Any, value: Any, key: str, schema: MessageSchema) -> Any:
    """What error messages show of the patch's `value` for the member `key`, whose stored value is `original`."""
    if isinstance(original, dict) and isinstance(value, dict) and schema.merges_object(key):
        return patch_in_errors(original, value, schema.member(key))
    if isinstance(original, list) and isinstance(value, list) and schema.merges_list(key):
        return [_rest_of_element(original, element, schema.merge_key(key), schema.member(key)) for element in value]
    return value


def _rest_of_element(originals: Sequence[Any], value: Any, merge_key: str, schema: MessageSchema) -> Any:
    """The rest of an element of a merged list: reduced like an object where it is merged into an existing element."""
    if not isinstance(value, dict) or DIRECTIVE in value:
        return value
    key_value = value.get(merge_key)
    same = (element for element in originals if isinstance(element, dict) and element.get(merge_key) == key_value)
    original = next(same, None)
    return value if original is None else patch_in_errors(original, value, schema)


def _without_nulls(value: Any) -> Any:
    """A value that is new to the object, without nulls."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
