"""Makes the `paths` of OpenAPI v3 documents: the operations (list, create, patch, watch, ...) of a resource.

    collection_paths(subject)      {"/apis/apps/v1/namespaces/{namespace}/deployments": {"get": ..., "post": ...}, ...}

Called by `openapi`. A new kind of path: a public function here, and its call in `openapi`.

Theory of operation: a resource in one version has up to three kinds of paths (collection, object, subresource),
namespaced or not; a path is a dict of operations, each made by one small function. Clients read the kind of the `patch`
operation and its `fieldValidation` parameter to learn that the server validates.

Source: the golden OpenAPI documents of autoscaling v1 and v2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from podscaler.api.openapi import openapi_parameters
from podscaler.api.schema import openapi_schemas
from podscaler.api.schema.openapi_schemas import PATCH

Json = dict[str, Any]

_JSON_TYPES = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_WATCH_TYPES = (
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
)
PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
CUSTOM_PATCH_TYPES = PATCH_TYPES[:-1]
"""The content types of patches of custom resources: without strategic merge, which needs Go types."""
STATUS = "meta/v1.Status"
DELETE_OPTIONS = "meta/v1.DeleteOptions"
WATCH_EVENT = "meta/v1.WatchEvent"


@dataclass(frozen=True, slots=True)
class OperationSubject:
    """The resource of operations.

    Attributes:
        root: the path of the group version: `/apis/autoscaling/v2` or `/api/v1`.
        tag: the tag of the operations: `autoscaling_v2`.
        version_id: the group version in operationIds: `AutoscalingV2`.
        plural, kind, message: the names of the resource, and of its message.
        gvk: {group, kind, version} of the objects that the operations read and write.
        namespaced: whether the objects live in a namespace.
        patch_types: the content types of patches.
        list_kind: the kind of lists; by default the kind with the ending List.
    """

    root: str
    tag: str
    version_id: str
    plural: str
    kind: str
    message: str
    gvk: Json
    namespaced: bool
    patch_types: tuple[str, ...] = PATCH_TYPES
    list_kind: str = ""

    @property
    def list_message(self) -> str:
        """The message of its lists."""
        return self.message.removesuffix(self.kind) + (self.list_kind or f"{self.kind}List")

    @property
    def scope(self) -> str:
        """`Namespaced` in the names of operations on objects in a namespace."""
        return "Namespaced" if self.namespaced else ""

    @property
    def collection(self) -> str:
        """The path of the collection in which objects are created."""
        return (
            f"{self.root}/namespaces/{{namespace}}/{self.plural}" if self.namespaced else f"{self.root}/{self.plural}"
        )

    @property
    def object(self) -> str:
        """The path of one object."""
        return f"{self.collection}/{{name}}"


def discovery_path(root: str, version_id: str, tag: str) -> Json:
    """The path that lists a group version's resources; the arguments are those of OperationSubject."""
    return {
        f"{root}/": {
            "get": {
                "tags": [tag],
                "description": "get available resources",
                "operationId": f"get{version_id}APIResources",
                "responses": _responses("meta/v1.APIResourceList", ("200",)),
            }
        }
    }


def collection_paths(subject: OperationSubject, *, readonly: bool = False) -> Json:
    """The paths of a resource's collections, in one namespace and over all; `readonly` ones can only be listed."""
    operation_name = f"{subject.version_id}{subject.scope}{subject.kind}"
    path_item: Json = {"get": _list_operation(subject, f"list{operation_name}", openapi_parameters.LIST)}
    if not readonly:
        path_item["post"] = _write_operation(
            subject, "post", f"create{operation_name}", f"create a {subject.kind}", ("200", "201", "202")
        )
        path_item["delete"] = _delete_collection_operation(subject)
    path_item["parameters"] = _path_parameters(subject, "namespace") + openapi_parameters.query_parameters(("pretty",))
    if not subject.namespaced:
        return {subject.collection: path_item}
    all_namespaces_item = {
        "get": _list_operation(subject, f"list{subject.version_id}{subject.kind}ForAllNamespaces", ()),
        "parameters": openapi_parameters.query_parameters(sorted((*openapi_parameters.LIST, "pretty"))),
    }
    return {f"{subject.root}/{subject.plural}": all_namespaces_item, subject.collection: path_item}


