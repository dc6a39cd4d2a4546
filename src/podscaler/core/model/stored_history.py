"""Compacts an autoscaler's history for storage, and adapts a stored one to the process that restores it.

Called by the controller's history stores. A new field of History goes into `compacted`, `is_equivalent`,
`_with_instants` and `merged`. Decisions with the compacted history equal those with the whole one, for every proposal
and every window that the API admits: a recommendation matters to a window's highest only while no later one is as high,
to its lowest only while no later one is as low. Example: the recommendations 5, 3, 9, 7, 8 become 3, 9, 7, 8: after 3
and 9 the earlier 5 is no longer the lowest or the highest of any window.

Invariants: instants are wall-clock time, ns since 1970, valid on another machine. An instant that is not known exactly
is taken as the latest possible: a window is never shortened, it may last a little longer.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.2 (Stabilisation), 9.3 (Rates and bounds), 10
(Scale-event history).
"""

from collections.abc import Callable, Iterable

import msgspec

from podscaler.core.model.history import History, LastProposal, Recommendation, ScaleEvent

ENTRIES_MAX = 64
"""The highest number of highs, of lows, and of scale events of each direction; above it, neighbours are joined."""


def compacted(history: History, since_ns: int) -> History:
    """The entries of a history that can matter to a later decision, in the order of time.

    Args:
        since_ns: the instant before which entries are dropped, but for the latest recommendation.
    """
    ordered = sorted(history.recommendations, key=_time_and_replicas)
    recent = [recommendation for recommendation in ordered if recommendation.at >= since_ns] or ordered[-1:]
    # Of one instant the last one counts: the highest in `recent`, the lowest here.
    lowest_last = sorted(recent, key=lambda recommendation: (recommendation.at, -recommendation.replicas))
    highs = _thinned(_lasting(recent, lambda recommendation, later: recommendation.replicas > later.replicas))
    lows = _thinned(_lasting(lowest_last, lambda recommendation, later: recommendation.replicas < later.replicas))
    return History(
        recommendations=tuple(sorted({*highs, *lows}, key=_time_and_replicas)),
        scale_ups=_recent_events(history.scale_ups, since_ns),
        scale_downs=_recent_events(history.scale_downs, since_ns),
        last_proposals=history.last_proposals,
        unread_since=history.unread_since,
    )


def _time_and_replicas(recommendation: Recommendation) -> tuple[int, int]:
    return recommendation.at, recommendation.replicas


def _lasting(
    recent: list[Recommendation], is_preferred: Callable[[Recommendation, Recommendation], bool]
) -> list[Recommendation]:
    """The recommendations that `is_preferred` prefers to every later one, in the order of time."""
    lasting: list[Recommendation] = []
    for recommendation in reversed(recent):
        if not lasting or is_preferred(recommendation, lasting[-1]):
            lasting.append(recommendation)
    return lasting[::-1]


def _thinned(chain: list[Recommendation]) -> list[Recommendation]:
    """At most ENTRIES_MAX of the chain: of two neighbours one is made, with the earlier count at the later instant."""
    while len(chain) > ENTRIES_MAX:
        pairs = zip(chain[:-1:2], chain[1::2], strict=False)  # the newest also stays as it is
        joined_pairs = [Recommendation(earlier.replicas, later.at) for earlier, later in pairs]
        chain = [*joined_pairs, chain[-1]]
    return chain


def _recent_events(events: Iterable[ScaleEvent], since_ns: int) -> tuple[ScaleEvent, ...]:
    """The scale events since that instant.

    Of more than ENTRIES_MAX the oldest are joined to one, at their latest instant.
    """
    recent = sorted([event for event in events if event.at >= since_ns], key=lambda scale_event: scale_event.at)
    surplus = len(recent) - ENTRIES_MAX
    if surplus > 0:
        oldest, recent = recent[: surplus + 1], recent[surplus + 1 :]
        recent.insert(0, ScaleEvent(sum(event.change for event in oldest), oldest[-1].at))
    return tuple(recent)


