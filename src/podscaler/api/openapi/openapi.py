"""Makes the OpenAPI v3 documents: one for each group version, and small ones for discovery and for the version.

Called by `podscaler.controlplane.apiserver.discovery.openapi_v3`, which serves them under `/openapi/v3/<path>`. A new
subresource: `_subresource_paths`; a new metrics API: `_METRIC_PATHS`.

    documents(catalog.RESOURCES)                      {"api/v1": make, "apis/apps/v1": make, ...}
    document("autoscaling/v2", catalog.RESOURCES)     {"openapi": "3.0.0", "paths": ..., "components": ...}

Invariants: documents are made on demand (a large one takes some 20 ms: make it in a thread, cache its bytes); they
depend only on the resource records.

Source: the golden OpenAPI documents of autoscaling v1 and v2; for metrics APIs the paths that their clients request.
Differs: descriptions are our own words.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from podscaler.api.crd import openapi as custom_openapi
from podscaler.api.openapi import openapi_paths
from podscaler.api.openapi.openapi_paths import OperationSubject
from podscaler.api.resource.resources import Resource
from podscaler.api.schema import openapi_schemas, schema

Json = dict[str, Any]

API_VERSION = "1.37"
"""The version of the Kubernetes API, as documents state it."""

_GROUP_MESSAGES = {"api": "meta/v1.APIVersions", "apis": "meta/v1.APIGroupList"}
"""Path of a discovery document -> the message with which it responds."""
_COMMON_MESSAGES = (
    openapi_schemas.PATCH,
    "meta/v1.APIResourceList",
    openapi_paths.DELETE_OPTIONS,
    openapi_paths.STATUS,
)
"""The messages in every document of a group version."""
_KINDS_OF_EVERY_GROUP = (openapi_paths.DELETE_OPTIONS, openapi_paths.WATCH_EVENT)
"""The messages that are kinds of every group."""
_REFERENCED_BY_CUSTOM = ("meta/v1.ObjectMeta", "meta/v1.ListMeta")
"""The messages to which the schemas of custom resources refer."""
_METRIC_PATHS = {
    "custom.metrics.k8s.io": {
        "namespaces/{namespace}/metrics/{name}": ("NamespaceMetric", "read a metric of a namespace"),
        "namespaces/{namespace}/{resource}/{name}/{subresource}": (
            "NamespacedMetric",
            "read a metric of an object in a namespace, or of all of them (`*`)",
        ),
        "{resource}/{name}/{subresource}": ("Metric", "read a metric of an object that is in no namespace"),
    },
    "external.metrics.k8s.io": {
        "namespaces/{namespace}/{resource}": ("NamespacedMetric", "read a metric of something outside of the cluster")
    },
}
"""Group of a metrics API -> path below that of the group version -> (name of the operation, description)."""


@dataclass(frozen=True, slots=True)
class CreateOnly:
    """A kind that can only be created and is not stored: `selfsubjectaccessreviews`.

    Attributes:
        group, version, plural, kind: its names.
        message: the name of its message.
        namespaced: whether it is created in a namespace.
    """

    group: str
    version: str
    plural: str
    kind: str
    message: str
    namespaced: bool = False


def documents(resources: Sequence[Resource], reviews: Sequence[CreateOnly] = ()) -> dict[str, Callable[[], Json]]:
    """Functions that make the documents, by the path under `/openapi/v3/`, sorted.

    Args:
        resources: the records of the stored kinds, and of kinds that another part of the program provides.
        reviews: the kinds that can only be created.
    """
    group_versions = dict.fromkeys(_group_versions(resources, reviews))
    documents_by_path: dict[str, Callable[[], Json]] = {
        path: partial(_discovery_document, path, message) for path, message in _GROUP_MESSAGES.items()
    }
    for group, version in group_versions:
        if group:
            documents_by_path[f"apis/{group}"] = _group_document_maker(group)
        name = f"{group}/{version}" if group else version
        documents_by_path[_root_path(group, version)] = partial(document, name, resources, reviews)
    documents_by_path["version"] = _version_document
    return dict(sorted(documents_by_path.items()))


def _group_document_maker(group: str) -> Callable[[], Json]:
    """A function that makes the document of the discovery of a group."""
    return partial(_discovery_document, f"apis/{group}", "meta/v1.APIGroup")


def metric_documents(
    versions: Mapping[str, Sequence[str]], list_kinds: Mapping[str, str]
) -> dict[str, Callable[[], Json]]:
    """Functions that make the documents of the metrics APIs, by the path under `/openapi/v3/`.

    Args:
        versions: the served versions of custom.metrics.k8s.io and external.metrics.k8s.io.
        list_kinds: the kind of the lists with which each of them responds; known to the schema.

    Raises:
        KeyError: for another group. The functions raise it for a kind that the schema does not know.
    """
    documents_by_path: dict[str, Callable[[], Json]] = {}
    for group, served_versions in versions.items():
        documents_by_path[f"apis/{group}"] = _group_document_maker(group)
        for version in served_versions:
            make_document = partial(_metric_document, group, version, _METRIC_PATHS[group], list_kinds[group])
            documents_by_path[f"apis/{group}/{version}"] = make_document
    return documents_by_path


def _metric_document(group: str, version: str, paths: Mapping[str, tuple[str, str]], list_kind: str) -> Json:
    """The document of a metrics API, whose only kind is a list. Raises KeyError for an unknown kind."""
    message = schema.find_kind(f"{group}/{version}", list_kind)
    if message is None:
        raise KeyError(list_kind)
    subject = OperationSubject(
        root=f"/{_root_path(group, version)}",
        tag=_tag(group, version),
        version_id=_version_id(group, version),
        plural="",  # _METRIC_PATHS name the resources
        kind=list_kind,
        message=message,
        gvk=_gvk(group, version, list_kind),
        namespaced=True,
    )
    document_paths = openapi_paths.discovery_path(subject.root, subject.version_id, subject.tag)
    document_paths |= openapi_paths.metric_paths(subject, paths)
    kinds = _common_kinds(group, version) | {message: [subject.gvk]}
    return _make_document(
        dict(sorted(document_paths.items())), openapi_schemas.schemas_of((*_COMMON_MESSAGES, message), kinds)
    )


def document(group_version: str, resources: Iterable[Resource], reviews: Iterable[CreateOnly] = ()) -> Json:
    """The document of a group version (`autoscaling/v2`, `v1`), without paths of resources if it is not served."""
    group, _, version = group_version.rpartition("/")
    paths = openapi_paths.discovery_path(
        f"/{_root_path(group, version)}", _version_id(group, version), _tag(group, version)
    )
    messages = [*_COMMON_MESSAGES]
    kinds = _common_kinds(group, version)
    schemas: Json = {}
    for resource_paths in _paths_of_resources(group, version, resources, reviews):
        paths |= resource_paths.paths
        messages += resource_paths.messages
        kinds |= _kinds_of_subject(resource_paths.subject)
        schemas |= resource_paths.schemas
    schemas |= openapi_schemas.schemas_of([*messages, *_REFERENCED_BY_CUSTOM] if schemas else messages, kinds)
    return _make_document(dict(sorted(paths.items())), dict(sorted(schemas.items())))


@dataclass(frozen=True, slots=True)
class _ResourcePaths:
    """The paths of one resource, the messages to which they refer, and further schemas by name."""

    subject: OperationSubject
    paths: Json
    messages: list[str]
    schemas: Mapping[str, Json] = field(default_factory=dict)


def _paths_of_resources(
    group: str, version: str, resources: Iterable[Resource], reviews: Iterable[CreateOnly]
) -> Iterator[_ResourcePaths]:
    """The paths and schemas of all resources and reviews of a group version."""
    for resource in resources:
        for version_of_resource in resource.versions:
            if (resource.group, version_of_resource.version) == (group, version):
                schemas = version_of_resource.openapi() if version_of_resource.openapi is not None else {}
                message = version_of_resource.message or custom_openapi.message_name(group, version, resource.kind)
                yield replace(_paths_of_resource(resource, _subject(resource, version, message)), schemas=schemas)
    for review in reviews:
        if (review.group, review.version) == (group, version):
            subject = _subject(review, version, review.message)
            yield _ResourcePaths(subject, openapi_paths.create_only_path(subject), [subject.message])


def _paths_of_resource(resource: Resource, subject: OperationSubject) -> _ResourcePaths:
    """The paths of a resource and its subresources, and the messages to which they refer."""
    paths = _main_paths(resource, subject)
    messages = [subject.message, subject.list_message, openapi_paths.WATCH_EVENT]
    for subresource_paths in _subresource_paths(resource, subject):
        paths |= subresource_paths.paths
        messages += subresource_paths.messages
    return _ResourcePaths(subject, paths, messages)


def _main_paths(resource: Resource, subject: OperationSubject) -> Json:
    """The paths of the collections, of one object and of watches."""
    readonly = not resource.stored
    paths = openapi_paths.collection_paths(subject, readonly=readonly)
    paths |= openapi_paths.object_path(subject, readonly=readonly, responds_with_object=resource.returns_deleted_object)
    if resource.key == "namespaces":
        del paths[subject.collection]["delete"]
    return paths if readonly else paths | openapi_paths.watch_paths(subject)


def _subresource_paths(resource: Resource, subject: OperationSubject) -> Iterator[_ResourcePaths]:
    """The paths of the subresources. A new subresource: its subject and its paths here."""
    if resource.has_status:
        yield _ResourcePaths(subject, openapi_paths.subresource_path(subject, subject, "status", "Status"), [])
    if "approval" in resource.strategy.prepare_subresource_update:
        yield _ResourcePaths(subject, openapi_paths.subresource_path(subject, subject, "approval", "Approval"), [])
    if resource.scale is not None:
        scale_subject = _subresource_subject(subject, "autoscaling/v1.Scale", _SCALE)
        yield _ResourcePaths(
            scale_subject,
            openapi_paths.subresource_path(scale_subject, subject, "scale", "Scale"),
            [scale_subject.message],
        )
    if resource.key == "pods":
        binding_subject = _subresource_subject(subject, "core/v1.Binding", _BINDING)
        yield _ResourcePaths(subject, openapi_paths.log_path(subject) | openapi_paths.connection_paths(subject), [])
        yield _ResourcePaths(
            binding_subject,
            openapi_paths.write_only_subresource_path(binding_subject, subject, "binding", "Binding"),
            [binding_subject.message],
        )
        eviction_subject = _subresource_subject(subject, "policy/v1.Eviction", _EVICTION)
        yield _ResourcePaths(
            eviction_subject,
            openapi_paths.write_only_subresource_path(eviction_subject, subject, "eviction", "Eviction"),
            [eviction_subject.message],
        )
    if resource.key == "namespaces":
        yield _ResourcePaths(
            subject,
            openapi_paths.write_only_subresource_path(subject, subject, "finalize", "Finalize", method="put"),
            [],
        )


def _subject(kind: Resource | CreateOnly, version: str, message: str) -> OperationSubject:
    """The names of a kind in the paths, ids and descriptions of its operations."""
    is_custom = isinstance(kind, Resource) and kind.is_custom
    return OperationSubject(
        root=f"/{_root_path(kind.group, version)}",
        tag=_tag(kind.group, version),
        version_id=_version_id(kind.group, version),
        plural=kind.plural,
        kind=kind.kind,
        message=message,
        gvk=_gvk(kind.group, version, kind.kind),
        namespaced=kind.namespaced,
        patch_types=openapi_paths.CUSTOM_PATCH_TYPES if is_custom else openapi_paths.PATCH_TYPES,
        list_kind=kind.list_kind if isinstance(kind, Resource) else "",
    )


def _subresource_subject(owner: OperationSubject, message: str, gvk: Json) -> OperationSubject:
    """The subject of a subresource that has another kind than its owner."""
    return replace(owner, kind=gvk["kind"], message=message, gvk=gvk, list_kind="")


def _kinds_of_subject(subject: OperationSubject) -> dict[str, list[Json]]:
    list_gvk = subject.gvk | {"kind": subject.list_kind or f"{subject.kind}List"}
    return {subject.message: [subject.gvk], subject.list_message: [list_gvk]}


def _common_kinds(group: str, version: str) -> dict[str, list[Json]]:
    """The kinds (group, version, kind) of the messages that documents of all group versions may have, by message."""
    kinds = {message: [_gvk("", "v1", _kind_of_message(message))] for message in _COMMON_KINDS}
    if group:
        for message in _KINDS_OF_EVERY_GROUP:
            kinds[message].append(_gvk(group, version, _kind_of_message(message)))
    return kinds | {"autoscaling/v1.Scale": [_SCALE], "core/v1.Binding": [_BINDING], "policy/v1.Eviction": [_EVICTION]}


def _kind_of_message(message: str) -> str:
    """The kind of a message: `Status` of `meta/v1.Status`."""
    return message.rpartition(".")[2]


def _gvk(group: str, version: str, kind: str) -> Json:
    return {"group": group, "kind": kind, "version": version}


_SCALE = _gvk("autoscaling", "v1", "Scale")
_BINDING = _gvk("", "v1", "Binding")
_EVICTION = _gvk("policy", "v1", "Eviction")
_COMMON_KINDS = ("meta/v1.APIResourceList", openapi_paths.STATUS, *_KINDS_OF_EVERY_GROUP)


def _group_versions(resources: Iterable[Resource], reviews: Iterable[CreateOnly]) -> Iterator[tuple[str, str]]:
    """The group and version of each version of a resource and of each review, with repetitions."""
    for resource in resources:
        for version in resource.versions:
            yield resource.group, version.version
    for review in reviews:
        yield review.group, review.version


def _root_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _version_id(group: str, version: str) -> str:
    """The group version in the names of operations: `AutoscalingV2`, `CoreV1`, `RbacAuthorizationV1`."""
    segments = group.removesuffix(".k8s.io").replace("-", ".").split(".") if group else ["core"]
    return "".join(segment[:1].upper() + segment[1:] for segment in (*segments, version))


def _tag(group: str, version: str) -> str:
    group_id = _version_id(group, "")
    return f"{group_id[:1].lower()}{group_id[1:]}_{version}"


def _discovery_document(path: str, message: str) -> Json:
    """The document of the discovery of a group, or of the list of groups."""
    group = path.partition("/")[2]
    tag = _tag(group, "").rstrip("_") if group else path
    operation = {
        "tags": [tag],
        "description": "get information of a group" if group else "get available API versions",
        "operationId": f"get{_version_id(group, '')}APIGroup" if group else f"get{tag.capitalize()}APIVersions",
        "responses": openapi_paths.ok_responses(message),
    }
    kinds = {message: [_gvk("", "v1", _kind_of_message(message))]}
    return _make_document({f"/{path}/": {"get": operation}}, openapi_schemas.schemas_of([message], kinds))


def _version_document() -> Json:
    """The document of /version."""
    properties = {name: {"type": "string"} for name in ("major", "minor", "gitVersion", "goVersion", "platform")}
    response = {
        "description": "OK",
        "content": {"application/json": {"schema": {"type": "object", "properties": properties}}},
    }
    operation = {
        "tags": ["version"],
        "description": "get the version information for this server",
        "operationId": "getCodeVersion",
        "responses": {"200": response, "401": {"description": "Unauthorized"}},
    }
    return _make_document({"/version/": {"get": operation}}, {})


def _make_document(paths: Json, schemas: Json) -> Json:
    """A whole document of these paths and schemas (`components.schemas`)."""
    bearer = {"type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer token authentication"}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": API_VERSION},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"BearerToken": bearer}},
    }
