"""The pod garbage collector: deletes the oldest finished pods beyond a threshold.

Finished pods are kept for their logs and exit codes. `controller_manager.Controllers` runs it in a
`control_loop.ControlLoop`; all pods together are one key (the unit of a sync).

Source: kube-controller-manager's --terminated-pod-gc-threshold. Differs: the threshold is 500, not 12,500; evicted pods
are not deleted first. Pods of a node that is gone and unscheduled pods that terminate, which upstream's collector
deletes too, are left alone.
"""

from collections.abc import Iterable, Sequence

from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

PODS = "pods"
KEPT_PODS = 500
"""The threshold: how many finished pods are kept."""
_ONLY_KEY = "finished pods"
BATCH_S = 1.0
"""How long changes of pods are collected."""


class FinishedPods(Reconciler[str]):
    """Counts finished pods and deletes the oldest above the threshold. There is one key, for all namespaces.

    Args:
        registry: the pods.
        kept_pods: how many finished pods are kept.
    """

    name = "pod-garbage-collector"

    def __init__(self, registry: Registry, *, kept_pods: int = KEPT_PODS) -> None:
        self._registry = registry
        self._kept_pods = kept_pods
        self._finished: dict[Key, str] = {}
        """The creation times (RFC 3339) of the finished pods."""

    def watches(self) -> Sequence[Watched[str]]:
        """Pods."""
        return [Watched(PODS, self._index_pod, get_delay_s=lambda _key: BATCH_S)]

    def prime(self) -> Iterable[str]:
        """The one key, after all pods were indexed."""
        self._finished.clear()
        for pod in self._registry.list(PODS):
            self._index_pod(ObjectEvent("ADDED", pod))
        return [_ONLY_KEY]

    async def sync(self, key: str) -> float | None:
        """Delete the oldest finished pods beyond the threshold; returns None, as only changes make it necessary.

        Raises StatusError if a pod cannot be deleted; it stays indexed for the retry.
        """
        del key
        surplus = max(len(self._finished) - self._kept_pods, 0)
        oldest_first = sorted(self._finished, key=lambda pod_key: (self._finished[pod_key], pod_key))
        for pod_key in oldest_first[:surplus]:
            # without a grace period, as no process of a finished pod runs
            await write_errors.ignoring_gone(self._registry.delete(PODS, *pod_key, grace_period_s=0))
            self._finished.pop(pod_key, None)
        return None

    def _index_pod(self, event: ObjectEvent) -> Iterable[str]:
        """Note a finished pod, or forget a deleted one; returns the one key if there are too many, otherwise none."""
        key = selection.key_of(event.object)
        if event.type == "DELETED" or not pods.is_finished(event.object):
            self._finished.pop(key, None)
            return []
        self._finished[key] = event.object["metadata"].get("creationTimestamp", "")
        return [_ONLY_KEY] if len(self._finished) > self._kept_pods else []
