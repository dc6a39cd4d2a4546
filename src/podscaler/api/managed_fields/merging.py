"""Merges a configuration into a stored object, as server-side apply does.

    merged({"a": 1, "b": 2}, {"b": 3}, kind)      {"a": 1, "b": 3}

Called by `applying`. Scalars and atomic values are replaced; maps are merged; so are the items of associative lists, in
the order of the configuration, with the other items of the object between them.

Source: structured-merge-diff's Merge.
"""

from typing import Any

from podscaler.api.managed_fields import field_types
from podscaler.api.managed_fields.comparing import ABSENT
from podscaler.api.managed_fields.field_types import FieldType, ListType, MapType


def merged(live_value: Any, config: Any, kind: FieldType) -> Any:
    """The merged object; shares parts with its arguments, which are not changed.

    Args:
        live_value: the stored object; its lists may have duplicates.
        config: a valid configuration (`type_checking`).
        kind: the type of both.
    """
    result = _merge_values(live_value, config, kind)
    return {} if result is ABSENT else result


def _merge_values(live_value: Any, config: Any, kind: FieldType) -> Any:
    """The configuration merged into the live value; ABSENT leaves the live value as it is."""
    if config is ABSENT:
        return live_value
    shape = field_types.shape_of(kind, live_value if config is None else config)
    if shape.map is not None:
        return _maps(live_value, config, shape.map)
    if shape.scalar or shape.list is None:
        return config
    return _lists(live_value, config, shape.list)


def _maps(live_value: Any, config: Any, kind: MapType) -> Any:
    """The merged map: what the configuration does not name stays."""
    before = live_value if isinstance(live_value, dict) else {}
    applied = config if isinstance(config, dict) else {}
    if kind.atomic or not (before or applied):
        return config
    if not before:
        return applied
    result = dict(before)
    for name, item in applied.items():
        child = kind.child(name)
        merged_item = _merge_values(before.get(name, ABSENT), item, child) if child is not None else item
        result[name] = merged_item
    return result


def _lists(live_value: Any, config: Any, kind: ListType) -> Any:
    """The merged list: elements of the live list keep their order, with new ones between them."""
    before = live_value if isinstance(live_value, list) else []
    applied = config if isinstance(config, list) else []
    if kind.atomic or not (before or applied):
        return config
    if not (before and applied):
        return before or applied
    return _Interleaved(before, applied, kind).items()


class _Interleaved:
    """Merges two associative lists, in the order of the configuration with other live items between shared ones."""

    def __init__(self, live: list[Any], config: list[Any], kind: ListType) -> None:
        self._kind = kind
        self._live = [(field_types.item_element(kind, item), item) for item in live]
        self._config = [(field_types.item_element(kind, item), item) for item in config]
        self._by_live: dict[str, Any] = {}
        for element, item in self._live:
            self._by_live[element] = None if element in self._by_live else item
        self._wanted = {element for element, _ in self._config}
        self._shared = [element for element, _ in self._config if element in self._by_live]
        self._done: set[str] = set()
        self._result: list[Any] = []

    def items(self) -> list[Any]:
        """The items of the merged list."""
        live_index = config_index = 0
        while live_index < len(self._live) or config_index < len(self._config):
            if live_index < len(self._live):
                element, item = self._live[live_index]
                if self._is_used_later(element, config_index):
                    live_index += 1
                    continue
                if element not in self._wanted:
                    self._result.append(item)
                    live_index += 1
                    continue
                if element in self._done or self._is_next(element, config_index):
                    live_index += 1
            if config_index < len(self._config):
                self._append_config_item(config_index)
                config_index += 1
        return self._result

    def _is_next(self, element: str, config_index: int) -> bool:
        return config_index < len(self._config) and self._config[config_index][0] == element

    def _is_used_later(self, element: str, config_index: int) -> bool:
        """Whether a live item is in the configuration, but is not the next of the shared items."""
        if config_index >= len(self._config) or self._is_next(element, config_index) or element not in self._wanted:
            return False
        return bool(self._shared) and self._shared[0] != element

    def _append_config_item(self, config_index: int) -> None:
        element, item = self._config[config_index]
        live = self._by_live.get(element, ABSENT)
        self._result.append(_merge_values(live, item, self._kind.element()))
        self._done.add(element)
        if self._shared and self._shared[0] == element:
            self._shared.pop(0)
