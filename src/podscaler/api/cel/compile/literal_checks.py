"""Validates the literals of a CEL expression: regular expressions, durations, timestamps, arguments of `format`.

`duration('1x')`, `'a'.matches('(')`, `'%d'.format(['a'])` and `[1, 'a']` pass the type checker, and are compile errors
here. Called by `programs` for type-checked expressions. A new clause of `format`: `_FORMAT_TYPES` here, and
`podscaler.api.cel.library.formatting`; a new kind of literal: `_ARGUMENT_CHECKS`.

Source: cel-go's validators of literals, which Kubernetes enables.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from podscaler.api.cel.compile import planning
from podscaler.api.cel.compile.checking import LiteralPart
from podscaler.api.cel.library.formatting import STRING_CLAUSE_TYPES
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.syntax_tree import Call, Comprehension, ListLiteral, Literal, MapLiteral, Node, Select
from podscaler.api.cel.values.types import Type
from podscaler.api.machinery import duration, instants, re2_patterns

_FORMAT_CLAUSE = re.compile(r"%(?:(%)|(?:\.\d+)?(.))", re.DOTALL)
"""`%%` (the first group is `%`), or a clause: the second group of `%.2f` is its letter, `f`."""
_VALID_IN_ALL_CLAUSES = frozenset({"dyn", "!error!", "null"})
_STRING_TYPES = frozenset(
    {"string", "bool", "bytes", "int", "uint", "double", "map", "list", "type", "duration", "timestamp"}
)
_FORMAT_TYPES: dict[str, tuple[frozenset[str], str]] = {
    "s": (_STRING_TYPES, f"string clause can only be used on {STRING_CLAUSE_TYPES}"),
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
"""By the letter of a clause: the types that it accepts, and the message about others."""

_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})


def constant_error(tree: Node) -> str:
    """The error of a conversion of a constant, empty if none fails: cel-go converts constants at compile time."""
    for node in _all_nodes(tree):
        if not isinstance(node, Call) or node.target is not None or node.function not in _CONVERSIONS:
            continue
        if all(isinstance(arg, Literal) for arg in node.args):
            try:
                planning.plan(node)(planning.Scope({}, Budget()))
            except EvaluationError as error:
                return str(error)
    return ""


def issues(tree: Node, literal_parts: list[LiteralPart]) -> list[Issue]:
    """The issues of all literals of a tree; `literal_parts` are those of its list and map literals."""
    calls = [node for node in _all_nodes(tree) if isinstance(node, Call)]
    format_calls = [call for call in calls if call.function == "format"]
    exempt_ids = {id(node) for call in format_calls for node in _all_nodes(call)}
    types_of = {id(part.node): part.type for part in literal_parts}
    call_issues = [issue for call in calls for issue in _argument_issues(call)]
    call_issues += [issue for call in format_calls for issue in _format_issues(call, types_of)]
    return call_issues + _mixed_type_issues(literal_parts, exempt_ids)


def _mixed_type_issues(literal_parts: list[LiteralPart], exempt_ids: set[int]) -> list[Issue]:
    """Elements, keys and values whose type is not that of the first, one for a list, all for a map.

    Args:
        exempt_ids: the identities of the literals without such issues: the arguments of `format`.
    """
    first_types: dict[tuple[int, str], Type] = {}
    reported_list_ids: set[int] = set()
    mixed_issues = []
    for literal, role, node, part_type in literal_parts:
        first_type = first_types.setdefault((id(literal), role), part_type)
        if id(literal) in exempt_ids or id(literal) in reported_list_ids or _is_alike(first_type, part_type):
            continue
        if role == "element":
            reported_list_ids.add(id(literal))
        mixed_issues.append(Issue(node.offset, f"expected type '{first_type}' but found '{part_type}'"))
    return mixed_issues


def _is_alike(expected: Type, element_type: Type) -> bool:
    """Whether two types are equal, where a type parameter equals every type."""
    if expected.is_param or element_type.is_param:
        return True
    if expected.name != element_type.name or len(expected.type_args) != len(element_type.type_args):
        return False
    return all(_is_alike(*pair) for pair in zip(expected.type_args, element_type.type_args, strict=True))


def _argument_issues(node: Call) -> Iterator[Issue]:
    """An issue if the literal argument of a call that parses it (`duration("1x")`) is not valid."""
    check = _ARGUMENT_CHECKS.get(node.function)
    if check is None or not node.args:
        return
    # `matches(text, pattern)` has the pattern last; `text.matches(pattern)` has it as its only argument.
    is_matches_function = node.function == "matches" and node.target is None
    arg = node.args[-1] if is_matches_function else node.args[0]
    if isinstance(arg, Literal) and isinstance(arg.value, str) and not check(arg.value):
        yield Issue(arg.offset, f"invalid {node.function} argument")


def _is_parsed_by(parse: Callable[[str], object]) -> Callable[[str], bool]:
    """A check whether `parse` accepts a text."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


