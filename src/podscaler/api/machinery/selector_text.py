"""Parses the text form of label selectors to requirements, with Kubernetes' messages.

    parse("a=1,tier in (db,web),!c")      requirements for `a`, `tier` and `c`

Called by `podscaler.api.machinery.selectors` (`parse`) only. Grammar:

    selector    = [ requirement { "," requirement } ]
    requirement = [ "!" ] key | key symbol [ value ] | key ( "in" | "notin" ) "(" values ")"
    symbol      = "=" | "==" | "!=" | ">" | "<"
    values      = [ value ] { "," [ value ] }

`in` and `notin` are identifiers except where an operator is expected. The values of a requirement are sorted and
distinct; a missing value is the empty text. A new operator: add it to the grammar, to `_OPERATORS` and, with its
meaning, to `requirements`; a symbol to `_TOKEN` and `_SYMBOLS`, too.

Source: Kubernetes v1.37.0, label selectors (docs/spec/decision.md 12.3 (Parsing scale.status.selector)).
"""

import re
from typing import NamedTuple

from podscaler.api.machinery.requirements import Operator, Requirement, SelectorError, key_errors, requirement

_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),><]|[^ \t\r\n=!(),><]+)")
"""A symbol (`!=`) or a word (`tier`), with the white space before it."""
_SYMBOLS = frozenset({"=", "==", "!=", "!", "(", ")", ",", ">", "<"})
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_LISTS = frozenset({Operator.IN, Operator.NOT_IN})


class _Token(NamedTuple):
    """A symbol such as `!=`, or a word: a key, a value, `in` or `notin`."""

    text: str
    is_word: bool


_END = _Token("", False)
"""The token after the last one."""


def parse(selector_text: str) -> list[Requirement]:
    """The requirements of a selector text, in its order. Raises SelectorError."""
    return _Parser(selector_text).read_requirements()


class _Parser:
    """A recursive-descent parser with one token of lookahead."""

    def __init__(self, selector_text: str) -> None:
        token_texts = _TOKEN.findall(selector_text)
        self._tokens = [_Token(token_text, token_text not in _SYMBOLS) for token_text in token_texts]
        self._position = 0

    def _peek(self) -> _Token:
        """The next token, which stays the next one."""
        return self._tokens[self._position] if self._position < len(self._tokens) else _END

    def _take(self) -> _Token:
        """The next token, which is consumed."""
        token = self._peek()
        self._position += 1
        return token

    def read_requirements(self) -> list[Requirement]:
        """Reads all requirements, which commas separate, up to the end; none of an empty text. Raises SelectorError."""
        token = self._peek()
        if token is _END:
            return []
        if not _starts_requirement(token):
            raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
        requirements = [self._read_requirement()]
        while (token := self._take()) is not _END:
            if token.text != ",":
                raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
            if not _starts_requirement(self._peek()):
                raise SelectorError(f"found '{self._peek().text}', expected: identifier after ','")
            requirements.append(self._read_requirement())
        return requirements

    def _read_requirement(self) -> Requirement:
        """Reads one requirement: `key`, `!key`, `key=value` or `key in (a, b)`. Raises SelectorError."""
        try:
            key, operator, values = self._read_key_operator_values()
            return requirement(key, operator, sorted(values))
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _read_key_operator_values(self) -> tuple[str, Operator, set[str]]:
        """Reads the parts of one requirement; EXISTS and DOES_NOT_EXIST have no values. Raises SelectorError."""
        is_negated = self._peek().text == "!"
        if is_negated:
            self._take()
        key = self._read_key()
        if is_negated:
            return key, Operator.DOES_NOT_EXIST, set()
        if self._at_end_of_requirement():
            return key, Operator.EXISTS, set()
        operator = self._read_operator()
        return key, operator, self._read_values() if operator in _LISTS else {self._read_value()}

    def _at_end_of_requirement(self) -> bool:
        return self._peek() is _END or self._peek().text == ","

    def _read_key(self) -> str:
        """Reads a label key. Raises SelectorError for an invalid one."""
        token = self._take()
        if not token.is_word:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        errors = key_errors(token.text, path="<nil>")  # a text has no field path, which Go prints as nil
        if errors:
            raise SelectorError(errors[0])
        return token.text

    def _read_operator(self) -> Operator:
        """Reads an operator. Raises SelectorError for any other token."""
        token = self._take()
        operator = _OPERATORS.get(token.text)
        if operator is None:
            raise SelectorError(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
        return operator

    def _read_value(self) -> str:
        """Reads the value after a symbol; empty at the end of the requirement. Raises SelectorError."""
        if self._at_end_of_requirement():
            return ""
        token = self._take()
        if not token.is_word:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return token.text

    def _read_values(self) -> set[str]:
        """Reads the values in parentheses; `()` is the empty value. Raises SelectorError."""
        token = self._take()
        if token.text != "(":
            raise SelectorError(f"found '{token.text}' expected: '('")
        token = self._peek()
        if token.text == ")":
            self._take()
            return {""}
        if not (token.is_word or token.text == ","):
            raise SelectorError(f"found '{token.text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while self._peek().text != ")":
            self._add_value(values)
        self._take()
        return values

    def _add_value(self, values: set[str]) -> None:
        """Reads a value or a comma; a comma without a value beside it adds the empty value. Raises SelectorError.

        Args:
            values: those read so far; the value is added.
        """
        token = self._take()
        if token.is_word:
            values.add(token.text)
            if self._peek().text not in {",", ")"}:
                raise SelectorError(f"found '{self._peek().text}', expected: ',' or ')'")
            return
        if token.text != ",":
            raise SelectorError(f"found '{token.text}', expected: ',', or identifier")
        if not values or self._peek().text in {",", ")"}:  # `(,`, `,,` or `,)`
            values.add("")
        if self._peek().text == ",":  # the empty value between two commas is added: the second one adds no other
            self._take()


def _starts_requirement(token: _Token) -> bool:
    return token.is_word or token.text == "!"
