"""Records of histories: texts, what may stay unwritten, and what they mean to the process that finds them."""

from typing import Any

import msgspec
import pytest

from podscaler.api.typed.autoscaling import MetricValueStatus
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import Heartbeat, HistoryRecord, RestoredHistory
from podscaler.core.model.history import History, LastProposal, Recommendation, ScaleEvent

AT = 1_767_225_600 * NANOSECONDS


def at(second: float) -> int:
    """An instant, in seconds from the first."""
    return AT + round(second * NANOSECONDS)


PAST = History((Recommendation(9, at(-40)), Recommendation(5, at(0))), (ScaleEvent(4, at(-60)),))


def record(**changes: object) -> HistoryRecord:
    """A record saved at 10 s, whose newest recommendation is renewed by every sync."""
    fields = {"uid": "u1", "writer": "w", "saved_at": at(10), "history": PAST, "replicas": 5, "goes_on": True}
    return HistoryRecord(**(fields | changes))  # type: ignore[arg-type]  # a table of fields


def test_round_trip() -> None:
    """Records and beats that are written are read again, to the nanosecond."""
    whole = record(saved_at=at(10) + 7, rescaled_from=3)
    assert history_record.decode(history_record.encode(whole)) == whole
    assert history_record.decode_heartbeat(history_record.encode_heartbeat(Heartbeat(at(1), True))) == Heartbeat(
        at(1), True
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"uid":"u","writer":"w","savedAt":"x"}', "\ud800"], ids=repr)
def test_nonsense(text: str) -> None:
    """What is no record is a ValueError."""
    with pytest.raises(ValueError, match=r".+"):
        history_record.decode(text)


@pytest.mark.parametrize(
    ("latest", "is_as_good"),
    [
        (record(saved_at=at(99)), True),
        (record(history=History((PAST.recommendations[0], Recommendation(5, at(60))), PAST.scale_ups)), True),
        (record(history=History((PAST.recommendations[0], Recommendation(4, at(60))), PAST.scale_ups)), False),
        (record(history=History(PAST.recommendations, (ScaleEvent(4, at(5)),))), False),
        (record(uid="u2"), False),
        (record(writer="x"), False),
        (record(replicas=6), False),
        (record(goes_on=False), False),
        (record(rescaled_from=3), True),
    ],
    ids=[
        "saved later",
        "renewed",
        "another count",
        "a change",
        "another object",
        "another writer",
        "replicas",
        "ended",
        "a rescale that was written since",
    ],
)
def test_what_needs_no_write(latest: HistoryRecord, is_as_good: bool) -> None:
    """Only the instant of a recommendation that goes on may differ."""
    assert history_record.is_as_good(record(), latest) is is_as_good


def test_a_renewed_recommendation_that_does_not_go_on_is_a_change() -> None:
    """The instant of the last recommendation is kept once syncs make no more of them."""
    later = History((PAST.recommendations[0], Recommendation(5, at(60))), PAST.scale_ups)
    assert not history_record.is_as_good(record(goes_on=False), record(goes_on=False, history=later))


@pytest.mark.parametrize(
    ("kept", "beat", "now_s", "expected"),
    [
        (record(), Heartbeat(at(30), ended=True), 500, ((9, -40), (5, 0))),
        (record(), Heartbeat(at(30)), 500, ((9, 20), (5, 90))),
        (record(), Heartbeat(at(30)), 35, ((9, 20), (5, 35))),
        (record(), Heartbeat(at(3600)), 9000, ((9, 20), (5, 3660))),
        (record(goes_on=False), Heartbeat(at(3600)), 9000, ((9, 20), (5, 60))),
        (record(), None, 500, ((9, 20), (5, 70))),
        (record(), Heartbeat(at(30), ended=True), -10, ((9, -40), (5, -10))),
    ],
    ids=[
        "an orderly end: as it was saved",
        "a kill: a minute younger, and until a minute after the last sign of life",
        "a kill just now: nothing is in the future",
        "a kill long after the record",
        "no recommendation in the end",
        "no heartbeat ever",
        "a clock that is behind",
    ],
)
def test_what_is_found(
    kept: HistoryRecord, beat: Heartbeat | None, now_s: float, expected: tuple[tuple[int, float], ...]
) -> None:
    """Recommendations as (replicas, second); changes keep their instants."""
    found = history_record.continued(kept, beat, at(now_s))
    assert tuple((each.replicas, (each.at - AT) / NANOSECONDS) for each in found.recommendations) == expected
    assert [each.at for each in found.scale_ups] == [min(at(-60), at(now_s))]


UPS = History((Recommendation(9, at(-40)), Recommendation(5, at(0))), (ScaleEvent(4, at(-60)), ScaleEvent(2, at(0))))


