"""Makes the `paths` of OpenAPI v3 documents: the operations (list, create, patch, watch, ...) of a resource.

    collection(subject)      {"/apis/apps/v1/namespaces/{namespace}/deployments": {"get": ..., "post": ...}, ...}

Called by `openapi`.

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

JSON_TYPES = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
WATCH_TYPES = (
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
        id: the group version in operationIds: `AutoscalingV2`.
        plural, kind, message: the names of the resource, and of its message.
        gvk: {group, kind, version} of the objects that the operations read and write.
        namespaced: whether the objects live in a namespace.
        patch_types: the content types of patches.
        list_kind: the kind of lists; by default the kind with the ending List.
    """

    root: str
    tag: str
    id: str
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


def discovery(root: str, id: str, tag: str) -> Json:
    """The path that lists a group version's resources."""
    return {
        f"{root}/": {
            "get": {
                "tags": [tag],
                "description": "get available resources",
                "operationId": f"get{id}APIResources",
                "responses": _with_unauthorized("meta/v1.APIResourceList", ("200",)),
            }
        }
    }


def collection(target: OperationSubject, *, readonly: bool = False) -> Json:
    """The paths of a resource's collections, in one namespace and over all."""
    name = f"{target.id}{target.scope}{target.kind}"
    path: Json = {"get": _list(target, f"list{name}", openapi_parameters.LIST)}
    if not readonly:
        path["post"] = _write(target, "post", f"create{name}", f"create a {target.kind}", ("200", "201", "202"))
        path["delete"] = _delete_collection(target)
    path["parameters"] = _path_parameters(target, "namespace") + openapi_parameters.query(("pretty",))
    if not target.namespaced:
        return {target.collection: path}
    everywhere = {
        "get": _list(target, f"list{target.id}{target.kind}ForAllNamespaces", ()),
        "parameters": openapi_parameters.query(sorted((*openapi_parameters.LIST, "pretty"))),
    }
    return {f"{target.root}/{target.plural}": everywhere, target.collection: path}


def item(target: OperationSubject, *, readonly: bool = False, responds_with_object: bool = False) -> Json:
    """The path of one object. `responds_with_object`: whether a delete responds with the object, not with a Status."""
    name = f"{target.id}{target.scope}{target.kind}"
    path: Json = {"get": _read(target, f"read{name}", f"read the specified {target.kind}")}
    if not readonly:
        path["put"] = _write(target, "put", f"replace{name}", f"replace the specified {target.kind}")
        path["patch"] = _patch(target, f"patch{name}", f"partially update the specified {target.kind}")
        path["delete"] = _delete(target, f"delete{name}", target.message if responds_with_object else STATUS)
    path["parameters"] = _path_parameters(target, "name", "namespace") + openapi_parameters.query(("pretty",))
    return {target.object: path}


def subresource(target: OperationSubject, owner: OperationSubject, subresource: str, title: str) -> Json:
    """The path of a subresource that is read, replaced and patched: `target` is its kind, `owner` the resource."""
    name = f"{owner.id}{owner.scope}{owner.kind}{title}"
    described = f"{subresource} of the specified {owner.kind}"
    path = {
        "get": _read(target, f"read{name}", f"read {described}"),
        "put": _write(target, "put", f"replace{name}", f"replace {described}"),
        "patch": _patch(target, f"patch{name}", f"partially update {described}"),
        "parameters": _path_parameters(owner, "name", "namespace") + openapi_parameters.query(("pretty",)),
    }
    return {f"{owner.object}/{subresource}": path}


def action(
    target: OperationSubject, owner: OperationSubject, subresource: str, title: str, *, method: str = "post"
) -> Json:
    """The path of a write-only subresource: `pods/binding`, `namespaces/finalize`."""
    verb = {"post": "create", "put": "replace"}[method]
    name = f"{verb}{owner.id}{owner.scope}{owner.kind}{title}"
    codes = ("200", "201", "202") if method == "post" else ("200", "201")
    operation = _write(target, method, name, f"{verb} {subresource} of a {owner.kind}", codes)
    parameters = _path_parameters(owner, "name", "namespace") + openapi_parameters.query(("pretty",))
    return {f"{owner.object}/{subresource}": {method: operation, "parameters": parameters}}


