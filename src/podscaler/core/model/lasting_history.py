"""What of a history must outlive the process that made it, and what it means to the process that finds it.

Called by the controller's archive of histories. The essence of a history decides as the whole does, for every proposal
and every window that the API admits: an earlier recommendation matters to a window's highest only while no later one is
as high, to its lowest only while no later one is as low.

Invariants: instants are wall-clock, so that another machine can use them. Wherever something is not known exactly, the
younger instant is taken: a window is never cut short, it may last a little longer.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.2 (Stabilisation), 9.3 (Rates and bounds), 10
(Scale-event history).
"""

from collections.abc import Callable, Iterable

import msgspec

from podscaler.core.model.history import History, Recommendation, ScaleEvent

ENTRIES_MAX = 64
"""How many highs, lows and changes of each direction are kept; beyond that, neighbours become one."""


def essence(history: History, since: int) -> History:
    """What has to be kept of a history, in the order of time.

    Args:
        since: what is older than that matters to nobody; the latest recommendation stays all the same.
    """
    ordered = sorted(history.recommendations, key=lambda each: (each.at, each.replicas))
    recent = [each for each in ordered if each.at >= since] or ordered[-1:]
    falling = sorted(recent, key=lambda each: (each.at, -each.replicas))  # of one instant only the farthest counts
    highs = _thinned(_lasting(recent, lambda each, later: each.replicas > later.replicas))
    lows = _thinned(_lasting(falling, lambda each, later: each.replicas < later.replicas))
    return History(
        tuple(sorted({*highs, *lows}, key=lambda each: (each.at, each.replicas))),
        _events(history.scale_ups, since),
        _events(history.scale_downs, since),
    )


def _lasting(
    recent: list[Recommendation], outdoes: Callable[[Recommendation, Recommendation], bool]
) -> list[Recommendation]:
    """The recommendations that outdo every later one, in the order of time."""
    kept: list[Recommendation] = []
    for each in reversed(recent):
        if not kept or outdoes(each, kept[-1]):
            kept.append(each)
    return kept[::-1]


def _thinned(chain: list[Recommendation]) -> list[Recommendation]:
    """The chain; a long one with every two neighbours as one: the farther count at the later instant."""
    while len(chain) > ENTRIES_MAX:
        pairs = zip(chain[:-1:2], chain[1::2], strict=False)
        joined = [Recommendation(first.replicas, second.at) for first, second in pairs]
        chain = [*joined, chain[-1]]
    return chain


def _events(events: Iterable[ScaleEvent], since: int) -> tuple[ScaleEvent, ...]:
    """The changes since then; of very many the oldest as one, at the latest instant of those."""
    recent = sorted([each for each in events if each.at >= since], key=lambda each: each.at)
    surplus = len(recent) - ENTRIES_MAX
    if surplus > 0:
        joined, recent = recent[: surplus + 1], recent[surplus + 1 :]
        recent.insert(0, ScaleEvent(sum(each.change for each in joined), joined[-1].at))
    return tuple(recent)


def is_as_good(kept: History, latest: History, *, goes_on: bool) -> bool:
    """Whether a kept essence says what the latest one says.

    Args:
        goes_on: whether the newest recommendation is renewed by every sync, so that its instant may differ.
    """
    if kept == latest:
        return True
    before, after = kept.recommendations, latest.recommendations
    return (
        goes_on
        and bool(before and after)
        and before[:-1] == after[:-1]
        and before[-1].replicas == after[-1].replicas
        and (kept.scale_ups, kept.scale_downs) == (latest.scale_ups, latest.scale_downs)
    )


def going_on(kept: History, until: int) -> History:
    """The essence, its newest recommendation having been renewed until then."""
    if not kept.recommendations:
        return kept
    *older, newest = kept.recommendations
    renewed = Recommendation(newest.replicas, max(newest.at, until))
    return msgspec.structs.replace(kept, recommendations=(*older, renewed))


def younger(kept: History, span: int, until: int) -> History:
    """The essence with every recommendation younger by up to `span`, but none later than `until`."""
    moved = [Recommendation(each.replicas, max(each.at, min(each.at + span, until))) for each in kept.recommendations]
    return msgspec.structs.replace(kept, recommendations=tuple(moved))


def not_after(kept: History, now: int) -> History:
    """The essence without a future, which clocks that disagree make."""
    return History(
        tuple([Recommendation(each.replicas, min(each.at, now)) for each in kept.recommendations]),
        tuple([_event_not_after(each, now) for each in kept.scale_ups]),
        tuple([_event_not_after(each, now) for each in kept.scale_downs]),
    )


def _event_not_after(event: ScaleEvent, now: int) -> ScaleEvent:
    return event if event.at <= now else msgspec.structs.replace(event, at=now)


def at_most(kept: History, replicas: int) -> History:
    """The essence with every recommendation of more replicas as one of so many."""
    lowered = [Recommendation(min(each.replicas, replicas), each.at) for each in kept.recommendations]
    return msgspec.structs.replace(kept, recommendations=tuple(lowered))


def without_change(kept: History, change: int) -> History:
    """The essence without its latest scale event, if that is of such a change (below zero: down); it never happened."""
    field = "scale_ups" if change > 0 else "scale_downs"
    events: tuple[ScaleEvent, ...] = getattr(kept, field)
    latest = max(events, key=lambda each: each.at, default=None)
    if latest is None or latest.change != abs(change):
        return kept
    return msgspec.structs.replace(kept, **{field: tuple(each for each in events if each is not latest)})


def moved(kept: History, span: int) -> History:
    """The history on a wall clock that was set by so many nanoseconds: everything is as long ago as before."""
    return History(
        tuple([Recommendation(each.replicas, each.at + span) for each in kept.recommendations]),
        tuple([msgspec.structs.replace(each, at=each.at + span) for each in kept.scale_ups]),
        tuple([msgspec.structs.replace(each, at=each.at + span) for each in kept.scale_downs]),
    )


def together(earlier: History, later: History) -> History:
    """Both, as one history: what was found, and what has been added since."""
    return History(
        (*earlier.recommendations, *later.recommendations),
        (*earlier.scale_ups, *later.scale_ups),
        (*earlier.scale_downs, *later.scale_downs),
    )
