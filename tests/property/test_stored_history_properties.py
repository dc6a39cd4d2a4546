"""The essence of a history decides as the whole does; what is not known exactly never cuts a window short."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from podscaler.core.limits import stabilization
from podscaler.core.model import history, stored_history
from podscaler.core.model.history import History, Recommendation, ScaleEvent
from podscaler.core.model.settings import SECOND_NS, Settings

HOUR_S = 3600
TIMES_S = st.integers(0, HOUR_S)
RECOMMENDATIONS = st.lists(
    st.builds(Recommendation, st.integers(0, 9), TIMES_S.map(lambda s: s * SECOND_NS)), max_size=40
)
EVENTS = st.lists(st.builds(ScaleEvent, st.integers(1, 9), TIMES_S.map(lambda s: s * SECOND_NS)), max_size=40)
HISTORIES = st.builds(lambda *parts: History(*(tuple(part) for part in parts)), RECOMMENDATIONS, EVENTS, EVENTS)
NOW = HOUR_S * SECOND_NS
WINDOWS_S = st.integers(0, HOUR_S)


@given(HISTORIES, st.integers(0, 9), st.integers(0, 9), WINDOWS_S, WINDOWS_S)
@settings(deadline=None)
def test_windows_see_the_same(past: History, proposal: int, current: int, down_s: int, up_s: int) -> None:
    """For every proposal and every window the stabilized count and the condition are the same."""
    kept = stored_history.compacted(past, 0)
    windows_ns = (down_s * SECOND_NS, up_s * SECOND_NS)
    flags = Settings(downscale_stabilization_ns=windows_ns[0])
    by_flag = [stabilization.by_flag(each.recommendations, proposal, NOW, flags) for each in (past, kept)]
    by_behavior = [
        stabilization.by_behavior(each.recommendations, proposal, current, now_ns=NOW, windows_ns=windows_ns)
        for each in (past, kept)
    ]
    for whole, lasting in (by_flag, by_behavior):
        assert (lasting.step.result, lasting.condition) == (whole.step.result, whole.condition)


@given(HISTORIES, WINDOWS_S)
def test_policies_count_the_same(past: History, period_s: int) -> None:
    """What was added and removed within any period is the same."""
    kept, cutoff = stored_history.compacted(past, 0), NOW - period_s * SECOND_NS
    for whole, lasting in ((past.scale_ups, kept.scale_ups), (past.scale_downs, kept.scale_downs)):
        assert history.change_since(lasting, cutoff) == history.change_since(whole, cutoff)


@given(HISTORIES)
@example(History((Recommendation(0, SECOND_NS), Recommendation(2, 0), Recommendation(1, 0)), (), ()))
def test_the_essence_of_an_essence_is_itself(past: History) -> None:
    """Nothing is lost by being kept twice."""
    kept = stored_history.compacted(past, 0)
    assert stored_history.compacted(kept, 0) == kept


@given(HISTORIES, st.integers(0, 300), WINDOWS_S)
def test_younger_holds_at_least_as_long(past: History, span_s: int, window_s: int) -> None:
    """Recommendations that count as younger hold a scale-down at least as high, and a scale-up at least as low."""
    kept, later = stored_history.compacted(past, 0), NOW + 60 * SECOND_NS
    moved = stored_history.with_later_recommendations(kept, span_s * SECOND_NS, NOW)
    windows_ns = (window_s * SECOND_NS, window_s * SECOND_NS)
    before, after = (
        stabilization.by_behavior(each.recommendations, 5, 5, now_ns=later, windows_ns=windows_ns).step
        for each in (kept, moved)
    )
    assert after.highest >= before.highest
    assert (after.lowest or 0) <= (before.lowest or 0)


@given(st.integers(65, 400))
def test_the_size_is_bounded(count: int) -> None:
    """Long declines and many changes are kept with fewer entries, which hold as long and count as much."""
    falling = tuple(Recommendation(1000 - number, number * SECOND_NS) for number in range(count))
    events = tuple(ScaleEvent(1, number * SECOND_NS) for number in range(count))
    kept = stored_history.compacted(History(falling, events, events), 0)
    assert len(kept.recommendations) <= 2 * stored_history.ENTRIES_MAX
    assert len(kept.scale_ups) == len(kept.scale_downs) == stored_history.ENTRIES_MAX
    for second in range(0, count, 7):
        full, small = (
            max((each.replicas for each in some if each.at >= second * SECOND_NS), default=0)
            for some in (falling, kept.recommendations)
        )
        assert small >= full
        assert history.change_since(kept.scale_ups, second * SECOND_NS) >= history.change_since(
            events, second * SECOND_NS
        )
