"""Wraps the values of a scenario file with file, line and path, so that every error names them.

Used by all other modules of the package. A method of FileField reads one form of value (a duration, a quantity, a
choice) and raises UsageError for any other; a new form is a method here.
"""

import difflib
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from podscaler.api.machinery import duration, quantity
from podscaler.api.text.field_lines import FieldLines
from podscaler.base.errors import UsageError

_MS_NS = 1_000_000
_DAY_MS = 86_400_000
_DAYS = re.compile(r"(\d+)d(.*)")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%")
_PLAIN_KEY = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True)
class FileDocument:
    """One document of a file: the file's name in messages, and the lines of the document's fields."""

    file: str
    lines: FieldLines


@dataclass(frozen=True, slots=True)
class FileField:
    """A value of a scenario file, with its path and its document.

    Attributes:
        value: as YAML or JSON states it.
        path: of the field within its document, such as `workloads.web.load`; empty for the document itself.
    """

    value: Any
    path: str
    document: FileDocument

    def error(self, sentence: str) -> UsageError:
        """The error that names file, line and field."""
        location = f"{self.document.file}:{self.document.lines.line_of(self.path)}"
        return UsageError(f"{location}: {self.path}: {sentence}" if self.path else f"{location}: {sentence}")

    def child(self, name: str | int) -> "FileField":
        """A member of a mapping, or an element of a list. Raises KeyError or IndexError if it is not there."""
        if isinstance(name, int):
            step = f"[{name}]"
        elif _PLAIN_KEY.fullmatch(name):
            step = f".{name}" if self.path else name
        else:
            step = f"[{name}]"
        return FileField(self.value[name], self.path + step, self.document)

    def entries(self) -> dict[str, "FileField"]:
        """The members of a mapping with names of any kind. Raises UsageError."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"{_describe_value(self.value)} is not a mapping of names to values")
        return {name: self.child(name) for name in self.value}

    def members(self, known_names: Collection[str]) -> dict[str, "FileField"]:
        """The members of a mapping whose names are known; one that is null counts as absent. Raises UsageError."""
        entries = self.entries()
        for name, member in entries.items():
            if name not in known_names:
                raise member.error(f"unknown field; {_suggestion(name, known_names)}")
        return {name: member for name, member in entries.items() if member.value is not None}

    def elements(self) -> list["FileField"]:
        """The elements of a list. Raises UsageError."""
        if not isinstance(self.value, list):
            raise self.error(f"{_describe_value(self.value)} is not a list")
        return [self.child(index) for index in range(len(self.value))]

    def text(self) -> str:
        """A text that is not empty. Raises UsageError."""
        if not isinstance(self.value, str) or not self.value:
            raise self.error(f"{_describe_value(self.value)} is not a text")
        return self.value

    def choice(self, known_names: Collection[str]) -> str:
        """One of the known words. Raises UsageError."""
        if not isinstance(self.value, str) or self.value not in known_names:
            raise self.error(f"{_describe_value(self.value)} is not one of {', '.join(known_names)}")
        return self.value

    def integer(self, *, low: int = 0) -> int:
        """A whole number. Raises UsageError."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < low:
            raise self.error(f"{_describe_value(self.value)} is not a whole number of {low} or more")
        return self.value

    def duration_ms(self, *, low_ms: int = 0) -> int:
        """A duration in milliseconds, which the file states with its unit: `90s`, `1h30m`, `7d`. Raises UsageError."""
        duration_text = str(self.value)
        try:
            milliseconds = parse_duration_ms(duration_text)
        except ValueError:
            raise self.error(
                f"{_describe_value(self.value)} is not a duration with a unit, such as 90s, 1h30m or 7d"
            ) from None
        if milliseconds < low_ms:
            raise self.error(f"the duration {duration_text} is too short; {low_ms} ms or more are needed")
        return milliseconds

    def scaled(self, per_unit: int) -> int:
        """A quantity (`250m`, `64Mi`, `0.5`) that is not negative, times `per_unit`, rounded up. Raises UsageError."""
        return math.ceil(self.amount() * per_unit)

    def amount(self) -> Fraction:
        """A quantity that is not negative. Raises UsageError."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int | float):
            raise self.error(f"{_describe_value(self.value)} is not a quantity such as 250m, 0.25 or 64Mi")
        try:
            exact_amount = parse_amount(str(self.value))
        except ValueError:
            raise self.error(f"{_describe_value(self.value)} is not a quantity such as 250m, 0.25 or 64Mi") from None
        if exact_amount < 0:
            raise self.error(f"{self.value} is negative")
        return exact_amount

    def number(self, *, high: float = math.inf) -> float:
        """A number that is not negative. Raises UsageError."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not 0 <= self.value <= high:
            bound = f"from 0 to {high:g}" if high < math.inf else "of 0 or more"
            raise self.error(f"{_describe_value(self.value)} is not a number {bound}")
        return float(self.value)

    def ratio(self) -> float:
        """A share from 0 to 1, also as a percentage (`5%`). Raises UsageError."""
        percent_match = _PERCENT.fullmatch(self.value) if isinstance(self.value, str) else None
        ratio = float(percent_match[1]) / 100 if percent_match else self.value
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
            raise self.error(f"{_describe_value(self.value)} is not a share such as 5% or 0.05")
        return float(ratio)


def optional_duration_ms(members: Mapping[str, FileField], name: str, default_ms: int, *, low_ms: int = 0) -> int:
    """The duration of a field; `default_ms` if the field is absent. Raises UsageError."""
    member = members.get(name)
    return default_ms if member is None else member.duration_ms(low_ms=low_ms)


def parse_duration_ms(text: str) -> int:
    """The milliseconds of a Go duration, which may begin with days (`7d`, `1d12h`). Raises ValueError."""
    days_match = _DAYS.fullmatch(text)
    if days_match is None:
        return duration.parse(text) // _MS_NS
    days, below_a_day = days_match.groups()
    return int(days) * _DAY_MS + (duration.parse(below_a_day) // _MS_NS if below_a_day else 0)


def parse_amount(text: str) -> Fraction:
    """The exact value of a quantity. Raises ValueError."""
    parsed = quantity.parse(text)
    return parsed.unscaled * Fraction(10) ** parsed.scale


def _describe_value(value: Any) -> str:
    """The value in a message: mappings and lists by their type, others as Python writes them."""
    if value is None:
        return "an empty value"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


def _suggestion(name: str, known_names: Collection[str]) -> str:
    """The second half of the message about an unknown field: the nearest known name, or all of them."""
    close_names = difflib.get_close_matches(name, known_names, n=1)
    return f"{close_names[0]} is the nearest known one" if close_names else f"known are {', '.join(known_names)}"
