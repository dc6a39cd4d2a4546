"""Decides whether one query for all objects, divided by labels, gives the same values as queries for single objects.

Called by `adapter.naming.queries` for each rule. A query for one object restricts every selector to the series whose
key labels (namespace and object) have certain values. An expression is *partitioned* by the key labels if each series
of its result has them, and depends on no series with other values of them. Then a query without the restriction gives,
for each value of the key labels, exactly the series of the restricted query. Rules:

1. A selector with the restriction is partitioned. One without is a constant: the same in both queries.
2. A function of single series keeps this; so does `histogram_quantile`, where `le` is no key label.
3. An aggregation keeps it if its result has all key labels: `by` names them, or `without` names none of them. Only
   aggregations that compute each group from its own series do (`_PER_GROUP_AGGREGATIONS`).
4. An operation of two partitioned vectors keeps it if series match by all key labels; an arithmetic operation or a
   comparison with a number does, too.
5. Everything else is not partitioned, such as `absent`, `scalar`, `label_replace`, and aggregations without grouping.

`sum by (namespace, pod) (rate(x{restriction}[1m]))` is partitioned by namespace and pod; without `pod` it is not. A new
function of PromQL that treats each series on its own: a word in one of the lists below.
"""

from enum import Enum

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

MARK = "__podscaler_restriction__"
"""The label whose matcher stands for the restriction of a selector."""
MARK_MATCHER = f'{MARK}="1"'

_SET_OPERATORS = frozenset({"and", "or", "unless"})
_PER_GROUP_AGGREGATIONS = frozenset(
    {"sum", "min", "max", "avg", "group", "stddev", "stdvar", "count", "bottomk", "topk", "quantile"}
)
"""The aggregations whose result for a group depends on its series alone.

Not among them: `count_values`, which adds a label, and `limitk` and `limit_ratio`, which choose series by their hashes.
"""
_NUMBERS = frozenset({"time", "pi"})
_OVER_TIME = "avg min max sum count quantile stddev stdvar last first present mad ts_of_max ts_of_min ts_of_last"
_MATHEMATICS = "abs ceil clamp clamp_max clamp_min exp floor ln log10 log2 round sgn sqrt deg rad sort sort_desc"
_TRIGONOMETRY = "acos acosh asin asinh atan atanh cos cosh sin sinh tan tanh"
_DATES = "day_of_month day_of_week day_of_year days_in_month hour minute month timestamp year"
_RANGES = (
    "changes delta deriv double_exponential_smoothing holt_winters idelta increase irate predict_linear rate resets"
)
_HISTOGRAMS = "histogram_avg histogram_count histogram_stddev histogram_stdvar histogram_sum"
_PER_SERIES_FUNCTIONS = frozenset(" ".join((_MATHEMATICS, _TRIGONOMETRY, _DATES, _RANGES, _HISTOGRAMS)).split()) | {
    f"{name}_over_time" for name in _OVER_TIME.split()
}
"""Functions whose result for a series depends on this series and on numbers alone."""


class _Kind(Enum):
    """What the result of an expression is in the query for one object, compared with the query for all."""

    NUMBER = "a number that is the same in both queries"
    CONSTANT = "a vector that is the same in both queries"
    PARTITIONED = "partitioned"
    OTHER = "other"


def is_partitioned(promql: str, keys: frozenset[str]) -> bool:
    """Whether an expression is partitioned by labels; False also for an expression that cannot be parsed.

    Args:
        promql: the expression; selectors with the restriction have MARK_MATCHER.
        keys: the key labels, at least one.
    """
    try:
        return _Analysis(keys).kind_of(parsing.parse(promql)) is _Kind.PARTITIONED
    except PromQLError:
        return False


class _Analysis:
    """Applies the module's rules for certain key labels."""

    def __init__(self, keys: frozenset[str]) -> None:
        self._keys = keys

    def kind_of(self, expression: Expression) -> _Kind:
        """The kind of an expression."""
        match expression:
            case PromLiteral():
                return _Kind.NUMBER
            case VectorSelector(_, matchers):
                is_restricted = any(label == MARK for label, _, _ in matchers)
                return _Kind.PARTITIONED if is_restricted else _Kind.CONSTANT
            case TimeShift(inner):
                return self.kind_of(inner)
            case PromCall():
                return self._call(expression)
            case PromAggregation():
                return self._aggregation(expression)
            case BinaryOperation():
                return self._operation(expression)

    def _call(self, call: PromCall) -> _Kind:
        """The kind of a call: partitioned if one argument is, and the function treats each series on its own."""
        kinds = [self.kind_of(argument) for argument in call.arguments]
        if not kinds:
            return _Kind.NUMBER if call.function in _NUMBERS else _Kind.CONSTANT
        if _Kind.PARTITIONED not in kinds and _Kind.OTHER not in kinds:  # all are the same in both queries
            return _Kind.NUMBER if call.function == "scalar" else _Kind.CONSTANT
        is_quantile = call.function == "histogram_quantile" and "le" not in self._keys
        has_one_vector = [kind for kind in kinds if kind is not _Kind.NUMBER] == [_Kind.PARTITIONED]
        treats_series_alone = is_quantile or call.function in _PER_SERIES_FUNCTIONS
        return _Kind.PARTITIONED if has_one_vector and treats_series_alone else _Kind.OTHER

    def _aggregation(self, aggregation: PromAggregation) -> _Kind:
        """The kind of an aggregation: partitioned if it keeps the labels that the series are divided by."""
        # without arguments, which Prometheus rejects, it is OTHER
        *parameters, vector = [self.kind_of(argument) for argument in aggregation.arguments] or [_Kind.OTHER]
        if not all(parameter is _Kind.NUMBER for parameter in parameters):
            return _Kind.OTHER
        if vector is _Kind.CONSTANT:
            return _Kind.CONSTANT
        is_per_group = aggregation.operator in _PER_GROUP_AGGREGATIONS
        is_kept = vector is _Kind.PARTITIONED and is_per_group and self._keeps_keys(aggregation)
        return _Kind.PARTITIONED if is_kept else _Kind.OTHER

    def _keeps_keys(self, aggregation: PromAggregation) -> bool:
        """Whether the result of an aggregation has the labels that the series are divided by."""
        if aggregation.modifier == "by":
            return self._keys <= aggregation.labels
        return aggregation.modifier == "without" and not self._keys & aggregation.labels

    def _operation(self, operation: BinaryOperation) -> _Kind:
        """The kind of a binary operation: partitioned with a number, or if the labels match both sides."""
        kinds = {self.kind_of(operation.left), self.kind_of(operation.right)}
        if kinds == {_Kind.NUMBER}:
            return _Kind.NUMBER
        if kinds <= {_Kind.NUMBER, _Kind.CONSTANT}:
            return _Kind.CONSTANT
        if kinds == {_Kind.NUMBER, _Kind.PARTITIONED} and operation.operator not in _SET_OPERATORS:
            return _Kind.PARTITIONED
        is_matched = kinds == {_Kind.PARTITIONED} and self._matches_by_keys(operation)
        return _Kind.PARTITIONED if is_matched else _Kind.OTHER

    def _matches_by_keys(self, operation: BinaryOperation) -> bool:
        """Whether series of the two operands match by all key labels (rule 4)."""
        if operation.copied & self._keys:  # group_left or group_right takes these labels from the other operand
            return False
        if operation.matching == "on":
            return self._keys <= operation.labels
        return not self._keys & operation.labels
