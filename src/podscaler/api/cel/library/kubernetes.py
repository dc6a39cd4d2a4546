"""CEL functions on types that Kubernetes adds: quantities, semantic versions, URLs and named formats.

    quantity('1.5Gi').isGreaterThan(quantity('1Gi'))
    semver('1.2.3').major()
    url('https://example.com:80/path').getHostname()
    format.dns1123Label().validate('web')

`environment` joins FUNCTIONS, to which a new function is added, to the table of all functions; `functions` explains
signatures.

Source: the documentation of Kubernetes' CEL libraries.
"""

import re
from collections.abc import Callable
from functools import total_ordering
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from podscaler.api.cel.library.functions import Function, accepts, table
from podscaler.api.cel.values import numbers
from podscaler.api.cel.values.errors import EvaluationError
from podscaler.api.cel.values.values import OPTIONAL_NONE, Opaque, OptionalValue
from podscaler.api.machinery import names, quantity, string_formats
from podscaler.api.machinery import numbers as machinery_numbers
from podscaler.api.machinery.quantity import Quantity, QuantityError
from podscaler.api.text import quoting

_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)
"""`1.2.3-rc.1+build`: the groups are major, minor, patch, pre-release, build."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_AUTHORITY = re.compile(r"[^/]*//([^/?]*)")
_INVALID_IN_HOST = re.compile(r"[ #\\^`{|}]")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})(.{0,2})")


def _parse_quantity(quantity_text: str) -> Quantity:
    """The quantity of a text. Raises EvaluationError."""
    try:
        return quantity.parse(quantity_text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def _find_integer(value: Quantity) -> int | None:
    """The integer; None for a fraction, beyond int64, and for `1.0`, which Kubernetes stores as ten tenths."""
    if value.is_big or value.scale < 0:
        return None
    scaled = value.unscaled * 10**value.scale
    return scaled if numbers.INT_MIN <= scaled <= numbers.INT_MAX else None


def _as_integer(value: Quantity) -> int:
    """The integer of a quantity. Raises EvaluationError if `_find_integer` finds none."""
    integer = _find_integer(value)
    if integer is None:
        raise EvaluationError("cannot convert value to integer")
    return integer


def _difference(value: Quantity, other: Quantity) -> Quantity:
    return value + Quantity(-other.unscaled, other.scale, other.format, other.is_big)


def _compare(left: Any, right: Any) -> int:
    """-1, 0 or 1, as CEL's `compareTo` returns it."""
    return -1 if left < right else int(right < left)


@total_ordering
class _SemanticVersion:
    """A semantic version; build metadata is dropped, since it does not count in comparisons.

    Args:
        major, minor, patch: its numbers.
        prerelease: the pre-release identifiers as sort keys (`_identifier_sort_key`); empty for a release.
    """

    __slots__ = ("major", "minor", "patch", "prerelease")

    def __init__(self, major: int, minor: int, patch: int, prerelease: tuple[tuple[int, int, str], ...]) -> None:
        self.major = major
        self.minor = minor
        self.patch = patch
        self.prerelease = prerelease

    def _sort_key(self) -> tuple[Any, ...]:
        """The sort key: a pre-release comes before its release."""
        return (self.major, self.minor, self.patch, not self.prerelease, self.prerelease)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SemanticVersion) and self._sort_key() == other._sort_key()

    def __lt__(self, other: "_SemanticVersion") -> bool:
        return self._sort_key() < other._sort_key()

    def __hash__(self) -> int:
        return hash(self._sort_key())


def _parse_semver(version_text: str, is_tolerant: bool = False) -> Opaque:
    """The semantic version of a text; a tolerant one may have a `v` and fewer numbers. Raises EvaluationError."""
    match = _SEMVER.fullmatch(_normalize_semver(version_text) if is_tolerant else version_text)
    if match is None:
        raise EvaluationError(_semver_error(version_text))
    major, minor, patch, prerelease_text, _build = match.groups(default="")
    prerelease = tuple(_identifier_sort_key(identifier) for identifier in prerelease_text.split(".") if identifier)
    version = _SemanticVersion(_parse_uint64(major), _parse_uint64(minor), _parse_uint64(patch), prerelease)
    return Opaque("kubernetes.Semver", version)


def _identifier_sort_key(identifier: str) -> tuple[int, int, str]:
    """The sort key of a pre-release identifier: numbers come before names, and are compared as numbers."""
    return (0, _parse_uint64(identifier), "") if identifier.isdigit() else (1, 0, identifier)


