"""What becomes of reported events."""

from podscaler.clock import NANOSECONDS
from podscaler.controlplane.event_correlation import EventCorrelator, Report


def report(message: str, *, reason: str = "BackOff", type: str = "Warning") -> Report:
    return Report(subject=("Pod", "default", "web"), object_name="web", type=type, reason=reason, message=message)


def test_a_repeated_event_is_counted() -> None:
    """The same report again raises the count of the one Event that stands for it."""
    correlator = EventCorrelator()
    seen = [correlator.correlate(report("again"), now_ns) for now_ns in (10, 20, 30)]
    assert [(w.name, w.first_ns) for w in seen if w] == [("web.a", 10)] * 3
    assert seen[-1] is not None
    assert seen[-1].count == 3


def test_events_of_one_instant_have_names_of_their_own() -> None:
    """Two different reports at the same nanosecond are two Events."""
    correlator = EventCorrelator()
    names = {w.name for text in ("one", "two") if (w := correlator.correlate(report(text), 10))}
    assert names == {"web.a", "web.b"}


def test_many_similar_events_become_one() -> None:
    """The tenth different message within ten minutes is combined, and counted from there."""
    correlator = EventCorrelator()
    seen = [correlator.correlate(report(f"no {i}"), i) for i in range(12)]
    texts = [w.message for w in seen if w]
    assert texts[8] == "no 8"
    assert texts[-1] == "(combined from similar events): no 11"
    assert seen[-1] is not None
    assert seen[-1].count == 3


def test_similar_events_far_apart_stay_single() -> None:
    """More than ten minutes of silence start a new group."""
    correlator = EventCorrelator()
    seen = [correlator.correlate(report(f"no {i}"), i * 601 * NANOSECONDS) for i in range(12)]
    assert [w.message for w in seen if w] == [f"no {i}" for i in range(12)]


def test_a_flood_is_cut_and_refills_slowly() -> None:
    """25 events at once, then one every 300 s for each type; dropped ones are counted."""
    correlator = EventCorrelator()
    passed = [correlator.correlate(report("again"), 0) is not None for _ in range(30)]
    assert passed == [True] * 25 + [False] * 5
    assert correlator.correlate(report("again", type="Normal"), 0) is not None
    assert correlator.correlate(report("again"), 299 * NANOSECONDS) is None
    after = correlator.correlate(report("again"), 301 * NANOSECONDS)
    assert after is not None
    assert after.count == 32
