"""Literals that make no sense: patterns, durations and instants that are none, formats that do not fit, mixed lists.

Called by `programs` for an expression whose types fit.

Source: cel-go's validators of literals, which Kubernetes asks for.
"""

from collections.abc import Callable, Iterator

from podscaler.api.cel.compile import planning
from podscaler.api.cel.library import format_literals
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.faults import EvaluationError
from podscaler.api.cel.values.issues import Issue
from podscaler.api.cel.values.syntax import Call, Comprehension, ListLiteral, Literal, MapLiteral, Node, Select
from podscaler.api.cel.values.types import Type
from podscaler.api.machinery import duration, instants, patterns

_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})


def constant_fault(tree: Node) -> str:
    """What fails in converting a constant, empty if nothing does: upstream converts constants beforehand."""
    for node in _walked(tree):
        is_conversion = isinstance(node, Call) and node.target is None and node.function in _CONVERSIONS
        if is_conversion and isinstance(node, Call) and all(isinstance(arg, Literal) for arg in node.args):
            try:
                planning.planned(node)(planning.Scope({}, Budget()))
            except EvaluationError as error:
                return str(error)
    return ""


Elements = list[tuple[Node, int, Node, Type]]
"""The parts of list and map literals with their types, as the checker found them."""


def issues(tree: Node, elements: Elements) -> list[Issue]:
    """All literals of the tree that cannot be used where they stand."""
    formats = [node for node in _walked(tree) if isinstance(node, Call) and node.function == "format"]
    exempt = {id(below) for node in formats for below in _walked(node)}
    types_of = {id(part): one for _, _, part, one in elements}
    found = [issue for node in _walked(tree) if isinstance(node, Call) for issue in _of_call(node)]
    found += [issue for node in formats for issue in format_literals.issues(node, types_of)]
    return found + _mixed(elements, exempt)


def _mixed(elements: Elements, exempt: set[int]) -> list[Issue]:
    """Elements that are not of the type of the first; those of arguments of `format` may be."""
    first: dict[tuple[int, int], Type] = {}
    told: set[tuple[int, int]] = set()
    found = []
    for literal, slot, part, one in elements:
        wanted = first.setdefault((id(literal), slot), one)
        is_told = slot == 0 and (id(literal), slot) in told
        if id(literal) not in exempt and not _is_alike(wanted, one) and not is_told:
            told.add((id(literal), slot))
            found.append(Issue(part.offset, f"expected type '{wanted}' but found '{one}'"))
    return found


def _is_alike(wanted: Type, one: Type) -> bool:
    if wanted.is_param or one.is_param:
        return True
    if wanted.name != one.name or len(wanted.params) != len(one.params):
        return False
    return all(_is_alike(*pair) for pair in zip(wanted.params, one.params, strict=True))


def _of_call(node: Call) -> Iterator[Issue]:
    check = _CHECKS.get(node.function)
    if check is None or not node.args:
        return
    arg = node.args[0 if node.function != "matches" or node.target is not None else -1]
    if isinstance(arg, Literal) and isinstance(arg.value, str) and not check(arg.value):
        yield Issue(arg.offset, f"invalid {node.function} argument")


def _is_read(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return check


_CHECKS: dict[str, Callable[[str], bool]] = {
    "duration": _is_read(duration.parse),
    "timestamp": _is_read(instants.parse),
    "matches": lambda text: not patterns.find_error(text),
}


def _walked(tree: Node) -> Iterator[Node]:
    waiting: list[Node] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _below(node)


def _below(node: Node) -> list[Node]:
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*node.args, *([node.target] if node.target is not None else [])]
        case ListLiteral():
            return list(node.elements)
        case MapLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case Comprehension():
            return [node.source, node.start, node.step, node.outcome]
    return []
