"""Makes Items, the objects that are linted, of parsed documents, with the errors that an API server would return.

Called by `podscaler.cli.lint.lint_files` for the documents of files, and by `podscaler.cli.lint.cluster_reader` for the
objects of a cluster's lists. Kinds that `podscaler.api.kinds.manifest_objects` finds are decoded and validated; others
are taken as written.

Source: docs/spec/api.md 2 (Validation) and 2.9 (Other errors).
Differs: objects of a cluster are not validated again, because the server has accepted them, except PodAutoscalers:
their controller rejects what servers without CEL accept.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from podscaler.api.kinds import manifest_objects
from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.resource.resources import Object, Resource, Version
from podscaler.api.schema import decoding
from podscaler.api.text import json_text
from podscaler.api.text.json_text import DecodeError
from podscaler.lint.model import pod_autoscalers
from podscaler.lint.model.linted_item import APIError, DocumentOrigin, Item, mapping, text

DEFAULT_NAMESPACE = "default"
_AUTOSCALERS = frozenset(
    {("autoscaling", conversion.KIND), ("extensions", conversion.KIND), (pod_autoscalers.GROUP, pod_autoscalers.KIND)}
)
_CLUSTER_SCOPED = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
        ("", "PersistentVolume"),
    }
)
"""Kinds outside of namespaces; any other kind without a record is taken as namespaced."""


def items(document_value: Any, origin: DocumentOrigin, namespace: str = DEFAULT_NAMESPACE) -> Iterator[Item]:
    """The objects of one parsed document, with the elements of Lists one by one.

    A value without kind or apiVersion gives one item without a kind, with that API error.

    Args:
        document_value: as `json_text.parse` or `yaml_text.parse` return it.
        origin: the file or cluster that it is from.
        namespace: the namespace of objects that name none.
    """
    try:
        meta = decoding.read_type_meta(document_value)
    except DecodeError as error:
        yield _unreadable(origin, str(error))
        return
    if not isinstance(document_value, dict) or not meta.kind or not meta.api_version:
        missing = "Kind" if not meta.kind else "apiVersion"
        yield _unreadable(origin, f"Object '{missing}' is missing")
    elif meta.kind.endswith("List") and isinstance(document_value.get("items"), list):
        yield from _items_of_list(document_value, meta.kind, origin, namespace)
    else:
        yield _read_item(document_value, origin, namespace)


def _unreadable(origin: DocumentOrigin, error: str) -> Item:
    """An item without a kind for a document that is no object."""
    errors = (APIError("", error),)
    return Item(api_version="", kind="", namespace="", name="", written={}, obj={}, origin=origin, api_errors=errors)


def _items_of_list(list_object: Object, kind: str, origin: DocumentOrigin, namespace: str) -> Iterator[Item]:
    """The elements of a list; in a list of one kind they need no apiVersion and kind."""
    type_meta = {} if kind == "List" else {"apiVersion": list_object["apiVersion"], "kind": kind.removesuffix("List")}
    prefix = f"{origin.path}." if origin.path else ""
    for index, element in enumerate(list_object["items"]):
        manifest = {**type_meta, **element} if isinstance(element, dict) else element
        yield from items(manifest, replace(origin, path=f"{prefix}items[{index}]"), namespace)


def _read_item(manifest: Object, origin: DocumentOrigin, namespace: str) -> Item:
    """The item of an object, with the errors by which an API server would reject it."""
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    meta = mapping(manifest.get("metadata"))
    kind_record = manifest_objects.find_record(api_version, kind)
    default_namespace = namespace if _is_namespaced(api_version, kind, kind_record) else ""
    item = Item(
        api_version=api_version,
        kind=kind,
        namespace=text(meta.get("namespace")) or default_namespace,
        name=text(meta.get("name")) or text(meta.get("generateName")),
        written={},  # these two are filled in below
        obj={},
        origin=origin,
    )
    try:
        if (api_version, kind) == (pod_autoscalers.API_VERSION, pod_autoscalers.KIND):
            return _read_pod_autoscaler(item, manifest)
        return _read_unknown(item, manifest) if kind_record is None else _read_known(item, manifest, *kind_record)
    except DecodeError as error:
        return replace(item, api_errors=(APIError("", str(error)),))


def _read_unknown(item: Item, manifest: Object) -> Item:
    """An item of an unknown kind, as written. Raises DecodeError for numbers beyond a float64."""
    plain = json_text.plain(manifest)
    return replace(item, written=plain, obj=plain, api_errors=_version_errors(item.api_version, item.kind))


def _version_errors(api_version: str, kind: str) -> tuple[APIError, ...]:
    """The error of an autoscaler whose version does not exist; none for other kinds."""
    if (api_version.rpartition("/")[0], kind) not in _AUTOSCALERS:
        return ()
    return (APIError("apiVersion", f'no kind "{kind}" is registered for version "{api_version}"'),)


def _is_namespaced(api_version: str, kind: str, kind_record: tuple[Resource, Version] | None) -> bool:
    """Whether objects of a kind are in namespaces; `kind_record` is None for a kind that podscaler does not have."""
    if kind_record:
        resource, _ = kind_record
        return resource.namespaced
    return (api_version.rpartition("/")[0], kind) not in _CLUSTER_SCOPED


def _read_known(item: Item, manifest: Object, resource: Resource, version: Version) -> Item:
    """An item of a known kind. Raises DecodeError for what the server could not decode."""
    decoded = decoding.decode_value(manifest, version.message)
    stored = manifest_objects.with_defaults(decoded.obj, resource, version)
    read_item = replace(item, written=decoded.obj, obj=stored)
    if item.origin.is_live:
        return read_item
    return replace(
        read_item,
        api_errors=(*(APIError("", problem) for problem in decoded.problems), *_validation_errors(resource, stored)),
    )


def _read_pod_autoscaler(item: Item, manifest: Object) -> Item:
    """A PodAutoscaler, whose `obj` has the form of a HorizontalPodAutoscaler; empty if the definition rejects it.

    It is validated by its CustomResourceDefinition (in a cluster the server did that), and then, as by its controller,
    as a HorizontalPodAutoscaler. Raises DecodeError for what cannot be decoded.
    """
    record = pod_autoscalers.record()
    decoded = pod_autoscalers.decode(manifest)
    decoding_errors: tuple[APIError, ...] = ()
    if not item.origin.is_live:
        decoding_errors = tuple(APIError("", problem) for problem in decoded.strict_errors)
        if errors := tuple(pod_autoscalers.first_errors(manifest_objects.api_errors(record, decoded.stored))):
            return replace(item, written=decoded.written, api_errors=decoding_errors + errors)
    autoscaler = pod_autoscalers.in_v2(decoded.stored)
    api_errors = (*decoding_errors, *pod_autoscalers.controller_errors(autoscaler))
    return replace(item, written=decoded.written, obj=autoscaler, api_errors=api_errors)


def _validation_errors(resource: Resource, stored: Object) -> Iterator[APIError]:
    for error in dict.fromkeys(manifest_objects.api_errors(resource, stored)):
        yield APIError(error.field, error.text)
