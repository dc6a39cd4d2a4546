"""The namespace controller: a namespace that is being deleted loses all its objects, then its finalizer.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. Pods go first and everything else waits for
them, so that nothing they need (a secret, a network policy) goes before they have stopped.

Source: documentation of namespaces; KEP-5080 (pods first); conditions are upstream's.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import Clock, rfc3339
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.gc import owners
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

NAMESPACES = "namespaces"
PODS = "pods"
FINALIZER = "kubernetes"
LOOK_AGAIN_S = 0.5
DELETED_AT_ONCE = 50


class NamespaceDeletion:
    """See the module. Keys are names of namespaces.

    Args:
        resources: all stored kinds; asked anew for each namespace, as custom kinds come and go.
    """

    name = "namespace-controller"

    def __init__(self, registry: Registry, clock: Clock, resources: Iterable[Resource]) -> None:
        self._registry = registry
        self._clock = clock
        self._resources = resources

    def watches(self) -> Sequence[Watched[str]]:
        """Namespaces."""
        return [Watched(NAMESPACES, self._of_namespace)]

    def prime(self) -> Iterable[str]:
        """All that are going."""
        return [one["metadata"]["name"] for one in self._registry.list(NAMESPACES) if _is_going(one)]

    async def sync(self, key: str) -> float | None:
        """Delete what is left; see the module."""
        namespace = self._registry.find(NAMESPACES, "", key)
        if namespace is None or not _is_going(namespace):
            return None
        names = self._known()
        if not await self._empty(PODS, key):
            for resource in names.keys() - {PODS}:
                await self._empty(resource, key)
        left = {resource: found for resource in names if (found := self._registry.list(resource, key))}
        await self._tell(namespace, {names[resource]: found for resource, found in left.items()})
        if left:
            return LOOK_AGAIN_S
        await self._finalize(namespace)
        return None

    def report(self, key: str, error: Exception) -> None:
        """Nothing more than the log: an event in a namespace that goes would not be written."""

    def _known(self) -> dict[str, str]:
        """The kinds that live in namespaces, as conditions call them, by key."""
        namespaced = [one for one in self._resources if one.stored and one.namespaced and not one.stored_as]
        return {one.key: f"{one.plural}.{one.group}" for one in namespaced}

    def _of_namespace(self, change: ObjectEvent) -> Iterable[str]:
        going = change.type != "DELETED" and _is_going(change.object)
        return [change.object["metadata"]["name"]] if going else []

    async def _empty(self, resource: str, namespace: str) -> int:
        """Ask every object of a kind to go; returns how many are left."""
        found = [obj for obj in self._registry.list(resource, namespace) if "deletionTimestamp" not in obj["metadata"]]
        for start in range(0, len(found), DELETED_AT_ONCE):
            batch = found[start : start + DELETED_AT_ONCE]
            await asyncio.gather(*(self._delete(resource, obj) for obj in batch))
        return len(self._registry.list(resource, namespace))

    async def _delete(self, resource: str, obj: Object) -> None:
        await write_errors.ignoring_gone(
            self._registry.delete(resource, *selection.key_of(obj), propagation="Background")
        )

    async def _tell(self, namespace: Object, left: Mapping[str, Sequence[Object]]) -> None:
        new = _conditions(namespace, left, self._clock)
        if new == (namespace.get("status") or {}).get("conditions"):
            return

        def change(newest: Object) -> None:
            newest.setdefault("status", {})["conditions"] = new

        await self._registry.mutate(NAMESPACES, "", namespace["metadata"]["name"], change, subresource="status")

    async def _finalize(self, namespace: Object) -> None:
        def change(newest: Object) -> None:
            newest["spec"]["finalizers"] = [one for one in newest["spec"].get("finalizers") or [] if one != FINALIZER]

        name = namespace["metadata"]["name"]
        await self._registry.mutate(NAMESPACES, "", name, change, subresource="finalize")


def _is_going(namespace: Object) -> bool:
    held = FINALIZER in ((namespace.get("spec") or {}).get("finalizers") or ())
    return held and "deletionTimestamp" in namespace["metadata"]


def _conditions(namespace: Object, left: Mapping[str, Sequence[Object]], clock: Clock) -> list[Object]:
    """The five conditions of a namespace that goes; one whose status stays keeps the instant of its transition."""
    counts = ", ".join(f"{name} has {len(found)} resource instances" for name, found in sorted(left.items()))
    held = Counter(finalizer for found in left.values() for obj in found for finalizer in owners.finalizers(obj))
    holds = ", ".join(f"{finalizer} in {count} resource instances" for finalizer, count in sorted(held.items()))
    content = ("True", "SomeResourcesRemain", f"Some resources are remaining: {counts}")
    finalizers = (
        "True",
        "SomeFinalizersRemain",
        f"Some content in the namespace has finalizers remaining: {holds}",
    )
    facts = {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": content
        if left
        else ("False", "ContentRemoved", "All content successfully removed"),
        "NamespaceFinalizersRemaining": finalizers
        if held
        else ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    }
    before = {one["type"]: one for one in (namespace.get("status") or {}).get("conditions") or []}
    now = rfc3339(clock.now_ns())
    return [_condition(type_, fact, before.get(type_), now) for type_, fact in facts.items()]


def _condition(type_: str, fact: tuple[str, str, str], before: Object | None, now: str) -> Object:
    status, reason, message = fact
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    return {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
