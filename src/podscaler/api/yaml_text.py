"""YAML as a Kubernetes API server reads it: the first document, turned into JSON data.

Called by decoding for YAML bodies and files.

Rules: plain scalars are read as YAML 1.1 (`yes` is true, `0755` is octal), timestamps stay texts, keys become texts,
merge keys (`<<`) are merged, a key that repeats is noted with its line and the last one counts. Anchors may not
multiply the document without bound.

Source: the behaviour of sigs.k8s.io/yaml (go-yaml v2 with libyaml's messages).
"""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from podscaler.api import json_text
from podscaler.api.json_text import DecodeError

MAX_NODES = 1_000_000
"""Nodes after following aliases; a body of the permitted size without aliases stays below it."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?[0-9]*\.?[0-9]+([eE][-+][0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its value, and `line N: key "x" already set in map` for each repeated key."""

    value: Any
    duplicates: tuple[str, ...] = ()

    def duplicates_text(self) -> str:
        """The repeated keys as upstream's strict decoder reports them, all in one text."""
        return "yaml: unmarshal errors:\n" + "\n".join(f"  {text}" for text in self.duplicates)


def parse(body: bytes) -> Document:
    """The first document of a YAML text, None for an empty one. Raises DecodeError (`yaml: line 2: ...`)."""
    try:
        loader = _LOADER(body)
        try:
            node = loader.get_node() if loader.check_node() else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise DecodeError(f"yaml: {_where(error)}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DecodeError(f"yaml: {getattr(error, 'reason', error)}") from None
    except RecursionError:
        raise DecodeError("yaml: exceeded max depth") from None
    if node is None:
        return Document(None)
    builder = _Builder()
    value = builder.value(node, 0)
    return Document(value, tuple(builder.duplicates))


def _where(error: yaml.MarkedYAMLError) -> str:
    """`line 2: `; upstream leaves the first line out, and counts scanner errors from one, others from zero."""
    mark = error.context_mark if error.context_mark and error.context_mark.line else error.problem_mark
    if mark is None or mark.line == 0:
        return ""
    return f"line {mark.line + isinstance(error, yaml.scanner.ScannerError)}: "


class _Builder:
    """Turns nodes into data."""

    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self.nodes = 0

    def value(self, node: yaml.Node, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise DecodeError("yaml: document contains excessive aliasing")
        if depth > json_text.MAX_DEPTH:
            raise DecodeError("yaml: exceeded max depth")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return _scalar(node) if isinstance(node, yaml.ScalarNode) else None

    def mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                merged = self.merged(value_node, depth) | merged
                continue
            key = _key(key_node)
            if key in own:
                line = key_node.start_mark.line + 1
                self.duplicates.append(f"line {line}: key {json_text.quote(key)} already set in map")
            own[key] = self.value(value_node, depth + 1)
        return merged | own

    def merged(self, node: yaml.Node, depth: int) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise DecodeError("yaml: map merge requires map or sequence of maps as the value")
            merged = self.mapping(source, depth + 1) | merged
        return merged


def _key(node: yaml.Node) -> str:
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) else ()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise DecodeError(f"yaml: line {node.start_mark.line + 1}: this key cannot be the name of a field")


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.tag == f"{_TAG}str" and (node.style or _is_explicit(node)):
        return text
    if node.tag == f"{_TAG}binary" or node.style:
        return text
    if text in _WORDS:
        return _WORDS[text]
    number = _number(text)
    return text if number is None else number


def _is_explicit(node: yaml.ScalarNode) -> bool:
    """Whether a plain scalar was tagged `!!str`: its mark begins at the tag, before the text."""
    return bool(node.end_mark.index - node.start_mark.index > len(node.value) + 1)


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return _integer(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        number = float(text)
        return json_text.plain_number(number) if abs(number) != float("inf") else None
    return None


def _integer(text: str) -> int | float | None:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    is_octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    try:
        number = sign * int(digits[:100], 8 if is_octal else 0)
    except ValueError:
        number = 2**64
    if -(2**63) <= number < 2**64:
        return number
    return json_text.plain_number(sign * float(digits)) if digits.isdigit() and len(digits) < 300 else None
