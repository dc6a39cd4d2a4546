"""OpenAPI v3 documents of what is served: one for each group version, and small ones for groups and the version.

Called by the API server, which serves them under `/openapi/v3/<path>` and lists them in its index.

    documents(catalog.RESOURCES)                      {"api/v1": make, "apis/apps/v1": make, ...}
    document("autoscaling/v2", catalog.RESOURCES)     {"openapi": "3.0.0", "paths": ..., "components": ...}

Invariants: nothing is made before it is asked for (a large document takes some 20 ms: make it in a thread, keep it as
bytes); documents depend on the records alone.

Source: the golden OpenAPI documents of autoscaling v1 and v2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from podscaler.api.crd import openapi as custom_openapi
from podscaler.api.openapi import openapi_paths
from podscaler.api.openapi.openapi_paths import OperationSubject
from podscaler.api.resource.resources import Resource, Version
from podscaler.api.schema import openapi_schemas, schema

Json = dict[str, Any]

API_VERSION = "1.37"
"""Of the Kubernetes API that is served, as documents call themselves."""

_GROUP_MESSAGES = {"api": "meta/v1.APIVersions", "apis": "meta/v1.APIGroupList"}
_ALWAYS = (openapi_schemas.PATCH, "meta/v1.APIResourceList", openapi_paths.DELETE_OPTIONS, openapi_paths.STATUS)
_IN_EVERY_GROUP = (openapi_paths.DELETE_OPTIONS, openapi_paths.WATCH_EVENT)
_REFERRED = ("meta/v1.ObjectMeta", "meta/v1.ListMeta")
"""What the schemas of custom resources refer to."""
_DELETED_WITH_OBJECT = frozenset({"persistentvolumeclaims", "pods", "resourcequotas", "serviceaccounts", "services"})
"""Where a delete answers with the object rather than with a Status."""


@dataclass(frozen=True, slots=True)
class CreateOnly:
    """A kind that can only be created, and is answered at once: `selfsubjectaccessreviews`.

    Attributes:
        group, version, plural, kind: its names.
        message: of the object.
        namespaced: whether it is created in a namespace.
    """

    group: str
    version: str
    plural: str
    kind: str
    message: str
    namespaced: bool = False


def documents(resources: Sequence[Resource], reviews: Sequence[CreateOnly] = ()) -> dict[str, Callable[[], Json]]:
    """Functions that make the documents, by the path under `/openapi/v3/`, in the order of their names."""
    group_versions = dict.fromkeys(_group_versions(resources, reviews))
    found: dict[str, Callable[[], Json]] = {
        path: partial(_discovery_document, path, message) for path, message in _GROUP_MESSAGES.items()
    }
    for group, version in group_versions:
        if group:
            found[f"apis/{group}"] = of_group(group)
        name = f"{group}/{version}" if group else version
        found[_root(group, version)] = partial(document, name, resources, reviews)
    found["version"] = _version_document
    return dict(sorted(found.items()))


def of_group(group: str) -> Callable[[], Json]:
    """A function that makes the document of a group as such."""
    return partial(_discovery_document, f"apis/{group}", "meta/v1.APIGroup")


def of_values(group: str, version: str, paths: Json, list_kind: str) -> Json:
    """The document of a group version in which values are asked for, and nothing is stored.

    Args:
        group, version: its names.
        paths: what may be asked, by path below that of the group version.
        list_kind: the kind of all answers, which the schema knows.

    Raises:
        KeyError: for a kind that the schema does not know.
    """
    root, names = f"/{_root(group, version)}", (_id(group, version), _tag(group, version))
    message = schema.find_kind(f"{group}/{version}", list_kind)
    if message is None:
        raise KeyError(list_kind)
    target = OperationSubject(
        root, names[1], names[0], "", list_kind, message, _gvk(group, version, list_kind), namespaced=True
    )
    found = openapi_paths.discovery(root, *names) | openapi_paths.values(target, paths)
    kinds = _common_kinds(group, version) | {message: [target.gvk]}
    return _document(dict(sorted(found.items())), openapi_schemas.of((*_ALWAYS, message), kinds))


def document(group_version: str, resources: Iterable[Resource], reviews: Iterable[CreateOnly] = ()) -> Json:
    """The document of a group version (`autoscaling/v2`, `v1`): empty paths where nothing of it is served."""
    group, _, version = group_version.rpartition("/")
    paths = openapi_paths.discovery(f"/{_root(group, version)}", _id(group, version), _tag(group, version))
    messages = [*_ALWAYS]
    kinds = _common_kinds(group, version)
    schemas: Json = {}
    for offer in _offers(group, version, resources, reviews):
        paths |= offer.paths
        messages += offer.messages
        kinds |= _kinds(offer.target)
        schemas |= offer.schemas
    schemas |= openapi_schemas.of([*messages, *_REFERRED] if schemas else messages, kinds)
    return _document(dict(sorted(paths.items())), dict(sorted(schemas.items())))


@dataclass(frozen=True, slots=True)
class _Offer:
    """What is served of one resource: its paths, the messages that they name, and schemas that are no messages'."""

    target: OperationSubject
    paths: Json
    messages: list[str]
    schemas: Mapping[str, Json] = field(default_factory=dict)


