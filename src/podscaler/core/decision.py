"""What a sync decided: what to write, what to tell, what to remember, and why.

Made by `podscaler.core.decide` and `podscaler.core.settle`; carried out by the controller, printed by the replay.
"""

from enum import StrEnum

import msgspec

from podscaler.api.machinery.selectors import Selector
from podscaler.api.typed.autoscaling import Condition, HorizontalPodAutoscalerStatus
from podscaler.core.calculation.situation import Tolerance
from podscaler.core.combine import Combined
from podscaler.core.model.history import History
from podscaler.core.model.model import Fact, Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Branch, Cooldown, Limits, Stabilization, Trace, ZeroRules


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
    """The label `error` of upstream's Prometheus metrics."""

    NONE = "none"
    SPEC = "spec"
    INTERNAL = "internal"


class Action(StrEnum):
    """The label `action` of upstream's Prometheus metrics."""

    NONE = "none"
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"


class Draft(msgspec.Struct, frozen=True):
    """A decision but for what becomes of the scale: `podscaler.core.settle` completes it.

    Attributes:
        combined: what the metrics say, None where nobody asked them.
        desired: the count that the scale should have.
        reason: of the rescale, empty without one.
        conditions, events: so far.
        past: what is remembered, the new recommendation included.
    """

    spec: Spec
    observation: Observation
    settings: Settings
    scale: Scale
    now: int
    branch: Branch
    zero: ZeroRules
    desired: int
    reason: str
    conditions: tuple[Condition, ...]
    past: History
    events: tuple[AutoscalerEvent, ...] = ()
    combined: Combined | None = None
    tolerance: Tolerance | None = None
    stabilization: Stabilization | None = None
    limits: Limits | None = None
    is_lifted: bool = False
    cooldown: Cooldown | None = None


class Decision(msgspec.Struct, frozen=True):
    """The outcome of one sync.

    Attributes:
        replicas: what to write to the scale, None for leaving it alone (or where writing failed).
        status: what status becomes; equal to the old one where nothing needs to be written.
        events: in order.
        history: what to remember for the next sync.
        error: the text of the error that the sync ends with, or empty.
        selector: to remember for this autoscaler in the selector store; None to leave what is there.
        reached_end: whether the sync came to its last step, at which the gauge of desired replicas is set.
        draft: what `settle` needs where the write turns out otherwise; None where nothing is written.
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
