"""API errors: the Status errors of the API server, in upstream's words.

Each function returns the StatusError to raise.
Source: k8s.io/apimachinery/pkg/api/errors (documented behaviour), tests/conformance/golden.
"""

from typing import Any

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.text import quoting
from podscaler.base.errors import Cause, StatusError

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

_STORED_UNDER = {
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "nodes": "minions",
    "podtemplates": "podtemplates",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}


def not_found(resource: Resource, name: str) -> StatusError:
    """404: there is no such object."""
    message = f"{resource.key} {quoting.quoted(name)} not found"
    return StatusError(message, code=404, reason="NotFound", details=_details(resource, name))


def already_exists(resource: Resource, name: str, *, is_going: bool = False) -> StatusError:
    """409: there is an object of that name, which may be on its way out."""
    message = f'{"object is being deleted: " if is_going else ""}{resource.key} "{name}" already exists'
    return StatusError(message, code=409, reason="AlreadyExists", details=_details(resource, name))


def no_unique_name(resource: Resource, name: str) -> StatusError:
    """409: every name made from generateName was taken; `name` is the last one tried."""
    message = (
        f'{resource.key} "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    details = _details(resource, name) | {"retryAfterSeconds": 1}
    headers = {"Retry-After": "1"}
    return StatusError(message, code=409, reason="AlreadyExists", details=details, headers=headers)


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> StatusError:
    """409: the request rests on another version than the stored one."""
    message = f'Operation cannot be fulfilled on {resource.key} "{name}": {why}'
    return StatusError(message, code=409, reason="Conflict", details=_details(resource, name))


def uid_conflict(resource: Resource, key: str, name: str, *, wanted: str, found: str) -> StatusError:
    """409: a PUT for an object that has another uid. `key` is `namespace/name`."""
    more = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(resource, name, _storage_error(resource, key, more))


def readable(resource: Resource, key: str, name: str) -> StatusError:
    """409: an unsafe delete, which is only for objects that cannot be read. `key` is `namespace/name`."""
    more = "unsafe deletion is not allowed because the object is decodable from storage"
    return conflict(resource, name, _storage_error(resource, key, more))


def _storage_error(resource: Resource, key: str, more: str) -> str:
    own = f"{resource.group}/{resource.plural}" if resource.is_custom else resource.plural
    path = f"/registry/{_STORED_UNDER.get(resource.key, own)}/{key.lstrip('/')}"
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {more}"


def subresource_conflict(resource: Resource, part: str, name: str, why: str) -> StatusError:
    """409: a change of a part of an object that cannot be made; names the part."""
    kind = f"{resource.plural}/{part}"
    full = f"{kind}.{resource.group}" if resource.group else kind
    details = _details(resource, name) | {"kind": kind}
    message = f'Operation cannot be fulfilled on {full} "{name}": {why}'
    return StatusError(message, code=409, reason="Conflict", details=details)


def delete_conflict(resource: Resource, name: str, why: str) -> StatusError:
    """409: a delete whose preconditions do not hold; names the kind, not the plural, as upstream does."""
    full_kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {full_kind} "{name}": {why}'
    details = _details(resource, name) | {"kind": resource.kind}
    return StatusError(message, code=409, reason="Conflict", details=details)


def forbidden(resource: Resource, name: str, why: str, *, cause: Cause | None = None) -> StatusError:
    """403: admission rejects the request."""
    message = f'{resource.key} "{name}" is forbidden: {why}'
    causes = [cause] if cause else []
    return StatusError(message, code=403, reason="Forbidden", details=_details(resource, name), causes=causes)


def name_at_admission(obj: Object) -> str:
    """What admission calls an object, whose name may still have to be made."""
    metadata = obj.get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")


def invalid(resource: Resource, name: str, errors: list[FieldError]) -> StatusError:
    """422: the object is invalid."""
    return field.invalid_object(group=resource.group, kind=resource.kind, name=name, errors=errors)


def unconditional_update(resource: Resource, name: str) -> StatusError:
    """422: an update without resourceVersion of a kind that demands one; upstream names the plural here."""
    error = field.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return field.invalid_object(group=resource.group, kind=resource.plural, name=name, errors=[error])


def invalid_options(kind: str, errors: list[FieldError]) -> StatusError:
    """422: the request's ListOptions, DeleteOptions, ... are invalid."""
    return field.invalid_object(group="meta.k8s.io", kind=kind, name="", errors=errors)


def bad_request(message: str) -> StatusError:
    """400: the request is malformed."""
    return StatusError(message, code=400, reason="BadRequest")


def expired(message: str) -> StatusError:
    """410: the resource version is compacted."""
    return StatusError(message, code=410, reason="Expired")


def too_large_resource_version(wanted: int, current: int) -> StatusError:
    """504: the resource version is higher than the current one."""
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return StatusError(
        message,
        code=504,
        reason="Timeout",
        details={"retryAfterSeconds": 1},
        causes=[Cause(reason="ResourceVersionTooLarge", message="Too large resource version")],
        headers={"Retry-After": "1"},
    )


def unnamed_failure(message: str) -> StatusError:
    """500 without a reason: what upstream answers where its storage layer complains."""
    return StatusError(message, code=500)


SPACE_EXCEEDED = "etcdserver: mvcc: database space exceeded"
"""What upstream answers, 500 without a reason, when there is no space for another object."""


def internal_error(message: str) -> StatusError:
    """500: an error of the server or of the machine."""
    causes = [Cause(reason="", message=message)]
    full = f"Internal error occurred: {message}"
    return StatusError(full, code=500, reason="InternalError", causes=causes)


def unavailable(message: str) -> StatusError:
    """503: the service is unavailable."""
    return StatusError(message, code=503, reason="ServiceUnavailable")


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}
