"""Converts error responses into StatusErrors with the texts that users read in conditions and events.

`client.client` calls `of_response` for every response outside 200-206. The text of a Status is its message; any other
response gets a text by its code, followed by the subject of the request.

Source: docs/spec/decision.md 7.6 (How an HTTP failure becomes text).
"""

from typing import Any

import msgspec

from podscaler.api.text.quoting import quoted
from podscaler.base.errors import JSON_DECODE_ERRORS, Cause, StatusError
from podscaler.kube.transport.transport import Response

BODY_TEXT_MAX_BYTES = 2048
"""The rest of a longer body is left out of texts."""
TEXTS_BY_CODE = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
"""Reason and text of the codes whose text does not depend on the body."""
NOT_ACCEPTABLE = "the server was unable to respond with a content type that the client supports"


class _Status(msgspec.Struct):
    """A metav1.Status as the API server returns it; `details` is its JSON object."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


_STATUS = msgspec.json.Decoder(_Status)


def of_response(response: Response, *, method: str, subject: str) -> StatusError:
    """The error of a response outside 200-206.

    Args:
        response: status, headers and body.
        method: `GET`, ...
        subject: the requested resource and object, as texts name it: `pods.metrics.k8s.io`, `deployments web`.
    """
    status = _decode_failure(response.body)
    if status is not None:
        return _error_of_failure(status, response)
    reason, message = _reason_and_message(response, method)
    message = f"{message} ({method.lower()} {subject})"
    return StatusError(message, code=response.status, reason=reason, headers=_retry_after(response))


def of_status(status_json: bytes) -> StatusError | None:
    """The error in a Status of a failure, such as that of a watch's ERROR event, with its code; None for others."""
    status = _decode_failure(status_json)
    return None if status is None else _error_of_failure(status, Response(status.code, {}, status_json))


def body_text(response: Response) -> str:
    """The trimmed body, of BODY_TEXT_MAX_BYTES at most, if its type is text or not stated, else `unknown`."""
    content_type = response.headers.get("content-type", "")
    if content_type and not content_type.startswith("text/"):
        return "unknown"
    return response.body[:BODY_TEXT_MAX_BYTES].decode(errors="replace").strip()


def _decode_failure(body: bytes) -> _Status | None:
    """The failure in a body; None if the body is no object of kind Status, or reports no failure."""
    try:
        status = _STATUS.decode(body)
    except JSON_DECODE_ERRORS:
        return None
    return status if status.kind == "Status" and status.status == "Failure" else None


def _error_of_failure(status: _Status, response: Response) -> StatusError:
    """The StatusError of a decoded Status; the code and Retry-After are those of the HTTP response."""
    details = status.details or {}
    causes = [_parse_cause(cause) for cause in details.get("causes") or () if isinstance(cause, dict)]
    return StatusError(
        status.message,
        code=response.status,
        reason=status.reason,
        details={name: detail for name, detail in details.items() if name != "causes"},
        causes=causes,
        headers=_retry_after(response),
    )


def _retry_after(response: Response) -> dict[str, str]:
    """The Retry-After header of a response, for `client.retry_delay_s`; empty if there is none."""
    return {"Retry-After": response.headers["retry-after"]} if "retry-after" in response.headers else {}


def _parse_cause(cause: dict[str, Any]) -> Cause:
    """A cause of a Status from its JSON object; missing fields are empty."""
    return Cause(
        reason=str(cause.get("reason", "")), message=str(cause.get("message", "")), field=str(cause.get("field", ""))
    )


def _reason_and_message(response: Response, method: str) -> tuple[str, str]:
    """Reason and message for a response whose body is no Status, by its code; the reason may be empty."""
    match response.status:
        case 403:
            return "Forbidden", body_text(response)
        case 406:
            message = body_text(response)
            return "NotAcceptable", NOT_ACCEPTABLE if message in ("", "unknown") else message
        case 409 if method == "POST":
            return "AlreadyExists", TEXTS_BY_CODE[409][1]
        case 415:
            return "UnsupportedMediaType", body_text(response)
        case code if code in TEXTS_BY_CODE:
            return TEXTS_BY_CODE[code]
        case code if code >= 500:
            body = quoted(body_text(response))
            return "InternalError", f"an error on the server ({body}) has prevented the request from succeeding"
        case code:
            return "", f"the server responded with the status code {code} but did not return more information"
