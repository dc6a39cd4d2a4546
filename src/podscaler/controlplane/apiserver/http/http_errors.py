"""The refusals that HTTP itself gives rise to, in upstream's words: path, method, content type, size, identity.

Called by every module of `server`. What is wrong with an object is said by `api` and `objects`.
"""

from collections.abc import Sequence

from podscaler.base.errors import StatusError

BODY_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
CUSTOM_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
STREAM_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


def unauthorized() -> StatusError:
    """401: nobody known."""
    return StatusError("Unauthorized", code=401, reason="Unauthorized")


def no_such_path() -> StatusError:
    """404: the group and version are served, but not this path of theirs."""
    return StatusError("the server could not find the requested resource", code=404, reason="NotFound", details={})


def method_not_allowed() -> StatusError:
    """405: the path is served, but not with this method."""
    text = "the server does not allow this method on the requested resource"
    return StatusError(text, code=405, reason="MethodNotAllowed", details={})


def none_acceptable(*, can_stream: bool, only: str = "") -> StatusError:
    """406: none of the media types that the client accepts is one of ours.

    Args:
        can_stream: whether the path can also be watched, which has media types of its own.
        only: the one media type that there is, where it is not one of the usual ones.
    """
    available = only or ", ".join((*BODY_TYPES, *STREAM_TYPES) if can_stream else BODY_TYPES)
    text = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return StatusError(text, code=406, reason="NotAcceptable", details={})


def no_such_form() -> StatusError:
    """406: the media type is one of ours, but not in the form asked for (`as=...`)."""
    text = f"only the following media types are accepted: {', '.join(BODY_TYPES)}"
    return StatusError(text, code=406, reason="NotAcceptable")


def wrong_shape(text: str) -> StatusError:
    """406: the form asked for is not one that this answer can have."""
    return StatusError(text, code=406, reason="NotAcceptable")


def unsupported_body() -> StatusError:
    """415: the body's media type is not one that we read."""
    accepted = ", ".join(BODY_TYPES)
    text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(text, code=415, reason="UnsupportedMediaType")


def unsupported_patch() -> StatusError:
    """415: not one of the kinds of patches."""
    return StatusError("415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={})


def unsupported_custom_patch() -> StatusError:
    """415: not one of the kinds of patches that custom resources have, of which strategic merge is none."""
    accepted = ", ".join(CUSTOM_PATCHES)
    text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(text, code=415, reason="UnsupportedMediaType")


def not_supported(verb: str, group: str, plural: str) -> StatusError:
    """405: a custom resource does not have this verb on this path."""
    text = f'{verb} is not supported on resources of kind "{plural}.{group}"'
    details = {"group": group, "kind": plural}
    return StatusError(text, code=405, reason="MethodNotAllowed", details=details)


def too_large(limit_bytes: int) -> StatusError:
    """413: the body is longer than `limit_bytes`."""
    text = f"Request entity too large: limit is {limit_bytes}"
    return StatusError(text, code=413, reason="RequestEntityTooLarge")


def bad_request(text: str) -> StatusError:
    """400 with the given text."""
    return StatusError(text, code=400, reason="BadRequest")


def internal(text: str) -> StatusError:
    """500: a bug of ours; `text` must not hold secrets."""
    return StatusError(f"Internal error occurred: {text}", code=500, reason="InternalError")


def strict(problems: Sequence[str]) -> str:
    """How a strict server lists what it does not like about a body."""
    return f"strict decoding error: {', '.join(problems)}"
