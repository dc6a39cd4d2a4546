"""Field errors of API objects, and the API error 422 (Invalid) that lists them: as Go's package `validation/field`.

    error = invalid("spec.replicas", -1, "must be greater than or equal to 0")
    str(error)      "spec.replicas: Invalid value: -1: must be greater than or equal to 0"

Validation functions return lists of FieldError; `invalid_object` makes the response of an object that has some. A new
reason of errors is a function here.

Source: the API conventions on Status (`reason: Invalid`, `details.causes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.text import json_text, quoting
from podscaler.base.errors import Cause, StatusError


@dataclass(frozen=True, slots=True)
class FieldError:
    """The error of one field: `<field>: <text>` in messages, {reason, message, field} in causes.

    Attributes:
        reason: machine-readable: `FieldValueInvalid`, `FieldValueRequired`, ...
        field: the path: `spec.ports[0].name`.
        text: the kind of error, the value and the detail: `Invalid value: -1: must be positive`.
    """

    reason: str
    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def required(field: str, detail: str = "") -> FieldError:
    """The field is missing."""
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """The value is invalid. `value` is shown as Go shows it: as JSON, a text quoted."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {_printed_value(value)}: {detail}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    """The value is not one of `supported`, which the message lists in this order."""
    supported_text = ", ".join(f'"{name}"' for name in supported)
    return FieldError(
        "FieldValueNotSupported",
        field,
        f"Unsupported value: {_printed_value(value)}: supported values: {supported_text}",
    )


def forbidden(field: str, detail: str) -> FieldError:
    """The field must not be set, or not to this value."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> FieldError:
    """The value is repeated in a list whose entries must differ."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {_printed_value(value)}")


def not_found(field: str, value: Any) -> FieldError:
    """The value refers to something that does not exist."""
    return FieldError("FieldValueNotFound", field, f"Not found: {_printed_value(value)}")


def too_long(field: str, max_bytes: int) -> FieldError:
    """The text (or the sum of the texts of a map) has more than `max_bytes` bytes; the value is not shown."""
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {max_bytes} bytes")


def too_many(field: str, count: int, max_count: int) -> FieldError:
    """The list has more than `max_count` entries."""
    items = "item" if max_count == 1 else "items"
    return FieldError("FieldValueTooMany", field, f"Too many: {count}: must have at most {max_count} {items}")


def _printed_value(value: Any) -> str:
    return quoting.quoted(value) if isinstance(value, str) else json_text.encode(value).decode()


def invalid_object(*, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    """The API error 422 of an invalid object: the message lists distinct field errors, the causes all of them.

    Args:
        group: the API group; empty for core.
        kind: the kind, or the plural, by which the message names the object.
        name: the name of the object; may be empty.
        errors: at least one.
    """
    unique_errors = list(dict.fromkeys(errors))
    messages = [str(error) for error in unique_errors]
    message = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    full_kind = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind}
    return StatusError(
        f"{full_kind} {quoting.quoted(name)} is invalid: {message}",
        code=422,
        reason="Invalid",
        details={key: value for key, value in details.items() if value},
        causes=[Cause(reason=error.reason, message=error.text, field=error.field) for error in errors],
    )
