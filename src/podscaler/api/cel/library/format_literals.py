"""Whether the arguments of `format` fit a pattern, where both are literals.

Called by `literals`. Source: cel-go's validator of format strings.
"""

import re
from collections.abc import Iterator, Mapping

from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.syntax import Call, ListLiteral, Literal, Node
from podscaler.api.cel.values.types import Type

_CLAUSE = re.compile(r"%(?:(%)|(?:\.\d+)?(.))", re.DOTALL)
_STRINGS = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_ANYWHERE = frozenset({"dyn", "!error!", "null"})
_STRING = frozenset(
    {"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "duration", "timestamp"}
)
_TAKEN: dict[str, tuple[frozenset[str], str]] = {
    "s": (_STRING, f"string clause can only be used on {_STRINGS}"),
    "d": (frozenset({"int", "uint"}), "decimal clause can only be used on integers"),
    "f": (frozenset({"double"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double"}), "scientific clause can only be used on doubles"),
    "b": (frozenset({"int", "uint", "bool"}), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset({"int", "uint", "string", "bytes"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset({"int", "uint"}), "octal clause can only be used on integers"),
}


def issues(node: Call, types_of: Mapping[int, Type]) -> Iterator[Issue]:
    """What does not fit, up to the first.

    Args:
        node: a call of `format`.
        types_of: the types of elements of list literals, by identity.
    """
    if len(node.args) != 1 or not isinstance(node.target, Literal) or not isinstance(node.args[0], ListLiteral):
        return
    pattern, args = node.target.value, node.args[0]
    if not isinstance(pattern, str):
        return
    waiting = list(args.elements)
    for match in _CLAUSE.finditer(pattern):
        if match.group(1):
            continue
        fault = _fault(match.group(2), waiting, node, types_of)
        if fault is not None:
            yield fault
            return
    if (len(pattern) - len(pattern.rstrip("%"))) % 2:
        yield Issue(node.offset, "unexpected end of string")
    elif waiting:
        used = len(args.elements) - len(waiting)
        text = f"too many arguments supplied to string.format (expected {used}, got {len(args.elements)})"
        yield Issue(node.offset, text)


def _fault(clause: str, waiting: list[Node], node: Call, types_of: Mapping[int, Type]) -> Issue | None:
    if not waiting:
        args = node.args[0]
        count = len(args.elements) if isinstance(args, ListLiteral) else 0
        return Issue(node.offset, f"index {count} out of range")
    taken = _TAKEN.get(clause.lower() if clause == "X" else clause)
    if taken is None:
        text = f'could not parse formatting clause: unrecognized formatting clause "{clause}"'
        return Issue(node.offset, text)
    arg = waiting.pop(0)
    given = types_of[id(arg)]
    if given.is_param or given.name in _ANYWHERE or given.name in taken[0]:
        return None
    return Issue(arg.offset, f"error during formatting: {taken[1]}, was given {given}")
