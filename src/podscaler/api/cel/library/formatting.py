"""The CEL method `format` of strings: `'%s has %d pods'.format(['web', 3])` is `web has 3 pods`.

Called by `strings`. A clause is `%s`, `%d`, `%.2f`, ...; a new one: add it to `_WRITERS`, and to `_FORMAT_TYPES` of
`podscaler.api.cel.compile.literal_checks`.

Source: the documentation of cel-go's strings extension, "Format"; its messages.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from podscaler.api.cel.library import standard
from podscaler.api.cel.values import numbers
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.values import Duration, Timestamp, TypeValue, type_name
from podscaler.api.text import quoting

_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?(.))", re.DOTALL)
"""`%%`, or a clause: the groups of `%.2f` are precision (`2`) and letter (`f`)."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DEFAULT_PRECISION = 6
_PRECISION_DIGITS_MAX = 3
"""Longer precisions are an error (cel-go allows them): the text of one number would be too long."""
STRING_CLAUSE_TYPES = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"


def format_values(pattern: str, args: list[Any], budget: Budget) -> str:
    """`pattern` with its clauses replaced by the arguments, in order.

    Raises:
        EvaluationError: the pattern is malformed, has more clauses than arguments, or an argument has the wrong type.
        BudgetError: the result is too long.
    """
    used_count = 0

    def replace_clause(match: re.Match[str]) -> str:
        nonlocal used_count
        if match.group() == "%%":
            return "%"
        if used_count >= len(args):
            raise EvaluationError(f"index {used_count} out of range")
        used_count += 1
        return _write_clause(match, args[used_count - 1], budget)

    percent_signs_at_end = len(pattern) - len(pattern.rstrip("%"))
    if percent_signs_at_end % 2:
        raise EvaluationError("unexpected end of string")
    return _CLAUSE.sub(replace_clause, pattern)


def _write_clause(match: re.Match[str], value: Any, budget: Budget) -> str:
    """The text of one clause (`%.2f`) for its argument. Raises EvaluationError, BudgetError."""
    letter = match.group(2)
    write = _WRITERS.get(letter)
    if write is None:
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    digits = match.group(1) or str(_DEFAULT_PRECISION)
    if len(digits) > _PRECISION_DIGITS_MAX:
        shortened_digits = digits[:9]  # there may be thousands
        raise EvaluationError(f"precision {shortened_digits} is beyond what this server writes")
    precision = int(digits)
    has_precision = letter in "fe"  # other clauses ignore it
    clause_text = write(value, precision) if has_precision else write(value)
    budget.spend_on_text(len(clause_text))
    return clause_text


def _write_string(value: Any) -> str:
    """A value as `%s` writes it; texts in lists and maps are quoted. Raises EvaluationError for other types."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_write_literal(element) for element in value)}]"
    if isinstance(value, dict):
        sorted_entries = sorted((_write_literal(key), _write_literal(element)) for key, element in value.items())
        return "{" + ", ".join(f"{key}:{element}" for key, element in sorted_entries) + "}"
    if isinstance(value, str | bool | int | float | bytes | Timestamp | Duration | TypeValue):
        return standard.standard_text(value)
    raise _wrong_type_error(f"string clause can only be used on {STRING_CLAUSE_TYPES}", value)


def _write_literal(value: Any) -> str:
    """An element of a list or map, in the notation of a CEL literal: texts in quotes."""
    if isinstance(value, str):
        return quoting.quoted(value)
    if isinstance(value, bytes):
        return f"b{quoting.quoted(standard.standard_text(value))}"
    if isinstance(value, Timestamp):
        return f'timestamp("{standard.standard_text(value)}")'
    if isinstance(value, Duration):
        return f'duration("{standard.standard_text(value)}")'
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{numbers.double_text(value)}"'
    return _write_string(value)


def _write_decimal(value: Any) -> str:
    """A value as `%d` writes it. Raises EvaluationError for other values than integers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _write_non_finite(value)
    raise _wrong_type_error("decimal clause can only be used on integers", value)


def _write_non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else "-∞"


def _parse_double(value: Any, clause: str) -> float:
    """The double of an argument, also of the texts `NaN` and `Infinity`. Raises EvaluationError, naming the clause."""
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.lower().replace("infinity", "inf"))
    raise _wrong_type_error(f"{clause} clause can only be used on doubles", value)


def _write_fixed(value: Any, precision: int) -> str:
    number = _parse_double(value, "fixed-point")
    return f"{number:,.{precision}f}" if math.isfinite(number) else _write_non_finite(number)


def _write_scientific(value: Any, precision: int) -> str:
    """cel-go writes six digits here, whatever the precision."""
    del precision
    number = _parse_double(value, "scientific")
    if not math.isfinite(number):
        return _write_non_finite(number)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _write_binary(value: Any) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise _wrong_type_error("only integers and bools can be formatted as binary", value)


def _write_hex(value: Any, *, is_upper: bool = False) -> str:
    """A value as `%x` or `%X` writes it. Raises EvaluationError for values of other types."""
    if isinstance(value, str | bytes):
        hex_text = (value.encode() if isinstance(value, str) else value).hex()
    elif isinstance(value, int) and not isinstance(value, bool):
        hex_text = f"{int(value):x}"
    else:
        raise _wrong_type_error("only integers, byte buffers, and strings can be formatted as hex", value)
    return hex_text.upper() if is_upper else hex_text


def _write_octal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise _wrong_type_error("octal clause can only be used on integers", value)


def _wrong_type_error(problem: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {problem}, was given {type_name(value)}")


_WRITERS: dict[str, Callable[..., str]] = {  # letter of a clause -> from the argument to its text (EvaluationError)
    "s": _write_string,
    "d": _write_decimal,
    "f": _write_fixed,
    "e": _write_scientific,
    "b": _write_binary,
    "x": _write_hex,
    "X": lambda value: _write_hex(value, is_upper=True),
    "o": _write_octal,
}
