"""What the calculators of metrics share in one sync: replicas, pods of the target, tolerance, settings, the instant.

Made by `podscaler.core.combine`, which hands it to the calculator of each metric; each of those returns a `Proposal` or
raises a `MetricError`.
"""

from collections.abc import Sequence

from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core.model.model import Fact, Pod
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import OfAverage, OfTotal, PerPod

NO_PODS = "no pods returned by selector while calculating replica count"

Calculation = PerPod | OfTotal | OfAverage


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


class Situation(Fact, frozen=True, gc=False):
    """One sync, as a metric's calculator sees it.

    Attributes:
        now: the instant of the sync.
        replicas: `scale.spec.replicas`.
        status_replicas: `scale.status.replicas`.
        pods: those that the scale's selector picks, in list order.
    """

    now: int
    replicas: int
    status_replicas: int
    pods: Sequence[Pod]
    tolerance: Tolerance
    settings: Settings


class Proposal(Fact, frozen=True, gc=False):
    """What one metric wants.

    Attributes:
        replicas: int32; may be 0 or, after an overflow, negative.
        current: the value for status.
        calculation: how it came about.
    """

    replicas: int
    current: MetricValueStatus
    calculation: Calculation


class MetricError(Exception):
    """A metric has no proposal.

    Args:
        text: what its calculator says.
        calculation: how far it came, if it came anywhere.
    """

    def __init__(self, text: str, calculation: Calculation | None = None) -> None:
        super().__init__(text)
        self.calculation = calculation
