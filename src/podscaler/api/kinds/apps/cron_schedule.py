"""The schedule of a CronJob: its next times in a time zone.

`api.kinds.apps.cronjob` validates schedules with it; `podscaler.controlplane.controllers.batch.cronjobs` starts Jobs at
the times. The library cronsim, which follows Debian's cron, computes them; `_normalize` rewrites fields where
robfig/cron, the library of Kubernetes, differs. Another difference between the two is a new case there.

Source: the documentation of cronsim and of robfig/cron v3.
Differs: `@every` is rejected; daylight saving time follows Debian's cron; the texts of most errors are cronsim's.
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
_FIELD_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""The lowest and highest number of each field, in their order."""
_DAY_FIELD_HIGHEST = (31, 6)
"""The highest numbers of the two day fields, of the month and of the week, which no other field has."""
_PART = re.compile(r"(?P<low>\*|[0-9]{1,10}|[A-Za-z]{3})(-(?P<high>[0-9]{1,10}|[A-Za-z]{3}))?(/(?P<step>[0-9]{1,10}))?")
"""One of the parts of a field, which commas separate: `*`, `*/5`, `8-18/2`, `MON-FRI`."""
_ZONE_SEGMENT = re.compile(r"[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}", re.ASCII)
"""A part of the name of a time zone, which the IANA database limits to 14 characters."""


class ScheduleError(PodscalerError):
    """A schedule or a time zone that cannot be used; the message says why, for the user."""


def parse_zone(name: str) -> ZoneInfo:
    """The time zone of a name of the IANA database (`Europe/Berlin`). Raises ScheduleError for an unknown one."""
    segments = name.split("/")
    is_file_name = all(_ZONE_SEGMENT.fullmatch(segment) and segment not in (".", "..") for segment in segments)
    if not is_file_name:  # zoneinfo opens a file of this name
        raise ScheduleError(f"unknown time zone {name}")
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ScheduleError(f"unknown time zone {name}") from None


class CronSchedule:
    """A parsed schedule. Raises ScheduleError for a malformed one, and for numbers out of range.

    Args:
        schedule: five fields, or a macro such as `@hourly`.
        zone: the time zone of the fields; None: UTC.
    """

    def __init__(self, schedule: str, zone: ZoneInfo | None = None) -> None:
        self._zone = zone or UTC
        fields = _MACROS.get(schedule, schedule).replace("?", "*").split()
        if schedule.startswith("@") and schedule not in _MACROS:
            raise ScheduleError(f"unrecognized descriptor: {schedule}")
        if not fields:
            raise ScheduleError("empty spec string")
        if len(fields) != _FIELD_COUNT:
            raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
        normalized = [_normalize(field, *bounds) for field, bounds in zip(fields, _FIELD_RANGES, strict=True)]
        for index, field in enumerate(normalized):  # one by one, as 31 February is valid, although it never comes
            single_field_schedule = ["*"] * _FIELD_COUNT
            single_field_schedule[index] = field
            _check_by_cronsim(" ".join(single_field_schedule))
        self._expression = " ".join(normalized)

    def next_ns(self, after_ns: int) -> int:
        """The first time after an instant, both in nanoseconds since the epoch.

        Raises ScheduleError for fields that are never met, such as 31 February.
        """
        from cronsim import CronSim, CronSimError  # imported here, as only CronJobs need it

        after = datetime.fromtimestamp(after_ns // NANOSECONDS, UTC).astimezone(self._zone)
        try:
            return int(next(CronSim(self._expression, after)).timestamp()) * NANOSECONDS
        except (CronSimError, StopIteration) as error:
            raise ScheduleError(str(error) or "the schedule is never due") from None


def _normalize(field: str, lowest: int, highest: int) -> str:
    """A field rewritten so that cronsim gives it robfig/cron's meaning.

    Raises ScheduleError for parts that robfig/cron rejects and cronsim may not.

    `*/10` of the days of the month becomes `1,11,21,31`, as cronsim would take it for `*`, which leaves the choice of
    days to the other day field; `5/15` of the minutes becomes `5-59/15`; a field with the part `*` becomes `*`.

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
        range_end = high or low
        if range_end.isdigit() and int(range_end) > highest:
            raise ScheduleError(f"end of range ({int(range_end)}) above maximum ({highest}): {part}")
        if low == "*" and step in (None, "1"):
            return "*"
        if low == "*" and highest in _DAY_FIELD_HIGHEST and int(step) > 0:  # cronsim rejects a step of 0
            rewritten.append(",".join(map(str, range(lowest, highest + 1, int(step)))))
        elif low != "*" and step is not None and high is None:
            rewritten.append(f"{low}-{highest}/{step}")
        else:
            rewritten.append(part)
    return ",".join(rewritten)


def _check_by_cronsim(expression: str) -> None:
    """Raises ScheduleError, with the text of cronsim's error, if cronsim does not accept the expression."""
    from cronsim import CronSim, CronSimError

    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ScheduleError(str(error)) from None
