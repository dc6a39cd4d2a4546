"""Where a decision that was computed just now contradicts the latest status, in phrases.

Called by `podscaler explain` for live autoscalers. A status is as old as its last sync, and metrics move on: a change
that is about to come is no contradiction. A condition with another status is one, and so is a count that the
computation holds and the status does not.
"""

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.core.decision import Decision
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALING_ACTIVE
from podscaler.explain.verdict import Verdict

_COMPARED = (ABLE_TO_SCALE, SCALING_ACTIVE)


def of(decision: Decision, status: HorizontalPodAutoscalerStatus, verdict: Verdict) -> tuple[str, ...]:
    """What the latest status says and the decision does not; empty where nothing was written yet."""
    written = {each.type: each for each in status.conditions or ()}
    found = []
    for computed in decision.status.conditions or ():
        there = written.get(computed.type)
        if computed.type in _COMPARED and there is not None and there.status != computed.status:
            found.append(
                f"the status says {computed.type} {there.status} ({there.reason}: {there.message}), "
                f"and what is computed here is {computed.status} ({computed.reason})"
            )
    desired = status.desired_replicas
    if written and not verdict.is_change and verdict.desired not in (None, desired):
        found.append(f"the status says {desired} desired replicas, and what is computed here is {verdict.desired}")
    return tuple(found)
