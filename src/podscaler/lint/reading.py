"""Parsed documents become items, with what the API server would say to them.

Called by the command line for the documents of files, and for the objects of a cluster's lists.

Source: spec/api.md 2 (validation) and 2.9 (decoding).
Differs: of objects of a cluster nothing is validated again, since the server has accepted them.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from podscaler.api import catalog, conversion, decoding, json_text
from podscaler.api.json_text import DecodeError
from podscaler.api.kinds import hpa_removed, metadata, semantics
from podscaler.api.resources import Object, Resource, Version
from podscaler.lint.items import Fault, Item, Origin, mapping, text

DEFAULT_NAMESPACE = "default"
_GENERATED = "generated"
_UID = "00000000-0000-0000-0000-000000000000"
_AUTOSCALER_GROUPS = frozenset({"autoscaling", "extensions"})
_UNNAMESPACED = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
        ("", "PersistentVolume"),
    }
)


def items(value: Any, origin: Origin, namespace: str = DEFAULT_NAMESPACE) -> Iterator[Item]:
    """The objects of one parsed document; those of Lists each.

    A value that does not say what it is gives one item without a kind, with the fault.

    Args:
        value: as `json_text.parse` or `yaml_text.parse` return it.
        origin: where it stands.
        namespace: for objects that name none.
    """
    try:
        meta = decoding.read_type_meta(value)
    except DecodeError as error:
        yield _unreadable(origin, str(error))
        return
    if not isinstance(value, dict) or not meta.kind or not meta.api_version:
        missing = "Kind" if not meta.kind else "apiVersion"
        yield _unreadable(origin, f"Object '{missing}' is missing")
    elif meta.kind.endswith("List") and isinstance(value.get("items"), list):
        yield from _of_list(value, meta.kind, origin, namespace)
    else:
        yield _item(value, origin, namespace)


def _unreadable(origin: Origin, fault: str) -> Item:
    return Item("", "", "", "", {}, {}, origin, (Fault("", fault),))


def _of_list(value: Object, kind: str, origin: Origin, namespace: str) -> Iterator[Item]:
    """The elements of a list; those of a list of one kind need not say what they are."""
    own = {} if kind == "List" else {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List")}
    prefix = f"{origin.path}." if origin.path else ""
    for index, element in enumerate(value["items"]):
        typed = {**own, **element} if isinstance(element, dict) else element
        yield from items(typed, replace(origin, path=f"{prefix}items[{index}]"), namespace)


def _item(value: Object, origin: Origin, namespace: str) -> Item:
    api_version, kind = value["apiVersion"], value["kind"]
    meta = mapping(value.get("metadata"))
    known = _known(api_version, kind)
    item = Item(
        api_version,
        kind,
        text(meta.get("namespace")) or (namespace if _is_namespaced(api_version, kind, known) else ""),
        text(meta.get("name")) or text(meta.get("generateName")),
        {},
        {},
        origin,
    )
    if known is None:
        plain = json_text.plain(value)
        return replace(item, given=plain, obj=plain, faults=_faults_of_version(api_version, kind))
    return _decoded(item, value, *known)


def _faults_of_version(api_version: str, kind: str) -> tuple[Fault, ...]:
    """What is wrong with an autoscaler of a version that there never was; nothing with what is of other kinds."""
    if kind != conversion.KIND or api_version.rpartition("/")[0] not in _AUTOSCALER_GROUPS:
        return ()
    return (Fault("apiVersion", f'no kind "{kind}" is registered for version "{api_version}"'),)


def _is_namespaced(api_version: str, kind: str, known: tuple[Resource, Version] | None) -> bool:
    if known:
        return known[0].namespaced
    return (api_version.rpartition("/")[0], kind) not in _UNNAMESPACED


def _known(api_version: str, kind: str) -> tuple[Resource, Version] | None:
    """The record of a kind in that version."""
    return _records().get((api_version, kind))


@cache
def _records() -> dict[tuple[str, str], tuple[Resource, Version]]:
    found = {}
    for resource in hpa_removed.served_among(catalog.RESOURCES):
        for version in resource.versions if resource.stored else ():
            name = f"{resource.group}/{version.version}" if resource.group else version.version
            found[name, resource.kind] = (resource, version)
    return found


def _decoded(item: Item, value: Object, resource: Resource, version: Version) -> Item:
    try:
        decoded = decoding.decode_value(value, version.message)
        stored = semantics.copied(decoded.obj)
        version.default(stored)
        stored = version.to_storage(stored)
    except DecodeError as error:
        return replace(item, faults=(Fault("", str(error)),))
    if resource.kind == conversion.KIND:
        stored = conversion.VERSIONS[conversion.STORED].from_storage(stored)
    found = replace(item, given=decoded.obj, obj=stored)
    if item.origin.is_live:
        return found
    return replace(found, faults=(*(Fault("", each) for each in decoded.problems), *_refusals(resource, stored)))


def _refusals(resource: Resource, stored: Object) -> Iterator[Fault]:
    named = semantics.copied(stored)
    meta = named.setdefault("metadata", {})
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = _GENERATED
    meta.setdefault("uid", _UID)
    resource.strategy.prepare_create(named)
    errors = metadata.validate_metadata(resource, named, None) + resource.strategy.validate(named, None)
    for error in dict.fromkeys(errors):
        yield Fault(error.field, error.text)
