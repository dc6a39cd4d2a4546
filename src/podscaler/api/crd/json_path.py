"""Evaluates JSON paths of printer columns and selectable fields.

    values_at(obj, ".spec.replicas")                                        [3]
    values_at(obj, '.status.conditions[?(@.type=="Ready")].status')         ["True"]

Called by `columns` and `records`. A path is parsed to steps, each a function from a value to the values that it
selects.

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
_EVERY = re.compile(r"\[\s*\*\s*\]")
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
def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path, with or without its leading dot. Raises PathError."""
    steps: list[Step] = []
    rest = text
    while rest:
        step, rest = _parse_step(rest, text)
        steps.append(step)
    return tuple(steps)


def values_at(obj: Any, path: str) -> list[Any]:
    """The values at a path, in order; empty if a part of the path is absent. Raises PathError."""
    return _values_of_steps(obj, parse(path))


def _values_of_steps(value: Any, steps: tuple[Step, ...]) -> list[Any]:
    values = [value]
    for step in steps:
        values = [below for each in values for below in step(each)]
    return values


def _parse_step(rest: str, text: str) -> tuple[Step, str]:
    """The first step of `rest`, and what follows it: `.name`, `..name` or `[...]`."""
    if rest.startswith("["):
        return _parse_bracket(rest, text)
    if rest.startswith(".."):
        match = _NAME_STEP.match(rest, 2)
        if match is None:
            raise PathError(f"{text}: a name must follow ..")
        return _recursive(_unescaped(match[0])), rest[match.end() :]
    if rest.startswith(".["):
        return _parse_bracket(rest[1:], text)
    match = _NAME_STEP.match(rest, 1 if rest.startswith(".") else 0)
    if match is None:
        raise PathError(f"{text}: a name must follow .")
    name = _unescaped(match[0])
    return (_every if name == "*" else _member(name)), rest[match.end() :]


def _parse_bracket(rest: str, text: str) -> tuple[Step, str]:
    """The first step of `rest`, `['name']`, `[0]`, `[*]`, `[1:3]` or `[?(...)]`, and what follows it."""
    if match := _QUOTED_NAME.match(rest):
        return _member(_unescaped(match[1] if match[1] is not None else match[2])), rest[match.end() :]
    if match := _INDEX.match(rest):
        return _element(int(match[1])), rest[match.end() :]
    if match := _EVERY.match(rest):
        return _every, rest[match.end() :]
    if match := _SLICE.match(rest):
        return _slice(*(int(part) if part else None for part in match.groups())), rest[match.end() :]
    if match := _FILTER.match(rest):
        return _filter(match["path"], match["operator"] or "", match["literal"] or ""), rest[match.end() :]
    raise PathError(f"{text}: {rest} cannot be understood")


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (value[name] for name in sorted(value))
    elif isinstance(value, list):
        yield from value


def _element(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(first: int | None = None, end: int | None = None, every: int | None = None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and every != 0:
            yield from value[first:end:every]

    return step


def _recursive(name: str) -> Step:
    """A step to all fields of a name, at any depth."""

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


def _filter(path: str, comparison: str, literal: str) -> Step:
    """A step to the list elements that have a value at `path`, compared with the literal if there is one."""
    below = parse(path)
    expected = _literal(literal) if comparison else None

    def is_met(item: Any) -> bool:
        values = _values_of_steps(item, below)
        if not comparison:
            return bool(values)
        try:
            return any(_COMPARISONS[comparison](value, expected) for value in values)
        except TypeError:
            return False

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if is_met(item))

    return step


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return _unescaped(text[1:-1])
    try:
        return json.loads(text)
    except ValueError:
        raise PathError(f"{text} is no literal") from None
