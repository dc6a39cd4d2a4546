"""A fake Prometheus for tests of the adapter: series in memory, and an evaluator of a part of PromQL.

`FakePrometheus` is a `podscaler.adapter.prometheus.client.MetricsDatabase` and passes the contract tests that a client
of the real Prometheus passes. An expression that it cannot evaluate is rejected, as Prometheus does with a wrong one. A
further function of PromQL: add it to one of the tables below, or to `_Evaluation._call`.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from podscaler.adapter.naming.series import NAME_LABEL
from podscaler.adapter.prometheus.responses import PrometheusError, PromSample, QueryResult
from podscaler.adapter.promql import parsing
from podscaler.adapter.promql.lexing import PromQLError
from podscaler.adapter.promql.parsing import (
    BinaryOperation,
    Expression,
    PromAggregation,
    PromCall,
    PromLiteral,
    TimeShift,
    VectorSelector,
)

LOOKBACK_S = 300.0
"""How old the last sample of a series may be, as Prometheus' lookback delta."""
Labels = Mapping[str, str]
Element = tuple[Labels, float]
"""One element of an instant vector."""
Value = float | list[Element]
"""The value of an expression: a scalar or an instant vector."""
Points = Sequence[tuple[float, float]]
"""The samples of a series: instant in seconds since the epoch, and value."""


@dataclass
class FakePrometheus:
    """A Prometheus with series in memory.

    Attributes:
        now_s: the instant of queries, in seconds since the epoch; tests set it.
        stored: labels (with the name as `__name__`) and samples (instant and value, in order) of each series.
        queries: all expressions, in order.
        failure: raised by each query and list of series; None: queries succeed.
    """

    now_s: float = 1_767_225_600.0
    stored: list[tuple[Labels, Points]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    failure: PrometheusError | None = None

    def add(self, name: str, value: float, /, **labels: str) -> None:
        """Add a series of the metric `name` with one sample now."""
        self.stored.append(({NAME_LABEL: name, **labels}, [(self.now_s, value)]))

    async def query(self, promql: str) -> QueryResult:
        """The result of an expression at `now_s`. Raises PrometheusError: `failure`, or what cannot be evaluated."""
        self.queries.append(promql)
        if self.failure is not None:
            raise self.failure
        try:
            value = _Evaluation(self).value(parsing.parse(promql))
        except PromQLError as error:
            raise PrometheusError("bad_data", str(error)) from error
        if isinstance(value, float):
            return QueryResult("scalar", [PromSample({}, value, self.now_s)])
        return QueryResult("vector", [PromSample(labels, number, self.now_s) for labels, number in value])

    async def series(self, selector: str, *, max_age_s: float) -> Sequence[dict[str, str]]:
        """The labels of the selected series that have a sample of at most that age. Raises PrometheusError."""
        if self.failure is not None:
            raise self.failure
        try:
            parsed = parsing.parse(selector)
        except PromQLError as error:
            raise PrometheusError("bad_data", str(error)) from error
        if not isinstance(parsed, VectorSelector):
            raise PrometheusError("bad_data", f"{selector} is not a selector of series")
        oldest_s = self.now_s - max_age_s
        return [
            dict(labels) for labels, points in self.stored if points[-1][0] >= oldest_s and _matches(parsed, labels)
        ]


def _matches(selector: VectorSelector, labels: Labels) -> bool:
    """Whether a series has the selector's name, and its labels fulfil all matchers; an absent label is empty."""
    if selector.metric and labels.get(NAME_LABEL) != selector.metric:
        return False
    return all(_fulfils(labels.get(label, ""), operator, text) for label, operator, text in selector.matchers)


def _fulfils(value: str, operator: str, text: str) -> bool:
    """Whether a label's value fulfils a matcher with the operator `=`, `!=`, `=~` or `!~`."""
    is_equal = re.fullmatch(text, value) is not None if operator.endswith("~") else value == text
    return is_equal is not operator.startswith("!")


def _irate(points: Points) -> float | None:
    """The increase per second between the last two samples, after a counter reset from 0; None for one sample."""
    if len(points) < 2:
        return None
    (before_s, before), (last_s, last) = points[-2:]
    return (last if last < before else last - before) / (last_s - before_s)


# The functions and operators of PromQL that the fake has: of ranges, of numbers, of two operands, and aggregations.
_RANGE_FUNCTIONS: Mapping[str, Callable[[Points], float | None]] = {
    "irate": _irate,
    "avg_over_time": lambda points: sum(value for _, value in points) / len(points),
    "count_over_time": lambda points: float(len(points)),
    "last_over_time": lambda points: points[-1][1],
    "max_over_time": lambda points: max(value for _, value in points),
    "min_over_time": lambda points: min(value for _, value in points),
    "sum_over_time": lambda points: sum(value for _, value in points),
}
_NUMBER_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": lambda value: float(math.ceil(value)),
    "floor": lambda value: float(math.floor(value)),
    "sqrt": math.sqrt,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a),
}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}
_AGGREGATIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "avg": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "count": lambda values: float(len(values)),
    "group": lambda _: 1.0,
}
KEEPS_NAME = frozenset({"last_over_time"})
"""The functions of ranges whose results keep the label `__name__`."""


