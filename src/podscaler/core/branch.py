"""Chooses the branch of a sync: no scale, disabled at zero replicas, straight to a bound, or by metrics.

Called by `podscaler.core.decide`, for a decision and before it, to find which metrics it needs. A new branch: a member
of `podscaler.core.model.trace.Branch`, a case here and in `decide.decide`, and its texts in `podscaler.explain`.

Source: docs/spec/decision.md 2 (Reconcile in order, steps 1 to 9).
"""

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.core import algorithm
from podscaler.core.model.conditions import SCALED_TO_ZERO
from podscaler.core.model.observation import NO_KIND_MATCH, Fact, Failure, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Branch, ZeroRules


class NoScale(Fact, frozen=True, gc=False):
    """Why a sync has no scale of the target, and ends at once.

    Attributes:
        message: the bare error.
        prefix: the text before `message` in the error of the sync.
        is_spec_error: whether the autoscaler's spec is wrong, not the cluster.
    """

    message: str
    prefix: str
    is_spec_error: bool = False


def scale_of(spec: Spec, scale: Scale | Failure) -> Scale | NoScale:
    """The observed scale, or the error where the spec names no valid target or the scale could not be read."""
    if spec.target_fault:
        prefix = "invalid API version in scale target reference: "
        return NoScale(spec.target_fault, prefix, is_spec_error=True)
    if not isinstance(scale, Failure):
        return scale
    if scale.reason == NO_KIND_MATCH:
        return NoScale(scale.message, "unable to determine resource for scale target reference: ")
    return NoScale(scale.message, f"failed to query scale subresource for {spec.reference}: ")


def zero_rules(spec: Spec, status: HorizontalPodAutoscalerStatus, settings: Settings) -> ZeroRules:
    """The facts for zero replicas: whether this autoscaler scaled to zero, and whether its metrics can scale it up."""
    is_enabled = settings.gates.scale_to_zero and algorithm.of(settings).scales_to_zero
    was_scaled_to_zero = is_enabled and any(
        condition.type == SCALED_TO_ZERO and condition.status == "True" for condition in status.conditions or ()
    )
    return ZeroRules(is_enabled, was_scaled_to_zero, spec.scales_on_others)


def choose(spec: Spec, zero: ZeroRules, current: int) -> Branch:
    """The branch for a target with `current` replicas.

    At zero replicas scaling is disabled unless this autoscaler itself scaled to zero and can scale up again.
    """
    if current == 0:
        # With a minimum of 0 only a metric that has a value without pods can ask for more.
        may_scale_up = zero.was_scaled_to_zero and (spec.min_replicas != 0 or zero.scales_on_others)
        return Branch.METRICS if may_scale_up else Branch.DISABLED
    if current > spec.max_replicas:
        return Branch.ABOVE_MAXIMUM
    if current < spec.min_replicas:
        return Branch.BELOW_MINIMUM
    return Branch.METRICS
