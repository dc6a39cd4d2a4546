"""Requirements of label selectors: one condition on one label (`tier in (db,web)`), with validation.

    requirement("tier", Operator.IN, ["web", "db"]).matches({"tier": "db"})      True

Called by `podscaler.api.machinery.selectors`, which combines requirements, and `podscaler.api.machinery.selector_text`,
which parses them. A new operator: add it to `Operator`, `Requirement` and `_values_errors`; then to the parser.

Source: Kubernetes v1.37.0, label selectors (docs/spec/decision.md 12.3 (Parsing scale.status.selector), 12.4
(Converting a metric's selector)).
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from podscaler.api.machinery import names, numbers
from podscaler.api.text.quoting import quoted


class SelectorError(ValueError):
    """A selector is invalid; str() is Kubernetes' message."""


class Operator(StrEnum):
    """The operators of requirements, as in selector texts and messages."""

    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


ANY_OF = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN})
_NONE_OF = frozenset({Operator.NOT_EQUALS, Operator.NOT_IN})
_LISTS = frozenset({Operator.IN, Operator.NOT_IN})
_WITHOUT_VALUES = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})
_COMPARISONS = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})
_INT64_MAX_DIGITS = 19


class Requirement(msgspec.Struct, frozen=True):
    """A condition on one label; the function `requirement` makes valid ones.

    Attributes:
        key: of the label.
        operator: how the value of the label is compared.
        values: at least one for IN and NOT_IN, none for EXISTS and DOES_NOT_EXIST, else one.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values_text = ",".join(sorted(self.values))
        if self.operator in _LISTS:
            return f"{self.key} {self.operator} ({values_text})"
        return f"{self.key}{self.operator}{values_text}"

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels of an object satisfy the condition."""
        value = labels.get(self.key)
        if self.operator in ANY_OF:
            return value is not None and value in self.values
        if self.operator in _NONE_OF:
            return value is None or value not in self.values
        if self.operator is Operator.EXISTS:
            return value is not None
        if self.operator is Operator.DOES_NOT_EXIST:
            return value is None
        return self._matches_comparison(value)

    def _matches_comparison(self, value: str | None) -> bool:
        """Whether the value of the label is an integer that `>` or `<` holds for; None is no integer."""
        number = None if value is None else _find_int64(value)
        if number is None:
            return False
        bound = int(self.values[0])
        return number > bound if self.operator is Operator.GREATER_THAN else number < bound


def requirement(key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    """A valid requirement. Raises SelectorError with all errors: of the key, the number of values, each value.

    The caller passes one value with the operators that compare with one: their number is not checked.
    """
    errors = key_errors(key, "key") + _values_errors(operator, values)
    for index, value in enumerate(values):
        if messages := names.label_value_errors(value):
            errors.append(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(messages)}")
    if errors:
        raise SelectorError(_join_distinct(errors))
    return Requirement(key, operator, tuple(values))


def key_errors(key: str, path: str) -> list[str]:
    """The errors of a label key, joined in one text that begins with `path`; empty for a valid key."""
    messages = names.label_key_errors(key)
    return [f"{path}: Invalid value: {quoted(key)}: {'; '.join(messages)}"] if messages else []


def _values_errors(operator: Operator, values: Sequence[str]) -> list[str]:
    """Messages about the values of a requirement, whose number and form depend on the operator."""
    if operator in _LISTS and not values:
        return ["values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"]
    if operator in _WITHOUT_VALUES and values:
        values_text = json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
        return [f"values: Invalid value: {values_text}: values set must be empty for exists and does not exist"]
    if operator in _COMPARISONS:
        return [
            f"values[{index}]: Invalid value: {quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for index, value in enumerate(values)
            if _find_int64(value) is None
        ]
    return []


def _join_distinct(errors: Sequence[str]) -> str:
    """The messages as one text, each once; in brackets if there are several."""
    unique_errors = list(dict.fromkeys(errors))
    return unique_errors[0] if len(unique_errors) == 1 else f"[{', '.join(unique_errors)}]"


def _find_int64(number_text: str) -> int | None:
    """The number, None if the text is no int64."""
    digits = number_text[1:] if number_text[:1] in {"+", "-"} else number_text
    if not (digits.isascii() and digits.isdigit()):
        return None
    significant = digits.lstrip("0") or "0"
    if len(significant) > _INT64_MAX_DIGITS:
        return None
    number = -int(significant) if number_text[0] == "-" else int(significant)
    return number if numbers.INT64_MIN <= number <= numbers.INT64_MAX else None
