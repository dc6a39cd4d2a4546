"""Builds the API errors about HTTP itself, with kube-apiserver's messages: path, method, media type, size, credentials.

Every package of the API server calls it: `raise http_errors.no_such_path()`. `api.resource.api_errors` has the errors
about objects.

A new error: a function here that is named for the condition.
"""

from collections.abc import Sequence

from podscaler.base.errors import StatusError

BODY_MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
CUSTOM_PATCH_MEDIA_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
STREAM_MEDIA_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


def unauthorized() -> StatusError:
    """401: no valid credentials."""
    return StatusError("Unauthorized", code=401, reason="Unauthorized")


def no_such_path() -> StatusError:
    """404: the group and version are served, but not this path below them."""
    return StatusError("the server could not find the requested resource", code=404, reason="NotFound", details={})


def method_not_allowed() -> StatusError:
    """405: the path is served, but not with this method."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(message, code=405, reason="MethodNotAllowed", details={})


def none_acceptable(*, can_stream: bool, only: str = "") -> StatusError:
    """406: the client accepts none of the media types that are served.

    Args:
        can_stream: whether the path can be watched, which adds the media types of watches to the message.
        only: the one media type of the path, where it is not served in the usual ones.
    """
    available = only or ", ".join((*BODY_MEDIA_TYPES, *STREAM_MEDIA_TYPES) if can_stream else BODY_MEDIA_TYPES)
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return StatusError(message, code=406, reason="NotAcceptable", details={})


def no_such_form() -> StatusError:
    """406: the media type is served, but not with the transformation of the parameter `as`."""
    return not_acceptable(f"only the following media types are accepted: {', '.join(BODY_MEDIA_TYPES)}")


def no_such_stream() -> StatusError:
    """406: the media type is served, but not for watches."""
    return not_acceptable(f"only the following media types are accepted: {', '.join(STREAM_MEDIA_TYPES)}")


def not_acceptable(message: str) -> StatusError:
    """406 with the given message."""
    return StatusError(message, code=406, reason="NotAcceptable")


def unsupported_body() -> StatusError:
    """415: the media type of the body is not read."""
    return _unsupported(BODY_MEDIA_TYPES)


def unsupported_patch() -> StatusError:
    """415: the media type is none of a patch."""
    return StatusError("415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={})


def unsupported_custom_patch() -> StatusError:
    """415: the media type is none of a patch of custom resources, which have no strategic merge patch."""
    return _unsupported(CUSTOM_PATCH_MEDIA_TYPES)


def _unsupported(accepted: Sequence[str]) -> StatusError:
    """415 with the accepted media types."""
    types = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {types}"
    return StatusError(message, code=415, reason="UnsupportedMediaType")


def verb_not_supported(verb: str, group: str, plural: str) -> StatusError:
    """405: a custom resource does not have this verb on this path."""
    message = f'{verb} is not supported on resources of kind "{plural}.{group}"'
    return StatusError(message, code=405, reason="MethodNotAllowed", details={"group": group, "kind": plural})


def too_large(limit_bytes: int) -> StatusError:
    """413: the body is longer than `limit_bytes`."""
    message = f"Request entity too large: limit is {limit_bytes}"
    return StatusError(message, code=413, reason="RequestEntityTooLarge")


def bad_request(message: str) -> StatusError:
    """400 with the given message."""
    return StatusError(message, code=400, reason="BadRequest")


def internal(message: str) -> StatusError:
    """500 for a bug of this server; the message must not contain secrets."""
    return StatusError(f"Internal error occurred: {message}", code=500, reason="InternalError")


def strict_decoding_text(problems: Sequence[str]) -> str:
    """The end of the message for a body with problems, under `fieldValidation=Strict`."""
    return f"strict decoding error: {', '.join(problems)}"
