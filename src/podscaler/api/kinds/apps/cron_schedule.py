"""The schedule of a CronJob: its next times in a time zone.

The record of CronJob checks schedules with it, and the CronJob controller reads the times.

Source: cronsim's documentation.
Differs: `@every` is refused; daylight saving time follows Debian's cron; the words of most errors are cronsim's.
"""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import PodscalerError

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELD_COUNT = 5
"""Minute, hour, day of the month, month, day of the week."""
_ZONE_SEGMENT = re.compile(r"[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}", re.ASCII)


class ScheduleError(PodscalerError):
    """A schedule or a time zone that cannot be used; the message says why, for the user."""


def parse_zone(name: str) -> ZoneInfo:
    """The time zone of a name of the IANA database (`Europe/Berlin`). Raises ScheduleError for an unknown one."""
    segments = name.split("/")
    if not all(_ZONE_SEGMENT.fullmatch(segment) for segment in segments) or not {".", ".."}.isdisjoint(segments):
        raise ScheduleError(f"unknown time zone {name}")
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ScheduleError(f"unknown time zone {name}") from None


class CronSchedule:
    """A parsed schedule.

    Args:
        schedule: five fields, or a macro such as `@hourly`.
        zone: the time zone of the fields; None: UTC.

    Raises ScheduleError.
    """

    def __init__(self, schedule: str, zone: ZoneInfo | None = None) -> None:
        self._zone = zone or UTC
        self._expression = _MACROS.get(schedule, schedule).replace("?", "*")
        fields = self._expression.split()
        if schedule.startswith("@") and schedule not in _MACROS:
            raise ScheduleError(f"unrecognized descriptor: {schedule}")
        if not fields:
            raise ScheduleError("empty spec string")
        if len(fields) != _FIELD_COUNT:
            raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
        self.next_ns(0)  # raises for invalid fields, and for a schedule that is never due

    def next_ns(self, after_ns: int) -> int:
        """The first time after an instant, both in nanoseconds since the epoch.

        Raises ScheduleError for fields that are invalid or never met, such as 31 February.
        """
        from cronsim import CronSim, CronSimError

        after = datetime.fromtimestamp(after_ns // NANOSECONDS, UTC).astimezone(self._zone)
        try:
            return int(next(CronSim(self._expression, after)).timestamp()) * NANOSECONDS
        except (CronSimError, StopIteration) as error:
            raise ScheduleError(str(error) or "the schedule is never due") from None
