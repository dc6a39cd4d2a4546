"""Writes the status and the port map of one pod to the registry, if they have changed, and deletes the pod.

`kubelet.pods.pod_worker`, `simulated_pod` and `container_setup` use it. Nothing is written where the stored object has
the content already. Another pod of the same name (with another uid) is never changed. The port map is an annotation of
the pod: declared port -> the port that its process has bound in its place (`podscaler.api.port_map`).
"""

from collections.abc import Callable, Mapping, Sequence

from podscaler.api import port_map
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.containers.container_state import ContainerState
from podscaler.controlplane.kubelet.pods import pod_status
from podscaler.controlplane.kubelet.pods.pod_status import PodStatusFacts
from podscaler.controlplane.registry.registry import Object, Registry


class PodWriter:
    """The writer of one pod's object; `pod` is any version of the object, as only its names and uid are used."""

    def __init__(self, registry: Registry, clock: Clock, pod: Object) -> None:
        self._registry = registry
        self._clock = clock
        meta = pod["metadata"]
        self._namespace, self._name, self._uid = meta["namespace"], meta["name"], meta["uid"]

    def find(self) -> Object | None:
        """The pod as it is stored now, None if it is gone."""
        pod = self._registry.find("pods", self._namespace, self._name)
        return pod if pod and pod["metadata"]["uid"] == self._uid else None

    async def write_status(self, containers: Sequence[ContainerState], facts: PodStatusFacts) -> None:
        """Store the status if it has changed; does nothing for a pod that is gone. Raises StatusError."""
        stored = self.find()
        if stored is None:
            return
        now_ns = self._clock.now_ns()
        if pod_status.pod_status(stored, containers, facts, now_ns=now_ns) == stored.get("status"):
            return

        def set_status(pod: Object) -> None:
            pod["status"] = pod_status.pod_status(pod, containers, facts, now_ns=now_ns)

        await self._mutate_pod(set_status, subresource="status")

    async def replace_port_map(self, mapped: Mapping[int, int]) -> None:
        """Replace the port map by `mapped` (declared port -> bound port). Raises StatusError."""
        await self._change_port_map(lambda _: mapped)

    async def extend_port_map(self, mapped: Mapping[int, int]) -> None:
        """Add `mapped` (declared port -> bound port) to the port map. Raises StatusError."""
        await self._change_port_map(lambda former: {**former, **mapped})

    async def remove(self) -> None:
        """Delete the object without a grace period; finalizers may keep it. Raises StatusError, but not 404 and 409."""
        try:
            await self._registry.delete("pods", self._namespace, self._name, uid=self._uid, grace_period_s=0)
        except StatusError as error:
            if error.code not in (404, 409):  # 409: the name belongs to a pod with another uid
                raise

    async def _change_port_map(self, new_map: Callable[[Mapping[int, int]], Mapping[int, int]]) -> None:
        """Change the annotation with the port map; an empty map has no annotation. Raises StatusError.

        Args:
            new_map: the port map that replaces the former one.
        """

        def set_annotation(pod: Object) -> None:
            annotations = pod["metadata"].setdefault("annotations", {})
            if ports := new_map(port_map.of(pod)):
                annotations[port_map.ANNOTATION] = port_map.text(ports)
            else:
                annotations.pop(port_map.ANNOTATION, None)

        stored = self.find()
        if stored is not None and new_map(port_map.of(stored)) != port_map.of(stored):
            await self._mutate_pod(set_annotation, subresource="")

    async def _mutate_pod(self, change: Callable[[Object], None], *, subresource: str) -> None:
        """Change the stored pod, if it is still the one with this uid; does nothing for a pod that is gone.

        Args:
            change: changes the object in place.
            subresource: `status`, or empty for the pod itself.

        Raises StatusError.
        """

        def change_if_same(pod: Object) -> None:
            if pod["metadata"]["uid"] == self._uid:
                change(pod)

        try:
            await self._registry.mutate("pods", self._namespace, self._name, change_if_same, subresource=subresource)
        except StatusError as error:
            if error.code != 404:
                raise
