"""The memory of an autoscaler: slots, outdated events, bounded growth.

Source: docs/spec/decision.md 8 (Normalisation without behavior), 10 (Scale-event history).
"""

import pytest

from podscaler.core.model import history
from podscaler.core.model.history import EMPTY, History, Recommendation, ScaleEvent


def test_the_first_recommendation_is_what_was_there() -> None:
    """A target that is seen for the first time starts with its current count as a recommendation, once."""
    first = history.with_first_recommendation(EMPTY, 3, 100)
    assert (first, history.with_first_recommendation(first, 5, 200)) == (History((Recommendation(3, 100),)), first)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], [(7, 100, False)]),
        ([(1, 50, False)], [(1, 50, False), (7, 100, False)]),
        ([(1, 40, False)], [(1, 40, False), (7, 100, False)]),
        ([(1, 39, False)], [(7, 100, False)]),
        ([(1, 10, False), (2, 20, False), (3, 50, False)], [(1, 10, True), (7, 100, False), (3, 50, False)]),
        ([(1, 90, True)], [(7, 100, False)]),
    ],
    ids=["first", "within", "at the cutoff", "before the cutoff", "the last outdated slot", "never unmarked"],
)
def test_scale_events(before: list[tuple[int, int, bool]], after: list[tuple[int, int, bool]]) -> None:
    """Events before the cutoff (40) become outdated; the last outdated slot takes the new event, one at most."""
    events = tuple(ScaleEvent(*each) for each in before)
    assert history.with_scale_event(events, ScaleEvent(7, 100), 40) == tuple(ScaleEvent(*each) for each in after)


def test_changes_since() -> None:
    """Changes strictly after the cutoff are summed as an int32."""
    events = [ScaleEvent(1, 10), ScaleEvent(2, 20), ScaleEvent(2**31 - 1, 30)]
    assert [history.change_since(events, cutoff) for cutoff in (9, 10, 20, 30)] == [
        -(2**31) + 2,
        -(2**31) + 1,
        2**31 - 1,
        0,
    ]


def test_memory_is_bounded() -> None:
    """With one rescale a turn and policies of ten turns, no more events are kept than the policies can see."""
    events: tuple[ScaleEvent, ...] = ()
    for turn in range(1000):
        events = history.with_scale_event(events, ScaleEvent(1, turn), turn - 10)
    assert len(events) == 11