def _offers(group: str, version: str, resources: Iterable[Resource], reviews: Iterable[CreateOnly]) -> Iterator[_Offer]:
    for resource in resources:
        for served in resource.versions:
            if (resource.group, served.version) == (group, version):
                schemas = served.openapi() if served.openapi is not None else {}
                yield replace(_offer(resource, _target(resource, served)), schemas=schemas)
    for review in reviews:
        if (review.group, review.version) == (group, version):
            target = _review_target(review)
            yield _Offer(target, openapi_paths.create_only(target), [target.message])


def _offer(resource: Resource, target: OperationSubject) -> _Offer:
    paths = _paths(resource, target)
    messages = [target.message, target.list_message, openapi_paths.WATCH_EVENT]
    for part in _parts(resource, target):
        paths |= part.paths
        messages += part.messages
    return _Offer(target, paths, messages)


def _paths(resource: Resource, target: OperationSubject) -> Json:
    readonly = not resource.stored
    paths = openapi_paths.collection(target, readonly=readonly)
    paths |= openapi_paths.item(target, readonly=readonly, answers_with_object=resource.key in _DELETED_WITH_OBJECT)
    if resource.key == "namespaces":
        del paths[target.collection]["delete"]
    return paths if readonly else paths | openapi_paths.watches(target)


def _parts(resource: Resource, target: OperationSubject) -> Iterator[_Offer]:
    """The subresources."""
    if resource.has_status:
        yield _Offer(target, openapi_paths.part(target, target, "status", "Status"), [])
    if resource.scale is not None:
        scale = _other(target, "autoscaling/v1.Scale", _SCALE)
        yield _Offer(scale, openapi_paths.part(scale, target, "scale", "Scale"), [scale.message])
    if resource.key == "pods":
        binding = _other(target, "core/v1.Binding", _BINDING)
        yield _Offer(target, openapi_paths.log(target) | openapi_paths.connections(target), [])
        yield _Offer(binding, openapi_paths.action(binding, target, "binding", "Binding"), [binding.message])
        eviction = _other(target, "policy/v1.Eviction", _EVICTION)
        yield _Offer(eviction, openapi_paths.action(eviction, target, "eviction", "Eviction"), [eviction.message])
    if resource.key == "namespaces":
        yield _Offer(target, openapi_paths.action(target, target, "finalize", "Finalize", method="put"), [])


def _target(resource: Resource, version: Version) -> OperationSubject:
    return OperationSubject(
        root=f"/{_root(resource.group, version.version)}",
        tag=_tag(resource.group, version.version),
        id=_id(resource.group, version.version),
        plural=resource.plural,
        kind=resource.kind,
        message=version.message or _custom_message(resource, version),
        gvk=_gvk(resource.group, version.version, resource.kind),
        namespaced=resource.namespaced,
        patch_types=openapi_paths.CUSTOM_PATCH_TYPES if resource.is_custom else openapi_paths.PATCH_TYPES,
    )


