"""Makes the field errors of violated OpenAPI schemas, with the messages of kube-openapi's validator.

    invalid("spec.size", 5, "should be less than 3")

    spec.size: Invalid value: 5: spec.size in body should be less than 3

Called by `validation` and `constraints`; a new kind of error is a function here. An error about several values
(`oneOf`, `not`, ...) has the path `<nil>`.

Source: kube-openapi's validation errors (documented behaviour), tests/conformance/golden/scale.jsonl.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.machinery import field as field_errors
from podscaler.api.machinery.field import FieldError
from podscaler.api.text import json_text

_NO_PATH = "<nil>"


@dataclass(slots=True)
class SchemaFindings:
    """The field errors of a value, and the number of checks made.

    Where no alternative of `anyOf` is valid, the errors of that with the most checks are reported.
    """

    errors: list[FieldError] = field(default_factory=list)
    checks: int = 0

    def merge(self, other: "SchemaFindings") -> None:
        """Add the findings of a part of the value."""
        self.errors += other.errors
        self.checks += other.checks

    @property
    def is_valid(self) -> bool:
        """Whether there are no errors."""
        return not self.errors


def _shown_path(path: str) -> str:
    """The path of a field error: without a leading dot, `<nil>` for an empty path."""
    return path.removeprefix(".") or _NO_PATH


def invalid(path: str, value: Any, text: str) -> FieldError:
    """The value violates a constraint; `text` continues the sentence `PATH in body ...`."""
    return field_errors.invalid(_shown_path(path), "" if value is None else value, f"{path} in body {text}")


def wrong_type(path: str, value: Any, expected: str, actual: str) -> FieldError:
    """The value has the type `actual`, not `expected`; `value` is shown in the message."""
    text = f'{path} in body must be of type {expected}: "{actual}"'
    error = field_errors.invalid(_shown_path(path), value, text)
    return FieldError("FieldValueTypeInvalid", error.field, error.text)


def without_path(text: str) -> FieldError:
    """The error `text`, which is not about a single value."""
    return field_errors.invalid(_NO_PATH, "", text)


def required(path: str, name: str) -> FieldError:
    """A member is missing."""
    return field_errors.required(_shown_path(f"{path}.{name}"))


def not_in_enum(path: str, value: Any, allowed: Sequence[Any]) -> FieldError:
    """The value is not in `allowed`."""
    names = [
        allowed_value if isinstance(allowed_value, str) else json_text.encode(allowed_value).decode()
        for allowed_value in allowed
    ]
    return field_errors.not_supported(_shown_path(path), value, names)


def too_long(path: str, max_length: int) -> FieldError:
    """The text has more than `max_length` characters."""
    return field_errors.too_long(_shown_path(path), max_length)


def too_many(path: str, count: int, max_count: int) -> FieldError:
    """The list or object has `count` entries, more than `max_count`."""
    return field_errors.too_many(_shown_path(path), count, max_count)
