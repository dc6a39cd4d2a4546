"""Classifies the owners of an object for the garbage collector (`collector`).

The functions only read the registry. Objects are JSON objects of any kind. `classify` has the rules; what follows from
a class is the table of `collector`. An owner is

* solid: it exists (same uid) and is not waiting; also if its kind is not served, or if a cluster-scoped object refers
  to a namespaced owner, so that nothing is deleted by mistake;
* waiting: it is being deleted in the foreground and waits for its dependents to be deleted;
* gone: it does not exist, or has another uid.

Source: documentation of garbage collection and of owners and dependents.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podscaler.api.resource.resources import Object, Resource
from podscaler.controlplane.controllers.framework import ownership
from podscaler.controlplane.registry.registry import Registry

ORPHAN = "orphan"
"""The finalizer of an object that is deleted without its dependents; `collector` removes their references."""
FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that is deleted after its dependents."""


@dataclass(slots=True)
class Owners:
    """The uids of an object's owners by class."""

    solid: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class OwnerKinds:
    """The stored kinds by group and kind, as ownerReferences name them."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._by_kind = {(resource.group, resource.kind): resource for resource in resources}

    def find(self, reference: Object) -> Resource | None:
        """The resource of an ownerReference, None if it is not served."""
        group, slash, _ = reference.get("apiVersion", "").partition("/")
        return self._by_kind.get((group if slash else "", reference.get("kind", "")))


def classify(obj: Object, registry: Registry, kinds: OwnerKinds) -> Owners:
    """The uids of the owners of `obj` by their current state, read from the registry."""
    classified = Owners()
    namespace = obj["metadata"].get("namespace", "")
    for reference in ownership.references(obj):
        uid = reference["uid"]
        resource = kinds.find(reference)
        if resource is None or (resource.namespaced and not namespace):
            classified.solid.append(uid)
            continue
        owner = registry.find(resource.key, namespace if resource.namespaced else "", reference["name"])
        if owner is None or owner["metadata"]["uid"] != uid:
            classified.gone.append(uid)
        elif is_waiting(owner):
            classified.waiting.append(uid)
        else:
            classified.solid.append(uid)
    return classified


def is_waiting(obj: Object) -> bool:
    """Whether an object is being deleted and waits for its dependents to be deleted."""
    return "deletionTimestamp" in obj["metadata"] and FOREGROUND in finalizers(obj)


def finalizers(obj: Object) -> Sequence[str]:
    """The finalizers of an object; may be empty."""
    finalizer_names: Sequence[str] = obj["metadata"].get("finalizers") or ()
    return finalizer_names


def blocks(dependent: Object, uid: str) -> bool:
    """Whether `dependent` blocks the foreground deletion of its owner `uid`."""
    return any(
        reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in ownership.references(dependent)
    )
