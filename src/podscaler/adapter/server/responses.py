"""Makes the HTTP responses of the adapter: objects as JSON, and errors as Status objects.

Called by `server.app` and the APIs.

Source: k8s.io/apiserver (Status, content negotiation). Differs: there is no protobuf, YAML or Table.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from podscaler.base.errors import StatusError
from podscaler.kube.serving.delegated_access import AccessError

JSON = "application/json"
_ACCEPTED = frozenset({JSON, "application/*", "*/*", ""})


def check_accept(accept: str) -> None:
    """Check that a client accepts JSON. Raises StatusError 406."""
    if not any(_accepts_json(clause) for clause in accept.split(",")):
        message = f"only the following media types are accepted: {JSON}"
        raise StatusError(message, code=406, reason="NotAcceptable")


def _accepts_json(clause: str) -> bool:
    """Whether a clause of an Accept header means plain JSON; one with `as=` means a Table or another kind."""
    name, *parameters = [parameter.strip() for parameter in clause.split(";")]
    return name.lower() in _ACCEPTED and not any(parameter.startswith("as=") for parameter in parameters)


def of_object(json_object: Mapping[str, Any]) -> web.Response:
    """The response 200 with a JSON-ready object."""
    return web.Response(body=msgspec.json.encode(json_object) + b"\n", content_type=JSON)


def of_error(error: StatusError) -> web.Response:
    """The response of an error."""
    status = error.to_status()
    headers = {**error.headers, "X-Content-Type-Options": "nosniff"}
    code = error.code or 500
    return web.Response(
        body=msgspec.json.encode(status | {"code": code}) + b"\n", status=code, headers=headers, content_type=JSON
    )


def of_access_error(error: AccessError) -> web.Response:
    """The response to a request that is not allowed."""
    # as upstream, a 403 has `details` in any case
    details = {} if error.details is None and error.code == 403 else error.details
    return of_error(StatusError(error.message, code=error.code, reason=error.reason, details=details))


def no_such_path() -> StatusError:
    """404: nothing is served at the path."""
    message = "the server could not find the requested resource"
    return StatusError(message, code=404, reason="NotFound", details={})
