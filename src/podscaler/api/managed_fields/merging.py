"""Merges a configuration into a stored object, as server-side apply does.

    merge({"a": 1, "b": 2}, {"b": 3}, field_type)      {"a": 1, "b": 3}

Called by `applying`. Scalars and atomic values are replaced; maps are merged, and so are associative lists, item by
item. A null of the configuration replaces the live value, unless that is a map or list with members that are merged.

A merged list has the order of the configuration, with the items of the live list alone between (`_ListMerger.merge`).

Source: structured-merge-diff's Merge.
"""

from typing import Any

from podscaler.api.managed_fields import field_types
from podscaler.api.managed_fields.comparing import ABSENT  # stands for a missing member or item
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


def merge(live_value: Any, config: Any, field_type: FieldType) -> Any:
    """The merged object; shares parts with its arguments, which are not changed.

    Args:
        live_value: the stored object; its lists may have duplicates.
        config: a configuration without errors (`type_checking`): its lists have no duplicates.
        field_type: the type of both.

    Raises:
        AtomError: an item of an associative list of the stored object has no path element.
    """
    return _merge_values(live_value, config, field_type)


def _merge_values(live_value: Any, config: Any, field_type: FieldType) -> Any:
    """The configuration merged into the live value, which is ABSENT if the live object does not have it."""
    shape = field_types.shape_of(field_type, live_value if config is None else config)
    if shape.map is not None:
        return _merge_maps(live_value, config, shape.map)
    if shape.scalar or shape.list is None:
        return config
    return _merge_lists(live_value, config, shape.list)


def _merge_maps(live_value: Any, config: Any, map_type: MapType) -> Any:
    """The merged map: members that the configuration does not have stay. A value that is no map counts as empty."""
    live_map = live_value if isinstance(live_value, dict) else {}
    config_map = config if isinstance(config, dict) else {}
    if map_type.atomic or not (live_map or config_map):
        return config
    if not live_map:
        return config_map
    merged_map = dict(live_map)
    for name, item in config_map.items():
        member_type = map_type.child(name)
        merged_item = _merge_values(live_map.get(name, ABSENT), item, member_type) if member_type is not None else item
        merged_map[name] = merged_item
    return merged_map


def _merge_lists(live_value: Any, config: Any, list_type: ListType) -> Any:
    """The merged list. A value that is no list counts as empty."""
    live_list = live_value if isinstance(live_value, list) else []
    config_list = config if isinstance(config, list) else []
    if list_type.atomic or not (live_list or config_list):
        return config
    if not (live_list and config_list):  # one is empty: an empty list removes no items
        return live_list or config_list
    return _ListMerger(live_list, config_list, list_type).merge()


class _ListMerger:
    """Merges two associative lists that are not empty; items are identified by their path elements.

    Items of both lists are called shared. A live item that has duplicates counts as null: the configuration's item
    replaces all of them.
    """

    def __init__(self, live_items: list[Any], config_items: list[Any], list_type: ListType) -> None:
        self._list_type = list_type
        self._live = [(field_types.item_element(list_type, item), item) for item in live_items]
        self._config = [(field_types.item_element(list_type, item), item) for item in config_items]
        self._live_by_element: dict[str, Any] = {}
        for element, item in self._live:
            self._live_by_element[element] = None if element in self._live_by_element else item
        self._config_elements = {element for element, _ in self._config}
        self._unmerged_shared = [element for element, _ in self._config if element in self._live_by_element]
        """The elements of the shared items that are not merged yet, in the order of the configuration."""
        self._merged_elements: set[str] = set()
        self._merged_items: list[Any] = []

    def merge(self) -> list[Any]:
        """The items of the merged list: live `[a, b, c, x]` and configuration `[c, n, a]` make `[b, c, x, n, a]`."""
        live_index = config_index = 0
        while live_index < len(self._live) or config_index < len(self._config):
            if live_index < len(self._live):
                element, item = self._live[live_index]
                if element not in self._config_elements:  # b, x: in the live list only
                    self._merged_items.append(item)
                    live_index += 1
                    continue
                if self._unmerged_shared and element != self._unmerged_shared[0]:  # a: its place is behind c
                    live_index += 1
                    continue
                is_merged_already = element in self._merged_elements  # of duplicates in the live list
                if is_merged_already or self._is_next(element, config_index):  # c: the merged item takes its place
                    live_index += 1
            if config_index < len(self._config):  # c, then n and a
                self._append_config_item(config_index)
                config_index += 1
        return self._merged_items

    def _is_next(self, element: str, config_index: int) -> bool:
        """Whether the item of the configuration at `config_index` has that path element.

        There is such an item while `element`, an element of the configuration, is not merged.
        """
        next_element, _ = self._config[config_index]
        return next_element == element

    def _append_config_item(self, config_index: int) -> None:
        """Append an item of the configuration, merged with the live item of its path element."""
        element, item = self._config[config_index]
        live_item = self._live_by_element.get(element, ABSENT)
        self._merged_items.append(_merge_values(live_item, item, self._list_type.get_item_type()))
        self._merged_elements.add(element)
        if self._unmerged_shared and self._unmerged_shared[0] == element:
            self._unmerged_shared.pop(0)