def object_path(subject: OperationSubject, *, readonly: bool = False, responds_with_object: bool = False) -> Json:
    """The path of one object. `responds_with_object`: whether a delete responds with the object, not with a Status."""
    operation_name = f"{subject.version_id}{subject.scope}{subject.kind}"
    path_item: Json = {"get": _read_operation(subject, f"read{operation_name}", f"read the specified {subject.kind}")}
    if not readonly:
        path_item["put"] = _write_operation(
            subject, "put", f"replace{operation_name}", f"replace the specified {subject.kind}"
        )
        path_item["patch"] = _patch_operation(
            subject, f"patch{operation_name}", f"partially update the specified {subject.kind}"
        )
        path_item["delete"] = _delete_operation(
            subject, f"delete{operation_name}", subject.message if responds_with_object else STATUS
        )
    path_item["parameters"] = _path_parameters(subject, "name", "namespace") + openapi_parameters.query_parameters(
        ("pretty",)
    )
    return {subject.object: path_item}


def subresource_path(subject: OperationSubject, owner: OperationSubject, subresource: str, title: str) -> Json:
    """The path of a subresource that is read, replaced and patched.

    Args:
        subject: the kind of the subresource.
        owner: the resource that has it.
        subresource: its name in paths (`status`).
        title: its name in operationIds (`Status`).
    """
    operation_name = f"{owner.version_id}{owner.scope}{owner.kind}{title}"
    description = f"{subresource} of the specified {owner.kind}"
    path_item = {
        "get": _read_operation(subject, f"read{operation_name}", f"read {description}"),
        "put": _write_operation(subject, "put", f"replace{operation_name}", f"replace {description}"),
        "patch": _patch_operation(subject, f"patch{operation_name}", f"partially update {description}"),
        "parameters": _path_parameters(owner, "name", "namespace") + openapi_parameters.query_parameters(("pretty",)),
    }
    return {f"{owner.object}/{subresource}": path_item}


def write_only_subresource_path(
    subject: OperationSubject, owner: OperationSubject, subresource: str, title: str, *, method: str = "post"
) -> Json:
    """The path of a write-only subresource: `pods/binding`, `namespaces/finalize`."""
    verb = {"post": "create", "put": "replace"}[method]
    operation_name = f"{verb}{owner.version_id}{owner.scope}{owner.kind}{title}"
    status_codes = ("200", "201", "202") if method == "post" else ("200", "201")
    operation = _write_operation(
        subject, method, operation_name, f"{verb} {subresource} of a {owner.kind}", status_codes
    )
    parameters = _path_parameters(owner, "name", "namespace") + openapi_parameters.query_parameters(("pretty",))
    return {f"{owner.object}/{subresource}": {method: operation, "parameters": parameters}}


