"""Limits the proposed replicas by stabilization windows, rates and bounds ("normalises" them).

Called by `podscaler.core.decide` through the algorithm that applies (`podscaler.core.algorithm`). A new limit of the
current algorithm is a call in `by_windows`.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9 (Normalisation with behavior).
"""

from podscaler.core.limits import bounds, stabilization
from podscaler.core.limits.policies import PolicyFacts
from podscaler.core.limits.stabilization import Stabilized
from podscaler.core.model.history import History
from podscaler.core.model.observation import Fact
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Limits


class NormalisationInput(Fact, frozen=True, gc=False):
    """The replicas that the metrics propose, and the facts that limit them.

    Attributes:
        prior_history: the history before this sync.
        proposal: the proposal of the metrics, 0 or more.
        current: the replicas of the target.
        now_ns: the instant of the sync.
    """

    spec: Spec
    prior_history: History
    proposal: int
    current: int
    now_ns: int
    settings: Settings


class Normalised(Fact, frozen=True, gc=False):
    """The result of stabilization, and then of rates and bounds."""

    stabilized: Stabilized
    limits: Limits


def by_windows(inputs: NormalisationInput) -> Normalised:
    """The proposal limited by the windows, and then by rates and bounds, as the current algorithm does."""
    spec, prior_history, now_ns = inputs.spec, inputs.prior_history, inputs.now_ns
    if spec.behavior is None:
        stabilized = stabilization.by_flag(prior_history.recommendations, inputs.proposal, now_ns, inputs.settings)
        return Normalised(stabilized, bounds.without_behavior(spec, stabilized.step.result, inputs.current))
    windows_ns = stabilization.windows_ns(spec.behavior, inputs.settings)
    stabilized = stabilization.by_behavior(
        prior_history.recommendations, inputs.proposal, inputs.current, now_ns=now_ns, windows_ns=windows_ns
    )
    facts = PolicyFacts(spec.behavior, prior_history, now_ns, inputs.settings.emulation)
    return Normalised(stabilized, bounds.with_behavior(spec, facts, stabilized.step.result, inputs.current))