@pytest.mark.parametrize(
    ("present", "fields", "has_behavior", "expected"),
    [
        (5, {"is_complete": True}, False, ((9, -40), (5, 0))),
        (5, {}, False, ((5, -40), (5, 0))),
        (5, {}, True, ((9, -40), (5, 0))),
        (3, {"is_complete": True}, False, ((3, -40), (3, 0), (3, 50))),
        (3, {}, True, ((3, -40), (3, 0), (3, 50))),
        (7, {"is_complete": True}, False, ((9, -40), (5, 0), (7, 50))),
        (7, {}, False, ((7, -40), (5, 0), (7, 50))),
        (3, {"rescaled_from": 3}, False, ((3, -40), (3, 0))),
        (3, {"rescaled_from": 3}, True, ((9, -40), (5, 0))),
        (5, {"replicas": None}, False, ((5, -40), (5, 0))),
    ],
    ids=[
        "an orderly end",
        "a kill: what is higher scales nothing up",
        "a kill: with a behavior it scales nothing up anyway",
        "fewer than it was left with",
        "fewer, with a behavior",
        "more than it was left with",
        "more, after a kill",
        "a rescale that was stored and not written",
        "a rescale that was not written, with a behavior",
        "nobody knows what it was left with",
    ],
)
def test_what_is_resumed(
    present: int, fields: dict[str, Any], has_behavior: bool, expected: tuple[tuple[int, float], ...]
) -> None:
    """Recommendations as (replicas, second), where the target was left with five and has `present` at 50 s."""
    found = RestoredHistory(**({"history": PAST, "replicas": 5} | fields))
    resumed = history_record.resumed(found, present, at(50), has_behavior=has_behavior)
    assert tuple((each.replicas, (each.at - AT) / NANOSECONDS) for each in resumed.recommendations) == expected


@pytest.mark.parametrize(
    ("present", "expected"), [(3, (4,)), (5, (4, 2)), (4, (4, 2))], ids=["not written", "written", "another's"]
)
def test_a_rescale_that_was_not_written_did_not_happen(present: int, expected: tuple[int, ...]) -> None:
    """Policies do not count it; they do where the target has something else than before it."""
    found = RestoredHistory(UPS, 5, rescaled_from=3)
    resumed = history_record.resumed(found, present, at(50), has_behavior=True)
    assert tuple(each.change for each in resumed.scale_ups) == expected


@pytest.mark.parametrize(
    ("latest", "replicas", "second", "fields", "expected"),
    [
        (9, 9, 20, {}, False),
        (9, 9, 21, {}, True),
        (9, 5, 99, {}, False),
        (9, 5, 99, {"goes_on": False}, True),
        (5, 9, 99, {}, False),
        (4, 5, 99, {}, False),
        (4, 4, 99, {}, True),
        (None, 9, 99, {}, False),
    ],
    ids=[
        "recommended a minute ago",
        "recommended longer ago",
        "above what the target has, which goes on",
        "above, and nothing goes on",
        "goes on",
        "below what goes on",
        "lower than ever: it holds back scale-ups",
        "no recommendation",
    ],
)
def test_what_holds_longer_than_a_record_tells(
    latest: int | None, replicas: int, second: int, fields: dict[str, Any], expected: bool
) -> None:
    """The record: nine at -40 s, five at 0 s and ever since."""
    history = PAST if latest is None else History((*PAST.recommendations, Recommendation(latest, at(second))))
    found = history_record.prolongs(record(**fields), history, replicas=replicas, at=at(second))
    assert found is expected


def test_a_look_from_outside_changes_nothing_but_what_goes_on() -> None:
    """What explains a controller at work takes records as they are saved."""
    seen = history_record.current(record(), Heartbeat(at(30)), at(80))
    assert seen.recommendations == (Recommendation(9, at(-40)), Recommendation(5, at(80)))
    assert history_record.current(record(goes_on=False), Heartbeat(at(30)), at(80)) == PAST


@pytest.mark.parametrize(("minutes", "is_future"), [(5, False), (5.001, True)])
def test_the_future(minutes: float, is_future: bool) -> None:
    """Clocks may be five minutes apart."""
    assert history_record.is_from_future(record(saved_at=at(60 * minutes)), AT) is is_future


def test_data_keys() -> None:
    """Namespace and name; a hash of the name where both are too long for a ConfigMap."""
    long = "n" * 253
    keys = [history_record.data_key(("shop", name)) for name in ("web.v1", long, long[:-1] + "m")]
    assert (keys[0], [len(key) for key in keys[1:]], keys[1] == keys[2]) == ("shop.web.v1", [69, 69], False)


READ = LastProposal("m", 5, at(0), MetricValueStatus(value="5"))
FAILED = History(PAST.recommendations, PAST.scale_ups, (), (READ,), at(15))


def test_last_proposals_are_kept() -> None:
    """They are as in the history, to the nanosecond."""
    kept = record(history=FAILED)
    assert history_record.decode(history_record.encode(kept)) == kept


@pytest.mark.parametrize(
    ("kept", "latest", "expected"),
    [
        (PAST, FAILED, True),
        (FAILED, FAILED, False),
        (msgspec.structs.replace(FAILED, unread_since=None), FAILED, True),
        (FAILED, msgspec.structs.replace(FAILED, unread_since=None), False),
        (PAST, msgspec.structs.replace(PAST, last_proposals=(msgspec.structs.replace(READ, at=at(15)),)), False),
    ],
    ids=["begins", "goes on", "no metric any more", "one metric again", "all are read"],
)
def test_the_beginning_of_a_failure(kept: History, latest: History, expected: bool) -> None:
    """It is to be stored soon; values that each sync renews are not."""
    assert history_record.lacks_failure(record(history=kept), latest, at=at(15)) is expected


def test_values_that_are_renewed_cost_no_write() -> None:
    """While all metrics can be read, a newer instant is no change."""

    def renewed(second: int) -> HistoryRecord:
        recommendations = (PAST.recommendations[0], Recommendation(5, at(second)))
        last = (msgspec.structs.replace(READ, at=at(second)),)
        return record(history=History(recommendations, PAST.scale_ups, (), last))

    assert history_record.is_as_good(renewed(0), renewed(15))
