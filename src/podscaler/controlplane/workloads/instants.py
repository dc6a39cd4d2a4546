"""Reading the instants that objects carry; the workload controllers and the collectors call it.

Source: metav1.Time and metav1.MicroTime (RFC 3339, UTC); writing them is `podscaler.clock`.
"""

from datetime import UTC, datetime, timedelta

from podscaler.clock import NANOSECONDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def parse_ns(text: str) -> int:
    """Nanoseconds since the Unix epoch of an RFC 3339 instant. Raises ValueError for anything else."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND * 1000


def find_ns(text: str | None) -> int | None:
    """As `parse_ns`; None for a time that is not there."""
    return parse_ns(text) if text else None


def seconds(span_ns: int) -> float:
    """A span in seconds."""
    return span_ns / NANOSECONDS
