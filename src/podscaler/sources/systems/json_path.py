"""Selects one number in a text, by a JSONPath query, or as the whole text.

Used by `http` and `file`: of `{"queue": {"length": 7}}` the query `$.queue.length` selects 7.

Source: RFC 9535. Differs: the functions match and search are unknown, and a query has one descendant segment (`..`) and
one filter (`?`) at most: several could take longer than any time limit of a read.
"""

import json
import re
from itertools import islice
from typing import Any

import jsonpath_rfc9535
from jsonpath_rfc9535 import JSONPathError, JSONPathQuery

from podscaler.sources import values
from podscaler.sources.protocol import InvalidSource, InvalidValue, Number

DEPTH_MAX = 64
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


class _Environment(jsonpath_rfc9535.JSONPathEnvironment):
    """RFC 9535 without the functions that take regular expressions."""

    max_recursion_depth = DEPTH_MAX

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        for name in ("match", "search"):
            del self.function_extensions[name]


def compile_path(text: str) -> JSONPathQuery:
    """The query. Raises InvalidSource."""
    try:
        query = _Environment().compile(text)
    except JSONPathError as error:
        raise InvalidSource(f"jsonPath is invalid: {error}") from None
    bare = _LITERAL.sub("", text)
    if bare.count("..") > 1 or bare.count("?") > 1:
        raise InvalidSource("jsonPath has more than one descendant segment (..) or filter (?)")
    return query


def number_in(body: bytes, query: JSONPathQuery | None) -> Number:
    """The number that `query` selects in JSON, or that the whole text is where it is None. Raises InvalidValue."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InvalidValue("the text is not UTF-8") from None
    if query is None:
        return values.number_of(text)
    try:
        found = list(islice(query.finditer(_parsed(text)), 2))
    except (JSONPathError, RecursionError) as error:
        raise InvalidValue(f"jsonPath cannot be evaluated: {type(error).__name__}") from None
    if len(found) != 1:
        raise InvalidValue(f"jsonPath selects {'several values' if found else 'no value'}, not one")
    return values.number_of(found[0].value)


def _parsed(text: str) -> Any:
    """JSON as data. Raises InvalidValue."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidValue("the text is not JSON") from None
