"""The state of an autoscaler in a word, how bad it is, and one sentence about it.

`podscaler.observe.rows` calls `of` for each autoscaler of the list. Pure: from the object's conditions, and from the
newest decision where one is known.
"""

from typing import NamedTuple

from podscaler.api.typed.autoscaling import Condition, HorizontalPodAutoscaler
from podscaler.core.decision import Decision

FINE, NOTABLE, LIMITED, BROKEN = range(4)


class Health(NamedTuple):
    """The state of one autoscaler.

    Attributes:
        state: a word.
        severity: FINE to BROKEN.
        reason: a sentence; may be empty.
    """

    state: str
    severity: int
    reason: str


def of(autoscaler: HorizontalPodAutoscaler, decision: Decision | None = None) -> Health:
    """The state of an autoscaler."""
    status = autoscaler.status if decision is None else decision.status
    conditions = {each.type: each for each in status.conditions or ()}
    able, active, limited = (conditions.get(name, Condition()) for name in _CONDITIONS)
    if able.status == "False":
        return Health("NoTarget", BROKEN, able.message)
    if active.status == "False":
        if active.reason == "ScalingDisabled":
            return Health("Disabled", NOTABLE, active.message)
        return Health("NoMetrics", BROKEN, active.message)
    if limited.status == "True":
        state = {"TooManyReplicas": "AtMaximum", "TooFewReplicas": "AtMinimum"}.get(limited.reason, "Limited")
        return Health(state, LIMITED if state == "AtMaximum" else FINE, limited.message)
    if status.desired_replicas != status.current_replicas and conditions:
        is_up = status.desired_replicas > status.current_replicas
        return Health("ScalingUp" if is_up else "ScalingDown", FINE, able.message)
    return Health("Steady" if conditions else "Unknown", FINE if conditions else NOTABLE, "")


_CONDITIONS = ("AbleToScale", "ScalingActive", "ScalingLimited")
