"""Aggregation, counting and spam filter of events: each rule of docs/spec/controller.md 6 (Events)."""

import random

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.event_correlation import Correlator, EventDraft

START_NS = 1_767_225_600 * NANOSECONDS
WEB = ("shop", "web", "u1")


def _event(message: str = "m", at_s: float = 0, type_: str = "Warning", reason: str = "R") -> EventDraft:
    return EventDraft(WEB, "web", type_, reason, message, START_NS + round(at_s * NANOSECONDS))


@pytest.fixture
def correlator() -> Correlator:
    """A correlator with nothing seen yet."""
    return Correlator(random.Random(1))


def test_a_new_event_is_named_after_its_object_and_time(correlator: Correlator) -> None:
    """The first of its kind is created under `<name>.<hex nanoseconds>` with count 1."""
    assert correlator.correlate(_event()) == EventDraft(
        WEB, "web", "Warning", "R", "m", START_NS, name=f"web.{START_NS:x}", first_at_ns=START_NS, count=1
    )


def test_a_long_name_is_replaced(correlator: Correlator) -> None:
    """Where name and time make no DNS subdomain a random name is taken."""
    event = EventDraft(("shop", "w" * 250, "u"), "w" * 250, "Normal", "R", "m", START_NS)
    sent = correlator.correlate(event)
    assert sent is not None
    assert (len(sent.name), int(sent.name, 16) > 0) == (32, True)


def test_repeats_are_counted_under_the_first_name(correlator: Correlator) -> None:
    """The same message again raises the count and moves the last time on."""
    correlator.correlate(_event())
    correlator.correlate(_event(at_s=5))
    assert correlator.correlate(_event(at_s=9)) == EventDraft(
        WEB,
        "web",
        "Warning",
        "R",
        "m",
        START_NS + 9 * NANOSECONDS,
        name=f"web.{START_NS:x}",
        first_at_ns=START_NS,
        count=3,
    )


def test_the_tenth_message_is_combined(correlator: Correlator) -> None:
    """Nine messages of one reason go out singly; from the tenth on, one combined event counts."""
    sent = [correlator.correlate(_event(f"m{number}", at_s=number)) for number in range(12)]
    assert [(event.message, event.count, event.is_combined) for event in sent if event is not None] == [
        *((f"m{number}", 1, False) for number in range(9)),
        ("(combined from similar events): m9", 1, True),
        ("(combined from similar events): m10", 2, True),
        ("(combined from similar events): m11", 3, True),
    ]


@pytest.mark.parametrize(("pause_s", "combined"), [(600, True), (600.001, False)])
def test_a_group_starts_anew_after_ten_minutes(correlator: Correlator, pause_s: float, combined: bool) -> None:
    """A group whose last event is more than 600 s old is forgotten."""
    for number in range(9):
        correlator.correlate(_event(f"m{number}"))
    sent = correlator.correlate(_event("m9", at_s=pause_s))
    assert sent is not None
    assert sent.is_combined is combined


def test_other_reasons_are_other_groups(correlator: Correlator) -> None:
    """Messages are gathered for each type and reason."""
    for number in range(9):
        correlator.correlate(_event(f"m{number}"))
    sent = correlator.correlate(_event("m9", reason="Other"))
    assert sent is not None
    assert not sent.is_combined


def test_the_filter_lets_25_through(correlator: Correlator) -> None:
    """The 26th event of an object and type within five minutes is dropped; the other type has a bucket of its own."""
    passed = [correlator.correlate(_event()) is not None for _ in range(27)]
    other = correlator.correlate(_event(type_="Normal"))
    assert (passed, other is not None) == ([True] * 25 + [False] * 2, True)


def test_a_token_comes_back_in_five_minutes(correlator: Correlator) -> None:
    """One token in 300 s; what was dropped in between was counted."""
    for _ in range(27):
        correlator.correlate(_event())
    early = correlator.correlate(_event(at_s=299))
    sent = correlator.correlate(_event(at_s=300))
    assert early is None
    assert sent is not None
    assert sent.count == 29