class _Evaluation:
    """Evaluates expressions over the series of a FakePrometheus."""

    def __init__(self, database: FakePrometheus) -> None:
        self._database = database

    def value(self, expression: Expression) -> Value:
        """The value of an expression. Raises PromQLError."""
        match expression:
            case PromLiteral(text):
                return float(text)
            case VectorSelector():
                return [(labels, points[-1][1]) for labels, points in self._points(expression, LOOKBACK_S)]
            case PromCall():
                return self._call(expression)
            case PromAggregation():
                return self._aggregation(expression)
            case BinaryOperation():
                return self._operation(expression)
            case TimeShift():
                raise PromQLError("the fake evaluates no range, offset or subquery here")

    def _points(self, selector: VectorSelector, range_s: float) -> list[tuple[Labels, Points]]:
        """The selected series that have samples in the range, each with these samples."""
        now_s = self._database.now_s
        series: list[tuple[Labels, Points]] = []
        for labels, points in self._database.stored:
            within = [point for point in points if now_s - range_s < point[0] <= now_s]
            if within and _matches(selector, labels):
                series.append((labels, within))
        return series

    def _vector(self, expression: Expression) -> list[Element]:
        """The value of an expression that must be a vector. Raises PromQLError."""
        value = self.value(expression)
        if isinstance(value, float):
            raise PromQLError("expected a vector")
        return value

    def _scalar(self, expression: Expression) -> float:
        """The value of an expression that must be a scalar. Raises PromQLError."""
        value = self.value(expression)
        if not isinstance(value, float):
            raise PromQLError("expected a number")
        return value

    def _call(self, call: PromCall) -> Value:
        """The result of a function. Raises PromQLError for one that the fake does not have."""
        if call.function == "time":
            return self._database.now_s
        if not call.arguments:
            raise PromQLError(f"the fake has no function {call.function} without arguments")
        first = call.arguments[0]
        if call.function in _RANGE_FUNCTIONS and isinstance(first, TimeShift):
            return self._range_function(call.function, first)
        if call.function in _NUMBER_FUNCTIONS:
            return [
                (_without_name(labels), _NUMBER_FUNCTIONS[call.function](value))
                for labels, value in self._vector(first)
            ]
        if call.function == "vector":
            return [({}, self._scalar(first))]
        if call.function == "scalar":
            values = self._vector(first)
            return values[0][1] if len(values) == 1 else math.nan
        if call.function == "absent":
            return [] if self._vector(first) else [({}, 1.0)]
        raise PromQLError(f"the fake has no function {call.function}")

    def _range_function(self, function: str, shift: TimeShift) -> list[Element]:
        """The result of a function in _RANGE_FUNCTIONS for each series; series without a result are left out."""
        if not isinstance(shift.inner, VectorSelector) or not shift.is_plain:
            raise PromQLError("the fake evaluates ranges of selectors alone")
        vector: list[Element] = []
        for labels, points in self._points(shift.inner, shift.range_s):
            value = _RANGE_FUNCTIONS[function](points)
            if value is not None:
                vector.append((labels if function in KEEPS_NAME else _without_name(labels), float(value)))
        return vector

    def _aggregation(self, aggregation: PromAggregation) -> list[Element]:
        """One element for each group of labels; `topk` and `bottomk` keep elements. Raises PromQLError."""
        groups: dict[tuple[tuple[str, str], ...], list[Element]] = {}
        for labels, value in self._vector(aggregation.arguments[-1]):
            group_key = tuple(sorted(_group_labels(aggregation, labels).items()))
            groups.setdefault(group_key, []).append((labels, value))
        if aggregation.operator in ("topk", "bottomk"):
            size, sign = int(self._scalar(aggregation.arguments[0])), -1 if aggregation.operator == "topk" else 1
            ranked = (sorted(group, key=lambda sample: sign * sample[1])[:size] for group in groups.values())
            return [sample for group in ranked for sample in group]
        if aggregation.operator not in _AGGREGATIONS:
            raise PromQLError(f"the fake has no aggregation {aggregation.operator}")
        reduce = _AGGREGATIONS[aggregation.operator]
        return [(dict(key), float(reduce([value for _, value in group]))) for key, group in groups.items()]

    def _operation(self, operation: BinaryOperation) -> Value:
        """The result for two scalars, two vectors, or a scalar and each element of a vector."""
        left, right = self.value(operation.left), self.value(operation.right)
        if isinstance(left, float) and isinstance(right, float):
            return _combine_scalars(operation, left, right)
        if isinstance(left, list) and isinstance(right, list):
            return _combine_vectors(operation, left, right)
        vector: list[Element] = []
        for labels, value in left if isinstance(left, list) else right:  # type: ignore[union-attr]  # one of both is one
            pair = (value, right) if isinstance(left, list) else (left, value)
            vector += _combine_element(operation, labels, value, pair=pair)  # type: ignore[arg-type]  # numbers by now
        return vector


