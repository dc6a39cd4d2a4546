"""Finds the line of a field in the text of a YAML or JSON document: `spec.maxReplicas` -> 7.

Called by `podscaler.lint.linter` for each finding, and by `podscaler.simulation.files`. JSON is read as YAML; where
that fails, only the first line is known.
"""

import re
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_PATH_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
"""A key or a bracket of a path: `spec.metrics[0]` has `spec`, `metrics`, `[0]`."""


class FieldLines:
    """The fields of one document. The text is parsed at the first call of `line_of`.

    Args:
        document_bytes: one document that `podscaler.api.text.yaml_text` or `json_text` read, which bound its depth.
        first_line: the line of the file at which it begins.
    """

    def __init__(self, document_bytes: bytes, first_line: int) -> None:
        self._document_bytes = document_bytes
        self._first_line = first_line
        self._root: yaml.Node | None = None
        self._is_parsed = False

    def line_of(self, path: str) -> int:
        """The line of the field at `path` (`spec.metrics[0].type`), or of the nearest ancestor that exists."""
        line, node = 0, self._root_node()
        if node is not None:
            line = node.start_mark.line
        for key, bracket in _PATH_STEP.findall(path):
            child = _find_child(node, key or bracket)
            if child is None:
                break
            line, node = child
        return self._first_line + line

    def _root_node(self) -> yaml.Node | None:
        """The root of the parsed document, None if it is no YAML; it is parsed at the first call."""
        if not self._is_parsed:
            self._is_parsed = True
            self._root = _compose(self._document_bytes)
        return self._root


def _compose(document_bytes: bytes) -> yaml.Node | None:
    """The document as nodes; None for JSON that is not YAML."""
    loader = _LOADER(document_bytes)
    try:
        node: yaml.Node | None = loader.get_node() if loader.check_node() else None
        return node
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    finally:
        loader.dispose()


def _find_child(node: yaml.Node | None, key_or_index: str) -> tuple[int, yaml.Node] | None:
    """The line and the node of a member or element of `node`; None if there is none."""
    if isinstance(node, yaml.SequenceNode):
        if not (key_or_index.isascii() and key_or_index.isdigit() and int(key_or_index) < len(node.value)):
            return None
        element = node.value[int(key_or_index)]
        return element.start_mark.line, element
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if key_node.value == key_or_index:
                return key_node.start_mark.line, value_node
    return None
