"""Converts the results of systems to numbers, and numbers to thousandths and Kubernetes quantities.

Examples: `" 1.5 "` -> `Decimal("1.5")` -> 1500 thousandths -> `1500m`; `"three"` and -1 raise InvalidValue.
Systems use `number_of`, and `podscaler.sources.open_sources` uses `milli_of` for every read. A metric is a number from
0 to MAX_MILLI thousandths. A fraction of a thousandth is rounded up, as Kubernetes rounds quantities. Texts of
responses are not repeated in errors: they may be secret.

Source: the documentation of Kubernetes' quantities: a number of more precision is rounded up.
"""

from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext

from podscaler.sources.protocol import InvalidValue, Number

MAX_MILLI = 2**63 - 1
"""The greatest number of thousandths: the controller computes with int64."""
TEXT_MAX_CHARACTERS = 400
"""Prometheus writes the largest float with 309 digits."""
_MAX_VALUE = Decimal(MAX_MILLI) / 1000
_TYPE_NAMES = {
    type(None): "null",
    bool: "a boolean",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    bytes: "bytes",
}


def number_of(value: object) -> Number:
    """The number in a value of JSON, of a database or of a text file. Raises InvalidValue.

    A text is a number in decimal notation, with optional sign, fraction and exponent, and spaces around it.
    """
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _parse_number(value.strip())
    raise InvalidValue(f"the result is {_TYPE_NAMES.get(type(value), 'of a type that is no number')}, not a number")


def _parse_number(number_text: str) -> Decimal:
    """The number of a text; the text is not part of the error. Raises InvalidValue."""
    if not number_text:
        raise InvalidValue("the result is an empty text, not a number")
    if len(number_text) > TEXT_MAX_CHARACTERS or not number_text.isascii() or "_" in number_text:
        raise InvalidValue("the result is a text that is no number")
    try:
        return Decimal(number_text)
    except InvalidOperation:
        raise InvalidValue("the result is a text that is no number") from None


def milli_of(number: Number) -> int:
    """The thousandths of a number, rounded up. Raises InvalidValue for one that a metric cannot have."""
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        raise InvalidValue("the result is not a number")
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    if exact.is_nan():
        raise InvalidValue("the result is NaN")
    if exact.is_infinite():
        raise InvalidValue("the result is infinite")
    if exact < 0:
        raise InvalidValue("the result is negative")
    if exact > _MAX_VALUE:
        raise InvalidValue(f"the result is greater than {MAX_MILLI // 1000}")
    with localcontext() as context:
        context.prec = 50  # digits: more than any valid number of thousandths has
        return int((exact * 1000).to_integral_value(ROUND_CEILING))


def quantity(milli: int) -> str:
    """The canonical quantity of thousandths: `42`, `1500m`."""
    whole, remainder_milli = divmod(milli, 1000)
    return f"{milli}m" if remainder_milli else str(whole)
