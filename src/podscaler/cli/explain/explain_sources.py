"""Reads a MetricSource for `podscaler explain`: from its system, or else the last value from the source's status.

`podscaler.cli.explain.explain_cluster` makes a ReportedSourceReader. A MetricSource is the custom resource that names a
query on Redis, Prometheus or another system. The command may run where that system is not reachable, or for a user who
may not read the Secret. Then the value that the controller wrote into the status is used, if it is not older than
STATUS_MAX_AGE_S.
"""

from datetime import datetime

from podscaler.api.machinery import quantity
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.sources.metric_source import MetricSource
from podscaler.sources.open_sources import OpenSources, ReadResult
from podscaler.sources.protocol import InvalidValue

STATUS_MAX_AGE_S = 120
"""Two periods in which the controller renews a status."""


class ReportedSourceReader:
    """Reads sources, or their statuses where that fails; a `podscaler.sources.direct_metrics.SourceReader`.

    Args:
        open_sources: reads sources; the caller closes it.
    """

    def __init__(self, open_sources: OpenSources, clock: Clock) -> None:
        self._open_sources = open_sources
        self._clock = clock

    async def read(self, metric_source: MetricSource) -> ReadResult:
        """The present value of the MetricSource, or the last one that the controller read, or the error."""
        read_result = await self._open_sources.read(metric_source)
        if read_result.error is None or isinstance(read_result.error, InvalidValue):  # the system was reached
            return read_result
        return self._find_reported(metric_source) or read_result

    def _find_reported(self, metric_source: MetricSource) -> ReadResult | None:
        """The result in the status; None if it has none that is recent, or the last read failed."""
        status = metric_source.status
        conditions = status.get("conditions") or ()
        is_ready = any(
            condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions
        )
        try:
            read_at_ns = int(datetime.fromisoformat(status["lastReadTime"]).timestamp()) * NANOSECONDS
            value_milli = quantity.milli(status["value"])
        except (KeyError, TypeError, ValueError):
            return None
        age_s = (self._clock.now_ns() - read_at_ns) // NANOSECONDS
        if not is_ready or age_s > STATUS_MAX_AGE_S:
            return None
        query = f"{status.get('query', '')} (by the controller, {age_s} s ago)"
        return ReadResult(query, value_milli, None, read_at_ns)