def log(owner: OperationSubject) -> Json:
    """The path of a pod's log."""
    text = {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}
    operation = {
        "tags": [owner.tag],
        "description": f"read log of the specified {owner.kind}",
        "operationId": f"read{owner.id}{owner.scope}{owner.kind}Log",
        "parameters": openapi_parameters.query(openapi_parameters.LOG),
        "responses": {"200": text, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": owner.gvk,
    }
    return {f"{owner.object}/log": {"get": operation, "parameters": _path_parameters(owner, "name", "namespace")}}


def connections(owner: OperationSubject) -> Json:
    """The paths of a pod's sessions, which upgrade to another protocol."""
    parts = {
        "attach": ("Attach", openapi_parameters.ATTACH),
        "exec": ("Exec", openapi_parameters.EXEC),
        "portforward": ("PortForward", openapi_parameters.PORT_FORWARD),
    }
    return {
        f"{owner.object}/{subresource}": _connection(owner, subresource, f"Pod{title}Options", query)
        for subresource, (title, query) in parts.items()
    }


def _connection(owner: OperationSubject, subresource: str, kind: str, query: tuple[str, ...]) -> Json:
    options = replace(owner, gvk=owner.gvk | {"kind": kind})
    stream = {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}
    operations = {}
    for method in ("get", "post"):
        name = f"connect{owner.id}{method.capitalize()}{owner.scope}{owner.kind}{subresource.capitalize()}"
        operation = _operation(options, "connect", name, f"connect {method.upper()} requests to {subresource} of Pod")
        operations[method] = operation | {"responses": {"200": stream, "401": {"description": "Unauthorized"}}}
    parameters = _path_parameters(owner, "name", "namespace") + openapi_parameters.query(query)
    return {**operations, "parameters": sorted(parameters, key=lambda parameter: str(parameter["name"]))}


def metrics(target: OperationSubject, paths: Mapping[str, tuple[str, str]]) -> Json:
    """The paths of a metrics API: `paths` has name and description of each operation."""
    return {f"{target.root}/{path}": _metric_path(target, path, *arguments) for path, arguments in paths.items()}


def _metric_path(target: OperationSubject, path: str, title: str, description: str) -> Json:
    operation = _operation(target, "list", f"list{target.id}{title}", description)
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return {
        "get": operation | {"responses": _with_unauthorized(target.message, ("200",))},
        "parameters": _path_parameters(target, *names) + openapi_parameters.query(openapi_parameters.VALUES),
    }


def create_only(target: OperationSubject) -> Json:
    """The path of a kind that is created and never stored: reviews."""
    name = f"create{target.id}{target.scope}{target.kind}"
    operation = _write(target, "post", name, f"create a {target.kind}", ("200", "201", "202"))
    return {
        target.collection: {
            "post": operation,
            "parameters": _path_parameters(target, "namespace") + openapi_parameters.query(("pretty",)),
        }
    }


def watches(target: OperationSubject) -> Json:
    """The deprecated watch paths."""
    list_action, object_action = f"watch changes of {target.plural}", f"watch changes of one {target.kind}"
    outdated = "; outdated: use `watch` with the list"
    prefix = f"{target.root}/watch"
    name = f"watch{target.id}{target.scope}{target.kind}"
    inside = target.collection.replace(target.root, prefix, 1)
    paths = {
        inside: _watch(target, f"{name}List", "watchlist", list_action + outdated),
        f"{inside}/{{name}}": _watch(target, name, "watch", object_action + outdated),
    }
    paths[inside]["parameters"] = _watch_parameters(target, "namespace")
    paths[f"{inside}/{{name}}"]["parameters"] = _watch_parameters(target, "name", "namespace")
    if target.namespaced:
        everywhere = f"watch{target.id}{target.kind}ListForAllNamespaces"
        path = _watch(target, everywhere, "watchlist", list_action + outdated)
        paths = {f"{prefix}/{target.plural}": path | {"parameters": _watch_parameters(target)}} | paths
    return paths


def _watch(target: OperationSubject, operation_id: str, kind_of_action: str, description: str) -> Json:
    responses = _with_unauthorized(WATCH_EVENT, ("200",), WATCH_TYPES)
    operation = _operation(target, kind_of_action, operation_id, description)
    return {"get": operation | {"responses": responses}}


def _watch_parameters(target: OperationSubject, *names: str) -> list[Json]:
    query = openapi_parameters.query((*openapi_parameters.LIST, "pretty"))
    return sorted(_path_parameters(target, *names) + query, key=lambda parameter: str(parameter["name"]))


def _operation(target: OperationSubject, kind_of_action: str, operation_id: str, description: str) -> Json:
    return {
        "tags": [target.tag],
        "description": description,
        "operationId": operation_id,
        "x-kubernetes-action": kind_of_action,
        "x-kubernetes-group-version-kind": target.gvk,
    }


def _list(target: OperationSubject, operation_id: str, parameters: tuple[str, ...]) -> Json:
    operation = _operation(target, "list", operation_id, f"list or watch objects of kind {target.kind}")
    if parameters:
        operation["parameters"] = openapi_parameters.query(parameters)
    return operation | {"responses": _with_unauthorized(target.list_message, ("200",), WATCH_TYPES)}


def _read(target: OperationSubject, operation_id: str, description: str) -> Json:
    operation = _operation(target, "get", operation_id, description)
    return operation | {"responses": _with_unauthorized(target.message, ("200",))}


def _write(
    target: OperationSubject,
    kind_of_action: str,
    operation_id: str,
    description: str,
    codes: tuple[str, ...] = ("200", "201"),
) -> Json:
    return _operation(target, kind_of_action, operation_id, description) | {
        "parameters": openapi_parameters.query(openapi_parameters.WRITE),
        "requestBody": _body(target.message, ("*/*",), is_required=True),
        "responses": _with_unauthorized(target.message, codes),
    }


def _patch(target: OperationSubject, operation_id: str, description: str) -> Json:
    return _operation(target, "patch", operation_id, description) | {
        "parameters": openapi_parameters.query((*openapi_parameters.WRITE, "force")),
        "requestBody": _body(PATCH, target.patch_types, is_required=True),
        "responses": _with_unauthorized(target.message, ("200", "201")),
    }


def _delete(target: OperationSubject, operation_id: str, message: str) -> Json:
    return _operation(target, "delete", operation_id, f"delete a {target.kind}") | {
        "parameters": openapi_parameters.query(openapi_parameters.DELETE),
        "requestBody": _body(DELETE_OPTIONS, ("*/*",)),
        "responses": _with_unauthorized(message, ("200", "202")),
    }


def _delete_collection(target: OperationSubject) -> Json:
    operation_id = f"delete{target.id}Collection{target.scope}{target.kind}"
    return _operation(target, "deletecollection", operation_id, f"delete collection of {target.kind}") | {
        "parameters": openapi_parameters.query(openapi_parameters.DELETE_COLLECTION),
        "requestBody": _body(DELETE_OPTIONS, ("*/*",)),
        "responses": _with_unauthorized(STATUS, ("200",)),
    }


def _body(message: str, media_types: tuple[str, ...], *, is_required: bool = False) -> Json:
    body: Json = {"content": _content(message, media_types)}
    return body | {"required": True} if is_required else body


def responses(message: str) -> Json:
    """The responses of an operation: 200 with a message, or 401."""
    return _with_unauthorized(message, ("200",))


def _with_unauthorized(message: str, codes: tuple[str, ...], media_types: tuple[str, ...] = JSON_TYPES) -> Json:
    names = {"200": "OK", "201": "Created", "202": "Accepted"}
    responses: Json = {code: {"description": names[code], "content": _content(message, media_types)} for code in codes}
    return responses | {"401": {"description": "Unauthorized"}}


def _content(message: str, media_types: tuple[str, ...]) -> Json:
    return {media_type: {"schema": openapi_schemas.reference(message)} for media_type in media_types}


def _path_parameters(target: OperationSubject, *names: str) -> list[Json]:
    described = {
        "name": f"name of the {target.kind}",
        "namespace": "the namespace of the objects",
        "resource": "what is measured: a resource as discovery lists it; of external metrics the metric",
        "subresource": "the metric",
    }
    return [
        {
            "name": name,
            "in": "path",
            "description": described[name],
            "required": True,
            "schema": {"type": "string", "uniqueItems": True},
        }
        for name in names
        if name != "namespace" or target.namespaced
    ]
