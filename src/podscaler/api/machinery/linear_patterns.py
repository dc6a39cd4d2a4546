r"""Regular expressions in time that is linear in the text: patterns are clients', and matched on the event loop.

Called by `patterns`. A pattern like `^(a+)+$` takes Python's matcher, which tries one way after the other, longer
than the world has existed; here all ways are followed at once, and what a set of ways becomes by a character is
remembered. As in RE2, `$` is the end of the text alone, and `\d`, `\w`, `\s` are of ASCII.

Source: Thompson, Regular Expression Search Algorithm, 1968; RE2's semantics. Python's parser reads the patterns.
"""

import re
import string
from collections.abc import Callable, Iterable
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # typeshed has no stub of the parser's opcodes
from re import _parser as parser  # type: ignore[attr-defined]  # nor of the parser
from typing import Any

STATES_MAX = 20_000
REMEMBERED_MAX = 10_000

Test = Callable[[str], bool]
Ways = frozenset[int]

_DIGITS = frozenset(string.digits)
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_SPACE = frozenset("\t\n\f\r ")
_CATEGORIES: dict[Any, tuple[frozenset[str], bool]] = {
    ops.CATEGORY_DIGIT: (_DIGITS, True),
    ops.CATEGORY_NOT_DIGIT: (_DIGITS, False),
    ops.CATEGORY_WORD: (_WORD, True),
    ops.CATEGORY_NOT_WORD: (_WORD, False),
    ops.CATEGORY_SPACE: (_SPACE, True),
    ops.CATEGORY_NOT_SPACE: (_SPACE, False),
}


class Unsupported(ValueError):
    """A pattern with something that only Python has, or a flag."""


class Matcher:
    """Says whether a text holds a match. Raises Unsupported, re.error, OverflowError for the pattern."""

    def __init__(self, pattern: str) -> None:
        parsed = parser.parse(pattern)
        if parsed.state.flags & ~re.UNICODE:
            raise Unsupported(pattern)
        self._tests: list[list[tuple[Test, int]]] = []
        self._empty: list[list[tuple[Any, int]]] = []
        self._steps: dict[tuple[Ways, str], Ways] = {}
        self._closed: dict[tuple[Ways, tuple[bool, bool, bool]], Ways] = {}
        self._start = self._new()
        self._end = self._sequence(parsed, self._start)

    def __call__(self, text: str) -> bool:
        """Whether there is a match anywhere in the text."""
        ways: Ways = frozenset()
        before = False
        for position, character in enumerate([*text, ""]):
            is_end = position == len(text)
            after = character in _WORD
            ways = self._close(ways | {self._start}, (position == 0, is_end, before != after))
            if self._end in ways:
                return True
            if not is_end:
                ways = self._step(ways, character)
            before = after
        return False

    def _step(self, ways: Ways, character: str) -> Ways:
        known = self._steps.get((ways, character))
        if known is None:
            if len(self._steps) > REMEMBERED_MAX:
                self._steps.clear()
            known = frozenset(to for way in ways for test, to in self._tests[way] if test(character))
            self._steps[ways, character] = known
        return known

    def _close(self, ways: Ways, place: tuple[bool, bool, bool]) -> Ways:
        known = self._closed.get((ways, place))
        if known is None:
            if len(self._closed) > REMEMBERED_MAX:
                self._closed.clear()
            known = self._closed[ways, place] = self._reached(ways, place)
        return known

    def _reached(self, ways: Iterable[int], place: tuple[bool, bool, bool]) -> Ways:
        found = set(ways)
        waiting = list(found)
        while waiting:
            for condition, to in self._empty[waiting.pop()]:
                if to not in found and _holds(condition, place):
                    found.add(to)
                    waiting.append(to)
        return frozenset(found)

    def _new(self) -> int:
        if len(self._tests) >= STATES_MAX:
            raise Unsupported("too large")
        self._tests.append([])
        self._empty.append([])
        return len(self._tests) - 1

    def _sequence(self, nodes: Any, state: int) -> int:
        for operation, argument in nodes:
            state = self._node(operation, argument, state)
        return state

    def _node(self, operation: Any, argument: Any, state: int) -> int:
        if operation in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN):
            target = self._new()
            self._tests[state].append((_test(operation, argument), target))
            return target
        if operation is ops.AT:
            target = self._new()
            self._empty[state].append((argument, target))
            return target
        if operation is ops.BRANCH:
            return self._branch(argument[1], state)
        if operation is ops.SUBPATTERN and not argument[1] and not argument[2]:
            return self._sequence(argument[3], state)
        if operation in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, nodes = argument
            return self._repeat(state, least, most, nodes)
        raise Unsupported(str(operation))

    def _branch(self, choices: Any, state: int) -> int:
        target = self._new()
        for choice in choices:
            begin = self._new()
            self._empty[state].append((None, begin))
            self._empty[self._sequence(choice, begin)].append((None, target))
        return target

    def _repeat(self, state: int, least: int, most: Any, nodes: Any) -> int:
        for _ in range(least):
            state = self._sequence(nodes, state)
        target = self._new()
        if most is ops.MAXREPEAT:
            begin = self._new()
            self._empty[state].append((None, begin))
            self._empty[begin].append((None, target))
            self._empty[self._sequence(nodes, begin)].append((None, begin))
            return target
        for _ in range(most - least):
            self._empty[state].append((None, target))
            state = self._sequence(nodes, state)
        self._empty[state].append((None, target))
        return target


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Matcher | None:
    """The pattern, None where it cannot be matched in this way."""
    try:
        return Matcher(pattern)
    except (Unsupported, re.error, OverflowError, RecursionError):
        return None


def _holds(condition: Any, place: tuple[bool, bool, bool]) -> bool:
    is_start, is_end, is_boundary = place
    if condition is None:
        return True
    if condition in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
        return is_start
    if condition in (ops.AT_END, ops.AT_END_STRING):
        return is_end
    return is_boundary if condition is ops.AT_BOUNDARY else not is_boundary


def _test(operation: Any, argument: Any) -> Test:
    if operation is ops.ANY:
        return lambda character: character != "\n"
    if operation is ops.LITERAL:
        return chr(argument).__eq__
    if operation is ops.NOT_LITERAL:
        return chr(argument).__ne__
    parts = [part for part in argument if part[0] is not ops.NEGATE]
    tests = [_member(kind, value) for kind, value in parts]
    is_negated = len(parts) < len(argument)
    return lambda character: any(test(character) for test in tests) != is_negated


def _member(kind: Any, value: Any) -> Test:
    if kind is ops.LITERAL:
        return chr(value).__eq__
    if kind is ops.RANGE:
        return lambda character: value[0] <= ord(character) <= value[1]
    members, is_in = _CATEGORIES[value]
    return lambda character: (character in members) == is_in