def is_equivalent(stored: History, latest: History, *, is_renewed: bool) -> bool:
    """Whether the latest compacted history need not be stored, because the stored one leads to the same decisions.

    Args:
        is_renewed: whether every sync renews the newest recommendation, so that its instant may differ.
    """
    if stored == latest:
        return True
    old, new = stored.recommendations, latest.recommendations
    return (
        is_renewed
        and bool(old and new)
        and old[:-1] == new[:-1]
        and old[-1].replicas == new[-1].replicas
        and (stored.scale_ups, stored.scale_downs) == (latest.scale_ups, latest.scale_downs)
        and stored.unread_since == latest.unread_since
        and _not_renewed(latest) <= set(stored.last_proposals)
    )


def _not_renewed(history: History) -> set[LastProposal]:
    """The last proposals that the newest sync did not renew, which must be stored in case the process is killed."""
    newest_at = max([recommendation.at for recommendation in history.recommendations])
    return {last_proposal for last_proposal in history.last_proposals if last_proposal.at < newest_at}


def renewed(stored: History, until_ns: int) -> History:
    """The history whose newest recommendation has the instant `until_ns`, or keeps its own if that is later."""
    if not stored.recommendations:
        return stored
    *older, newest = stored.recommendations
    latest = Recommendation(newest.replicas, max(newest.at, until_ns))
    return msgspec.structs.replace(stored, recommendations=(*older, latest))


def with_later_recommendations(stored: History, span_ns: int, until_ns: int) -> History:
    """The history with every recommendation later by `span_ns`, but moved no further than to `until_ns`, nor back."""
    moved = [
        Recommendation(recommendation.replicas, max(recommendation.at, min(recommendation.at + span_ns, until_ns)))
        for recommendation in stored.recommendations
    ]
    return msgspec.structs.replace(stored, recommendations=tuple(moved))


def not_after(stored: History, now_ns: int) -> History:
    """The history with instants after `now_ns`, which come from another machine's clock, moved to `now_ns`."""
    return _with_instants(stored, lambda instant_ns: min(instant_ns, now_ns))


def _with_instants(stored: History, move: Callable[[int], int]) -> History:
    """The history with `move(instant)` in place of each instant, in ns since the epoch."""
    replace, unread_since = msgspec.structs.replace, stored.unread_since
    return History(
        recommendations=tuple([replace(entry, at=move(entry.at)) for entry in stored.recommendations]),
        scale_ups=tuple([replace(scale_up, at=move(scale_up.at)) for scale_up in stored.scale_ups]),
        scale_downs=tuple([replace(scale_down, at=move(scale_down.at)) for scale_down in stored.scale_downs]),
        last_proposals=tuple([replace(proposal, at=move(proposal.at)) for proposal in stored.last_proposals]),
        unread_since=None if unread_since is None else move(unread_since),
    )


def at_most(stored: History, replicas: int) -> History:
    """The history with every recommendation limited to `replicas`."""
    lowered = [
        Recommendation(min(recommendation.replicas, replicas), recommendation.at)
        for recommendation in stored.recommendations
    ]
    return msgspec.structs.replace(stored, recommendations=tuple(lowered))


def without_change(stored: History, change: int) -> History:
    """The history without its latest scale event, if that is of `change` replicas (below zero: down)."""
    field = "scale_ups" if change > 0 else "scale_downs"
    events: tuple[ScaleEvent, ...] = getattr(stored, field)
    latest = max(events, key=lambda scale_event: scale_event.at, default=None)
    if latest is None or latest.change != abs(change):
        return stored
    return msgspec.structs.replace(stored, **{field: tuple(event for event in events if event is not latest)})


def shifted(stored: History, span_ns: int) -> History:
    """The history with all instants later by `span_ns`: the wall clock was set by so much."""
    return _with_instants(stored, lambda instant_ns: instant_ns + span_ns)


def merged(earlier: History, later: History) -> History:
    """One history of the entries of both; of a metric's last proposals the later one counts."""
    last_proposals = {proposal.metric: proposal for proposal in (*earlier.last_proposals, *later.last_proposals)}
    return History(
        recommendations=(*earlier.recommendations, *later.recommendations),
        scale_ups=(*earlier.scale_ups, *later.scale_ups),
        scale_downs=(*earlier.scale_downs, *later.scale_downs),
        last_proposals=tuple(last_proposals.values()),
        unread_since=earlier.unread_since if later.unread_since is None else later.unread_since,
    )