_ARGUMENT_CHECKS: dict[str, Callable[[str], bool]] = {
    "duration": _is_parsed_by(duration.parse),
    "timestamp": _is_parsed_by(instants.parse),
    "matches": lambda text: not re2_patterns.find_error(text),
}


def _all_nodes(tree: Node) -> Iterator[Node]:
    """The tree and all nodes below it, each once."""
    pending_nodes: list[Node] = [tree]
    while pending_nodes:
        node = pending_nodes.pop()
        yield node
        pending_nodes += _children(node)


def _children(node: Node) -> list[Node]:
    """The direct operands of a node."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*node.args, *([node.target] if node.target is not None else [])]
        case ListLiteral():
            return list(node.elements)
        case MapLiteral():
            return [operand for map_entry in node.entries for operand in (map_entry.key, map_entry.value)]
        case Comprehension():
            return [node.source, node.start, node.step, node.outcome]  # `step` has `test` and `produced`
    return []


def _format_issues(node: Call, types_of: Mapping[int, Type]) -> Iterator[Issue]:
    """The first issue of a call of `format` on a literal; `types_of` has the types of list elements, by identity."""
    if len(node.args) != 1 or not isinstance(node.target, Literal) or not isinstance(node.args[0], ListLiteral):
        return
    pattern, args = node.target.value, node.args[0]
    if not isinstance(pattern, str):
        return
    remaining_args = list(args.elements)
    for match in _FORMAT_CLAUSE.finditer(pattern):
        if match.group(1):
            continue
        clause_issue = _clause_issue(match.group(2), remaining_args, node, types_of)
        if clause_issue is not None:
            yield clause_issue
            return
    percent_signs_at_end = len(pattern) - len(pattern.rstrip("%"))
    if percent_signs_at_end % 2:
        yield Issue(node.offset, "unexpected end of string")
    elif remaining_args:
        used_count = len(args.elements) - len(remaining_args)
        message = f"too many arguments supplied to string.format (expected {used_count}, got {len(args.elements)})"
        yield Issue(node.offset, message)


def _clause_issue(clause: str, remaining_args: list[Node], node: Call, types_of: Mapping[int, Type]) -> Issue | None:
    """The issue of one clause (`d` of `%d`) of a format string; None if it is valid.

    Args:
        remaining_args: the first one is that of this clause, and is removed.
        types_of: the types of list elements, by the identity of their nodes.
    """
    if not remaining_args:
        args = node.args[0]
        count = len(args.elements) if isinstance(args, ListLiteral) else 0
        return Issue(node.offset, f"index {count} out of range")  # the index of the first missing argument
    types_and_error = _FORMAT_TYPES.get("x" if clause == "X" else clause)
    if types_and_error is None:
        message = f'could not parse formatting clause: unrecognized formatting clause "{clause}"'
        return Issue(node.offset, message)
    arg = remaining_args.pop(0)
    arg_type = types_of[id(arg)]
    accepted_names, error_text = types_and_error
    if arg_type.is_param or arg_type.name in _VALID_IN_ALL_CLAUSES or arg_type.name in accepted_names:
        return None
    return Issue(arg.offset, f"error during formatting: {error_text}, was given {arg_type}")
