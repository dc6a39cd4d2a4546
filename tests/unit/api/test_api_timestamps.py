"""Rules of the instants in API objects. The texts of errors were measured with Go's time.Parse."""

import pytest

from podscaler.api.machinery import timestamps


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.999Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T01:00:00+02:00", "2023-12-31T23:00:00Z"),
        ("2024-01-01T01:00:00,5-02:30", "2024-01-01T03:30:00Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
    ],
)
def test_times_are_shown_in_utc_seconds(text, shown):
    """A Time loses its fraction and its zone."""
    assert timestamps.normalize_time(text) == shown


LAYOUT = '"2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x", f'parsing time "x" as {LAYOUT}: cannot parse "x" as "2006"'),
        ("", f'parsing time "" as {LAYOUT}: cannot parse "" as "2006"'),
        ("é", f'parsing time "\\xc3\\xa9" as {LAYOUT}: cannot parse "\\xc3\\xa9" as "2006"'),
        (
            "2024-1-01T00:00:00Z",
            f'parsing time "2024-1-01T00:00:00Z" as {LAYOUT}: cannot parse "1-01T00:00:00Z" as "01"',
        ),
        ("2024-01-01", f'parsing time "2024-01-01" as {LAYOUT}: cannot parse "" as "T"'),
        ("2024-01-01T00:00:00", f'parsing time "2024-01-01T00:00:00" as {LAYOUT}: cannot parse "" as "Z07:00"'),
        ("2024-01-01T00:00:00.Z", f'parsing time "2024-01-01T00:00:00.Z" as {LAYOUT}: cannot parse ".Z" as "Z07:00"'),
        ("2024-13-01T00:00:00Z", 'parsing time "2024-13-01T00:00:00Z": month out of range'),
        ("2024-02-30T00:00:00Z", 'parsing time "2024-02-30T00:00:00Z": day out of range'),
        ("2024-01-01T24:00:00Z", 'parsing time "2024-01-01T24:00:00Z": hour out of range'),
        ("2024-01-01T00:61:00Z", 'parsing time "2024-01-01T00:61:00Z": minute out of range'),
        ("2024-01-01T00:00:00+25:00", 'parsing time "2024-01-01T00:00:00+25:00": time zone offset hour out of range'),
        ("2024-01-01T00:00:00Zx", 'parsing time "2024-01-01T00:00:00Zx": extra text: "x"'),
    ],
    ids=lambda text: text[:30],
)
def test_bad_times_have_go_s_errors(text, error):
    """What is not RFC 3339 is refused in the words of Go's time.Parse."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared below
        timestamps.normalize_time(text)
    assert str(refused.value) == error


def test_micro_times_need_exactly_six_digits():
    """A MicroTime keeps its digits, and a text without them is refused."""
    assert timestamps.normalize_micro_time("2024-01-01T01:00:00.123456+01:00") == "2024-01-01T00:00:00.123456Z"
    with pytest.raises(ValueError, match=r'cannot parse "\.12Z" as "\.000000"'):
        timestamps.normalize_micro_time("2024-01-01T00:00:00.12Z")
