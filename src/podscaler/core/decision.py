"""Defines the result of a sync: a Decision with replicas, status, events, history and trace.

`podscaler.core.decide` returns a Decision as if the scale were written; the controller writes the scale of its Draft,
and `podscaler.core.settle` returns the Decision with the result of that write. The replay prints it.
"""

from enum import StrEnum

import msgspec

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import Condition, HorizontalPodAutoscalerStatus
from podscaler.core.calculation.calculation_types import Tolerance
from podscaler.core.combine import MetricsEvaluation
from podscaler.core.model.history import History
from podscaler.core.model.observation import Fact, Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Branch, Cooldown, FailurePolicyStep, Limits, Stabilization, Trace, ZeroRules


class AutoscalerEvent(Fact, frozen=True, gc=False):
    """One Event on the autoscaler, before any aggregation.

    Attributes:
        follows_status: whether it is emitted only after status has been written.
    """

    type: str
    reason: str
    message: str
    follows_status: bool = False


def warning(reason: str, message: str) -> AutoscalerEvent:
    """An event of type Warning."""
    return AutoscalerEvent("Warning", reason, message)


class ErrorKind(StrEnum):
    """The label `error` of kube-controller-manager's metrics of reconciliations."""

    NONE = "none"
    SPEC = "spec"
    """The spec is wrong: an unknown metric type, or a reference that is malformed."""
    INTERNAL = "internal"
    """All other errors."""


class Action(StrEnum):
    """The label `action` of kube-controller-manager's metrics of reconciliations."""

    NONE = "none"
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"


class Draft(msgspec.Struct, frozen=True):
    """A decision before the write of the scale; `podscaler.core.settle` completes it.

    Attributes:
        spec, observation, settings, scale: what the decision was made from.
        branch: why the replicas may change: by the metrics, the bounds, or not at all.
        zero: which rules of scaling to and from zero applied.
        evaluation: the result of the metrics; None if the branch does not need them.
        desired: the count that the scale should have.
        now_ns: the instant at which the sync began.
        reason: the reason of the rescale; empty if there is no rescale.
        conditions, events: the conditions and events that do not depend on the write.
        prior_history: the history before the write of the scale, with the new recommendation.
        tolerance, stabilization, limits, cooldown, failure_policy: steps for the trace, None if a step did not take
            place. A new step: here, in `Trace`, and in `podscaler.core.settle`, which copies it.
        is_lifted: whether `desired` was raised to the minimum, when scaling from zero.
    """

    spec: Spec
    observation: Observation
    settings: Settings
    scale: Scale
    now_ns: int
    branch: Branch
    zero: ZeroRules
    desired: int
    reason: str
    conditions: tuple[Condition, ...]
    prior_history: History
    events: tuple[AutoscalerEvent, ...] = ()
    evaluation: MetricsEvaluation | None = None
    tolerance: Tolerance | None = None
    stabilization: Stabilization | None = None
    limits: Limits | None = None
    is_lifted: bool = False
    cooldown: Cooldown | None = None
    failure_policy: FailurePolicyStep | None = None


class Decision(msgspec.Struct, frozen=True):
    """The outcome of one sync.

    `podscaler.core.decide` returns it as if the scale were written at once; after the real write the controller calls
    `podscaler.core.settle` with the draft, and uses the decision that it returns.

    Attributes:
        replicas: the count to write to the scale; None: write nothing (or the write failed).
        status: the new status; equal to the old one: no write is needed.
        events: the Events to emit, in order.
        history: the history for the next sync.
        trace: the steps of the decision, for explanations.
        error: the text of the error of the sync, or empty.
        error_kind, action: the labels of the metrics about this sync.
        selector: what to store for this autoscaler in the selector store; None: leave the stored one.
        reached_end: whether the sync reached its last step, at which the gauge of desired replicas is set.
        draft: for `podscaler.core.settle`; None if nothing is written.
    """

    replicas: int | None
    status: HorizontalPodAutoscalerStatus
    events: tuple[AutoscalerEvent, ...]
    history: History
    trace: Trace
    error: str = ""
    error_kind: ErrorKind = ErrorKind.NONE
    action: Action = Action.NONE
    selector: Selector | None = None
    reached_end: bool = False
    draft: Draft | None = None
