"""Defines the history of an autoscaler: the recommendations and scale events of its earlier syncs.

Stabilization and scaling policies depend on it. The controller and the replay keep one for each autoscaler;
`podscaler.core.decide` takes it and returns the next. A new field is also stored
(`podscaler.core.model.stored_history`) and recorded (`podscaler.core.replay`). Instants are nanoseconds since 1970.

Invariants: immutable; the lists stay short: in the next history a new entry has the index of one that is outside of all
windows, if there is one, as in `stabilizeRecommendation` and `storeScaleEvent` of the HPA controller. So the lists are
not in time order.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.2 (Stabilisation), 10 (Scale-event history).
"""

from collections.abc import Sequence

import msgspec

from podscaler.api.machinery import numbers
from podscaler.api.typed.autoscaling import MetricValueStatus


class Recommendation(msgspec.Struct, frozen=True, gc=False):
    """The replicas that the metrics of an earlier sync proposed, before any limit, and the instant of that sync."""

    replicas: int
    at: int


class ScaleEvent(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A rescale.

    Attributes:
        change: by how many replicas, up or down: above 0.
        at: the instant of the rescale.
        is_outdated: whether it is older than all policies' periods, so that a later event may overwrite it.
    """

    change: int
    at: int
    is_outdated: bool = False


class LastProposal(msgspec.Struct, frozen=True, gc=False):
    """What a metric proposed when it was read last.

    Attributes:
        metric: the metric's identity (`podscaler.core.model.failure_policy`).
        replicas: the proposal, before any limit.
        at: the instant of that sync.
        current: the value that the autoscaler's status reported.
    """

    metric: str
    replicas: int
    at: int
    current: MetricValueStatus


class History(msgspec.Struct, frozen=True):
    """The history of one autoscaler.

    Attributes:
        recommendations: those that a stabilization window may still contain.
        scale_ups, scale_downs: the rescales that a policy's period may still contain.
        last_proposals: the last proposal of each metric that was read; empty unless a failure policy keeps them.
        unread_since: the first of the syncs in a row that could read no metric; None if the last one could, or there is
            no policy with fallback replicas.
    """

    recommendations: tuple[Recommendation, ...] = ()
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()
    last_proposals: tuple[LastProposal, ...] = ()
    unread_since: int | None = None


EMPTY = History()


def with_first_recommendation(history: History, replicas: int, now_ns: int) -> History:
    """`history` with the current replicas as first recommendation, if it has none; unchanged otherwise."""
    if history.recommendations:
        return history
    return msgspec.structs.replace(history, recommendations=(Recommendation(replicas, now_ns),))


def with_recommendation(
    recommendations: tuple[Recommendation, ...], latest: Recommendation, outdated_index: int | None
) -> tuple[Recommendation, ...]:
    """The recommendations with `latest` in place of the one at `outdated_index`; None: `latest` is appended.

    `core.limits.stabilization` finds the index while it computes the windows.
    """
    if outdated_index is None:
        return (*recommendations, latest)
    return (*recommendations[:outdated_index], latest, *recommendations[outdated_index + 1 :])


def change_since(events: Sequence[ScaleEvent], cutoff: int) -> int:
    """The sum (int32) of the changes made after `cutoff`, outdated ones included."""
    return numbers.wrap32(sum(event.change for event in events if event.at > cutoff))


def with_scale_event(events: tuple[ScaleEvent, ...], latest: ScaleEvent, cutoff: int) -> tuple[ScaleEvent, ...]:
    """The events, those before `cutoff` marked outdated; `latest` replaces the last outdated one, or is appended.

    `cutoff` is now without the longest period of the direction's policies, in ns.
    """
    marked = [_marked_if_outdated(event, cutoff) for event in events]
    outdated_indexes = [index for index, event in enumerate(marked) if event.is_outdated]
    if outdated_indexes:
        marked[outdated_indexes[-1]] = latest
    else:
        marked.append(latest)
    return tuple(marked)


def _marked_if_outdated(event: ScaleEvent, cutoff: int) -> ScaleEvent:
    """The event, marked as outdated if it happened before `cutoff`."""
    if event.is_outdated or event.at >= cutoff:
        return event
    return msgspec.structs.replace(event, is_outdated=True)
