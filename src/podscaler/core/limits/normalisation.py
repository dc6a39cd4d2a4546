"""Limits the replicas that the metrics want by stabilization windows, rates and bounds ("normalises" them).

Called by `podscaler.core.decide` through the algorithm that applies (`podscaler.core.algorithm`).

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9 (Normalisation with behavior).
"""

from podscaler.core.limits import bounds, stabilization
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.limits.stabilization import Stabilized
from podscaler.core.model.history import History
from podscaler.core.model.model import Fact
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Limits


class DesiredReplicas(Fact, frozen=True, gc=False):
    """The replicas that the metrics want, and the facts that limit them.

    Attributes:
        past: the history before this sync.
        wanted: the proposal of the metrics.
        current: the replicas of the target.
        now: the instant of the sync.
    """

    spec: Spec
    past: History
    wanted: int
    current: int
    now: int
    settings: Settings


class Normalised(Fact, frozen=True, gc=False):
    """The result of stabilization, and then of rates and bounds."""

    stabilized: Stabilized
    limits: Limits


def by_windows(desired: DesiredReplicas) -> Normalised:
    """The desired replicas limited by the windows, and then by rates and bounds, as the current algorithm does."""
    spec, past, now = desired.spec, desired.past, desired.now
    if spec.behavior is None:
        stabilized = stabilization.by_flag(past.recommendations, desired.wanted, now, desired.settings)
        return Normalised(stabilized, bounds.without_behavior(spec, stabilized.step.result, desired.current))
    windows_ns = stabilization.windows_ns(spec.behavior, desired.settings)
    stabilized = stabilization.by_behavior(
        past.recommendations, desired.wanted, desired.current, now=now, windows_ns=windows_ns
    )
    rates = PolicyFacts(spec.behavior, past, now, desired.settings.emulation)
    return Normalised(stabilized, bounds.with_behavior(spec, rates, stabilized.step.result, desired.current))
