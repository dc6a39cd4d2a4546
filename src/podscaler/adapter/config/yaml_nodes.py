"""Reads the fields of YAML mappings strictly, with the line of each field for error messages.

Called by `config.config_file`. A field that is unknown, that occurs twice or that has another type is an error. A field
whose value is null counts as absent.

Source: the strict mode of Go's yaml.v2, with which prometheus-adapter reads its configuration.
"""

from collections.abc import Sequence

import yaml

from podscaler.adapter.config.rules import Place
from podscaler.api.text.quoting import quoted
from podscaler.base.errors import UsageError

_NULL = "tag:yaml.org,2002:null"
_BOOL = "tag:yaml.org,2002:bool"
_MERGE = "tag:yaml.org,2002:merge"
_TRUE = frozenset({"true", "yes", "on", "y"})
"""The words for true in YAML 1.1, in lower case; those for false are the other scalars with the tag of booleans."""


class YamlNode:
    """A node, which may be absent.

    Args:
        node: PyYAML's node; None if the field is absent.
        place: the position of the node, or of the mapping that lacks it.
    """

    def __init__(self, node: yaml.Node | None, place: Place) -> None:
        self._node = None if node is not None and node.tag == _NULL else node
        self.place = place

    @property
    def is_absent(self) -> bool:
        """Whether the field is absent or null."""
        return self._node is None

    def fields(self, *known_names: str) -> "YamlFields":
        """The fields of a mapping. Raises UsageError for another type, an unknown field or one that occurs twice."""
        nodes = self._mapping()
        for name, node in nodes.items():
            if name not in known_names:
                place = Place(self.place.file, node.start_mark.line + 1, self.place.path)
                raise UsageError(f"{place}: unknown field {quoted(name)}; known: {', '.join(known_names)}")
        return YamlFields(nodes, self.place)

    def entries(self) -> dict[str, "YamlNode"]:
        """The values of a mapping with any keys; empty if it is absent. Raises UsageError."""
        return {name: self._child(node, f".{name}") for name, node in self._mapping().items()}

    def items(self) -> Sequence["YamlNode"]:
        """The items of a list; empty if it is absent. Raises UsageError."""
        if self._node is None:
            return []
        if not isinstance(self._node, yaml.SequenceNode):
            raise UsageError(f"{self.place}: a list is expected")
        return [self._child(node, f"[{index}]") for index, node in enumerate(self._node.value)]

    def text(self) -> str:
        """The text of a scalar as it is written, also of a number; empty if it is absent. Raises UsageError."""
        if self._node is None:
            return ""
        if not isinstance(self._node, yaml.ScalarNode):
            raise UsageError(f"{self.place}: a text is expected")
        return str(self._node.value)

    def find_boolean(self) -> bool | None:
        """The value; None if it is absent. Raises UsageError."""
        if self._node is None:
            return None
        if not isinstance(self._node, yaml.ScalarNode) or self._node.tag != _BOOL:
            raise UsageError(f"{self.place}: true or false is expected")
        return str(self._node.value).lower() in _TRUE

    def _child(self, node: yaml.Node, step: str) -> "YamlNode":
        """A node within this one; `step` is its field or index in the path of its position."""
        return YamlNode(node, Place(self.place.file, node.start_mark.line + 1, self.place.path + step))

    def _mapping(self) -> dict[str, yaml.Node]:
        """The values by key; those of a merge key (`<<`) apply where there is no such key. Raises UsageError."""
        if self._node is None:
            return {}
        if not isinstance(self._node, yaml.MappingNode):
            raise UsageError(f"{self.place}: a mapping is expected")
        own_nodes: dict[str, yaml.Node] = {}
        merged_nodes: dict[str, yaml.Node] = {}
        for key, value_node in self._node.value:
            if key.tag == _MERGE:
                merged_nodes |= YamlNode(value_node, self.place)._mapping()
            elif not isinstance(key, yaml.ScalarNode):
                raise UsageError(f"{self.place}: a key is not a text")
            elif key.value in own_nodes:
                place = Place(self.place.file, key.start_mark.line + 1, self.place.path)
                raise UsageError(f"{place}: the field {quoted(key.value)} stands twice")
            else:
                own_nodes[key.value] = value_node
        return merged_nodes | own_nodes


class YamlFields:
    """The fields of a mapping; `[name]` is absent where the mapping lacks it."""

    def __init__(self, nodes: dict[str, yaml.Node], place: Place) -> None:
        self._nodes = nodes
        self._place = place

    def __getitem__(self, name: str) -> YamlNode:
        """The field of that name, with its position in the file."""
        node = self._nodes.get(name)
        line = self._place.line if node is None else node.start_mark.line + 1
        path = f"{self._place.path}.{name}" if self._place.path else name
        return YamlNode(node, Place(self._place.file, line, path))


def root(yaml_text: str, file: str) -> YamlNode:
    """The first document of a YAML text, absent if it has none; `file` is for messages. Raises UsageError."""
    try:
        document = next(yaml.compose_all(yaml_text, Loader=yaml.SafeLoader), None)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = Place(file, mark.line + 1 if mark is not None else 1, "")
        raise UsageError(f"{place}: not YAML: {getattr(error, 'problem', None) or error}") from error
    return YamlNode(document, Place(file, 1, ""))
