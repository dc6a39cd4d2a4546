"""Computes a number that depends on the time: one value between a start and the next end, another value otherwise.

With start `0 8 * * 1-5` and end `0 18 * * 1-5` the inside value counts on working days from 8 to 18 o'clock. The time
is inside if the next end comes before the next start, so the schedule needs no memory. Daylight saving time is that of
the time zone, with the rules of Debian's cron.

`podscaler.sources.source_types` finds CronSource by `spec.cron` of a MetricSource. A new setting: a field of
CronSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: cronsim's documentation; the cron scaler of KEDA has the same rule.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from podscaler.base.clock import NANOSECONDS
from podscaler.sources.protocol import InvalidSource, Number, SourceConfig, SystemSettings, parse_settings


class CronSettings(SystemSettings, frozen=True):
    """The section `spec.cron`; `start` and `end` are cron expressions of five fields."""

    start: str
    end: str
    inside_value: float
    outside_value: float = 0
    time_zone: str = "UTC"


class CronSource:
    """The ExternalSource of `spec.cron`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = parse_settings(config, CronSettings)
        self._clock = config.clock
        self._zone = _zone(self._settings.time_zone)
        local_time = self._local_time()
        if self._next_time(self._settings.start, local_time) == self._next_time(self._settings.end, local_time):
            raise InvalidSource("start and end are at the same time")

    @property
    def query(self) -> str:
        """Such as `cron from 0 8 * * 1-5 to 0 18 * * 1-5 in Europe/Berlin`."""
        return f"cron from {self._settings.start} to {self._settings.end} in {self._settings.time_zone}"

    async def read(self) -> Number:
        """The value of now."""
        local_time = self._local_time()
        is_inside = self._next_time(self._settings.end, local_time) < self._next_time(self._settings.start, local_time)
        return self._settings.inside_value if is_inside else self._settings.outside_value

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _local_time(self) -> datetime:
        """The time in the time zone of the schedule, without the fraction of the second."""
        return datetime.fromtimestamp(self._clock.now_ns() // NANOSECONDS, UTC).astimezone(self._zone)

    def _next_time(self, expression: str, local_time: datetime) -> datetime:
        """The next time of an expression, in UTC. Raises InvalidSource if there is none."""
        if len(expression.split()) != 5:
            raise InvalidSource(f"the cron expression {expression} does not have five fields")
        try:
            return next(CronSim(expression, local_time)).astimezone(UTC)
        except (CronSimError, StopIteration):
            raise InvalidSource(f"the cron expression {expression} is invalid, or is never due") from None


def _zone(name: str) -> ZoneInfo:
    """The time zone. Raises InvalidSource."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise InvalidSource(f"the time zone {name} is unknown") from None
