"""Stabilizes a proposal by earlier recommendations: the highest of the down window, the lowest of the up window.

Called by `podscaler.core.limits.normalisation`. A new rule for windows is a function like `by_flag`, called there.
Proposals are recorded as recommendations before they are limited.

Worked example (KEP-853): with a down window of 600 s, one sync a minute, and 10 replicas, recommendations
[10,9,8,9,9,8,9,8,9] and now 8 keep 10; a minute later the 10 is out of the window of `by_behavior`, the proposal is 7,
and 9 is applied. The window of `by_flag` includes the instant at which it begins, that of `by_behavior` does not, as in
the HPA controller's `stabilizeRecommendation` and `stabilizeRecommendationWithBehaviors`.

Source: docs/spec/decision.md 8 (Normalisation without behavior, points 1 and 2), 9.1 (Scale-down window), 9.2
(Stabilisation).
"""

from podscaler.api.machinery import numbers
from podscaler.core.model import history
from podscaler.core.model.history import Recommendation
from podscaler.core.model.observation import Fact
from podscaler.core.model.settings import SECOND_NS, Settings
from podscaler.core.model.spec import Behavior
from podscaler.core.model.trace import Stabilization

Recommendations = tuple[Recommendation, ...]

SCALE_DOWN_STABILIZED = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
SCALE_UP_STABILIZED = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
READY_FOR_NEW_SCALE = ("ReadyForNewScale", "recommended size matches current size")


class Stabilized(Fact, frozen=True, gc=False):
    """The result of a stabilization.

    Attributes:
        recommendations: the recommendations for the next sync, with the proposal of this one.
        condition: the reason and the message of AbleToScale.
        step: the numbers for the trace; its `result` is the stabilized count.
    """

    recommendations: Recommendations
    condition: tuple[str, str]
    step: Stabilization


def by_flag(recommendations: Recommendations, proposal: int, now_ns: int, settings: Settings) -> Stabilized:
    """Without behavior: the highest of the proposal and the recommendations in the flag's window."""
    cutoff = now_ns - settings.downscale_stabilization_ns
    highest, held_by, outdated_index = proposal, None, None
    for index, recommendation in enumerate(recommendations):
        if recommendation.at < cutoff:
            outdated_index = index  # the last one is overwritten, as upstream
        elif recommendation.replicas > highest:
            highest, held_by = recommendation.replicas, index
    return Stabilized(
        history.with_recommendation(recommendations, Recommendation(proposal, now_ns), outdated_index),
        READY_FOR_NEW_SCALE if highest == proposal else SCALE_DOWN_STABILIZED,
        Stabilization(
            proposal=proposal,
            recommendations=recommendations,
            down_cutoff=cutoff,
            up_cutoff=None,
            highest=highest,
            lowest=None,
            result=highest,
            held_by=held_by,
        ),
    )


def by_behavior(
    recommendations: Recommendations, proposal: int, current: int, *, now_ns: int, windows_ns: tuple[int, int]
) -> Stabilized:
    """With behavior: the current count, moved to between the lowest and the highest recent recommendation.

    Args:
        windows_ns: the windows for scaling down and for scaling up.
    """
    down_window_ns, up_window_ns = windows_ns
    down_cutoff, up_cutoff = now_ns - down_window_ns, now_ns - up_window_ns
    highest = lowest = proposal
    highest_index = lowest_index = outdated_index = None
    for index, recommendation in enumerate(recommendations):
        if recommendation.at > up_cutoff and recommendation.replicas < lowest:
            lowest, lowest_index = recommendation.replicas, index
        if recommendation.at > down_cutoff and recommendation.replicas > highest:
            highest, highest_index = recommendation.replicas, index
        if recommendation.at < up_cutoff and recommendation.at < down_cutoff:
            outdated_index = index
    stabilized_replicas, held_by = current, None
    if current < lowest:  # not also above the highest: the proposal is between the two
        stabilized_replicas, held_by = lowest, lowest_index
    elif current > highest:
        stabilized_replicas, held_by = highest, highest_index
    condition = SCALE_UP_STABILIZED if proposal >= current else SCALE_DOWN_STABILIZED
    return Stabilized(
        history.with_recommendation(recommendations, Recommendation(proposal, now_ns), outdated_index),
        READY_FOR_NEW_SCALE if stabilized_replicas == proposal else condition,
        Stabilization(
            proposal=proposal,
            recommendations=recommendations,
            down_cutoff=down_cutoff,
            up_cutoff=up_cutoff,
            highest=highest,
            lowest=lowest,
            result=stabilized_replicas,
            held_by=held_by,
        ),
    )


def windows_ns(behavior: Behavior, settings: Settings) -> tuple[int, int]:
    """The windows in ns for scaling down (where none is set: of the flag, in whole seconds) and for scaling up."""
    down_ns = behavior.down.window_ns
    if down_ns is None:
        flag_s = numbers.divide_toward_zero(settings.downscale_stabilization_ns, SECOND_NS)
        down_ns = numbers.wrap32(flag_s) * SECOND_NS
    return down_ns, behavior.up.window_ns or 0
