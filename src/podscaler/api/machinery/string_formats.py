"""Checks of the `format` of strings in OpenAPI schemas: `find_check("ipv4")("10.0.0.1")` is True.

Called by the validation of custom objects and by the CEL library of named formats. A format without an entry in _CHECKS
is not validated, as in kube-apiserver; a new format is an entry there.

Source: the formats that the API documentation of CustomResourceDefinition lists (OpenAPI v3 validation).
Differs: Python's libraries decide where Go's disagree on rare texts (dates, unusual mail addresses).
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

from podscaler.api.machinery import duration, instants, names

_HEX = "[0-9a-fA-F]"
_HOSTNAME = re.compile(
    r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*\.?"
)
_HOSTNAME_MAX_LENGTH = 255
_MAC = rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(\1{_HEX}{{2}}){{4}}(\1{_HEX}{{2}}){{0,2}}|({_HEX}{{4}}\.){{2}}{_HEX}{{4}}"
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d.*", re.DOTALL)
# durations with whole numbers and long units: `3 weeks`, `2 mins`
_LONG_DURATION = re.compile(r"(\d+) ?(ns|us|µs|ms|s|m|h|d|w|second|minute|hour|day|week|sec|min|hr|nano|micro|milli)s?")
_CARD = re.compile(  # Visa, Mastercard, Discover, American Express, Diners Club, JCB
    r"(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})"
)
_COLOR_VALUE = r"\s*(1?\d?\d|2[0-4]\d|25[0-5])\s*"


def _full_match_check(pattern: str) -> Callable[[str], bool]:
    """The check that a pattern matches a whole text."""
    pattern_object = re.compile(pattern)
    return lambda text: pattern_object.fullmatch(text) is not None


def _uuid_check(version: str = _HEX, variant: str = _HEX) -> Callable[[str], bool]:
    """The check of a UUID; `version` and `variant` are patterns of the digits at their positions."""
    return _full_match_check(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}")


def _parse_check(parse: Callable[[str], object]) -> Callable[[str], bool]:
    """The check that a text can be parsed: `parse` does not raise ValueError for it."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _is_date_time(text: str) -> bool:
    return bool(_DATE_TIME.fullmatch(text)) and _parse_check(instants.parse)(text)


def _is_date(text: str) -> bool:
    """Whether the text is a date like 2026-01-31; `fromisoformat` reads other forms, too."""
    return len(text) == len("2026-01-31") and _parse_check(date.fromisoformat)(text)


def _is_uri(text: str) -> bool:
    """Whether the text is a URI with a scheme, or an absolute path."""
    try:
        url = urlsplit(text)
    except ValueError:
        return False
    return bool(url.scheme) or text.startswith("/")


def _is_duration(text: str) -> bool:
    return _parse_check(duration.parse)(text) or _LONG_DURATION.fullmatch(text.strip().lower()) is not None


def _is_cidr(text: str) -> bool:
    """Whether the text is a network with the length of its prefix; `ip_network` reads a netmask in its place, too."""
    _, slash, prefix_length = text.partition("/")
    return bool(slash) and "." not in prefix_length and _parse_check(_parse_network)(text)


def _parse_network(text: str) -> object:
    return ipaddress.ip_network(text, strict=False)


def _is_isbn10(text: str) -> bool:
    """Whether the text is an ISBN of ten digits, with the checksum; dashes and spaces are ignored."""
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"\d{9}[\dX]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]  # the checksum is modulo 11, X its digit for 10
    return sum((10 - index) * value for index, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    """Whether the text is an ISBN of 13 digits, with the checksum; dashes and spaces are ignored."""
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    """Whether the text is the number of a credit card, with the checksum by Luhn; other characters are ignored."""
    digits = re.sub(r"\D", "", text)
    if not _CARD.fullmatch(digits):
        return False
    weighted_digits = [int(digit) * (index % 2 + 1) for index, digit in enumerate(reversed(digits))]
    return sum(number // 10 + number % 10 for number in weighted_digits) % 10 == 0


def _is_base64(text: str) -> bool:
    return _parse_check(lambda value: base64.b64decode(value, validate=True))(text)


def _is_hostname(text: str) -> bool:
    return len(text) <= _HOSTNAME_MAX_LENGTH and _HOSTNAME.fullmatch(text) is not None


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _full_match_check(f"{_HEX}{{24}}"),
    "byte": _is_base64,
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _full_match_check(r"[^@\s]+@[^@\s]+"),
    "hexcolor": _full_match_check(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": _parse_check(ipaddress.IPv4Address),
    "ipv6": _parse_check(ipaddress.IPv6Address),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not names.dns_subdomain_errors(text),
    "k8sshortname": lambda text: not names.dns_label_errors(text),
    "mac": _full_match_check(_MAC),
    "password": lambda _text: True,
    "rgbcolor": _full_match_check(rf"rgb\({_COLOR_VALUE},{_COLOR_VALUE},{_COLOR_VALUE}\)"),
    "ssn": _full_match_check(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _is_uri,
    "uuid": _uuid_check(),
    "uuid3": _uuid_check("3"),
    "uuid4": _uuid_check("4", "[89abAB]"),
    "uuid5": _uuid_check("5", "[89abAB]"),
}
"""Name of a format without dashes (`date-time` is `datetime`) -> whether a text has the format."""


def find_check(name: str) -> Callable[[str], bool] | None:
    """The check of a format, from a text to whether it has the format; None for a format that is not validated."""
    return _CHECKS.get(name.replace("-", ""))
