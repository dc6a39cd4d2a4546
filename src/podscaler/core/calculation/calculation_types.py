"""Defines the inputs and the results of the calculators of metrics: Situation, Tolerance, Proposal, MetricError.

`podscaler.core.combine` makes the Situation of a sync and passes it to the calculator of each metric, which returns a
Proposal or raises a MetricError. A new fact for all calculators is a field of Situation.

Source: docs/spec/decision.md 5 (Tolerance).
"""

from collections.abc import Sequence

from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.core.model.observation import Fact, Pod
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
    """The facts of one sync that all metrics share.

    Attributes:
        now_ns: the instant of the sync.
        replicas: `scale.spec.replicas`.
        status_replicas: `scale.status.replicas`.
        pods: the pods that the scale's selector matches, in list order.
    """

    now_ns: int
    replicas: int
    status_replicas: int
    pods: Sequence[Pod]
    tolerance: Tolerance
    settings: Settings


class Proposal(Fact, frozen=True, gc=False):
    """The result of one metric.

    Attributes:
        replicas: the proposed count, int32; may be 0 or, after an overflow, negative.
        current: the value that the autoscaler's status reports.
        calculation: the numbers behind `replicas`, for the trace.
    """

    replicas: int
    current: MetricValueStatus
    calculation: Calculation


class MetricError(Exception):
    """A metric has no proposal.

    Args:
        message: the bare error.
        calculation: the numbers up to the error, for the trace; None if nothing was calculated.
    """

    def __init__(self, message: str, calculation: Calculation | None = None) -> None:
        super().__init__(message)
        self.calculation = calculation
