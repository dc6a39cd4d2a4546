"""Amounts of resources in objects that nothing has validated.

Called by the rules about quotas.
"""

from typing import Any

from podscaler.api.machinery import quantity
from podscaler.lint.model.items import mapping


def readable(value: Any) -> dict[str, str]:
    """The entries of a map of quantities that can be read as such, as texts; nothing where it is no map."""
    return {name: str(amount) for name, amount in mapping(value).items() if _is_quantity(amount)}


def milli(value: Any) -> dict[str, int]:
    """The same in thousandths."""
    return {name: quantity.parse(text).milli_value() for name, text in readable(value).items()}


def _is_quantity(amount: Any) -> bool:
    if isinstance(amount, bool) or not isinstance(amount, str | int):
        return False
    try:
        quantity.parse(str(amount))
    except quantity.QuantityError:
        return False
    return True