def _custom_message(resource: Resource, version: Version) -> str:
    return custom_openapi.message(resource.group, version.version, resource.kind)


def _review_target(review: CreateOnly) -> OperationSubject:
    return OperationSubject(
        root=f"/{_root(review.group, review.version)}",
        tag=_tag(review.group, review.version),
        id=_id(review.group, review.version),
        plural=review.plural,
        kind=review.kind,
        message=review.message,
        gvk=_gvk(review.group, review.version, review.kind),
        namespaced=review.namespaced,
    )


def _other(owner: OperationSubject, message: str, gvk: Json) -> OperationSubject:
    """The content of a subresource that is of another kind than its owner."""
    return replace(owner, kind=gvk["kind"], message=message, gvk=gvk)


def _kinds(target: OperationSubject) -> dict[str, list[Json]]:
    of_list = target.gvk | {"kind": f"{target.kind}List"}
    return {target.message: [target.gvk], target.list_message: [of_list]}


def _common_kinds(group: str, version: str) -> dict[str, list[Json]]:
    kinds = {message: [_gvk("", "v1", message.rpartition(".")[2])] for message in _COMMON_KINDS}
    if group:
        for message in _IN_EVERY_GROUP:
            kinds[message].append(_gvk(group, version, message.rpartition(".")[2]))
    return kinds | {"autoscaling/v1.Scale": [_SCALE], "core/v1.Binding": [_BINDING], "policy/v1.Eviction": [_EVICTION]}


def _gvk(group: str, version: str, kind: str) -> Json:
    return {"group": group, "kind": kind, "version": version}


_SCALE = _gvk("autoscaling", "v1", "Scale")
_BINDING = _gvk("", "v1", "Binding")
_EVICTION = _gvk("policy", "v1", "Eviction")
_COMMON_KINDS = ("meta/v1.APIResourceList", openapi_paths.STATUS, *_IN_EVERY_GROUP)


def _group_versions(resources: Iterable[Resource], reviews: Iterable[CreateOnly]) -> Iterator[tuple[str, str]]:
    for resource in resources:
        for version in resource.versions:
            yield resource.group, version.version
    for review in reviews:
        yield review.group, review.version


def _root(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _id(group: str, version: str) -> str:
    """`AutoscalingV2`, `CoreV1`, `RbacAuthorizationV1`: how operations are named."""
    words = group.removesuffix(".k8s.io").replace("-", ".").split(".") if group else ["core"]
    return "".join(word[:1].upper() + word[1:] for word in (*words, version))


def _tag(group: str, version: str) -> str:
    group_id = _id(group, "")
    return f"{group_id[:1].lower()}{group_id[1:]}_{version}"


def _discovery_document(path: str, message: str) -> Json:
    """What a group, or the list of groups, answers with."""
    group = path.partition("/")[2]
    tag = _tag(group, "").rstrip("_") if group else path
    operation = {
        "tags": [tag],
        "description": "get information of a group" if group else "get available API versions",
        "operationId": f"get{_id(group, '') if group else tag.capitalize()}API{'Group' if group else 'Versions'}",
        "responses": openapi_paths.answers(message),
    }
    kinds = {message: [_gvk("", "v1", message.rpartition(".")[2])]}
    return _document({f"/{path}/": {"get": operation}}, openapi_schemas.of([message], kinds))


def _version_document() -> Json:
    properties = {name: {"type": "string"} for name in ("major", "minor", "gitVersion", "goVersion", "platform")}
    answer = {
        "description": "OK",
        "content": {"application/json": {"schema": {"type": "object", "properties": properties}}},
    }
    operation = {
        "tags": ["version"],
        "description": "get the version information for this server",
        "operationId": "getCodeVersion",
        "responses": {"200": answer, "401": {"description": "Unauthorized"}},
    }
    return _document({"/version/": {"get": operation}}, {})


def _document(paths: Json, schemas: Json) -> Json:
    bearer = {"type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer token authentication"}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": API_VERSION},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"BearerToken": bearer}},
    }
