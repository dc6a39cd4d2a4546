"""The cost budget of an evaluation, which bounds its time: a step takes about a microsecond.

The caller of a program makes one for each request. `planning` charges every step of the evaluation; operators and
functions charge the elements and characters that they read.

Source: Kubernetes' runtime cost budget. Differs: steps are counted, not cel-go's cost units.
"""

from collections.abc import Callable
from typing import Any

from podscaler.api.cel.values.errors import BudgetError

SPENT_BY_DEFAULT = 500_000
TEXT_MAX_CHARACTERS = 16 * 1024 * 1024
"""The longest text that an expression may produce."""


class Budget:
    """Steps that are left."""

    __slots__ = ("left",)

    def __init__(self, steps: int = SPENT_BY_DEFAULT) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Charge steps. Raises BudgetError when none are left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetError

    def spend_on_text(self, characters: int) -> None:
        """Charge the production of a text of this length. Raises BudgetError, also for one that is too long."""
        if characters > TEXT_MAX_CHARACTERS:
            raise BudgetError
        self.spend(1 + characters // 10)


def charged(call: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of the language that takes the budget as its first argument."""
    call.is_charged = True  # type: ignore[attr-defined]  # a mark that `planning` reads
    return call
