"""Evaluates JSON paths of printer columns and selectable fields.

    values_at(obj, ".spec.replicas")                                        [3]
    values_at(obj, '.status.conditions[?(@.type=="Ready")].status')         ["True"]

Called by `printer_columns` and `records`. A path is parsed to steps, each a function from a value to the values that it
selects. A new form of step: its pattern, its function, and its line in `_BRACKET_STEPS` or case in `_parse_step`.

Supported: names (with `\\.` for a dot), `['name']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `..name`, and filters that compare
something below `@` with a literal. Source: the documentation of kubectl's JSONPath.
Differs: filters have one comparison; expressions with `range` do not occur in columns.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]
"""From a value to the values in it that one step of a path selects."""


class PathError(ValueError):
    """The text is not a JSON path."""


_NAME_STEP = re.compile(r"(?:\\.|[^.\[\]\\])+", re.DOTALL)
_QUOTED_NAME = re.compile(r"\[\s*(?:'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\")\s*\]", re.DOTALL)
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(-?\d+)\s*)?\]")
_WILDCARD = re.compile(r"\[\s*\*\s*\]")
_FILTER = re.compile(
    r"\[\s*\?\(\s*@(?P<path>[^=!<>\s]*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<literal>.*?)\s*)?\)\s*\]"
)

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=4096)
def parse(path: str) -> tuple[Step, ...]:
    """The steps of a path, with or without its leading dot. Raises PathError."""
    steps: list[Step] = []
    remaining_path = path
    while remaining_path:
        step, remaining_path = _parse_step(remaining_path, path)
        steps.append(step)
    return tuple(steps)


def values_at(obj: Any, path: str) -> list[Any]:
    """The values at a path, in order; empty if a part of the path is absent. Raises PathError."""
    return _values_of_steps(obj, parse(path))


def _values_of_steps(value: Any, steps: tuple[Step, ...]) -> list[Any]:
    """The values that remain after each step was applied to all values of the step before."""
    values = [value]
    for step in steps:
        values = [child_value for parent_value in values for child_value in step(parent_value)]
    return values


def _parse_step(remaining_path: str, path: str) -> tuple[Step, str]:
    """The first step of the remaining path (`.name`, `..name` or `[...]`), and the path after it. Raises PathError.

    Args:
        path: the whole path, for messages.
    """
    if remaining_path.startswith("["):
        return _parse_bracket(remaining_path, path)
    if remaining_path.startswith(".."):
        match = _NAME_STEP.match(remaining_path, 2)
        if match is None:
            raise PathError(f"{path}: a name must follow ..")
        return _recursive_step(_unescape(match[0])), remaining_path[match.end() :]
    if remaining_path.startswith(".["):
        return _parse_bracket(remaining_path[1:], path)
    match = _NAME_STEP.match(remaining_path, 1 if remaining_path.startswith(".") else 0)
    if match is None:
        raise PathError(f"{path}: a name must follow .")
    name = _unescape(match[0])
    return (_every_step if name == "*" else _member_step(name)), remaining_path[match.end() :]


def _parse_bracket(remaining_path: str, path: str) -> tuple[Step, str]:
    """The step in brackets (`['name']`, `[0]`, ...) at the beginning, and the path after it. Raises PathError."""
    for pattern, make_step in _BRACKET_STEPS:
        if match := pattern.match(remaining_path):
            return make_step(match), remaining_path[match.end() :]
    raise PathError(f"{path}: {remaining_path} cannot be understood")


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _member_step(name: str) -> Step:
    """Selects the member of that name of an object."""

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _every_step(value: Any) -> Iterator[Any]:
    """Selects all elements of a list, or all members of an object in the order of their names."""
    if isinstance(value, dict):
        yield from (value[name] for name in sorted(value))
    elif isinstance(value, list):
        yield from value


def _element_step(index: int) -> Step:
    """Selects one element of a list; a negative index counts from the end."""

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice_step(start: int | None = None, end: int | None = None, stride: int | None = None) -> Step:
    """Selects elements of a list as Python's slices do, where None is a missing bound; a stride of 0 selects none."""

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and stride != 0:
            yield from value[start:end:stride]

    return step


def _recursive_step(name: str) -> Step:
    """Selects the members of that name at any depth, those of an object before those below it."""

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            if name in value:
                yield value[name]
            for key in sorted(value):
                yield from step(value[key])
        elif isinstance(value, list):
            for item in value:
                yield from step(item)

    return step


def _filter_step(path: str, comparison: str, literal: str) -> Step:
    """Selects the elements of a list that have a value at `path` for which the comparison with the literal holds.

    An empty `comparison` has no literal: then any value fits. Raises PathError for an invalid path or literal.
    """
    steps = parse(path)
    literal_value = _parse_literal(literal) if comparison else None

    def is_met(item: Any) -> bool:
        """Whether a list element has a value at the path that fits the literal."""
        values = _values_of_steps(item, steps)
        if not comparison:
            return bool(values)
        try:
            return any(_COMPARISONS[comparison](value, literal_value) for value in values)
        except TypeError:
            return False

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if is_met(item))

    return step


def _parse_literal(literal: str) -> Any:
    """The value of a literal of a filter: a quoted text, or JSON. Raises PathError."""
    if len(literal) > 1 and literal[0] == literal[-1] and literal[0] in "'\"":
        return _unescape(literal[1:-1])
    try:
        return json.loads(literal)
    except ValueError:
        raise PathError(f"{literal} is no literal") from None


_BRACKET_STEPS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_QUOTED_NAME, lambda match: _member_step(_unescape(match[1] if match[1] is not None else match[2]))),
    (_INDEX, lambda match: _element_step(int(match[1]))),
    (_WILDCARD, lambda _match: _every_step),
    (_SLICE, lambda match: _slice_step(*(int(bound) if bound else None for bound in match.groups()))),
    (_FILTER, lambda match: _filter_step(match["path"], match["operator"] or "", match["literal"] or "")),
)
"""Pattern of a step in brackets -> the function that makes the step of a match."""
