"""Parses a PromQL expression into a tree.

Called by `promql.partition`. `sum(up)` becomes `PromAggregation("sum", "", frozenset(), (VectorSelector("up", ()),))`.
An expression that this parser does not understand is rejected, also where Prometheus accepts it: the caller then sends
it unchanged. A new kind of node: a class, a member of Expression, and a case in `partition`.

Source: Prometheus' documentation (querying basics, operators).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from podscaler.adapter.promql.lexing import END, PromQLError, PromToken, tokens

_AGGREGATIONS = "sum min max avg group stddev stdvar count count_values bottomk topk quantile limitk limit_ratio"
AGGREGATIONS = frozenset(_AGGREGATIONS.split())
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
_DURATION_TERM = re.compile(r"([0-9]+)(ms|[smhdwy])")
_OPERATOR_LEVELS = (
    ("or",),
    ("and", "unless"),
    ("==", "!=", "<=", "<", ">=", ">"),
    ("+", "-"),
    ("*", "/", "%", "atan2"),
)
"""Levels of binary operators, from the weakest; `^` binds stronger than all of them."""
DEPTH_MAX = 100
"""How deeply expressions may be nested."""


@dataclass(frozen=True, slots=True)
class PromLiteral:
    """A number or text."""

    text: str


@dataclass(frozen=True, slots=True)
class VectorSelector:
    """A selector of series; `metric` may be empty, `matchers` are label, operator and value."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class TimeShift:
    """An expression with a range, a subquery, an offset or an `@`.

    Attributes:
        inner: the expression that is shifted.
        range_s: the span of a range or subquery; 0: an offset or `@`.
        is_plain: whether it is a range (`[5m]`), not a subquery (`[5m:1m]`).
    """

    inner: Expression
    range_s: float = 0.0
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class PromCall:
    """A call of a function."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class PromAggregation:
    """An aggregation such as `sum by (pod) (up)`.

    Attributes:
        operator: `sum`, `topk`, ...
        modifier: "by" or "without"; empty: all series become one.
        labels: the labels behind the modifier.
        arguments: the parameter, if the operator has one, and the vector.
    """

    operator: str
    modifier: str
    labels: frozenset[str]
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    """An operation on two operands, such as `a / on (pod) b`.

    Attributes:
        matching: "on" or "ignoring"; empty: series match by all labels.
        labels: the labels behind `on` or `ignoring`.
        copied: the labels that `group_left` or `group_right` takes from the other side.
        group: "group_left" or "group_right"; empty: one series matches one.
        is_bool: whether a comparison gives 0 or 1.
    """

    operator: str
    left: Expression
    right: Expression
    matching: str = ""
    labels: frozenset[str] = frozenset()
    copied: frozenset[str] = frozenset()
    group: str = ""
    is_bool: bool = False


Expression = PromLiteral | VectorSelector | TimeShift | PromCall | PromAggregation | BinaryOperation


def parse(promql: str) -> Expression:
    """The tree of an expression. Raises PromQLError."""
    parser = _Parser(tokens(promql))
    tree = parser.expression(0)
    if parser.next is not END:
        raise PromQLError(f"unexpected {parser.next.text!r}")
    return tree


class _Parser:
    """A recursive-descent parser over the tokens of one expression."""

    def __init__(self, expression_tokens: list[PromToken]) -> None:
        self._tokens = expression_tokens
        self._position = 0
        self._depth = 0

    @property
    def next(self) -> PromToken:
        """The next token."""
        return self._tokens[self._position]

    def _take(self) -> PromToken:
        """Read the next token; at the end it is END again."""
        token = self.next
        if token is not END:
            self._position += 1
        return token

    def _take_if(self, *token_texts: str) -> str:
        """Take the next token if it is one of these marks or words; returns its text, else an empty one."""
        if self.next.kind in ("mark", "word") and self.next.text in token_texts:
            return self._take().text
        return ""

    def _expect(self, token_text: str) -> None:
        """Take this mark or word. Raises PromQLError if the next token is another one."""
        if not self._take_if(token_text):
            raise PromQLError(f"expected {token_text!r}, found {self.next.text!r}")

    def expression(self, level: int) -> Expression:
        """An expression whose operators bind at least as strong as those of a level. Raises PromQLError."""
        self._depth += 1
        if self._depth > DEPTH_MAX * (len(_OPERATOR_LEVELS) + 1):  # a nested expression passes through all levels
            raise PromQLError("the expression is nested too deep")
        left = self._unary() if level == len(_OPERATOR_LEVELS) else self.expression(level + 1)
        while level < len(_OPERATOR_LEVELS) and (operator := self._take_if(*_OPERATOR_LEVELS[level])):
            left = self._binary(operator, left, level + 1)
        self._depth -= 1
        return left

    def _binary(self, operator: str, left: Expression, level: int) -> BinaryOperation:
        """The operation of `left` and the operand of a level behind `bool`, `on(...)` and `group_left(...)`."""
        is_bool, group = bool(self._take_if("bool")), ""
        matching, labels, copied = self._take_if("on", "ignoring"), frozenset[str](), frozenset[str]()
        if matching:
            labels = self._labels()
            group = self._take_if("group_left", "group_right")
            if group and self.next.text == "(":
                copied = self._labels()
        return BinaryOperation(operator, left, self.expression(level), matching, labels, copied, group, is_bool)

    def _unary(self) -> Expression:
        """An operand with its sign and its power; the sign is a multiplication with 1 or -1."""
        if sign := self._take_if("-", "+"):
            return BinaryOperation("*", PromLiteral(f"{sign}1"), self._unary())
        base = self._postfix()
        if self._take_if("^"):
            return self._binary("^", base, len(_OPERATOR_LEVELS))  # `^` groups from the right: a ^ (b ^ c)
        return base

    def _postfix(self) -> Expression:
        """An operand with the ranges, offsets and instants behind it. Raises PromQLError."""
        operand = self._primary()
        while True:
            if self._take_if("["):
                operand = self._range(operand)
                continue
            if self._take_if("offset"):
                self._take_if("-", "+")
                self._take_kind("duration", "number")
            elif self._take_if("@"):
                self._skip_instant()
            else:
                return operand
            operand = TimeShift(operand)

    def _range(self, inner: Expression) -> TimeShift:
        """`[5m]`, or the subquery `[5m:1m]`, whose resolution does not matter here."""
        range_s = _seconds(self._take_kind("duration", "number").text)
        is_plain = not self._take_if(":")
        if not is_plain and self.next.text != "]":
            self._take_kind("duration", "number")
        self._expect("]")
        return TimeShift(inner, range_s, is_plain)

    def _skip_instant(self) -> None:
        """Skip what is behind `@`: `start()`, `end()` or a number. It does not matter here. Raises PromQLError."""
        if self._take_if("start", "end"):
            self._expect("(")
            self._expect(")")
        else:
            self._take_if("-", "+")
            self._take_kind("number")

    def _take_kind(self, *kinds: str) -> PromToken:
        """Read the next token, which must be of one of these kinds. Raises PromQLError."""
        if self.next.kind not in kinds:
            raise PromQLError(f"expected a {kinds[0]}, found {self.next.text!r}")
        return self._take()

    def _primary(self) -> Expression:
        """A literal, a parenthesis, a selector, a call or an aggregation. Raises PromQLError."""
        token = self._take()
        if token.kind in ("number", "string"):
            return PromLiteral(token.text)
        if token == PromToken("mark", "("):
            inner = self.expression(0)
            self._expect(")")
            return inner
        if token == PromToken("mark", "{"):
            return VectorSelector("", self._matchers())
        if token.kind != "word":
            raise PromQLError(f"unexpected {token.text!r}")
        if token.text.lower() in ("inf", "nan"):
            return PromLiteral(token.text)
        if token.text in AGGREGATIONS and self.next.text in ("(", "by", "without"):
            return self._aggregation(token.text)
        if self.next == PromToken("mark", "("):
            return PromCall(token.text, self._arguments())
        return VectorSelector(token.text, self._matchers() if self._take_if("{") else ())

    def _aggregation(self, operator: str) -> PromAggregation:
        """An aggregation, whose `by` or `without` is before or behind its arguments."""
        modifier = self._take_if("by", "without")
        labels = self._labels() if modifier else frozenset[str]()
        arguments = self._arguments()
        if not modifier and (modifier := self._take_if("by", "without")):
            labels = self._labels()
        return PromAggregation(operator, modifier, labels, arguments)

    def _arguments(self) -> tuple[Expression, ...]:
        """The arguments in parentheses, separated by commas."""
        self._expect("(")
        arguments: list[Expression] = []
        while not self._take_if(")"):
            arguments.append(self.expression(0))
            if self.next.text != ")":
                self._expect(",")
        return tuple(arguments)

    def _labels(self) -> frozenset[str]:
        """The label names in parentheses."""
        self._expect("(")
        labels: set[str] = set()
        while not self._take_if(")"):
            labels.add(self._take_kind("word", "string").text)
            if self.next.text != ")":
                self._expect(",")
        return frozenset(labels)

    def _matchers(self) -> tuple[tuple[str, str, str], ...]:
        """The (label, operator, value) of each matcher, up to the closing brace."""
        matchers: list[tuple[str, str, str]] = []
        while not self._take_if("}"):
            label = self._take_kind("word", "string").text
            operator = self._take_if("=", "!=", "=~", "!~")
            if not operator:
                raise PromQLError(f"expected an operator behind {label!r}")
            matchers.append((label, operator, self._take_kind("string").text))
            if self.next.text != "}":
                self._expect(",")
        return tuple(matchers)


def _seconds(duration: str) -> float:
    """The seconds of a duration (`1m30s`), or of a number of seconds."""
    terms = _DURATION_TERM.findall(duration)
    return sum(int(number) * _UNITS_S[unit] for number, unit in terms) if terms else float(duration)