def _parse_uint64(digits: str) -> int:
    """The number of a version. Raises EvaluationError beyond uint64."""
    try:
        return machinery_numbers.parse_uint(digits, 64)
    except ValueError:
        raise EvaluationError("strconv.ParseUint: value out of range") from None


def _semver_error(version_text: str) -> str:
    """The message of Go's semver package about a text that is no version."""
    if not version_text:
        return "Version string empty"
    elements = version_text.split(".", 2)
    if len(elements) != 3:
        return "No Major.Minor.Patch elements found"
    for name, element in zip(("major", "minor"), elements, strict=False):
        if not element.isdigit():
            return f"Invalid character(s) found in {name} number {quoting.quoted(element)}"
        if len(element) > 1 and element[0] == "0":
            return f"{name.capitalize()} number must not contain leading zeroes {quoting.quoted(element)}"
    patch = re.split("[-+]", elements[2])[0]
    if len(patch) > 1 and patch.isdigit() and patch[0] == "0":
        return f"Patch number must not contain leading zeroes {quoting.quoted(patch)}"
    return f"Invalid character(s) found in patch number {quoting.quoted(patch)}"


def _normalize_semver(version_text: str) -> str:
    """`v1.02` as `1.2.0`, which the strict pattern accepts. Raises EvaluationError for `1.2-rc`."""
    number_texts = [_strip_leading_zeros(part) for part in version_text.removeprefix("v").split(".", 2)]
    if len(number_texts) < 3 and ("+" in number_texts[-1] or "-" in number_texts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join(number_texts + ["0"] * (3 - len(number_texts)))


def _strip_leading_zeros(number_text: str) -> str:
    """`02` as `2` and `0-rc` as it is: at least one digit stays."""
    if len(number_text) <= 1:
        return number_text
    stripped = number_text.lstrip("0")
    return stripped if stripped[:1].isdigit() else f"0{stripped}"


def _parse_url(url_text: str) -> Opaque:
    """The URL of a text. Raises EvaluationError with Go's message."""
    error = _url_error(url_text)
    if error:
        reason = f"parse {quoting.quoted(url_text)}: {error}"
        raise EvaluationError(f"URL parse error during conversion from string: {reason}")
    return Opaque("kubernetes.URL", urlsplit(url_text), url_text)


def _url_error(url_text: str) -> str:
    """Why Go's net/url rejects a text as URL or absolute path; empty if it does not."""
    if not url_text:
        return "empty url"
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in url_text):
        return "net/url: invalid control character in URL"
    if not _SCHEME.match(url_text) and not url_text.startswith("/"):
        return "missing protocol scheme" if url_text.startswith(":") else "invalid URI for request"
    return _host_error(url_text)


def _host_error(url_text: str) -> str:
    """Go's message about the host or path of a URL; empty if they are valid."""
    try:
        url_parts = urlsplit(url_text)
        _ = url_parts.port  # checked by urllib only when it is read
    except ValueError:
        return f"invalid port {quoting.quoted(':' + url_text.rpartition(':')[2].partition('/')[0])} after host"
    authority = _AUTHORITY.match(url_text)
    invalid_character = _INVALID_IN_HOST.search(authority.group(1)) if authority else None
    if invalid_character is not None:
        return f"invalid character {quoting.quoted(invalid_character.group())} in host name"
    if "%" in url_parts.netloc and not url_parts.netloc.startswith("["):
        return f"invalid URL escape {quoting.quoted('%' + url_parts.netloc.partition('%')[2][:2])}"
    invalid_escape = _BAD_ESCAPE.search(url_parts.path)
    return f"invalid URL escape {quoting.quoted('%' + invalid_escape.group(1))}" if invalid_escape else ""


def _url_getter(getter: Callable[[SplitResult], Any]) -> Function:
    return lambda url: getter(url.value)


def _get_host(url_parts: SplitResult) -> str:
    return unquote(url_parts.netloc.rpartition("@")[2])


def _get_hostname(url_parts: SplitResult) -> str:
    """The host of a URL without its port, and without the brackets of an IPv6 address."""
    host = _get_host(url_parts)
    if host.startswith("["):
        return host.removeprefix("[").partition("]")[0]
    return host.partition(":")[0]


def _get_port(url_parts: SplitResult) -> str:
    return str(url_parts.port) if url_parts.port is not None else ""


def _get_query(url_parts: SplitResult) -> dict[str, list[str]]:
    return parse_qs(url_parts.query, keep_blank_values=True)


def _format_check(check: Callable[[str], bool] | None, error_text: str) -> Callable[[str], list[str]]:
    """The function that returns `error_text`, as the only error, for a text that `check` does not accept."""
    return lambda value: [] if check is None or check(value) else [error_text]


