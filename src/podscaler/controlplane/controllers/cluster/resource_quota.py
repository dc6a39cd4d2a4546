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
SETTLE_S = 5.0
BATCH_S = 0.1
BATCH_PER_OBJECT_S = 0.0005
BATCH_MAX_S = 5.0
"""How long deletions are collected before a count: longer where the last one had many objects."""
_MEASURED_KINDS = frozenset({"pods", "services", "persistentvolumeclaims"})
"""Kinds whose use can shrink by an update."""


class ResourceQuotas(Reconciler[Key]):
    """Counts what the objects of a namespace use, for each of its quotas.

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
        self._names: dict[str, set[str]] = {}
        self._batch_period: BatchPeriod[Key] = BatchPeriod(BATCH_PER_OBJECT_S, BATCH_MAX_S, base_s=BATCH_S)

    def watches(self) -> Sequence[Watched[Key]]:
        """Quotas, and every kind that they can count."""
        counted = [Watched(kind, partial(self._keys_of, kind), self._batch_period) for kind in self._kinds()]
        return [Watched(QUOTAS, self._keys_of_quota), *counted]

    def prime(self) -> Iterable[Key]:
        """All quotas."""
        self._names.clear()
        quotas = self._registry.list(QUOTAS)
        for quota in quotas:
            list(self._keys_of_quota(ObjectEvent("ADDED", quota)))
        return [selection.key_of(quota) for quota in quotas]

    async def sync(self, key: Key) -> float | None:
        """Count for one quota, and write its status where that changed."""
        quota = self._registry.find(QUOTAS, *key)
        if quota is None:
            self._batch_period.forget(key)
            return None
        counts: list[int] = []

        def objects_of(kind: str) -> Sequence[Object]:
            objects = self._registry.list(kind, key[0])
            counts.append(len(objects))
            return objects

        used = quota_usage.calculate_used(quota, self._kinds(), objects_of, self._clock.now_ns())
        self._batch_period.note(key, sum(counts))
        is_new = _is_limit_new(quota)
        if is_new or quota_usage.amounts_of(used) != quota_usage.amounts_of(quota["status"]["used"]):
            quota["status"] = {"hard": dict((quota.get("spec") or {}).get("hard") or {}), "used": used}
            await write_errors.ignoring_gone(self._registry.update(QUOTAS, quota, subresource="status"))
        return SETTLE_S if is_new else RESYNC_S

    def _kinds(self) -> list[str]:
        """The kinds that quotas count, of those that are served now."""
        return [
            resource.key
            for resource in self._resources
            if resource.namespaced
            and resource.stored
            and not resource.stored_as
            and resource.key not in quota_usage.IGNORED_KINDS
        ]

    def _keys_of_quota(self, event: ObjectEvent) -> Iterator[Key]:
        """Note the quotas of each namespace; yields a quota whose limits are not in its status."""
        namespace, name = key = selection.key_of(event.object)
        names = self._names.setdefault(namespace, set())
        if event.type != "DELETED":
            names.add(name)
            if _is_limit_new(event.object):
                yield key
            return
        names.discard(name)
        if not names:
            del self._names[namespace]

    def _keys_of(self, kind: str, event: ObjectEvent) -> Iterator[Key]:
        namespace = event.object["metadata"].get("namespace", "")
        if namespace not in self._names:
            return
        if event.type == "DELETED" or (event.type == "MODIFIED" and self._may_shrink(kind, event.object)):
            for name in self._names[namespace]:
                yield namespace, name

    def _may_shrink(self, kind: str, obj: Object) -> bool:
        """Whether a change of an object can lower what it uses."""
        if kind not in _MEASURED_KINDS:
            return False
        return kind != "pods" or not quota_usage.is_charged(obj, self._clock.now_ns())


def _is_limit_new(quota: Object) -> bool:
    """Whether the status of a quota is not that of its limits."""
    hard, status = (quota.get("spec") or {}).get("hard") or {}, quota.get("status") or {}
    return "used" not in status or quota_usage.amounts_of(hard) != quota_usage.amounts_of(status.get("hard"))
