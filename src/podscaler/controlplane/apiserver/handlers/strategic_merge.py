"""Applies strategic merge patches (`application/strategic-merge-patch+json`): merge patches that merge lists by key.

`patching` calls it; `strategic_lists` merges and orders lists. The patch {"spec": {"containers": [{"name": "web",
"image": "b"}]}} changes the image of the container `web` and no other container. The rules, in the order in which they
apply to one object of the document:

1. `$patch: replace` takes the patch's object instead of merging, `$patch: delete` leaves an empty one.
2. `$retainKeys: [...]` drops every member that it does not name (a union that changes its kind).
3. `$setElementOrder/LIST: [...]` merges LIST and sorts it in that order; unnamed elements keep their position.
4. `$deleteFromPrimitiveList/LIST: [...]` removes values from a list of scalars.
5. null removes; objects merge; lists merge where the schema says so, else replace; scalars replace.

A new directive is also a case in `_is_directive`, which keeps directives out of new objects, and in `patch_in_errors`.

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

    In the methods, `key` is the name of a member of an object of the type.
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
    """A copy of `original` with `patch` applied; both are JSON-ready objects of the type `schema`, left as they are.

    Raises StatusError 400 or 422 for invalid directives, 500 for errors that kube-apiserver reports as internal.
    """
    directive = patch.get(DIRECTIVE)
    if directive is not None:
        return _apply_object_directive(directive, patch)
    merged = _drop_unretained(dict(original), patch)
    handled_keys = _merge_ordered_lists(merged, patch, schema)
    for key, change in patch.items():
        if key not in handled_keys:
            _merge_member(merged, key, change, schema)
    return merged


def _apply_object_directive(directive: Any, patch: Object) -> Object:
    """The result of an object's `$patch` (rule 1). Raises StatusError 500 for another directive."""
    if directive == "replace":
        return {key: member for key, member in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise lists.unknown_directive(directive, patch)


def _drop_unretained(merged: Object, patch: Object) -> Object:
    """`merged` without the members that `$retainKeys` of the patch does not name (rule 2).

    Raises StatusError 400 for an invalid directive, 422 for a patch that sets a member that is not named.
    """
    if RETAIN_KEYS not in patch:
        return merged
    retain_keys = patch[RETAIN_KEYS]
    if not isinstance(retain_keys, list):
        raise _bad_request("invalid patch format of retainKeys")
    retained = {key for key in retain_keys if isinstance(key, str)}
    for key, change in patch.items():
        if change is not None and not key.startswith("$") and key not in retained:
            message = "the server rejected our request due to an error in our request"
            raise StatusError(message, code=422, reason="Invalid", details={})
    return {key: member for key, member in merged.items() if key in retained}


def _merge_ordered_lists(merged: Object, patch: Object, schema: MessageSchema) -> set[str]:
    """Merge and sort the lists with an order directive, in `merged` (rule 3).

    Returns the keys of the patch that need nothing else. Raises StatusError 422, 500.
    """
    handled_keys = {RETAIN_KEYS}
    for directive, order in patch.items():
        if directive.startswith(SET_ELEMENT_ORDER):
            handled_keys.add(directive)
            key = directive.removeprefix(SET_ELEMENT_ORDER)
            lists.check_is_list(order)
            if key in patch or key in merged:
                handled_keys.add(key)
                for obj in (merged, patch):
                    lists.check_is_list(obj.get(key, []))
                merged[key] = _merge_ordered_list(key, merged.get(key), patch.get(key), order, schema)
    return handled_keys


OptionalList = Sequence[Any] | None


def _merge_ordered_list(
    key: str, original: OptionalList, changes: OptionalList, order: Sequence[Any], schema: MessageSchema
) -> list[Any]:
    """The merged list, in the order of `$setElementOrder`. Raises StatusError 422, 500.

    Args:
        key: the member with the list.
        original: the stored list, None if the object has none.
        changes: the list in the patch, None if the patch has only the order.
        order: of the directive.
        schema: the type of the object.
    """
    merge_key = schema.merge_key(key)
    lists.check_order(changes or [], order, merge_key)
    if changes is None:
        elements = list(original or [])
    elif original is None:
        elements = _without_directives(changes)
    else:
        elements = _merge_list(key, original, changes, schema)
    lists.check_types(original or [], changes or [])
    return lists.sort_list(elements, order, original or [], merge_key)


def _merge_member(merged: Object, key: str, change: Any, schema: MessageSchema) -> None:
    """Merge one member of a patch into `merged` (rules 4 and 5). Raises as `apply_strategic_merge`."""
    if key.startswith(DELETE_FROM_PRIMITIVE_LIST):
        _delete_from_primitive_list(merged, key.removeprefix(DELETE_FROM_PRIMITIVE_LIST), change)
    elif change is None:
        merged.pop(key, None)
    elif key not in merged:
        merged[key] = _without_directives(change)
    else:
        merged[key] = _merge_value(key, merged[key], change, schema)


def _delete_from_primitive_list(merged: Object, key: str, removed: Any) -> None:
    """Remove scalars from the list `key`, in place. Raises StatusError 400 unless `removed` is a list."""
    if not isinstance(removed, list):
        raise _bad_request("invalid patch format of primitive list")
    if isinstance(merged.get(key), list):
        merged[key] = [scalar for scalar in merged[key] if scalar not in removed]


def _merge_value(key: str, original: Any, change: Any, schema: MessageSchema) -> Any:
    """The value of an existing member after a patch: merged, or replaced by `change` (rule 5)."""
    if isinstance(original, dict) and isinstance(change, dict) and schema.merges_object(key):
        return apply_strategic_merge(original, change, schema.member(key))
    if isinstance(original, list) and isinstance(change, list) and schema.merges_list(key):
        merged_list = _merge_list(key, original, change, schema)
        return lists.sort_list(merged_list, change, original, schema.merge_key(key))
    # as upstream, nulls and directives stay in an object or list that the schema replaces by one of the same type
    is_same_container = isinstance(original, dict | list) and type(original) is type(change)
    return change if is_same_container else _without_directives(change)


def _merge_list(key: str, original: Sequence[Any], changes: Sequence[Any], schema: MessageSchema) -> list[Any]:
    """The merged list, still unsorted; `changes` where the schema replaces the list. Raises StatusError 422, 500."""
    if not schema.merges_list(key):
        return list(changes)
    if not original and not changes:
        return []
    lists.check_types(original, changes)
    if not any(isinstance(element, dict) for element in (*original, *changes)):
        return lists.merge_scalars(original, changes)
    merge_key = schema.merge_key(key)
    if not merge_key:  # in kube-apiserver only lists of strings have none
        raise StatusError("cannot merge lists without merge key for type string", code=500)
    merged, additions = lists.apply_directives(original, changes, merge_key)
    for addition in additions:
        position = lists.find_element(merged, merge_key, addition[merge_key])
        if position is None:
            merged.append(_without_directives(addition))
        else:
            merged[position] = apply_strategic_merge(merged[position], addition, schema.member(key))
    return merged


def _without_directives(value: Any) -> Any:
    """A value that is new to the object, without nulls, directives, and objects with a `$patch`."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return {}
        return {
            key: _without_directives(member)
            for key, member in value.items()
            if member is not None and not _is_directive(key)
        }
    if isinstance(value, list):
        elements = [element for element in value if not (isinstance(element, dict) and DIRECTIVE in element)]
        return [_without_directives(element) for element in elements]
    return value


def _is_directive(key: str) -> bool:
    """Whether a member of a patch is a directive besides `$patch`."""
    return key == RETAIN_KEYS or key.startswith((SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST))


def _bad_request(message: str) -> StatusError:
    """400 with the given message."""
    return StatusError(message, code=400, reason="BadRequest")


def patch_in_errors(original: Object, patch: Object, schema: MessageSchema) -> Object:
    """The part of `patch` that error messages about the result show; both arguments are left as they are.

    kube-apiserver's merge removes directives and ordered lists from the patch while it applies it, and reports what
    remains.

    Source: measured with kube-apiserver's `The request is invalid: patch: Invalid value: "map[...]"`.
    """
    directive = patch.get(DIRECTIVE)
    if directive is not None:
        return {key: change for key, change in patch.items() if key != DIRECTIVE or directive != "replace"}
    ordered_keys = {key.removeprefix(SET_ELEMENT_ORDER) for key in patch if key.startswith(SET_ELEMENT_ORDER)}
    remaining: Object = {}
    for key, change in patch.items():
        if key == RETAIN_KEYS or key in ordered_keys or key.startswith(SET_ELEMENT_ORDER):
            continue
        if key in original:
            remaining[key] = _change_in_errors(original[key], change, key, schema)
        else:
            remaining[key] = _without_nulls(change)
    return remaining


def _change_in_errors(original: Any, change: Any, key: str, schema: MessageSchema) -> Any:
    """What error messages show of the patch's `change` of the member `key`, whose stored value is `original`."""
    if isinstance(original, dict) and isinstance(change, dict) and schema.merges_object(key):
        return patch_in_errors(original, change, schema.member(key))
    if isinstance(original, list) and isinstance(change, list) and schema.merges_list(key):
        merge_key, element_schema = schema.merge_key(key), schema.member(key)
        return [_element_in_errors(original, element, merge_key, element_schema) for element in change]
    return change


def _element_in_errors(originals: Sequence[Any], change: Any, merge_key: str, schema: MessageSchema) -> Any:
    """What error messages show of an element of a merged list; it is reduced if it is merged into a stored element."""
    if not isinstance(change, dict) or DIRECTIVE in change:
        return change
    identity = change.get(merge_key)
    for original in originals:
        if isinstance(original, dict) and original.get(merge_key) == identity:
            return patch_in_errors(original, change, schema)
    return change


def _without_nulls(value: Any) -> Any:
    """A value that is new to the object, without nulls."""
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    return [_without_nulls(element) for element in value] if isinstance(value, list) else value
