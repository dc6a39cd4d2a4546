"""Converts times of API objects (RFC 3339 texts) to nanoseconds since the Unix epoch, and back.

    parse("1970-01-01T00:00:01.5Z")     1_500_000_000
    text(1_500_000_000)                 "1970-01-01T00:00:01Z"

Called for typed objects, decisions and recordings. `timestamps` checks and normalizes the times of requests instead.
Results are cached, since the same texts are parsed often.

Source: RFC 3339; meta/v1 Time.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache

from podscaler.base import clock

ZERO = -62_135_596_800_000_000_000
"""Go's zero time (year 1), in nanoseconds: the value of an absent metav1.Time when Go code compares times."""

_TEXT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,18}))?(Z|z|[+-]\d\d:\d\d)", re.ASCII)
"""`2026-01-31T12:00:00.123+02:00`: the groups are date, time, fraction, zone."""
_USUAL_LENGTH = len("2026-01-31T12:00:00Z")
_NANO_DIGITS = 9
_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=16384)
def parse(time_text: str) -> int:
    """The instant in nanoseconds since the epoch; digits beyond nanoseconds are truncated.

    Raises:
        ValueError: not an RFC 3339 time; the message quotes the text.
    """
    is_of_usual_length = len(time_text) == _USUAL_LENGTH and time_text.isascii()
    if is_of_usual_length and time_text[10] == "T" and time_text[4] == "-":  # `2026-01-31T12:00:00Z`, without the regex
        return _since_epoch_ns(time_text, time_text)
    match = _TEXT.fullmatch(time_text)
    if match is None:
        raise ValueError(f"{time_text!r} is not a time like 2026-01-31T12:00:00Z")
    date, time, fraction, zone = match.groups(default="")
    whole_seconds_text = f"{date}T{time}{'+00:00' if zone in 'Zz' else zone}"
    return _since_epoch_ns(whole_seconds_text, time_text) + int(fraction[:_NANO_DIGITS].ljust(_NANO_DIGITS, "0"))


def _since_epoch_ns(whole_seconds_text: str, time_text: str) -> int:
    """The instant of `whole_seconds_text`, a time in whole seconds. Raises ValueError, which quotes `time_text`."""
    try:
        since_epoch = datetime.fromisoformat(whole_seconds_text) - _EPOCH
    except (TypeError, ValueError) as error:
        raise ValueError(f"{time_text!r} is not a time: {error}") from None
    return (since_epoch.days * _DAY_S + since_epoch.seconds) * clock.NANOSECONDS


def parse_optional(time_text: str | None) -> int:
    """As `parse`; ZERO for None and for an empty text. Raises ValueError."""
    return parse(time_text) if time_text else ZERO


def text(instant_ns: int) -> str:
    """The instant as metav1.Time prints it: UTC, whole seconds (truncated), `Z`. Raises as `clock.rfc3339`."""
    return clock.rfc3339(instant_ns)


def exact(instant_ns: int) -> str:
    """The instant with nine digits of nanoseconds, which `parse` reads back exactly. Raises as `clock.rfc3339`."""
    return f"{clock.rfc3339(instant_ns)[:-1]}.{instant_ns % clock.NANOSECONDS:09}Z"
