"""Holds one stored version of one API object: its JSON text, with the metadata that is read often decoded.

The store creates an `Entry` for each write (`from_object`), all reads return entries. The body is JSON in the storage
version (the one API version in which a kind is stored), including the resourceVersion, ready to be sent: `<`, `>`, `&`,
U+2028 and U+2029 are escaped as Go's encoding/json escapes them. An entry is not changed, except for its caches.
Another field of the metadata that is read without decoding the body: a field of `_Metadata` and an attribute of
`Entry`.
"""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from podscaler.api.text import json_text

Object = dict[str, Any]

_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""The order in which kube-apiserver writes the fields of metadata."""


class _Owner(msgspec.Struct, gc=False):
    """An element of metadata.ownerReferences."""

    uid: str = ""


class _Metadata(msgspec.Struct, gc=False):
    """The fields of the metadata that are decoded when an entry is created."""

    uid: str = ""
    labels: dict[str, str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - the wire's spelling


class _Head(msgspec.Struct, gc=False):
    """The part of an object that is decoded when an entry is created."""

    metadata: _Metadata


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_head = msgspec.json.Decoder(_Head).decode
_NO_LABELS: Mapping[str, str] = {}
_CACHED_VALUES = 4096
"""How many different maps of labels, and tuples of uids, are shared by the entries that have them."""


class Entry:
    """One version of one object.

    Attributes:
        resource: the `Resource.key` under which the object is stored (`pods`, `deployments.apps`).
        namespace, name: as in its metadata; namespace is `""` for cluster-scoped kinds.
        key: `namespace/name`, or `name` without a namespace; lists are in the order of keys.
        revision: its resourceVersion as a number.
        uid, labels: as in its metadata.
        owner_uids: the uids in its metadata.ownerReferences.
        body: the object as JSON (UTF-8).
        view: cache of `registry.Views`: the decoded object that readers of this process share; None if not cached.
        fields: cache of `selection_predicate`: the values of the selectable fields by name, with the `Resource.key`
            of the kind that defines them; None if not cached.
    """

    __slots__ = (
        "body",
        "fields",
        "key",
        "labels",
        "name",
        "namespace",
        "owner_uids",
        "resource",
        "revision",
        "uid",
        "view",
    )

    def __init__(self, resource: str, namespace: str, name: str, revision: int, body: bytes) -> None:
        head = _decode_head(body).metadata
        self.resource = sys.intern(resource)
        self.namespace = sys.intern(namespace)
        self.name = name
        self.key = key_of(namespace, name)
        self.revision = revision
        self.uid = head.uid
        self.labels = _shared_labels(tuple(head.labels.items())) if head.labels else _NO_LABELS
        self.owner_uids = _shared_uids(tuple(ref.uid for ref in head.ownerReferences)) if head.ownerReferences else ()
        self.body = body
        self.fields: tuple[str, Mapping[str, str]] | None = None
        self.view: Object | None = None

    def share_strings(self, previous: "Entry") -> None:
        """Use the equal strings of another version of the same object, so that old versions need little memory.

        `storage.transactions` calls it for updates, `storage.store` when it loads.
        """
        self.name, self.key, self.uid = previous.name, previous.key, previous.uid

    def decode(self) -> Object:
        """A new copy of the object, which the caller may change."""
        obj: Object = _decode(self.body)
        return obj

    def __repr__(self) -> str:
        return f"<Entry {self.resource} {self.key} @{self.revision}>"


@lru_cache(maxsize=_CACHED_VALUES)
def _shared_labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The labels as a map, the same one for all objects with the same labels."""
    return dict(items)


@lru_cache(maxsize=_CACHED_VALUES)
def _shared_uids(uids: tuple[str, ...]) -> tuple[str, ...]:
    """The same tuple for all dependents of an owner."""
    return uids


def key_of(namespace: str, name: str) -> str:
    """The key of an object within its resource: `namespace/name`, or `name` for cluster-scoped kinds."""
    return f"{namespace}/{name}" if namespace else name


def deep_copy(obj: Object) -> Object:
    """A deep copy of JSON-ready data: encoding and decoding is faster than copying recursively."""
    copy: Object = _decode(_encode(obj))
    return copy


def from_object(resource: str, obj: Object, revision: int) -> Entry:
    """The entry of `obj` (storage version) at `revision`; 0 for a version that is never stored (a dry run).

    `obj` is changed in place: it gets that resourceVersion (none for 0) and kube-apiserver's order of metadata.
    """
    metadata = obj["metadata"]
    metadata.pop("resourceVersion", None)
    if revision:
        metadata["resourceVersion"] = str(revision)
    ordered = {name: metadata.pop(name) for name in _METADATA_ORDER if name in metadata}
    obj["metadata"] = ordered | metadata
    return Entry(resource, ordered.get("namespace", ""), ordered["name"], revision, json_text.encode(obj))


def at_revision(entry: Entry, revision: int) -> Entry:
    """A new entry with the same content and another resourceVersion, for DELETED events."""
    return from_object(entry.resource, entry.decode(), revision)
