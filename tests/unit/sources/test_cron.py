"""The source cron: values by the time of day, in every time zone."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.sources.protocol import InvalidSource, SourceConfig
from podscaler.sources.systems.cron import CronSource
from podscaler.testing import VirtualClock

OFFICE = {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "insideValue": 10, "outsideValue": 2}


class At(VirtualClock):
    """A clock that shows one time."""

    def __init__(self, local: str, zone: str) -> None:
        super().__init__()
        self._now_ns = int(datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)).timestamp()) * NANOSECONDS

    def now_ns(self) -> int:
        """The time."""
        return self._now_ns


async def value_at(local: str, zone: str = "Europe/Berlin", **settings: Any) -> float:
    """The value of the office hours (or others) at a local time."""
    config = SourceConfig(OFFICE | {"timeZone": zone} | settings, At(local, zone))
    return float(await CronSource(config).read())


@pytest.mark.parametrize(
    ("local", "value"),
    [
        pytest.param("2026-11-23T07:59:59", 2, id="a second before the start"),
        pytest.param("2026-11-23T08:00:00", 10, id="at the start"),
        pytest.param("2026-11-23T17:59:59", 10, id="a second before the end"),
        pytest.param("2026-11-23T18:00:00", 2, id="at the end"),
        pytest.param("2026-11-22T12:00:00", 2, id="on a Sunday"),
        pytest.param("2026-11-27T19:00:00", 2, id="before a weekend"),
    ],
)
async def test_office_hours(local: str, value: float) -> None:
    """From a start to the next end."""
    assert await value_at(local) == value


@pytest.mark.parametrize(
    ("local", "value"),
    [("2026-11-23T21:00:00", 2), ("2026-11-23T22:00:00", 10), ("2026-11-24T05:59:59", 10), ("2026-11-24T06:00:00", 2)],
)
async def test_over_midnight(local: str, value: float) -> None:
    """A start may be later in the day than the end."""
    assert await value_at(local, start="0 22 * * *", end="0 6 * * *") == value


@pytest.mark.parametrize(("zone", "value"), [("Asia/Tokyo", 10), ("America/New_York", 2), ("UTC", 2)])
async def test_time_zones(zone: str, value: float) -> None:
    """It is nine in the morning in Tokyo, and midnight in Greenwich."""
    config = SourceConfig(OFFICE | {"timeZone": zone}, At("2026-11-24T09:00:00", "Asia/Tokyo"))
    assert await CronSource(config).read() == value


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
@pytest.mark.parametrize(("time", "value"), [("07:59:59", 2), ("08:00:00", 10), ("18:00:00", 2)])
async def test_days_with_a_change_of_the_clock(day: str, time: str, value: float) -> None:
    """Local time counts, in summer as in winter."""
    assert await value_at(f"{day}T{time}", start="0 8 * * *", end="0 18 * * *") == value


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"start": "0 8 * *"}, "the cron expression 0 8 * * does not have five fields"),
        ({"start": "0 25 * * *"}, "the cron expression 0 25 * * * is invalid, or is never due"),
        ({"start": "0 0 31 2 *"}, "the cron expression 0 0 31 2 * is invalid, or is never due"),
        ({"timeZone": "Mars/Base"}, "the time zone Mars/Base is unknown"),
        ({"timeZone": "../etc/passwd"}, "the time zone ../etc/passwd is unknown"),
        ({"end": OFFICE["start"]}, "start and end are at the same time"),
    ],
)
def test_invalid_settings(settings: dict[str, Any], text: str) -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource) as caught:
        CronSource(SourceConfig(OFFICE | settings, VirtualClock()))
    assert str(caught.value) == text


def test_the_query() -> None:
    """Both expressions, and the time zone."""
    made = CronSource(SourceConfig(OFFICE, VirtualClock()))
    assert made.query == "cron from 0 8 * * 1-5 to 0 18 * * 1-5 in UTC"
