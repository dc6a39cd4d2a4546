"""Maps changes of Services and pods to the keys of the Services to sync.

`endpoint_controller` and `endpointslices` have one `SelectedPods` each: their watches call `index_service` and
`index_pod`, their syncs call `note` with the pods that they found. `selects` decides which Services have endpoints.
"""

from collections import defaultdict
from collections.abc import Iterable

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import selection
from podscaler.controlplane.controllers.framework.control_loop import BatchPeriod
from podscaler.controlplane.controllers.framework.selection import Key, SelectorIndex
from podscaler.controlplane.registry.registry import ObjectEvent


class SelectedPods:
    """An index of Services by selector, and of the pods that each Service selects.

    Args:
        batch_s_per_pod: how long changes are collected for each pod of a Service.
        max_batch_s: at most.

    Attributes:
        batch_period: how long changes of pods are collected, so that a large Service is not written for each of them.
    """

    def __init__(self, batch_s_per_pod: float, max_batch_s: float) -> None:
        self._selectors = SelectorIndex(_selector)
        self._services_of_pod: defaultdict[Key, set[Key]] = defaultdict(set)
        """The keys of the Services that selected a pod, by the pod's key."""
        self.batch_period: BatchPeriod[Key] = BatchPeriod(batch_s_per_pod, max_batch_s)

    def prime(self, services: Iterable[Object]) -> list[Key]:
        """Index these Services and no others; returns the keys of those with a selector."""
        self._services_of_pod.clear()
        return self._selectors.replace(services)

    def index_service(self, event: ObjectEvent) -> Iterable[Key]:
        """Index the selector of a changed Service; returns a list of its key."""
        return self._selectors.update(event)

    def index_pod(self, event: ObjectEvent) -> Iterable[Key]:
        """Index a changed pod; returns the Services that select it now, or did when they were synced."""
        pod_key = selection.key_of(event.object)
        selecting = [] if event.type == "DELETED" else self._selectors.keys_selecting(event.object)
        affected = self._services_of_pod.pop(pod_key, set()).union(selecting)
        if selecting:
            self._services_of_pod[pod_key] = set(selecting)
        return affected

    def note(self, key: Key, pods: Iterable[Object]) -> None:
        """Remember the pods that the sync of the Service `key` found: their changes lead to a sync."""
        pod_keys = [selection.key_of(pod) for pod in pods]
        self.batch_period.note(key, len(pod_keys))
        for pod_key in pod_keys:
            self._services_of_pod[pod_key].add(key)

    def forget(self, key: Key) -> None:
        """Drop a Service that is gone or has no selector any more."""
        self.batch_period.forget(key)


def selects(service: Object) -> bool:
    """Whether a Service has endpoints that follow from its selector."""
    spec = service["spec"]
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def _selector(service: Object) -> Selector | None:
    """The selector of a Service, None if its endpoints do not follow from one."""
    return selectors.from_labels(service["spec"]["selector"]) if selects(service) else None
