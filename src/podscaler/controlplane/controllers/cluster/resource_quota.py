"""The resource quota controller: keeps status.hard and status.used of ResourceQuotas.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop` over all namespaced kinds. Creates are charged
by admission (`controlplane.admission.resource_quotas`); this controller counts anew when a quota changes, when an
object is deleted, when a pod, Service or claim changes, and every `RESYNC_S` seconds. It writes with the
resourceVersion of the quota that it counted for, so that a create that is charged meanwhile is not lost.

Source: kube-controller-manager's resourcequota-controller, whose full resync is every 5 minutes. Differs: a quota whose
limits have changed is counted again after `SETTLE_S` seconds, for creates that were decided before.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from podscaler.api.kinds.policy import quota_usage
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import BatchPeriod, Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

QUOTAS = "resourcequotas"
RESYNC_S = 300.0
"""How often every quota is counted."""
SETTLE_S = 5.0
"""After how long a quota with new limits is counted again."""
BATCH_S = 0.1
"""How long changes are collected before a count; `BATCH_S_PER_OBJECT` is added for each object of the last count."""
BATCH_S_PER_OBJECT = 0.0005
MAX_BATCH_S = 5.0
_MEASURED_KINDS = frozenset({"pods", "services", "persistentvolumeclaims"})
"""Kinds whose use can shrink by an update; a new kind that quotas count: `api.kinds.policy.quota_usage`."""


class ResourceQuotas(Reconciler[Key]):
    """Counts what the objects of a namespace use, for each of its quotas. Keys are namespace and name of quotas.

    Args:
        registry: the objects.
        clock: the time, for pods whose grace period is over.
        resources: all served kinds.
    """

    name = "resourcequota-controller"

    def __init__(self, registry: Registry, clock: Clock, resources: Iterable[Resource]) -> None:
        self._registry = registry
        self._clock = clock
        self._resources = resources
        self._quota_names: dict[str, set[str]] = {}
        """The names of the quotas of each namespace that has some."""
        self._batch_period: BatchPeriod[Key] = BatchPeriod(BATCH_S_PER_OBJECT, MAX_BATCH_S, base_s=BATCH_S)

    def watches(self) -> Sequence[Watched[Key]]:
        """Quotas, and every kind that they can count."""
        watched_kinds = [
            Watched(resource_key, partial(self._keys_of_object, resource_key), self._batch_period)
            for resource_key in self._countable_kinds()
        ]
        return [Watched(QUOTAS, self._index_quota), *watched_kinds]

    def prime(self) -> Iterable[Key]:
        """All quotas."""
        self._quota_names.clear()
        quotas = self._registry.list(QUOTAS)
        for quota in quotas:
            self._update_names(ObjectEvent("ADDED", quota))
        return [selection.key_of(quota) for quota in quotas]

    async def sync(self, key: Key) -> float | None:
        """Count for one quota and write its status if it changed; returns the seconds until the next count.

        None if the quota is gone. Raises StatusError, also if the quota has changed since it was read (409).
        """
        quota = self._registry.find(QUOTAS, *key)
        if quota is None:
            self._batch_period.forget(key)
            return None
        namespace, _ = key
        object_counts: list[int] = []  # of the kinds that the count reads, for the batch period

        def objects_of(resource_key: str) -> Sequence[Object]:
            objects = self._registry.list(resource_key, namespace)
            object_counts.append(len(objects))
            return objects

        used = quota_usage.calculate_used(quota, self._countable_kinds(), objects_of, self._clock.now_ns())
        self._batch_period.note(key, sum(object_counts))
        has_new_limits = _has_new_limits(quota)
        if has_new_limits or quota_usage.amounts_of(used) != quota_usage.amounts_of(quota["status"]["used"]):
            quota["status"] = {"hard": dict((quota.get("spec") or {}).get("hard") or {}), "used": used}
            await write_errors.ignoring_gone(self._registry.update(QUOTAS, quota, subresource="status"))
        return SETTLE_S if has_new_limits else RESYNC_S

    def _countable_kinds(self) -> list[str]:
        """The `Resource.key` of each kind with own objects that quotas count, of those that are served now."""
        return [
            resource.key
            for resource in self._resources
            if resource.namespaced
            and resource.stored
            and not resource.stored_as
            and resource.key not in quota_usage.IGNORED_KINDS
        ]

    def _index_quota(self, event: ObjectEvent) -> list[Key]:
        """Index a changed quota; returns its key if its limits are not in its status yet."""
        self._update_names(event)
        is_stale = event.type != "DELETED" and _has_new_limits(event.object)
        return [selection.key_of(event.object)] if is_stale else []

    def _update_names(self, event: ObjectEvent) -> None:
        """Add a changed quota to the index of names, or remove a deleted one."""
        namespace, name = selection.key_of(event.object)
        names = self._quota_names.setdefault(namespace, set())
        if event.type != "DELETED":
            names.add(name)
            return
        names.discard(name)
        if not names:
            del self._quota_names[namespace]

    def _keys_of_object(self, resource_key: str, event: ObjectEvent) -> Iterator[Key]:
        """The quotas of the namespace of a changed object, if the change can lower what the object uses."""
        namespace = event.object["metadata"].get("namespace", "")
        if namespace not in self._quota_names:
            return
        if event.type == "DELETED" or (event.type == "MODIFIED" and self._may_shrink(resource_key, event.object)):
            for name in self._quota_names[namespace]:
                yield namespace, name

    def _may_shrink(self, resource_key: str, obj: Object) -> bool:
        """Whether an update of an object can lower what it uses; for a pod, whether it is no longer charged."""
        if resource_key not in _MEASURED_KINDS:
            return False
        return resource_key != "pods" or not quota_usage.is_charged(obj, self._clock.now_ns())


def _has_new_limits(quota: Object) -> bool:
    """Whether the status of a quota has no counts yet, or other limits than the spec."""
    hard, status = (quota.get("spec") or {}).get("hard") or {}, quota.get("status") or {}
    return "used" not in status or quota_usage.amounts_of(hard) != quota_usage.amounts_of(status.get("hard"))
