"""Defines the base classes of podscaler's exceptions.

    PodscalerError
    ├── UsageError              a flag, file or manifest of the user is invalid: one sentence, exit status 2
    └── StatusError             an API request failed; has the fields of metav1.Status

The embedded API server raises StatusError to send an error response; the client raises it for an error response that it
receives. Any other exception is a bug and may show a traceback.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

JSON_DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError)
"""What msgspec's decoders raise for bytes that are not the JSON of a type, or whose texts are not UTF-8."""


class PodscalerError(Exception):
    """The base class of podscaler's exceptions."""


class UsageError(PodscalerError):
    """Invalid input of the user; the text is a sentence that says what is valid."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `details.causes` of a metav1.Status.

    Attributes:
        reason: machine-readable (`FieldValueInvalid`); left out of the Status if it is empty.
        message: the text for people.
        field: the path of the field that is wrong (`spec.replicas`); left out of the Status if it is empty.
    """

    reason: str
    message: str
    field: str = ""


class StatusError(PodscalerError):
    """A failed request, with the fields of metav1.Status.

    Args:
        message: the sentence for people.
        code: the HTTP status code (400-599), or 0 if the failure arose in the client.
        reason: the machine-readable reason (`NotFound`, `Conflict`, ...); may be empty.
        details: the Status' `details` as JSON-ready data, without causes; None leaves the member out, `{}` writes it.
        causes: the entries of `details.causes`, in order.
        headers: further headers of the response (`Retry-After`, `Allow`, ...).
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        causes: Sequence[Cause] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.details = dict(details or {})
        self._has_details = details is not None
        self.causes = tuple(causes)
        self.headers = dict(headers or {})

    def to_status(self) -> dict[str, Any]:
        """The metav1.Status of this failure as JSON-ready data."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self.details)
        if self.causes:
            details["causes"] = [_cause_json(cause) for cause in self.causes]
        if details or self._has_details:
            status["details"] = details
        status["code"] = self.code
        return status


def _cause_json(cause: Cause) -> dict[str, str]:
    """The entry of `details.causes`, without its empty members."""
    body = {"reason": cause.reason} if cause.reason else {}
    body["message"] = cause.message
    if cause.field:
        body["field"] = cause.field
    return body
