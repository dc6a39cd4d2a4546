"""How far a metric is from its target, and when that is close enough.

Called by the calculators of all metric types.

Source: docs/spec/decision.md 5 (Tolerance).
"""

from podscaler.core.model.model import Fact
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec


class Tolerance(Fact, frozen=True, gc=False):
    """How far below (`down`) and above (`up`) 1.0 a ratio calls for no change."""

    down: float
    up: float

    def allows(self, ratio: float) -> bool:
        """Whether `ratio` calls for no change; both ends count, NaN never does."""
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


def tolerance(spec: Spec, settings: Settings) -> Tolerance:
    """The tolerance of each direction: the behavior's where it has one, else the flag's."""
    down = up = settings.tolerance
    if spec.behavior is not None:
        if spec.behavior.down.tolerance is not None:
            down = spec.behavior.down.tolerance
        if spec.behavior.up.tolerance is not None:
            up = spec.behavior.up.tolerance
    return Tolerance(down, up)
