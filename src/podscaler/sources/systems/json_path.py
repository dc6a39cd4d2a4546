"""Selects one number in a text, by a JSONPath query, or as the whole text.

Used by `http` and `file`: of `{"queue": {"length": 7}}` the query `$.queue.length` selects 7.

Evaluations run in THREADS threads of their own, and end after STEPS_MAX steps, so that no query takes the threads that
other parts of the process need: a short query can select a document many times over (`[*,*][*,*]`).

Source: RFC 9535. Differs: the functions match and search are unknown, and a query has one descendant segment (`..`) and
one filter (`?`) at most.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import jsonpath_rfc9535
from jsonpath_rfc9535 import JSONPathError, JSONPathNode, JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    Expression,
    FilterContext,
    FilterExpression,
    FilterQuery,
    FunctionExtension,
    RootFilterQuery,
)
from jsonpath_rfc9535.selectors import FilterSelector, JSONPathSelector

from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidSource, InvalidValue, Number

P = ParamSpec("P")
T = TypeVar("T")
DEPTH_MAX = 64
"""How deep a `..` descends; a deeper document is an InvalidValue."""
STEPS_MAX = 4_000_000
"""The most steps of one evaluation, two to four seconds: a simple filter of all values of the longest response takes
fewer."""
CONTAINER_STEPS = 10_000
"""The steps of a list or an object of the whole document that a filter uses, as a comparison may read all of it."""
THREADS = 4
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
"""A quoted text, in which `..` and `?` have no meaning."""
_EXECUTOR = ThreadPoolExecutor(THREADS, thread_name_prefix="json-path")


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that reads a value; it runs in one of this module's threads, which starts no others."""
    return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, lambda: function(*args, **kwargs))


class _TooManySteps(Exception):
    """An evaluation that needs more than STEPS_MAX steps."""


class _Steps:
    """The steps that an evaluation has left."""

    def __init__(self) -> None:
        self.left = 0

    def spend(self, steps: int = 1) -> None:
        """Count some steps. Raises _TooManySteps."""
        self.left -= steps
        if self.left < 0:
            raise _TooManySteps


class _CountedSelector(JSONPathSelector):
    """A selector whose applications and results are counted."""

    def __init__(self, selector: JSONPathSelector, steps: _Steps) -> None:
        super().__init__(env=selector.env, token=selector.token)
        self._selector = selector
        self._steps = steps

    def resolve(self, node: JSONPathNode) -> Iterable[JSONPathNode]:
        """As the wrapped selector. Raises _TooManySteps."""
        self._steps.spend()
        for selected in self._selector.resolve(node):
            self._steps.spend()
            yield selected


class _CountedFilter(FilterExpression):
    """A filter whose evaluations are counted, each with the number of its parts."""

    def __init__(self, expression: FilterExpression, parts: int, steps: _Steps) -> None:
        super().__init__(expression.token, expression.expression)
        self._parts = parts
        self._steps = steps

    def evaluate(self, context: FilterContext) -> bool:
        self._steps.spend(self._parts)
        return super().evaluate(context)


class _CountedRootQuery(RootFilterQuery):
    """A query of the whole document within a filter, whose lists and objects are counted."""

    def __init__(self, query: RootFilterQuery, steps: _Steps) -> None:
        super().__init__(query.token, query.query)
        self._steps = steps

    def evaluate(self, context: FilterContext) -> object:
        """As the wrapped query. Raises _TooManySteps."""
        nodes = self.query.find(context.root)
        for node in nodes:
            self._steps.spend(CONTAINER_STEPS if isinstance(node.value, list | dict) else 1)
        return nodes


class JsonPath:
    """A query whose evaluations are counted; they do not overlap in time.

    Args:
        query: changed by the object, and not used elsewhere.
    """

    def __init__(self, query: JSONPathQuery) -> None:
        self._query = query
        self._steps = _Steps()
        _wrap_query(query, self._steps)

    def find_two(self, document: Any) -> list[Any]:
        """The first values that the query selects, at most two: enough to see that one is all. Raises InvalidValue."""
        self._steps.left = STEPS_MAX
        try:
            return [node.value for node in islice(self._query.finditer(document), 2)]
        except _TooManySteps:
            raise InvalidValue(f"jsonPath takes more than {STEPS_MAX} steps") from None
        except (JSONPathError, RecursionError) as error:
            raise InvalidValue(f"jsonPath cannot be evaluated: {type(error).__name__}") from None


def _wrap_query(query: JSONPathQuery, steps: _Steps) -> int:
    """Wrap the selectors of a query, in place, so that they are counted; returns the number of its parts."""
    parts = 0
    for segment in query.segments:
        parts += len(segment.selectors)
        for selector in segment.selectors:
            if isinstance(selector, FilterSelector):
                filter_parts = _wrap_expression(selector.expression, steps)
                selector.expression = _CountedFilter(selector.expression, filter_parts, steps)
                parts += filter_parts
        segment.selectors = tuple(_CountedSelector(selector, steps) for selector in segment.selectors)
    return parts


def _wrap_expression(expression: Expression, steps: _Steps) -> int:
    """As `_wrap_query`, for the queries in an expression of a filter, by the classes of expressions in the library."""
    if isinstance(expression, FilterQuery):
        return 1 + _wrap_query(expression.query, steps)
    if isinstance(expression, FunctionExtension):
        expression.args = [_counted_root(argument, steps) for argument in expression.args]
        return 1 + sum(_wrap_expression(argument, steps) for argument in expression.args)
    parts = 1
    for name in ("expression", "left", "right"):  # the operands of `!`, and of comparisons, `&&` and `||`
        operand = getattr(expression, name, None)
        if isinstance(operand, Expression):
            counted_operand = _counted_root(operand, steps)
            setattr(expression, name, counted_operand)
            parts += _wrap_expression(counted_operand, steps)
    return parts


def _counted_root(expression: Expression, steps: _Steps) -> Expression:
    """The expression, wrapped if it is a query of the whole document (`$`)."""
    return _CountedRootQuery(expression, steps) if isinstance(expression, RootFilterQuery) else expression


class _Environment(jsonpath_rfc9535.JSONPathEnvironment):
    """RFC 9535 without the functions that take regular expressions."""

    max_recursion_depth = DEPTH_MAX

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        for name in ("match", "search"):
            del self.function_extensions[name]


def compile_path(path_text: str) -> JsonPath:
    """The query. Raises InvalidSource."""
    try:
        query = _Environment().compile(path_text)
    except JSONPathError as error:
        raise InvalidSource(f"jsonPath is invalid: {error}") from None
    without_literals = _LITERAL.sub("", path_text)
    if without_literals.count("..") > 1 or without_literals.count("?") > 1:
        raise InvalidSource("jsonPath has more than one descendant segment (..) or filter (?)")
    return JsonPath(query)


def number_in(body: bytes, path: JsonPath | None) -> Number:
    """The number that `path` selects in a text in JSON; with None the whole text is the number. Raises InvalidValue."""
    try:
        body_text = body.decode()
    except UnicodeDecodeError:
        raise InvalidValue("the text is not UTF-8") from None
    if path is None:
        return metric_numbers.number_of(body_text)
    values = path.find_two(_parse_json(body_text))
    if len(values) != 1:
        raise InvalidValue(f"jsonPath selects {'several values' if values else 'no value'}, not one")
    return metric_numbers.number_of(values[0])


def _parse_json(json_text: str) -> Any:
    """The data in a text in JSON. Raises InvalidValue."""
    try:
        return json.loads(json_text)
    except (ValueError, RecursionError):
        raise InvalidValue("the text is not JSON") from None
