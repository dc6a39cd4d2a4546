"""Converts times of API objects (RFC 3339) to nanoseconds since the Unix epoch, and back.

Called for typed objects, decisions and recordings. Results are cached, since the same texts are parsed often.

Source: RFC 3339; meta/v1 Time.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

from podscaler.base import clock

ZERO = -62_135_596_800_000_000_000
"""Go's zero time (year 1): the value of an absent metav1.Time in upstream's comparisons."""

_TEXT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,18}))?(Z|z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=16384)
def parse(text: str) -> int:
    """The instant in nanoseconds; further digits are truncated. Raises ValueError that quotes the text."""
    if len(text) == 20 and text[10] == "T" and text[4] == "-" and text.isascii():
        return _since_epoch_ns(text, text)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time like 2026-01-31T12:00:00Z")
    date, time, fraction, zone = match.groups(default="")
    whole = f"{date}T{time}{'+00:00' if zone in 'Zz' else zone}"
    return _since_epoch_ns(whole, text) + int(fraction[:9].ljust(9, "0"))


def _since_epoch_ns(whole: str, text: str) -> int:
    try:
        since_epoch = datetime.fromisoformat(whole) - _EPOCH
    except (TypeError, ValueError) as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None
    return (since_epoch.days * 86_400 + since_epoch.seconds) * clock.NANOSECONDS


def parse_optional(text: str | None) -> int:
    """As `parse`; ZERO for an absent or empty text."""
    return parse(text) if text else ZERO


@lru_cache(maxsize=1024)
def _of_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19] + "Z"


def text(instant_ns: int) -> str:
    """The instant as metav1.Time prints it: UTC, whole seconds (truncated), `Z`."""
    return _of_second(instant_ns // clock.NANOSECONDS)


def exact(instant_ns: int) -> str:
    """The instant with nine digits of nanoseconds, which `parse` reads back exactly."""
    second, rest_ns = divmod(instant_ns, clock.NANOSECONDS)
    return f"{_of_second(second)[:-1]}.{rest_ns:09}Z"
