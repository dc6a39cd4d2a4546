"""Finished pods are kept for their logs and exit codes, but not all of them for ever: the oldest go beyond a number.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; there is one key.

Source: kube-controller-manager's --terminated-pod-gc-threshold. Differs: 500 by default, for one machine.
"""

from collections.abc import Iterable, Sequence

from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

PODS = "pods"
KEPT_PODS = 500
EVERYTHING = "finished pods"
SETTLE_S = 1.0


class FinishedPods:
    """See the module.

    Args:
        kept: how many finished pods may stay.
    """

    name = "pod-garbage-collector"

    def __init__(self, registry: Registry, *, kept: int = KEPT_PODS) -> None:
        self._registry = registry
        self._kept = kept
        self._finished: dict[Key, str] = {}

    def watches(self) -> Sequence[Watched[str]]:
        """Pods."""
        return [Watched(PODS, self._of_pod, self._settle_s)]

    def prime(self) -> Iterable[str]:
        """Start counting anew."""
        self._finished.clear()
        for pod in self._registry.list(PODS):
            self._of_pod(ObjectEvent("ADDED", pod))
        return [EVERYTHING]

    async def sync(self, key: str) -> float | None:
        """Delete the oldest ones that are too many."""
        del key
        surplus = len(self._finished) - self._kept
        oldest = sorted(self._finished, key=lambda pod: (self._finished[pod], pod))
        for pod in oldest[: max(surplus, 0)]:
            self._finished.pop(pod, None)
            await write_errors.ignoring_gone(self._registry.delete(PODS, *pod, grace_period_s=0))
        return None

    def report(self, key: str, error: Exception) -> None:
        """Nothing more than the log."""

    def _of_pod(self, change: ObjectEvent) -> Iterable[str]:
        key = selection.key_of(change.object)
        if change.type == "DELETED" or not pods.is_finished(change.object):
            self._finished.pop(key, None)
            return []
        self._finished[key] = change.object["metadata"].get("creationTimestamp", "")
        return [EVERYTHING] if len(self._finished) > self._kept else []

    def _settle_s(self, key: str) -> float:
        del key
        return SETTLE_S
