"""An index of running pods with the facts that metrics need, updated by a watch so that sampling decodes no pods.

`metrics.resource.sampler` owns one `RunningPods` and reads it in every round; `metrics.custom` reads it, through the
sampler, for the described pods. A new fact: a field of `PodFact`, set in `pod_fact`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.controlplane.metrics.resource import simulated
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

Key = tuple[str, str]
"""Namespace and name."""

_RESOURCES_BY_KIND = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "ReplicationController": "replicationcontrollers",
}
"""The resources of the controllers whose annotations state simulated usage, by kind."""
_METADATA_FIELDS = ("name", "namespace", "labels", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class PodFact:
    """The fields of a running pod that metrics need.

    Attributes:
        metadata: name, namespace, labels and creationTimestamp, which PodMetrics repeat.
        uid: the pod's uid.
        containers: the names of the regular containers and sidecars.
        simulation_fields: the parts of the pod that `simulated` reads; None for a pod with processes.
        controller: resource (such as `replicasets.apps`), name and uid of its controller; None if it has none, or one
            of another kind than those in `_RESOURCES_BY_KIND`.
        ready: whether it is ready and not terminating.
        start_time: status.startTime (RFC 3339), else the time of its creation.
    """

    metadata: Mapping[str, Any]
    uid: str
    containers: tuple[str, ...]
    simulation_fields: Mapping[str, Any] | None
    controller: tuple[str, str, str] | None
    ready: bool
    start_time: str

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels; empty without any."""
        labels: Mapping[str, str] = self.metadata.get("labels") or {}
        return labels


def pod_fact(pod: Mapping[str, Any]) -> PodFact | None:
    """The facts of a core/v1 Pod, None unless it is running."""
    if pod.get("status", {}).get("phase") != "Running":
        return None
    metadata, spec = pod["metadata"], pod["spec"]
    init_containers, regular = spec.get("initContainers") or [], spec.get("containers") or []
    sidecars = [container for container in init_containers if container.get("restartPolicy") == "Always"]
    conditions = pod["status"].get("conditions") or []
    return PodFact(
        metadata={key: metadata[key] for key in _METADATA_FIELDS if key in metadata},
        uid=metadata["uid"],
        containers=tuple(container["name"] for container in (*sidecars, *regular)),
        simulation_fields=_simulation_fields(pod) if simulated.is_simulated(pod) else None,
        controller=_controller_of(metadata),
        ready="deletionTimestamp" not in metadata and _is_ready(conditions),
        start_time=pod["status"].get("startTime") or metadata.get("creationTimestamp", ""),
    )


def _simulation_fields(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pod with nothing but the fields that `simulated` reads."""
    names = [{"name": container["name"]} for container in pod["spec"].get("containers") or []]
    return {"metadata": {"annotations": pod["metadata"].get("annotations", {})}, "spec": {"containers": names}}


def _is_ready(conditions: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the condition Ready is True; `conditions` is that of a pod's status."""
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _controller_of(metadata: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Resource, name and uid of a pod's controller; None if it has none whose annotations can state usage."""
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller") and owner["kind"] in _RESOURCES_BY_KIND:
            return _RESOURCES_BY_KIND[owner["kind"]], owner["name"], owner["uid"]
    return None


class RunningPods:
    """The running pods by namespace and name.

    Args:
        registry: where pods are watched.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._facts: dict[str, dict[str, PodFact]] = {}
        """By namespace and name."""

    def running(self) -> Mapping[Key, PodFact]:
        """All running pods."""
        return {(namespace, name): fact for namespace, pods in self._facts.items() for name, fact in pods.items()}

    def running_in(self, namespace: str) -> Mapping[str, PodFact]:
        """The running pods of a namespace by name."""
        return dict(self._facts.get(namespace, {}))

    async def run(self) -> None:
        """Watch pods until cancelled."""
        async for change in self._registry.watch_renewed("pods", on_watch=self._facts.clear):
            self._update_fact(change)

    def _update_fact(self, change: ObjectEvent) -> None:
        """Update the facts of one pod by an event of the watch; a pod that is not running is removed."""
        metadata = change.object["metadata"]
        pods = self._facts.setdefault(metadata["namespace"], {})
        fact = None if change.type == "DELETED" else pod_fact(change.object)
        if fact is not None:
            pods[metadata["name"]] = fact
            return
        pods.pop(metadata["name"], None)
        if not pods:
            del self._facts[metadata["namespace"]]
