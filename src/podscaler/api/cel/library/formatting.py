"""The method `format` of texts: `'%s has %d'.format([...])`.

Called by `strings`. Source: the documentation of cel-go's strings extension, "Format"; its messages.
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
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PRECISION = 6
_PRECISION_DIGITS_MAX = 3
_STRINGS = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"


def formatted(pattern: str, args: list[Any], budget: Budget) -> str:
    """The pattern with its clauses replaced by the arguments. Raises EvaluationError, BudgetError."""
    waiting = iter(enumerate(args))
    used = 0

    def clause(match: re.Match[str]) -> str:
        nonlocal used
        if match.group() == "%%":
            return "%"
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        used += 1
        return _clause(match, next(waiting)[1], budget)

    if len(pattern) - len(pattern.rstrip("%")) & 1:
        raise EvaluationError("unexpected end of string")
    return _CLAUSE.sub(clause, pattern)


def _clause(match: re.Match[str], value: Any, budget: Budget) -> str:
    name = match.group(2)
    write = _CLAUSES.get(name)
    if write is None:
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{name}"')
    digits = match.group(1) or str(_PRECISION)
    if len(digits) > _PRECISION_DIGITS_MAX:
        raise EvaluationError(f"precision {digits[:9]} is beyond what this server writes")
    precision = int(digits)
    text = write(value, precision) if name in "fe" else write(value)
    budget.spend_on_text(len(text))
    return text


def _string(value: Any) -> str:
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
        f"error during formatting: string clause can only be used on {_STRINGS}, was given {kind(value)}"
    )


def _literal(value: Any) -> str:
    """An element of a list or map as CEL literal."""
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
    raise _unfit("decimal clause can only be used on integers", value)


def _unbounded(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _number(value: Any, clause: str) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.lower().replace("infinity", "inf"))
    raise _unfit(f"{clause} clause can only be used on doubles", value)


def _fixed(value: Any, precision: int) -> str:
    number = _number(value, "fixed-point")
    return f"{number:,.{precision}f}" if math.isfinite(number) else _unbounded(number)


def _scientific(value: Any, precision: int) -> str:
    """Upstream writes six digits here, whatever the precision."""
    del precision
    number = _number(value, "scientific")
    if not math.isfinite(number):
        return _unbounded(number)
    mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
    return f"{mantissa}×10{exponent.removeprefix('+').translate(_RAISED)}"


def _binary(value: Any) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise _unfit("only integers and bools can be formatted as binary", value)


def _hex(value: Any, *, is_upper: bool = False) -> str:
    if isinstance(value, str | bytes):
        text = (value.encode() if isinstance(value, str) else value).hex()
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{int(value):x}"
    else:
        raise _unfit("only integers, byte buffers, and strings can be formatted as hex", value)
    return text.upper() if is_upper else text


def _octal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise _unfit("octal clause can only be used on integers", value)


def _unfit(text: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {text}, was given {kind(value)}")


_CLAUSES: dict[str, Callable[..., str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value: _hex(value, is_upper=True),
    "o": _octal,
}
