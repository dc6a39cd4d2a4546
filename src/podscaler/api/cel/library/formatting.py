"""The CEL method `format` of strings: `'%s has %d pods'.format(['web', 3])` is `web has 3 pods`.

Called by `strings`. A clause is `%s`, `%d`, `%.2f`, ...; a new one: add it to `_WRITERS`.

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
from podscaler.api.cel.values.values import Duration, Timestamp, TypeValue, kind
from podscaler.api.text import quoting

_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?(.))", re.DOTALL)
"""`%%`, or a clause: the groups of `%.2f` are precision (`2`) and letter (`f`)."""
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DEFAULT_PRECISION = 6
_PRECISION_DIGITS_MAX = 3
STRING_CLAUSE_TYPES = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"


def formatted(pattern: str, args: list[Any], budget: Budget) -> str:
    """`pattern` with its clauses replaced by the arguments, in order.

    Raises:
        EvaluationError: the pattern is malformed, has more clauses than arguments, or an argument has the wrong type.
        BudgetError: the result is too long.
    """
    used_count = 0

    def replacement(match: re.Match[str]) -> str:
        nonlocal used_count
        if match.group() == "%%":
            return "%"
        if used_count >= len(args):
            raise EvaluationError(f"index {used_count} out of range")
        used_count += 1
        return _clause(match, args[used_count - 1], budget)

    if len(pattern) - len(pattern.rstrip("%")) & 1:
        raise EvaluationError("unexpected end of string")
    return _CLAUSE.sub(replacement, pattern)


def _clause(match: re.Match[str], value: Any, budget: Budget) -> str:
    """The text of one clause (`%.2f`) for its argument."""
    name = match.group(2)
    write = _WRITERS.get(name)
    if write is None:
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{name}"')
    digits = match.group(1) or str(_DEFAULT_PRECISION)
    if len(digits) > _PRECISION_DIGITS_MAX:
        raise EvaluationError(f"precision {digits[:9]} is beyond what this server writes")
    precision = int(digits)
    text = write(value, precision) if name in "fe" else write(value)
    budget.spend_on_text(len(text))
    return text


def _string(value: Any) -> str:
    """A value as `%s` writes it; texts in lists and maps are quoted."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, dict):
        pairs = sorted((_literal(key), _literal(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if isinstance(value, str | bool | int | float | bytes | Timestamp | Duration | TypeValue):
        return standard.text(value)
    raise EvaluationError(
        f"error during formatting: string clause can only be used on {STRING_CLAUSE_TYPES}, was given {kind(value)}"
    )


def _literal(value: Any) -> str:
    """An element of a list or map, in the notation of a CEL literal: texts in quotes."""
    if isinstance(value, str):
        return quoting.quoted(value)
    if isinstance(value, bytes):
        return f"b{quoting.quoted(standard.text(value))}"
    if isinstance(value, Timestamp):
        return f'timestamp("{standard.text(value)}")'
    if isinstance(value, Duration):
        return f'duration("{standard.text(value)}")'
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{numbers.double_text(value)}"'
    return _string(value)


def _decimal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _unbounded(value)
    raise _wrong_type("decimal clause can only be used on integers", value)


def _unbounded(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _number(value: Any, clause: str) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.lower().replace("infinity", "inf"))
    raise _wrong_type(f"{clause} clause can only be used on doubles", value)


def _fixed(value: Any, precision: int) -> str:
    number = _number(value, "fixed-point")
    return f"{number:,.{precision}f}" if math.isfinite(number) else _unbounded(number)


def _scientific(value: Any, precision: int) -> str:
    """cel-go writes six digits here, whatever the precision."""
    del precision
    number = _number(value, "scientific")
    if not math.isfinite(number):
        return _unbounded(number)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"


def _binary(value: Any) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise _wrong_type("only integers and bools can be formatted as binary", value)


def _hex(value: Any, *, is_upper: bool = False) -> str:
    """A value as `%x` or `%X` writes it."""
    if isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{int(value):x}"
    else:
        raise _wrong_type("only integers, byte buffers, and strings can be formatted as hex", value)
    return text.upper() if is_upper else text


def _octal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise _wrong_type("octal clause can only be used on integers", value)


def _wrong_type(text: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {text}, was given {kind(value)}")


_WRITERS: dict[str, Callable[..., str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value: _hex(value, is_upper=True),
    "o": _octal,
}
