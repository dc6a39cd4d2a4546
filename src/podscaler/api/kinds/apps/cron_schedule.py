"""The schedule of a CronJob: its next times in a time zone.

The record of CronJob checks schedules with it, and the CronJob controller reads the times. The times are computed by
cronsim, which follows Debian's cron; fields are rewritten where robfig/cron, the library of upstream, differs.

Source: the documentation of cronsim and of robfig/cron v3.
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
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""The lowest and highest number of each field."""
_PART = re.compile(r"(?P<low>\*|[0-9]{1,10}|[A-Za-z]{3})(-(?P<high>[0-9]{1,10}|[A-Za-z]{3}))?(/(?P<step>[0-9]{1,10}))?")
"""One of the parts of a field, which commas separate: `*`, `*/5`, `8-18/2`, `MON-FRI`."""
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
        normalized = [_normalize(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
        for index, field in enumerate(normalized):  # one by one: 31 February is valid, although it never comes
            _check(" ".join(["*"] * index + [field] + ["*"] * (_FIELD_COUNT - index - 1)))
        self._expression = " ".join(normalized)

    def next_ns(self, after_ns: int) -> int:
        """The first time after an instant, both in nanoseconds since the epoch.

        Raises ScheduleError for fields that are never met, such as 31 February.
        """
        from cronsim import CronSim, CronSimError

        after = datetime.fromtimestamp(after_ns // NANOSECONDS, UTC).astimezone(self._zone)
        try:
            return int(next(CronSim(self._expression, after)).timestamp()) * NANOSECONDS
        except (CronSimError, StopIteration) as error:
            raise ScheduleError(str(error) or "the schedule is never due") from None


def _normalize(field: str, lowest: int, highest: int) -> str:
    """A field as cronsim reads it with the meaning of robfig/cron. Raises ScheduleError for what only cronsim accepts.

    Empty parts are left out; `5/15` goes up to the highest number. Of the day fields a step makes a list of `*`: with
    `*` as a part only the other day field decides, and `*/2` is not `*`.

    Args:
        lowest, highest: the range of the field's numbers.
    """
    parts = [part for part in field.split(",") if part]
    rewritten = []
    for part in parts:
        match = _PART.fullmatch(part)
        if match is None:
            raise ScheduleError(f'failed to parse int from {part}: strconv.Atoi: parsing "{part}": invalid syntax')
        low, high, step = match["low"], match["high"], match["step"]
        top = high or low
        if top.isdigit() and int(top) > highest:
            raise ScheduleError(f"end of range ({int(top)}) above maximum ({highest}): {part}")
        if low == "*" and step in (None, "1"):
            return "*"
        is_day = highest in (31, 6)
        if low == "*" and is_day and int(step) > 0:
            rewritten.append(",".join(map(str, range(lowest, highest + 1, int(step)))))
        elif low != "*" and step is not None and high is None:
            rewritten.append(f"{low}-{highest}/{step}")
        else:
            rewritten.append(part)
    return ",".join(rewritten)


def _check(expression: str) -> None:
    """Raise ScheduleError with cronsim's words for an invalid field."""
    from cronsim import CronSim, CronSimError

    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ScheduleError(str(error)) from None
