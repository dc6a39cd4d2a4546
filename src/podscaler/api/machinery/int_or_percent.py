"""Validates and reads IntOrString fields such as `maxUnavailable`: a number of pods (3), or a percentage (`25%`).

Called by the validation of workloads and disruption budgets. `path` is that of the field (`spec.maxUnavailable`).

Source: the API reference (IntOrString); kube-apiserver's messages.
"""

import re

from podscaler.api.machinery.field import FieldError, invalid

Amount = int | str

_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_MESSAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def amount_errors(amount: Amount, path: str) -> list[FieldError]:
    """The field errors of an amount: a text that is no percentage, a negative number."""
    if isinstance(amount, str):
        return [] if _PERCENT.fullmatch(amount) else [invalid(path, amount, _PERCENT_MESSAGE)]
    return [invalid(path, amount, "must be greater than or equal to 0")] if amount < 0 else []


def over_100_percent_errors(amount: Amount, path: str) -> list[FieldError]:
    """The field error of a percentage above 100."""
    amount_pct = percent(amount)
    is_over = amount_pct is not None and amount_pct > 100
    return [invalid(path, amount, "must not be greater than 100%")] if is_over else []


def percent(amount: Amount) -> int | None:
    """The percentage as a number: 25 of `25%`; None for a number of pods, and for an invalid text."""
    return int(amount[:-1]) if isinstance(amount, str) and _PERCENT.fullmatch(amount) else None


def is_zero(amount: Amount) -> bool:
    """Whether it is 0 or 0 %."""
    return amount == 0 or percent(amount) == 0
