"""The texts of refused requests: every row of docs/spec/decision.md 7.6 (How an HTTP failure becomes text)."""

import pytest

from podscaler.kube.client import api_errors
from podscaler.kube.transport.transport import Response

GET_PODS = {"method": "GET", "subject": "pods.metrics.k8s.io"}


def _answer(code: int, body: bytes = b"", content_type: str = "text/plain") -> Response:
    return Response(code, {"content-type": content_type} if content_type else {}, body)


def test_a_status_speaks_for_itself() -> None:
    """The text of a Status is its message and nothing else; code, reason, details and causes come along."""
    body = (
        b'{"kind":"Status","status":"Failure","message":"pods \\"x\\" is forbidden","reason":"Forbidden",'
        b'"details":{"name":"x","causes":[{"reason":"R","message":"m","field":"f"}]},"code":403}'
    )
    error = api_errors.of_response(_answer(403, body, "application/json"), **GET_PODS)
    told = (str(error), error.code, error.reason, error.details, [(c.reason, c.message, c.field) for c in error.causes])
    assert told == ('pods "x" is forbidden', 403, "Forbidden", {"name": "x"}, [("R", "m", "f")])


def test_an_empty_message_is_an_empty_text() -> None:
    """A Status without a message gives an empty text."""
    assert str(api_errors.of_response(_answer(500, b'{"kind":"Status","status":"Failure"}'), **GET_PODS)) == ""


@pytest.mark.parametrize(
    ("code", "body", "content_type", "reason", "text"),
    [
        (400, b"x", "text/plain", "BadRequest", "the server rejected our request for an unknown reason"),
        (401, b"", "", "Unauthorized", "the server has asked for the client to provide credentials"),
        (403, b" no way \n", "text/plain", "Forbidden", "no way"),
        (403, b"<x>", "application/json", "Forbidden", "unknown"),
        (404, b"404 page not found", "text/plain", "NotFound", "the server could not find the requested resource"),
        (405, b"", "", "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        (406, b"only cheese", "text/plain", "NotAcceptable", "only cheese"),
        (406, b"", "text/plain", "NotAcceptable", api_errors.NOT_ACCEPTABLE),
        (406, b"{}", "application/json", "NotAcceptable", api_errors.NOT_ACCEPTABLE),
        (409, b"", "", "Conflict", "the server reported a conflict"),
        (415, b"bad type", "", "UnsupportedMediaType", "bad type"),
        (422, b"", "", "Invalid", "the server rejected our request due to an error in our request"),
        (
            429,
            b"",
            "",
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        ),
        (503, b"x", "text/plain", "ServiceUnavailable", "the server is currently unable to handle the request"),
        (
            504,
            b"",
            "",
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        (
            500,
            b' a "b"\n',
            "text/plain",
            "InternalError",
            'an error on the server ("a \\"b\\"") has prevented the request from succeeding',
        ),
        (
            502,
            b"{}",
            "application/json",
            "InternalError",
            'an error on the server ("unknown") has prevented the request from succeeding',
        ),
        (
            418,
            b"",
            "",
            "",
            "the server responded with the status code 418 but did not return more information",
        ),
    ],
)
def test_generic_texts(code: int, body: bytes, content_type: str, reason: str, text: str) -> None:
    """An answer that is no Status gets the text of its code, followed by what was asked."""
    error = api_errors.of_response(_answer(code, body, content_type), **GET_PODS)
    assert (error.code, error.reason, str(error)) == (code, reason, f"{text} (get pods.metrics.k8s.io)")


def test_a_name_follows_the_resource() -> None:
    """With a name the text ends in method, resource and name."""
    error = api_errors.of_response(_answer(503), method="PUT", subject="deployments web")
    assert str(error) == "the server is currently unable to handle the request (put deployments web)"


def test_body_text_is_cut() -> None:
    """At most 2048 bytes of a body are shown."""
    assert len(api_errors.body_text(_answer(500, b"x" * 5000))) == 2048
