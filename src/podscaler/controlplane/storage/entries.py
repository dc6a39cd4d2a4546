"""One stored version of one object, as compact as memory and disk keep it.

The store makes entries, everything that reads goes through them. The body is JSON in the storage version, with its
resourceVersion inside, ready to be sent: `<`, `>`, `&`, U+2028 and U+2029 are escaped as Go escapes them. What is
looked up often (uid, labels, owners) is taken out of the body once; the rest is decoded when somebody asks. An entry
never changes.
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


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""
    labels: dict[str, str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - the wire's spelling


class _Head(msgspec.Struct, gc=False):
    metadata: _Metadata


_decode = msgspec.json.Decoder().decode
_decode_head = msgspec.json.Decoder(_Head).decode
_NO_LABELS: Mapping[str, str] = {}


class Entry:
    """One version of one object.

    Attributes:
        resource: the `Resource.key` under which it is stored.
        namespace, name: as in its metadata; namespace is `""` for cluster-scoped kinds.
        key: `namespace/name`, or `name` without a namespace; lists are in the order of keys.
        revision: its resourceVersion as a number.
        uid, labels, owner_uids: out of its metadata.
        body: the object as JSON, see the module.
        view: the decoded object that readers of this process share (`local.Views` keeps it), None where nobody does.
        fields: the selectable fields once somebody needed them, with the `Resource.key` whose they are: a cache that
            `selecting` fills.
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
        self.owner_uids = _shared_uids(tuple(each.uid for each in head.ownerReferences)) if head.ownerReferences else ()
        self.body = body
        self.fields: tuple[str, Mapping[str, str]] | None = None
        self.view: Object | None = None

    def share(self, previous: "Entry") -> None:
        """Use the texts of another version of the same object: old versions then cost little more than their body."""
        self.name, self.key, self.uid = previous.name, previous.key, previous.uid

    def decode(self) -> Object:
        """A fresh copy of the object, the caller's own."""
        obj: Object = _decode(self.body)
        return obj

    def __repr__(self) -> str:
        return f"<Entry {self.resource} {self.key} @{self.revision}>"


@lru_cache(maxsize=4096)
def _shared_labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The labels as a map: one for all objects that carry the same."""
    return dict(items)


@lru_cache(maxsize=4096)
def _shared_uids(uids: tuple[str, ...]) -> tuple[str, ...]:
    """The same uids: one tuple for all dependents of an owner."""
    return uids


def key_of(namespace: str, name: str) -> str:
    """Where an object stands among those of its resource: `namespace/name`, or `name` for cluster-scoped kinds."""
    return f"{namespace}/{name}" if namespace else name


def from_object(resource: str, obj: Object, revision: int) -> Entry:
    """The entry for `obj` (storage version) as of `revision`; 0 is a version that is never stored (a dry run).

    `obj` itself gets that resourceVersion (none for 0) and upstream's order of metadata.
    """
    metadata = obj["metadata"]
    metadata.pop("resourceVersion", None)
    if revision:
        metadata["resourceVersion"] = str(revision)
    ordered = {name: metadata.pop(name) for name in _METADATA_ORDER if name in metadata}
    obj["metadata"] = ordered | metadata
    return Entry(resource, ordered.get("namespace", ""), ordered["name"], revision, json_text.encode(obj))


def at_revision(entry: Entry, revision: int) -> Entry:
    """The same content with another resourceVersion: what a DELETED event shows."""
    return from_object(entry.resource, entry.decode(), revision)