def _combine_scalars(operation: BinaryOperation, left: float, right: float) -> float:
    """The result of an operation on two scalars, which Prometheus compares with `bool` only. Raises PromQLError."""
    if operation.operator in _ARITHMETIC:
        return _ARITHMETIC[operation.operator](left, right)
    holds = _holds(operation, left, right)
    if not operation.is_bool:
        raise PromQLError("comparisons between scalars must use BOOL modifier")
    return float(holds)


def _holds(operation: BinaryOperation, left: float, right: float) -> bool:
    """Whether a comparison is true. Raises PromQLError for an operator that is none."""
    if operation.operator not in _COMPARISONS:
        raise PromQLError(f"the fake has no operator {operation.operator} of these values")
    return _COMPARISONS[operation.operator](left, right)


def _combine_element(
    operation: BinaryOperation, labels: Labels, element: float, *, pair: tuple[float, float]
) -> list[Element]:
    """The result of an operation on the numbers of `pair`; `element` where a comparison is true, nothing if false.

    Raises PromQLError for an operator that the fake does not have.
    """
    if operation.operator in _ARITHMETIC:
        return [(_without_name(labels), _ARITHMETIC[operation.operator](*pair))]
    holds = _holds(operation, *pair)
    if operation.is_bool:
        return [(_without_name(labels), float(holds))]
    return [(labels, element)] if holds else []


def _combine_vectors(operation: BinaryOperation, left: list[Element], right: list[Element]) -> list[Element]:
    """The result of an operation on two vectors. Raises PromQLError if several elements match one."""
    right_by_signature: dict[tuple[tuple[str, str], ...], list[Element]] = {}
    for element in right:
        right_by_signature.setdefault(_signature(operation, element[0]), []).append(element)
    if operation.operator in ("and", "unless"):
        is_kept = operation.operator == "and"
        return [sample for sample in left if (_signature(operation, sample[0]) in right_by_signature) is is_kept]
    if operation.operator == "or":
        left_signatures = {_signature(operation, labels) for labels, _ in left}
        return [*left, *(sample for sample in right if _signature(operation, sample[0]) not in left_signatures)]
    if operation.group == "group_right":
        raise PromQLError("the fake has no group_right")
    vector: list[Element] = []
    used_signatures: set[tuple[tuple[str, str], ...]] = set()
    for labels, value in left:
        signature = _signature(operation, labels)
        matching = right_by_signature.get(signature, [])
        if len(matching) > 1 or (matching and not operation.group and signature in used_signatures):
            raise PromQLError("many-to-many matching not allowed")
        used_signatures.add(signature)
        for _, other in matching:
            result_labels = labels if operation.group or operation.matching != "on" else dict(signature)
            vector += _combine_element(operation, result_labels, value, pair=(value, other))
    return vector


def _signature(operation: BinaryOperation, labels: Labels) -> tuple[tuple[str, str], ...]:
    """The labels by which elements of two vectors match, sorted."""
    if operation.matching == "on":
        return tuple(sorted((name, text) for name, text in labels.items() if name in operation.labels))
    compared = _without_name(labels).items()
    return tuple(sorted((name, text) for name, text in compared if name not in operation.labels))


def _group_labels(aggregation: PromAggregation, labels: Labels) -> Labels:
    """The labels of the group to which an element belongs."""
    if aggregation.modifier == "by":
        return {name: text for name, text in labels.items() if name in aggregation.labels}
    if aggregation.modifier == "without":
        return {name: text for name, text in _without_name(labels).items() if name not in aggregation.labels}
    return {}


def _without_name(labels: Labels) -> Labels:
    """The labels without the name of the metric, which results of most functions and operators lose."""
    return {name: text for name, text in labels.items() if name != NAME_LABEL}
