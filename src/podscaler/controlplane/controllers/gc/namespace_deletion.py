"""The namespace controller: deletes all objects of a namespace that is being deleted, then removes its finalizer.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. Pods are deleted first, and other objects when
no pod is left, so that a running pod keeps what it uses (a secret, a network policy).

A new condition: a line in `_FALSE_CONDITIONS`, and a case in `_true_conditions`.

Source: documentation of namespaces; KEP-5080 (pods first); conditions are upstream's.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import Clock, rfc3339
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.gc import owners
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

NAMESPACES = "namespaces"
PODS = "pods"
FINALIZER = "kubernetes"
REQUEUE_S = 0.5
"""How often a namespace that still has objects is checked."""
CONCURRENT_DELETES = 50
_FALSE_CONDITIONS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)
"""Types of the conditions in order, each with reason and message while its status is False."""


class NamespaceDeletion(Reconciler[str]):
    """Reconciles namespaces that are being deleted. Keys are names of namespaces.

    Args:
        registry: the objects.
        clock: for transitions of conditions.
        resources: all served kinds; iterated for each namespace, as custom kinds come and go.
    """

    name = "namespace-controller"

    def __init__(self, registry: Registry, clock: Clock, resources: Iterable[Resource]) -> None:
        self._registry = registry
        self._clock = clock
        self._resources = resources

    def watches(self) -> Sequence[Watched[str]]:
        """Namespaces."""
        return [Watched(NAMESPACES, _keys_of)]

    def prime(self) -> Iterable[str]:
        """All namespaces that are being deleted."""
        return [
            namespace["metadata"]["name"]
            for namespace in self._registry.list(NAMESPACES)
            if _awaits_deletion(namespace)
        ]

    async def sync(self, key: str) -> float | None:
        """Delete all objects and write the conditions; remove the finalizer once none is left.

        Returns the seconds until the next check while objects remain, otherwise None. Raises StatusError.
        """
        namespace = self._registry.find(NAMESPACES, "", key)
        if namespace is None or not _awaits_deletion(namespace):
            return None
        kind_names = self._namespaced_kind_names()
        remaining_pods = await self._delete_all(PODS, key)
        if not remaining_pods:
            for resource in kind_names.keys() - {PODS}:
                await self._delete_all(resource, key)
        objects_by_resource = {resource: self._registry.list(resource, key) for resource in kind_names}
        remaining = {kind_names[resource]: objects for resource, objects in objects_by_resource.items() if objects}
        await self._write_conditions(namespace, remaining)
        if remaining:
            return REQUEUE_S
        await self._finalize_namespace(namespace)
        return None

    def _namespaced_kind_names(self) -> dict[str, str]:
        """The names in conditions (`deployments.apps`, `pods.`) of kinds with own namespaced objects, by their keys."""
        return {
            resource.key: f"{resource.plural}.{resource.group}"
            for resource in self._resources
            if resource.stored and resource.namespaced and not resource.stored_as
        }

    async def _delete_all(self, resource: str, namespace: str) -> int:
        """Delete the objects of a kind in a namespace; returns how many remain, because of finalizers or their pods."""
        objects = self._registry.list(resource, namespace)
        undeleted = [obj for obj in objects if "deletionTimestamp" not in obj["metadata"]]
        for start in range(0, len(undeleted), CONCURRENT_DELETES):
            batch = undeleted[start : start + CONCURRENT_DELETES]
            await asyncio.gather(*(self._delete_object(resource, obj) for obj in batch))
        return len(self._registry.list(resource, namespace))

    async def _delete_object(self, resource: str, obj: Object) -> None:
        """Delete one object, which may be gone."""
        await write_errors.ignoring_gone(
            self._registry.delete(resource, *selection.key_of(obj), propagation="Background")
        )

    async def _write_conditions(self, namespace: Object, remaining: Mapping[str, Sequence[Object]]) -> None:
        """Write the conditions if they change; `remaining` has the remaining objects by the name of their kind."""
        new_conditions = _deletion_conditions(namespace, remaining, self._clock)
        if new_conditions == (namespace.get("status") or {}).get("conditions"):
            return

        def set_conditions(newest: Object) -> None:
            newest.setdefault("status", {})["conditions"] = new_conditions

        name = namespace["metadata"]["name"]
        await self._registry.mutate(NAMESPACES, "", name, set_conditions, subresource="status")

    async def _finalize_namespace(self, namespace: Object) -> None:
        """Remove the finalizer in `spec.finalizers`; without any the API server removes the namespace."""

        def remove_finalizer(newest: Object) -> None:
            finalizers = newest["spec"].get("finalizers") or []
            newest["spec"]["finalizers"] = [finalizer for finalizer in finalizers if finalizer != FINALIZER]

        name = namespace["metadata"]["name"]
        await self._registry.mutate(NAMESPACES, "", name, remove_finalizer, subresource="finalize")


def _keys_of(event: ObjectEvent) -> Iterable[str]:
    """The name of a changed namespace that is being deleted, otherwise none."""
    return [event.object["metadata"]["name"]] if event.type != "DELETED" and _awaits_deletion(event.object) else []


def _awaits_deletion(namespace: Object) -> bool:
    """Whether a namespace is being deleted and still has the controller's finalizer."""
    has_finalizer = FINALIZER in ((namespace.get("spec") or {}).get("finalizers") or ())
    return has_finalizer and "deletionTimestamp" in namespace["metadata"]


def _deletion_conditions(namespace: Object, remaining: Mapping[str, Sequence[Object]], clock: Clock) -> list[Object]:
    """The conditions of a namespace that is being deleted, in the order of `_FALSE_CONDITIONS`.

    A condition whose status stays the same keeps its lastTransitionTime.
    """
    true_conditions = _true_conditions(remaining)
    old_conditions = (namespace.get("status") or {}).get("conditions") or []
    old_by_type = {condition["type"]: condition for condition in old_conditions}
    now, new_conditions = rfc3339(clock.now_ns()), []
    for type_, *reason_and_message in _FALSE_CONDITIONS:
        status = "True" if type_ in true_conditions else "False"
        reason, message = true_conditions.get(type_, reason_and_message)
        old_condition = old_by_type.get(type_)
        transition_time = now
        if old_condition is not None and old_condition["status"] == status:
            transition_time = old_condition["lastTransitionTime"]
        condition = {"type": type_, "status": status, "lastTransitionTime": transition_time}
        new_conditions.append({**condition, "reason": reason, "message": message})
    return new_conditions


def _true_conditions(remaining: Mapping[str, Sequence[Object]]) -> dict[str, tuple[str, str]]:
    """The types of the conditions that are True while these objects remain, each with reason and message."""
    true_conditions: dict[str, tuple[str, str]] = {}
    if remaining:
        counts = ", ".join(
            f"{name} has {len(objects)} resource instances" for name, objects in sorted(remaining.items())
        )
        true_conditions["NamespaceContentRemaining"] = "SomeResourcesRemain", f"Some resources are remaining: {counts}"
    finalizer_counts = Counter(
        finalizer for objects in remaining.values() for obj in objects for finalizer in owners.finalizers(obj)
    )
    if finalizer_counts:
        counts = ", ".join(
            f"{finalizer} in {count} resource instances" for finalizer, count in sorted(finalizer_counts.items())
        )
        message = f"Some content in the namespace has finalizers remaining: {counts}"
        true_conditions["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
    return true_conditions
