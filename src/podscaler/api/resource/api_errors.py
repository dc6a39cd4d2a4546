"""Makes the error responses of the API server, with the messages of kube-apiserver.

    raise not_found(DEPLOYMENTS, "web")      404, `deployments.apps "web" not found`

Called wherever the API server rejects a request. Each function but `name_at_admission` returns the StatusError to
raise; its docstring begins with the HTTP status code. `name` is that of the object in question. A new kind of error
response is a function here.

Source: k8s.io/apimachinery/pkg/api/errors (documented behaviour), tests/conformance/golden.
"""

from typing import Any

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.text import quoting
from podscaler.base.errors import Cause, StatusError

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

_STORAGE_PATHS = {
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "nodes": "minions",
    "podtemplates": "podtemplates",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
"""`Resource.key` -> the folder in etcd where kube-apiserver stores the kind, if it is not the plural."""


def not_found(resource: Resource, name: str) -> StatusError:
    """404: there is no such object."""
    message = f"{resource.name_in_messages} {quoting.quoted(name)} not found"
    return StatusError(message, code=404, reason="NotFound", details=_details(resource, name))


def already_exists(resource: Resource, name: str, *, is_being_deleted: bool = False) -> StatusError:
    """409: there is an object of that name; `is_being_deleted`: its deletion waits for finalizers."""
    message = (
        f'{"object is being deleted: " if is_being_deleted else ""}{resource.name_in_messages} "{name}" already exists'
    )
    return StatusError(message, code=409, reason="AlreadyExists", details=_details(resource, name))


def no_unique_name(resource: Resource, name: str) -> StatusError:
    """409: every name generated from generateName exists; `name` is the last one tried."""
    problem = "already exists, the server was not able to generate a unique name for the object"
    message = f'{resource.name_in_messages} "{name}" {problem}'
    details = _details(resource, name) | {"retryAfterSeconds": 1}
    headers = {"Retry-After": "1"}
    return StatusError(message, code=409, reason="AlreadyExists", details=details, headers=headers)


def conflict(resource: Resource, name: str, reason: str = MODIFIED) -> StatusError:
    """409: the request has another resourceVersion than the stored object, or conflicts with it as `reason` says."""
    message = f'Operation cannot be fulfilled on {resource.name_in_messages} "{name}": {reason}'
    return StatusError(message, code=409, reason="Conflict", details=_details(resource, name))


def uid_conflict(resource: Resource, key: str, name: str, *, expected_uid: str, actual_uid: str) -> StatusError:
    """409: a PUT for an object that has another uid. `key` is `namespace/name`."""
    detail = f"Precondition failed: UID in precondition: {expected_uid}, UID in object meta: {actual_uid}"
    return conflict(resource, name, _storage_error_message(resource, key, detail))


def unsafe_delete_conflict(resource: Resource, key: str, name: str) -> StatusError:
    """409: an unsafe delete of an object that can be read. `key` is `namespace/name`."""
    detail = "unsafe deletion is not allowed because the object is decodable from storage"
    return conflict(resource, name, _storage_error_message(resource, key, detail))


def undecodable(resource: Resource, key: str, revision: int, problem: str) -> StatusError:
    """500: a stored object that cannot be read in the requested version. `key` is `namespace/name`."""
    detail = f"object not decodable revision={revision}: {problem}"
    storage_key = f"/{resource.group}/{resource.plural}/{key}"
    return internal_error(
        f"StorageError: corrupt object, Code: 7, Key: {storage_key}, ResourceVersion: 0, AdditionalErrorMsg: {detail}"
    )


def _storage_error_message(resource: Resource, key: str, detail: str) -> str:
    """The message of etcd3's storage error for an object; `key` is `namespace/name`."""
    resource_name = f"{resource.group}/{resource.plural}" if resource.is_custom else resource.plural
    path = f"/registry/{_STORAGE_PATHS.get(resource.key, resource_name)}/{key.lstrip('/')}"
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {detail}"


def subresource_conflict(resource: Resource, subresource: str, name: str, reason: str) -> StatusError:
    """409: a write of the subresource `subresource` that conflicts with the stored object."""
    kind = f"{resource.plural}/{subresource}"
    full_kind = f"{kind}.{resource.group}" if resource.group else kind
    details = _details(resource, name) | {"kind": kind}
    message = f'Operation cannot be fulfilled on {full_kind} "{name}": {reason}'
    return StatusError(message, code=409, reason="Conflict", details=details)


def delete_conflict(resource: Resource, name: str, reason: str) -> StatusError:
    """409: a delete whose preconditions do not hold; the message has the kind in place of the plural."""
    full_kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {full_kind} "{name}": {reason}'
    details = _details(resource, name) | {"kind": resource.kind}
    return StatusError(message, code=409, reason="Conflict", details=details)


def forbidden(resource: Resource, name: str, reason: str, *, cause: Cause | None = None) -> StatusError:
    """403: admission rejects the request."""
    message = f'{resource.name_in_messages} "{name}" is forbidden: {reason}'
    causes = [cause] if cause else []
    return StatusError(message, code=403, reason="Forbidden", details=_details(resource, name), causes=causes)


def name_at_admission(obj: Object) -> str:
    """The name of an object in admission errors, when its name may still have to be generated."""
    metadata = obj.get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")


def invalid(resource: Resource, name: str, errors: list[FieldError]) -> StatusError:
    """422: the object is invalid."""
    return field.invalid_object(group=resource.group, kind=resource.kind, name=name, errors=errors)


def unconditional_update(resource: Resource, name: str) -> StatusError:
    """422: an update without resourceVersion of a kind that requires one; the message has the plural as kind."""
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


def too_large_resource_version(requested_version: int, current_version: int) -> StatusError:
    """504: the resource version is higher than the current one."""
    message = f"Timeout: Too large resource version: {requested_version}, current: {current_version}"
    return StatusError(
        message,
        code=504,
        reason="Timeout",
        details={"retryAfterSeconds": 1},
        causes=[Cause(reason="ResourceVersionTooLarge", message="Too large resource version")],
        headers={"Retry-After": "1"},
    )


def error_without_reason(message: str) -> StatusError:
    """500 without a `reason`: kube-apiserver's response to errors of its storage layer."""
    return StatusError(message, code=500)


SPACE_EXCEEDED = "etcdserver: mvcc: database space exceeded"
"""The message of `error_without_reason` when the database is full."""


def internal_error(message: str) -> StatusError:
    """500: an error of the server or of the machine."""
    causes = [Cause(reason="", message=message)]
    full_message = f"Internal error occurred: {message}"
    return StatusError(full_message, code=500, reason="InternalError", causes=causes)


def unavailable(message: str) -> StatusError:
    """503: the service is unavailable."""
    return StatusError(message, code=503, reason="ServiceUnavailable")


def _details(resource: Resource, name: str) -> dict[str, Any]:
    """The details of a Status about an object: its name, group and plural, without empty ones."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}
