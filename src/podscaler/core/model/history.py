"""What a decision remembers of earlier ones: recommendations, and the changes that were made.

Kept by the controller and the replay for each autoscaler, given to `decide` and returned by it, changed.

Invariants: immutable; both lists stay short, because an entry that no window reaches any more is overwritten before the
list grows.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 9.2 (Stabilisation), 10 (Scale-event history).
"""

from collections.abc import Sequence

import msgspec

from podscaler.api.machinery import numbers


class Recommendation(msgspec.Struct, frozen=True, gc=False):
    """What an earlier sync wanted before any limit."""

    replicas: int
    at: int


class ScaleEvent(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A change that an earlier sync made: by how many replicas, when, and whether all policies have forgotten it."""

    change: int
    at: int
    is_outdated: bool = False


class History(msgspec.Struct, frozen=True):
    """The memory of one autoscaler, oldest slots first (a reused slot keeps its place)."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_ups: tuple[ScaleEvent, ...] = ()
    scale_downs: tuple[ScaleEvent, ...] = ()


EMPTY = History()


def begun(history: History, replicas: int, now: int) -> History:
    """`history` with a first recommendation, if it has none: what the target had when it was first seen."""
    if history.recommendations:
        return history
    return msgspec.structs.replace(history, recommendations=(Recommendation(replicas, now),))


def recommended(
    recommendations: tuple[Recommendation, ...], latest: Recommendation, slot: int | None
) -> tuple[Recommendation, ...]:
    """The recommendations with `latest` in `slot`, or appended where there is none to reuse."""
    if slot is None:
        return (*recommendations, latest)
    return (*recommendations[:slot], latest, *recommendations[slot + 1 :])


def changed_since(events: Sequence[ScaleEvent], cutoff: int) -> int:
    """The sum (int32) of the changes made after `cutoff`."""
    return numbers.wrap32(sum(event.change for event in events if event.at > cutoff))


def recorded(events: tuple[ScaleEvent, ...], latest: ScaleEvent, cutoff: int) -> tuple[ScaleEvent, ...]:
    """The events with those before `cutoff` marked outdated and `latest` in the last outdated slot, or appended."""
    marked = [_marked(event, cutoff) for event in events]
    slots = [index for index, event in enumerate(marked) if event.is_outdated]
    if slots:
        marked[slots[-1]] = latest
    else:
        marked.append(latest)
    return tuple(marked)


def _marked(event: ScaleEvent, cutoff: int) -> ScaleEvent:
    if event.is_outdated or event.at >= cutoff:
        return event
    return msgspec.structs.replace(event, is_outdated=True)
