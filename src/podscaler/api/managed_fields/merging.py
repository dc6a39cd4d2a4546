"""Merges a configuration into a stored object, as server-side apply does.

    merge({"a": 1, "b": 2}, {"b": 3}, field_type)      {"a": 1, "b": 3}

Called by `applying`. Scalars and atomic values are replaced; maps are merged; so are the items of associative lists, in
the order of the configuration, with the other items of the object between them.

Source: structured-merge-diff's Merge.
"""

from typing import Any

from podscaler.api.managed_fields import field_types
from podscaler.api.managed_fields.comparing import ABSENT
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


def merge(live_value: Any, config: Any, field_type: FieldType) -> Any:
    """The merged object; shares parts with its arguments, which are not changed.

    Args:
        live_value: the stored object; its lists may have duplicates.
        config: a valid configuration (`type_checking`).
        field_type: the type of both.
    """
    merged_value = _merge_values(live_value, config, field_type)
    return {} if merged_value is ABSENT else merged_value


def _merge_values(live_value: Any, config: Any, field_type: FieldType) -> Any:
    """The configuration merged into the live value; ABSENT leaves the live value as it is."""
    if config is ABSENT:
        return live_value
    shape = field_types.shape_of(field_type, live_value if config is None else config)
    if shape.map is not None:
        return _merge_maps(live_value, config, shape.map)
    if shape.scalar or shape.list is None:
        return config
    return _merge_lists(live_value, config, shape.list)


def _merge_maps(live_value: Any, config: Any, map_type: MapType) -> Any:
    """The merged map: members that the configuration does not have stay."""
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
    """The merged list: elements of the live list keep their order, with new ones between them."""
    live_list = live_value if isinstance(live_value, list) else []
    config_list = config if isinstance(config, list) else []
    if list_type.atomic or not (live_list or config_list):
        return config
    if not (live_list and config_list):
        return live_list or config_list
    return _ListMerger(live_list, config_list, list_type).merge()


class _ListMerger:
    """Merges two associative lists, in the order of the configuration with other live items between shared ones.

    Items are kept with their path elements. A live item that has duplicates counts as null: the configuration's item
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
        self._shared_elements = [element for element, _ in self._config if element in self._live_by_element]
        self._merged_elements: set[str] = set()
        self._merged_items: list[Any] = []

    def merge(self) -> list[Any]:
        """The items of the merged list."""
        live_index = config_index = 0
        while live_index < len(self._live) or config_index < len(self._config):
            if live_index < len(self._live):
                element, item = self._live[live_index]
                if self._is_used_later(element, config_index):
                    live_index += 1
                    continue
                if element not in self._config_elements:
                    self._merged_items.append(item)
                    live_index += 1
                    continue
                if element in self._merged_elements or self._is_next(element, config_index):
                    live_index += 1
            if config_index < len(self._config):
                self._append_config_item(config_index)
                config_index += 1
        return self._merged_items

    def _is_next(self, element: str, config_index: int) -> bool:
        """Whether the next item of the configuration has that path element."""
        if config_index >= len(self._config):
            return False
        next_element, _ = self._config[config_index]
        return next_element == element

    def _is_used_later(self, element: str, config_index: int) -> bool:
        """Whether a live item is in the configuration, but is not the next of the shared items."""
        if (
            config_index >= len(self._config)
            or self._is_next(element, config_index)
            or element not in self._config_elements
        ):
            return False
        return bool(self._shared_elements) and self._shared_elements[0] != element

    def _append_config_item(self, config_index: int) -> None:
        """Append an item of the configuration, merged with the live item of its element."""
        element, item = self._config[config_index]
        live_item = self._live_by_element.get(element, ABSENT)
        self._merged_items.append(_merge_values(live_item, item, self._list_type.element()))
        self._merged_elements.add(element)
        if self._shared_elements and self._shared_elements[0] == element:
            self._shared_elements.pop(0)
