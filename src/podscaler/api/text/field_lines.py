"""Finds the line of a field in the text of a YAML or JSON document: `spec.maxReplicas` -> 7.

Called by `podscaler.lint.linter` for each finding, and by `podscaler.simulation.files`. JSON is read as YAML; where
that fails, only the first line is known.
"""

import re
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
"""A key or a bracket of a path: `spec.metrics[0]` has `spec`, `metrics`, `[0]`."""


class FieldLines:
    """The fields of one document. The text is parsed at the first call of `line_of`.

    Args:
        text: one document, that `podscaler.api.text.yaml_text` or `json_text` could read (which bounds its depth).
        first: the line at which it begins.
    """

    def __init__(self, text: bytes, first: int) -> None:
        self._text = text
        self._first = first
        self._root: yaml.Node | None = None
        self._is_read = False

    def line_of(self, path: str) -> int:
        """The line of the field at `path` (`spec.metrics[0].type`), or of the nearest parent that exists."""
        line, node = 0, self._document()
        if node is not None:
            line = node.start_mark.line
        for key, bracket in _STEP.findall(path):
            step = _step(node, key or bracket)
            if step is None:
                break
            line, node = step
        return self._first + line

    def _document(self) -> yaml.Node | None:
        if not self._is_read:
            self._is_read = True
            self._root = _composed(self._text)
        return self._root


def _composed(text: bytes) -> yaml.Node | None:
    """The document as nodes; None for JSON that is not YAML."""
    loader = _LOADER(text)
    try:
        node: yaml.Node | None = loader.get_node() if loader.check_node() else None
        return node
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    finally:
        loader.dispose()


def _step(node: yaml.Node | None, name: str) -> tuple[int, yaml.Node] | None:
    """The line and the value of a key or an index within a node."""
    if isinstance(node, yaml.SequenceNode):
        if not (name.isascii() and name.isdigit() and int(name) < len(node.value)):
            return None
        entry = node.value[int(name)]
        return entry.start_mark.line, entry
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return key.start_mark.line, value
    return None
