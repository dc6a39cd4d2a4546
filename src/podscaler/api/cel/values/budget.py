"""The cost budget of CEL evaluations, which bounds their time: one step takes about a microsecond.

The caller of a program makes one Budget for each object that it validates. The evaluation (`planning`) spends a step
for every node of the expression; operators and functions spend more, by the elements and characters that they read.

Source: Kubernetes' runtime cost budget of CEL. Differs: it counts steps, not cel-go's cost units.
"""

from collections.abc import Callable
from typing import Any

from podscaler.api.cel.values.errors import BudgetError

_DEFAULT_STEPS = 500_000
"""About half a second."""
TEXT_MAX_CHARACTERS = 16 * 1024 * 1024
"""The longest text that an expression may produce."""
CHARACTERS_PER_STEP = 10
"""The characters, or bytes, of a text that are read or written for one step."""


class Budget:
    """A number of steps that evaluations may still spend.

    Attributes:
        steps_left: those that remain; negative once the budget is exceeded.
    """

    __slots__ = ("steps_left",)

    def __init__(self, steps: int = _DEFAULT_STEPS) -> None:
        self.steps_left = steps

    def spend(self, steps: int) -> None:
        """Subtract steps. Raises BudgetError when fewer than that are left."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise BudgetError

    def spend_on_text(self, characters: int) -> None:
        """Subtract the cost of a new text of that length. Raises BudgetError, also beyond TEXT_MAX_CHARACTERS."""
        if characters > TEXT_MAX_CHARACTERS:
            raise BudgetError
        self.spend(1 + characters // CHARACTERS_PER_STEP)


def charged(call: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a function of the library that takes the Budget as its first argument, before those of the call."""
    call.is_charged = True  # type: ignore[attr-defined]  # the attribute is read by `planning`
    return call