def _uri_errors(value: str) -> list[str]:
    error = _url_error(value)
    return [f"parse {quoting.quoted(value)}: {error}"] if error else []


def _prefix_check(find_errors: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check of a prefix of such a name, which may end with a dash."""
    return lambda value: find_errors(names.mask_trailing_dash(value))


FORMATS: dict[str, Callable[[str], list[str]]] = {  # name of a format -> function that returns the errors of a text
    "dns1123Label": names.dns_label_errors,
    "dns1123Subdomain": names.dns_subdomain_errors,
    "dns1035Label": names.dns_1035_label_errors,
    "qualifiedName": names.label_key_errors,
    "dns1123LabelPrefix": _prefix_check(names.dns_label_errors),
    "dns1123SubdomainPrefix": _prefix_check(names.dns_subdomain_errors),
    "dns1035LabelPrefix": _prefix_check(names.dns_1035_label_errors),
    "labelValue": names.label_value_errors,
    "uri": _uri_errors,
    "uuid": _format_check(string_formats.find_check("uuid"), "does not match the UUID format"),
    "byte": _format_check(string_formats.find_check("byte"), "invalid base64"),
    "date": _format_check(string_formats.find_check("date"), "invalid date"),
    "datetime": _format_check(string_formats.find_check("datetime"), "invalid datetime"),
}


def _find_format(name: str) -> OptionalValue:
    return OptionalValue(Opaque("kubernetes.NamedFormat", name)) if name in FORMATS else OPTIONAL_NONE


def _validate_format(named_format: Opaque, value_text: str) -> OptionalValue:
    messages = FORMATS[named_format.value](value_text)
    return OptionalValue(messages) if messages else OPTIONAL_NONE


def _make_format_function(name: str) -> Function:
    return lambda: Opaque("kubernetes.NamedFormat", name)


_FORMAT_FUNCTIONS: dict[str, Function] = {
    f":format.{name}() -> Format": _make_format_function(name) for name in FORMATS
}

FUNCTIONS = table(
    _FORMAT_FUNCTIONS
    | {
        "quantity(string) -> Quantity": _parse_quantity,
        "isQuantity(string) -> bool": accepts(_parse_quantity),
        "sign(Quantity) -> int": lambda value: value.sign(),
        "Quantity.isGreaterThan(Quantity) -> bool": lambda left, right: right < left,
        "Quantity.isLessThan(Quantity) -> bool": lambda left, right: left < right,
        "Quantity.compareTo(Quantity) -> int": _compare,
        "Quantity.asApproximateFloat() -> double": lambda value: value.approximate_float(),
        "Quantity.asInteger() -> int": _as_integer,
        "Quantity.isInteger() -> bool": lambda value: _find_integer(value) is not None,
        "Quantity.add(Quantity) -> Quantity": lambda left, right: left + right,
        "Quantity.add(int) -> Quantity": lambda left, number: left + Quantity(number),
        "Quantity.sub(Quantity) -> Quantity": _difference,
        "Quantity.sub(int) -> Quantity": lambda left, number: _difference(left, Quantity(number)),
        "semver(string) -> Semver": _parse_semver,
        "semver(string, bool) -> Semver": _parse_semver,
        "isSemver(string) -> bool": accepts(_parse_semver),
        "isSemver(string, bool) -> bool": accepts(_parse_semver),
        "Semver.isGreaterThan(Semver) -> bool": lambda left, right: right.value < left.value,
        "Semver.isLessThan(Semver) -> bool": lambda left, right: left.value < right.value,
        "Semver.compareTo(Semver) -> int": lambda left, right: _compare(left.value, right.value),
        "Semver.major() -> int": lambda version: machinery_numbers.wrap64(version.value.major),
        "Semver.minor() -> int": lambda version: machinery_numbers.wrap64(version.value.minor),
        "Semver.patch() -> int": lambda version: machinery_numbers.wrap64(version.value.patch),
        "url(string) -> URL": _parse_url,
        "isURL(string) -> bool": accepts(_parse_url),
        "URL.getScheme() -> string": _url_getter(lambda parts: parts.scheme),
        "URL.getHost() -> string": _url_getter(_get_host),
        "URL.getHostname() -> string": _url_getter(_get_hostname),
        "URL.getPort() -> string": _url_getter(_get_port),
        "URL.getEscapedPath() -> string": _url_getter(lambda parts: parts.path),
        "URL.getQuery() -> map<string, list<string>>": _url_getter(_get_query),
        ":format.named(string) -> optional<Format>": _find_format,
        "Format.validate(string) -> optional<list<string>>": _validate_format,
    }
)