def log_path(owner: OperationSubject) -> Json:
    """The path of a pod's log."""
    text_response = {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}
    operation = {
        "tags": [owner.tag],
        "description": f"read log of the specified {owner.kind}",
        "operationId": f"read{owner.version_id}{owner.scope}{owner.kind}Log",
        "parameters": openapi_parameters.query_parameters(openapi_parameters.LOG),
        "responses": {"200": text_response, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": owner.gvk,
    }
    return {f"{owner.object}/log": {"get": operation, "parameters": _path_parameters(owner, "name", "namespace")}}


def connection_paths(owner: OperationSubject) -> Json:
    """The paths of a pod's sessions, which upgrade to another protocol."""
    sessions = {
        "attach": ("Attach", openapi_parameters.ATTACH),
        "exec": ("Exec", openapi_parameters.EXEC),
        "portforward": ("PortForward", openapi_parameters.PORT_FORWARD),
    }
    return {
        f"{owner.object}/{subresource}": _connection_path(owner, subresource, f"Pod{title}Options", query_names)
        for subresource, (title, query_names) in sessions.items()
    }


def _connection_path(owner: OperationSubject, subresource: str, kind: str, query_names: tuple[str, ...]) -> Json:
    """The path of one kind of sessions, with an operation for GET and POST each."""
    options_subject = replace(owner, gvk=owner.gvk | {"kind": kind})
    stream_response = {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}
    operations = {}
    for method in ("get", "post"):
        operation_name = (
            f"connect{owner.version_id}{method.capitalize()}{owner.scope}{owner.kind}{subresource.capitalize()}"
        )
        operation = _base_operation(
            options_subject, "connect", operation_name, f"connect {method.upper()} requests to {subresource} of Pod"
        )
        operations[method] = operation | {"responses": {"200": stream_response, "401": {"description": "Unauthorized"}}}
    parameters = _path_parameters(owner, "name", "namespace") + openapi_parameters.query_parameters(query_names)
    return {**operations, "parameters": sorted(parameters, key=lambda parameter: str(parameter["name"]))}


def metric_paths(subject: OperationSubject, paths: Mapping[str, tuple[str, str]]) -> Json:
    """The paths of a metrics API.

    Args:
        paths: path below that of the group version -> (name of the operation, description).
    """
    return {f"{subject.root}/{path}": _metric_path(subject, path, *arguments) for path, arguments in paths.items()}


def _metric_path(subject: OperationSubject, path: str, operation_name: str, description: str) -> Json:
    """The path of one operation of a metrics API; names in braces in the path are its path parameters."""
    operation = _base_operation(subject, "list", f"list{subject.version_id}{operation_name}", description)
    parameter_names = [segment[1:-1] for segment in path.split("/") if segment.startswith("{")]
    return {
        "get": operation | {"responses": _responses(subject.message, ("200",))},
        "parameters": _path_parameters(subject, *parameter_names)
        + openapi_parameters.query_parameters(openapi_parameters.METRIC_VALUES),
    }


def create_only_path(subject: OperationSubject) -> Json:
    """The path of a kind that is created and never stored: reviews."""
    name = f"create{subject.version_id}{subject.scope}{subject.kind}"
    operation = _write_operation(subject, "post", name, f"create a {subject.kind}", ("200", "201", "202"))
    return {
        subject.collection: {
            "post": operation,
            "parameters": _path_parameters(subject, "namespace") + openapi_parameters.query_parameters(("pretty",)),
        }
    }


def watch_paths(subject: OperationSubject) -> Json:
    """The deprecated watch paths (`/watch/` before the path), of collections and of one object."""
    outdated_note = "; outdated: use `watch` with the list"
    list_description = f"watch changes of {subject.plural}{outdated_note}"
    object_description = f"watch changes of one {subject.kind}{outdated_note}"
    prefix = f"{subject.root}/watch"
    collection_path = subject.collection.replace(subject.root, prefix, 1)
    path_items: Json = {}
    if subject.namespaced:
        operation_id = f"watch{subject.version_id}{subject.kind}ListForAllNamespaces"
        all_path = f"{prefix}/{subject.plural}"
        path_items[all_path] = _watch_path(subject, "watchlist", operation_id, list_description)
    object_operation_id = f"watch{subject.version_id}{subject.scope}{subject.kind}"
    path_items[collection_path] = _watch_path(
        subject, "watchlist", f"{object_operation_id}List", list_description, "namespace"
    )
    path_items[f"{collection_path}/{{name}}"] = _watch_path(
        subject, "watch", object_operation_id, object_description, "name", "namespace"
    )
    return path_items


def _watch_path(
    subject: OperationSubject, kind_of_action: str, operation_id: str, description: str, *path_parameters: str
) -> Json:
    """The path of one watch operation; `path_parameters` are the names in braces in the path."""
    operation = _base_operation(subject, kind_of_action, operation_id, description)
    query = openapi_parameters.query_parameters((*openapi_parameters.LIST, "pretty"))
    parameters = _path_parameters(subject, *path_parameters) + query
    return {
        "get": operation | {"responses": _responses(WATCH_EVENT, ("200",), _WATCH_TYPES)},
        "parameters": sorted(parameters, key=lambda parameter: str(parameter["name"])),
    }


def _base_operation(subject: OperationSubject, kind_of_action: str, operation_id: str, description: str) -> Json:
    """The members that all operations have; `kind_of_action` is the verb of x-kubernetes-action, such as `list`."""
    return {
        "tags": [subject.tag],
        "description": description,
        "operationId": operation_id,
        "x-kubernetes-action": kind_of_action,
        "x-kubernetes-group-version-kind": subject.gvk,
    }


def _list_operation(subject: OperationSubject, operation_id: str, parameters: tuple[str, ...]) -> Json:
    """Lists or watches the objects of a collection."""
    operation = _base_operation(subject, "list", operation_id, f"list or watch objects of kind {subject.kind}")
    if parameters:
        operation["parameters"] = openapi_parameters.query_parameters(parameters)
    return operation | {"responses": _responses(subject.list_message, ("200",), _WATCH_TYPES)}


def _read_operation(subject: OperationSubject, operation_id: str, description: str) -> Json:
    operation = _base_operation(subject, "get", operation_id, description)
    return operation | {"responses": _responses(subject.message, ("200",))}


def _write_operation(
    subject: OperationSubject,
    kind_of_action: str,
    operation_id: str,
    description: str,
    status_codes: tuple[str, ...] = ("200", "201"),
) -> Json:
    """Creates or replaces an object, or writes a subresource."""
    return _base_operation(subject, kind_of_action, operation_id, description) | {
        "parameters": openapi_parameters.query_parameters(openapi_parameters.WRITE),
        "requestBody": _request_body(subject.message, ("*/*",), is_required=True),
        "responses": _responses(subject.message, status_codes),
    }


def _patch_operation(subject: OperationSubject, operation_id: str, description: str) -> Json:
    """Patches an object or a subresource, with the content types of its kind."""
    return _base_operation(subject, "patch", operation_id, description) | {
        "parameters": openapi_parameters.query_parameters((*openapi_parameters.WRITE, "force")),
        "requestBody": _request_body(PATCH, subject.patch_types, is_required=True),
        "responses": _responses(subject.message, ("200", "201")),
    }


def _delete_operation(subject: OperationSubject, operation_id: str, message: str) -> Json:
    """Deletes one object, and responds with that message (a Status, or the object)."""
    return _base_operation(subject, "delete", operation_id, f"delete a {subject.kind}") | {
        "parameters": openapi_parameters.query_parameters(openapi_parameters.DELETE),
        "requestBody": _request_body(DELETE_OPTIONS, ("*/*",)),
        "responses": _responses(message, ("200", "202")),
    }


def _delete_collection_operation(subject: OperationSubject) -> Json:
    """Deletes the objects of a collection."""
    operation_id = f"delete{subject.version_id}Collection{subject.scope}{subject.kind}"
    return _base_operation(subject, "deletecollection", operation_id, f"delete collection of {subject.kind}") | {
        "parameters": openapi_parameters.query_parameters(openapi_parameters.DELETE_COLLECTION),
        "requestBody": _request_body(DELETE_OPTIONS, ("*/*",)),
        "responses": _responses(STATUS, ("200",)),
    }


def _request_body(message: str, media_types: tuple[str, ...], *, is_required: bool = False) -> Json:
    body: Json = {"content": _media_types(message, media_types)}
    return body | {"required": True} if is_required else body


def ok_responses(message: str) -> Json:
    """The responses of an operation: 200 with a message, or 401."""
    return _responses(message, ("200",))


def _responses(message: str, status_codes: tuple[str, ...], media_types: tuple[str, ...] = _JSON_TYPES) -> Json:
    """The responses of an operation by status code, all with the same message, and 401 without one."""
    descriptions = {"200": "OK", "201": "Created", "202": "Accepted"}
    responses: Json = {
        code: {"description": descriptions[code], "content": _media_types(message, media_types)}
        for code in status_codes
    }
    return responses | {"401": {"description": "Unauthorized"}}


def _media_types(message: str, media_types: tuple[str, ...]) -> Json:
    return {media_type: {"schema": openapi_schemas.reference(message)} for media_type in media_types}


def _path_parameters(subject: OperationSubject, *names: str) -> list[Json]:
    """The path parameters of those names; `namespace` only for objects that live in one."""
    descriptions = {
        "name": f"name of the {subject.kind}",
        "namespace": "the namespace of the objects",
        "resource": "what is measured: a resource as discovery lists it; of external metrics the metric",
        "subresource": "the metric",
    }
    return [
        {
            "name": name,
            "in": "path",
            "description": descriptions[name],
            "required": True,
            "schema": {"type": "string", "uniqueItems": True},
        }
        for name in names
        if name != "namespace" or subject.namespaced
    ]
