"""The small texts of tables."""

import pytest

from podscaler.api.machinery import printing

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
_T0 = "2026-01-01T00:00:00Z"
_T0_NS = 1_767_225_600 * 10**9


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-2, "<invalid>", id="in the future"),
        pytest.param(-1, "0s", id="clocks differ by a second"),
        pytest.param(0, "0s", id="now"),
        pytest.param(119, "119s", id="last of seconds"),
        pytest.param(120, "2m", id="first of minutes"),
        pytest.param(599, "9m59s", id="last with seconds"),
        pytest.param(600, "10m", id="first without seconds"),
        pytest.param(659, "10m", id="seconds dropped"),
        pytest.param(3 * _HOUR - 1, "179m", id="last of minutes"),
        pytest.param(3 * _HOUR, "3h", id="first of hours"),
        pytest.param(3 * _HOUR + _MINUTE, "3h1m", id="hours with minutes"),
        pytest.param(8 * _HOUR - 1, "7h59m", id="last with minutes"),
        pytest.param(8 * _HOUR + 59 * _MINUTE, "8h", id="first without minutes"),
        pytest.param(48 * _HOUR - 1, "47h", id="last of hours"),
        pytest.param(48 * _HOUR, "2d", id="first of days"),
        pytest.param(2 * _DAY + 5 * _HOUR, "2d5h", id="days with hours"),
        pytest.param(8 * _DAY - 1, "7d23h", id="last with hours"),
        pytest.param(8 * _DAY + _HOUR, "8d", id="first without hours"),
        pytest.param(2 * _YEAR - 1, "729d", id="last of days"),
        pytest.param(2 * _YEAR, "2y", id="first of years"),
        pytest.param(2 * _YEAR + 3 * _DAY, "2y3d", id="years with days"),
        pytest.param(8 * _YEAR - 1, "7y364d", id="last with days"),
        pytest.param(8 * _YEAR + 3 * _DAY, "8y", id="years alone"),
    ],
)
def test_elapsed_has_two_units_at_most(seconds: int, text: str) -> None:
    """Spans are as precise as people need: the smaller unit goes as the larger one grows."""
    assert printing.elapsed(seconds) == text


@pytest.mark.parametrize(
    ("now_ns", "text"),
    [
        (_T0_NS + 1_999_999_999, "1s"),
        (_T0_NS - 999_999_999, "0s"),
        (_T0_NS - 1_999_999_999, "0s"),
        (_T0_NS - 2_000_000_000, "<invalid>"),
    ],
)
def test_age_counts_whole_seconds_towards_zero(now_ns: int, text: str) -> None:
    """Parts of a second are cut off on both sides of zero."""
    assert printing.age(_T0, now_ns) == text


def test_age_without_an_instant_is_unknown() -> None:
    """An object without creationTimestamp has an unknown age."""
    assert [printing.age(None, _T0_NS), printing.age("", _T0_NS)] == ["<unknown>", "<unknown>"]


def test_labels_are_sorted() -> None:
    """A map of labels reads the same whatever its order."""
    assert [printing.labels({"b": "2", "a": "1"}), printing.labels({}), printing.labels(None)] == [
        "a=1,b=2",
        "<none>",
        "<none>",
    ]


def test_long_lists_are_cut_short() -> None:
    """After the first few the rest is counted."""
    assert [printing.cut_short(items, 3) for items in ([], ["a"], ["a", "b", "c"], ["a", "b", "c", "d", "e"])] == [
        "<unset>",
        "a",
        "a,b,c",
        "a,b,c + 2 more...",
    ]
