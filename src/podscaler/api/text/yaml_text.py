"""Parses the first document of a YAML text to JSON-ready data, as a Kubernetes API server does.

    parse(b"a: yes\\na: 2")      Document({"a": 2}, ('line 2: key "a" already set in map',))

`parse` is called for YAML bodies and files, `parse_texts` for values whose notation must not change.

Theory of operation: libyaml's parser emits events, `_Composer` turns them into nodes, `_Builder` turns nodes into data.

Rules: plain scalars are read as YAML 1.1 (`yes` is true, `0755` is octal), timestamps stay texts, keys become texts,
merge keys (`<<`) are merged; of a repeated key, which is reported with its line, the last value counts. The number of
nodes that aliases add is limited.

Source: the behaviour of sigs.k8s.io/yaml (go-yaml v2 with libyaml's messages).
"""

import base64
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import yaml

from podscaler.api.text import json_text, quoting
from podscaler.api.text.json_text import DecodeError

_SPARE_NODES = 10_000
"""A document may have this many nodes more than bytes; without aliases there are fewer nodes than bytes."""

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAG_PREFIX = "tag:yaml.org,2002:"
_PLAIN = "plain"
_TEXT = "text"
"""Tags of scalars without a tag of their own: unquoted ones, whose type is yet to be found, and quoted ones."""
_TAG_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
"""Tag without its prefix -> the types that its value must have."""
_SeenKeys = dict[tuple[str, bool], None]
"""The keys of a mapping so far, with whether they are plain: `1` and `"1"` are two keys in YAML."""
_PLAIN_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER_MAX_DIGITS = 100
"""Further digits are not read: a number with so many is beyond 64 bits."""
_FLOAT_MAX_DIGITS = 300
"""Integers of fewer digits than this fit a float64."""
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_INFINITY_OR_NAN = re.compile(r"([-+]?)(?:\.(inf|Inf|INF|nan|NaN|NAN))")


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    Attributes:
        value: JSON-ready data; None for an empty text.
        duplicates: `line N: key "x" already set in map` for each repeated key.
    """

    value: Any
    duplicates: tuple[str, ...] = ()

    def duplicates_text(self) -> str:
        """The repeated keys, as the strict decoder of sigs.k8s.io/yaml reports them in one text."""
        return "yaml: unmarshal errors:\n" + "\n".join(f"  {message}" for message in self.duplicates)


def parse(body: bytes) -> Document:
    """The first document. Raises DecodeError (`yaml: line 2: ...`)."""
    return _parse_document(body, _typed_scalar)


def parse_texts(body: bytes) -> Document:
    """As `parse`, with every scalar as the text that it is: `0.10` stays `0.10`, `yes` stays `yes`."""
    return _parse_document(body, _scalar_text)


def _parse_document(body: bytes, read_scalar: Callable[[yaml.ScalarNode], Any]) -> Document:
    """The first document; `read_scalar` returns the value of a scalar node. Raises DecodeError."""
    try:
        node = _first_document(body)
    except yaml.MarkedYAMLError as error:
        raise DecodeError(f"yaml: {_line_prefix(error)}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DecodeError(f"yaml: {getattr(error, 'reason', error)}") from None
    if node is None:
        return Document(None)
    builder = _Builder(len(body) + _SPARE_NODES, read_scalar)
    value = builder.build_value(node, 0)
    return Document(value, tuple(builder.duplicates))


def _first_document(body: bytes) -> yaml.Node | None:
    """The node tree of the first document; None if there is none."""
    loader = _LOADER(body)
    try:
        for event_type in (yaml.StreamStartEvent, yaml.DocumentStartEvent):
            if not isinstance(loader.get_event(), event_type):
                return None
        return _Composer(loader).compose_node(loader.get_event(), 0)
    finally:
        loader.dispose()


class _Composer:
    """Turns parser events into nodes, in Python: libyaml's bindings would overflow the stack on deep nesting.

    Methods raise DecodeError, and the errors of the parser (yaml.YAMLError).

    Attributes:
        next_event: returns the next event of the parser.
        anchors: name of an anchor -> its node; None while that is being composed.
    """

    def __init__(self, loader: Any) -> None:
        self.next_event = loader.get_event
        self.anchors: dict[str, yaml.Node | None] = {}

    def compose_node(self, event: yaml.Event, depth: int) -> yaml.Node:
        """The node that begins with an event; an anchor counts once its node is complete."""
        if depth > json_text.MAX_DEPTH:
            raise DecodeError("yaml: exceeded max depth")
        if isinstance(event, yaml.AliasEvent):
            return self.resolve_alias(event.anchor or "")
        anchor = getattr(event, "anchor", None)
        if anchor:
            self.anchors[anchor] = None
        node = self.compose_new_node(event, depth)
        if anchor:
            self.anchors[anchor] = node
        return node

    def resolve_alias(self, anchor: str) -> yaml.Node:
        """The node of an anchor. Raises DecodeError for an unknown one, and for one inside itself."""
        if anchor not in self.anchors:
            raise DecodeError(f"yaml: unknown anchor '{anchor}' referenced")
        node = self.anchors[anchor]
        if node is None:
            raise DecodeError(f"yaml: anchor '{anchor}' value contains itself")
        return node

    def compose_new_node(self, event: yaml.Event, depth: int) -> yaml.Node:
        """A sequence, a mapping or a scalar; plain scalars have no type yet."""
        if isinstance(event, yaml.SequenceStartEvent):
            return yaml.SequenceNode(_TEXT, self.compose_items(yaml.SequenceEndEvent, depth))
        if isinstance(event, yaml.MappingStartEvent):
            keys_and_values = self.compose_items(yaml.MappingEndEvent, depth)
            return yaml.MappingNode(_TEXT, list(zip(keys_and_values[::2], keys_and_values[1::2], strict=True)))
        scalar = cast("yaml.ScalarEvent", event)
        tag = scalar.tag or (_PLAIN if scalar.implicit[0] else _TEXT)
        return yaml.ScalarNode(tag, scalar.value, cast("yaml.Mark", scalar.start_mark))

    def compose_items(self, end_event_type: type[yaml.Event], depth: int) -> list[yaml.Node]:
        """The nodes up to the event that ends a sequence or mapping."""
        nodes = []
        while not isinstance(event := self.next_event(), end_event_type):
            nodes.append(self.compose_node(event, depth + 1))
        return nodes


def _line_prefix(error: yaml.MarkedYAMLError) -> str:
    """`line 2: `, empty for the first line; go-yaml counts the lines of scanner errors from one, others from zero."""
    mark = error.context_mark if error.context_mark and error.context_mark.line else error.problem_mark
    if mark is None or mark.line == 0:
        return ""
    is_scanner_error = isinstance(error, yaml.scanner.ScannerError)
    return f"line {mark.line + 1 if is_scanner_error else mark.line}: "


class _Builder:
    """Turns nodes into data. Methods raise DecodeError.

    Args:
        max_nodes: the number of nodes after which the document counts as one with excessive aliases.
        read_scalar: from a scalar node to its value.

    Attributes:
        duplicates: a message for each repeated key.
        nodes_left: how many more nodes are allowed.
    """

    def __init__(self, max_nodes: int, read_scalar: Callable[[yaml.ScalarNode], Any]) -> None:
        self.duplicates: list[str] = []
        self.nodes_left = max_nodes
        self.read_scalar = read_scalar

    def build_value(self, node: yaml.Node, depth: int) -> Any:
        """The JSON-ready value of a node; aliases are counted each time, against exponential growth."""
        self.count_node()
        if depth > json_text.MAX_DEPTH:
            raise DecodeError("yaml: exceeded max depth")
        if isinstance(node, yaml.MappingNode):
            return self.build_mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.build_value(element, depth + 1) for element in node.value]
        return self.read_scalar(node) if isinstance(node, yaml.ScalarNode) else None

    def count_node(self) -> None:
        """Counts a node. Raises DecodeError for one too many."""
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise DecodeError("yaml: document contains excessive aliasing")

    def build_mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        """The data of a mapping; `depth` is the depth of the nesting."""
        members: dict[str, Any] = {}
        self.add_members(members, {}, node, depth)
        return members

    def add_members(self, members: dict[str, Any], seen_keys: _SeenKeys, node: yaml.MappingNode, depth: int) -> None:
        """Adds the pairs of a mapping to `members`, in order; those of a merge key override the ones before it.

        Args:
            members: the data of the mapping so far.
            seen_keys: its keys so far, to report repeated ones.
            node: the mapping; that of a merge key, or the whole one.
            depth: the depth of the nesting.
        """
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                self.merge_members(members, seen_keys, value_node, depth)
                continue
            key = self.key_text(key_node)
            key_identity = (key, key_node.tag == _PLAIN)
            if key_identity in seen_keys:
                line = _line(key_node)
                self.duplicates.append(f"line {line}: key {quoting.quoted(key)} already set in map")
            seen_keys[key_identity] = None
            members[key] = self.build_value(value_node, depth + 1)

    def key_text(self, node: yaml.Node) -> str:
        """The text of a key; numbers and booleans become texts, as in JSON."""
        value = self.read_scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value)
        raise DecodeError(f"yaml: line {_line(node)}: this key cannot be the name of a field")

    def merge_members(self, members: dict[str, Any], seen_keys: _SeenKeys, node: yaml.Node, depth: int) -> None:
        """Adds the members of the mappings after `<<`; of several mappings the first one that has a key counts."""
        sources = reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
            self.count_node()
            self.add_members(members, seen_keys, source, depth + 1)


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1 if node.start_mark else 1


def _scalar_text(node: yaml.ScalarNode) -> str:
    """The text of a scalar, whatever its tag."""
    scalar_text: str = node.value
    return scalar_text


def _typed_scalar(node: yaml.ScalarNode) -> Any:
    """The value of a scalar by its tag; a plain one has the type that its text looks like. Raises DecodeError."""
    scalar_text: str = node.value
    if node.tag == _PLAIN:
        return _parse_plain(scalar_text)
    tag_name = node.tag.removeprefix(_TAG_PREFIX)
    if tag_name == "binary":
        return _decode_binary(scalar_text)
    tag_type = _TAG_TYPES.get(tag_name)
    if tag_type is None:
        return scalar_text
    value = _parse_plain(scalar_text)
    if not isinstance(value, tag_type):
        raise DecodeError(f"yaml: cannot decode !!str `{scalar_text}` as a !!{tag_name}")
    return value


def _parse_plain(scalar_text: str) -> Any:
    """The value that an unquoted scalar stands for: null, a bool, a number, or the text itself."""
    if scalar_text in _PLAIN_WORDS:
        return _PLAIN_WORDS[scalar_text]
    number = _find_number(scalar_text)
    return scalar_text if number is None else number


def _decode_binary(scalar_text: str) -> str:
    """The text that `!!binary` encodes in base64. Raises DecodeError."""
    try:
        return json_text.decode_utf8(base64.b64decode(scalar_text, validate=True))
    except ValueError:
        raise DecodeError("yaml: !!binary value contains invalid base64 data") from None


def _find_number(scalar_text: str) -> int | float | None:
    """The number that an unquoted scalar stands for; None if it is a text. Raises DecodeError for infinity and NaN."""
    if _INTEGER.fullmatch(scalar_text):
        return _find_integer(scalar_text.replace("_", ""))
    if _FLOAT.fullmatch(scalar_text.replace("_", "")):
        number = float(scalar_text.replace("_", ""))
        return None if math.isinf(number) else json_text.plain_number(number)  # Go cannot parse it: a text
    if match := _INFINITY_OR_NAN.fullmatch(scalar_text):
        sign, special_value = match.groups()
        printed = "NaN" if special_value.lower() == "nan" else f"{sign or '+'}Inf"
        raise DecodeError(f"json: unsupported value: {printed}")
    return None


def _find_integer(scalar_text: str) -> int | float | None:
    """The value of an integer with sign and prefix (`0x`, `0o`, leading 0 for octal); None if Go reads a text."""
    sign = -1 if scalar_text.startswith("-") else 1
    digits = scalar_text.lstrip("+-")
    is_octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    try:
        number = sign * int(digits[:_INTEGER_MAX_DIGITS], 8 if is_octal else 0)
    except ValueError:
        number = 2**64  # `08` is no octal integer: for Go it is a float, as integers beyond 64 bits are
    if -(2**63) <= number < 2**64:
        return number
    if digits.isdigit() and len(digits) < _FLOAT_MAX_DIGITS:
        return json_text.plain_number(sign * float(digits))
    return None
