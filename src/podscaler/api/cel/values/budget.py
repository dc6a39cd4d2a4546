"""How much work an evaluation may still do.

Made by who runs programs, one for each request; spent by `planning` for every step and by operators and functions for
what they walk over. Time is bounded by it: a step takes about a microsecond.

Source: Kubernetes' runtime cost budget. Differs: steps are counted, not cel-go's cost units.
"""

from collections.abc import Callable
from typing import Any

from podscaler.api.cel.values.faults import BudgetError

SPENT_BY_DEFAULT = 500_000
TEXT_MAX_CHARACTERS = 16 * 1024 * 1024
"""The longest text that an expression may make."""


class Budget:
    """Steps that are left."""

    __slots__ = ("left",)

    def __init__(self, steps: int = SPENT_BY_DEFAULT) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps off. Raises BudgetError when there are none left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetError

    def spend_on_text(self, characters: int) -> None:
        """Take off what making a text of this length costs. Raises BudgetError."""
        if characters > TEXT_MAX_CHARACTERS:
            raise BudgetError
        self.spend(1 + characters // 10)


def charged(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the language that wants the budget as its first argument."""
    call.is_charged = True  # type: ignore[attr-defined]  # a mark that `planning` reads
    return call
