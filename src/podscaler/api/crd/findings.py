"""What is wrong with the values of a custom object, in the words of upstream's OpenAPI validator.

Called by `validation` and its parts; each function returns the fault of one constraint.

A fault that rests on no single value (`oneOf`, `not`, ...) has no path: upstream shows `<nil>` there.

Source: kube-openapi's validation errors (documented behaviour), tests/conformance/golden/scale.jsonl.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.machinery import field as fields
from podscaler.api.machinery.field import FieldError
from podscaler.api.text import json_text

NO_PATH = "<nil>"


@dataclass(slots=True)
class SchemaFindings:
    """The faults of a value, and how many checks were made: by it `anyOf` picks the alternative that came closest."""

    errors: list[FieldError] = field(default_factory=list)
    checks: int = 0

    def merge(self, other: "SchemaFindings") -> None:
        """Take in what was found further down."""
        self.errors += other.errors
        self.checks += other.checks

    @property
    def is_valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.errors


def shown_path(path: str) -> str:
    """A path as field errors name it."""
    return path.removeprefix(".") or NO_PATH


def invalid(path: str, value: Any, text: str) -> FieldError:
    """The value breaks a constraint; `text` goes on after the path."""
    return fields.invalid(shown_path(path), "" if value is None else value, f"{path} in body {text}")


def wrong_type(path: str, value: Any, wanted: str, found: str) -> FieldError:
    """The value is of another type; upstream shows `value`, and says `found`."""
    text = f'{path} in body must be of type {wanted}: "{found}"'
    error = fields.invalid(shown_path(path), value, text)
    return FieldError("FieldValueTypeInvalid", error.field, error.text)


def without_path(text: str) -> FieldError:
    """A fault that rests on no single value."""
    return fields.invalid(NO_PATH, "", text)


def required(path: str, name: str) -> FieldError:
    """A member is missing."""
    return fields.required(shown_path(f"{path}.{name}"))


def not_in_enum(path: str, value: Any, allowed: Sequence[Any]) -> FieldError:
    """The value is none of those that are allowed."""
    names = [one if isinstance(one, str) else json_text.encode(one).decode() for one in allowed]
    return fields.not_supported(shown_path(path), value, names)


def too_long(path: str, max_length: int) -> FieldError:
    """The text has more characters than it may have."""
    return fields.too_long(shown_path(path), max_length)


def too_many(path: str, count: int, max_count: int) -> FieldError:
    """The list or object has more entries than it may have."""
    return fields.too_many(shown_path(path), count, max_count)
