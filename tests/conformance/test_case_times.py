"""Which times of an answer are the server's, and which were given to it: a capture holds on any day."""

from datetime import timedelta

import case_times
from differential.normalising import Normaliser

CAPTURED_S = 1_795_262_400.0  # 2026-11-21T12:00:00Z


def _server_times(*requests: object) -> case_times.ServerTimes:
    return case_times.ServerTimes(case_times.instants(requests), lambda: CAPTURED_S)


def test_a_time_that_a_request_gives_is_literal_on_its_own_day_too() -> None:
    """Only what the server sets is hidden: a given time would be wanted within a day of now for ever after."""
    times = _server_times({"eventTime": "2026-11-21T10:00:00Z"})
    answer = {"eventTime": "2026-11-21T10:00:00.000000Z", "creationTimestamp": "2026-11-21T11:59:58Z"}
    assert Normaliser("q", times).pattern(answer) == {
        "eventTime": "2026-11-21T10:00:00.000000Z",
        "creationTimestamp": "<time>",
    }


def test_a_time_of_another_day_is_literal() -> None:
    """The server did not set it during the case."""
    assert _server_times().hidden("from 2026-11-20T11:59:59Z to 2026-11-21T11:59:59Z") == (
        "from 2026-11-20T11:59:59Z to <time>"
    )


def test_moved_times_keep_their_distance() -> None:
    """An object moves as a whole, over the end of a year and a leap day."""
    event = {"first": "2026-12-31T23:59:59Z", "last": ["2027-02-28T23:59:59.5Z"], "count": 2}
    assert case_times.moved(event, timedelta(days=365, seconds=1)) == {
        "first": "2028-01-01T00:00:00Z",
        "last": ["2028-02-29T00:00:00Z"],
        "count": 2,
    }
