"""Finds the running pods of an object, over which the custom metrics of the object are summed.

| object | running pods |
|---|---|
| Namespace | all pods of the namespace |
| Service | pods that its selector matches |
| Deployment | pods whose controller is one of its ReplicaSets |
| Ingress | pods of the Services that its backends name |

Called by `metrics.custom.lookup` for metrics that pods expose. Objects are read in each query, nothing is cached. A new
kind: a line in the table, and a function in `_pods_by_kind`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from podscaler.api.machinery import selectors
from podscaler.controlplane.metrics.custom.kinds import NAMESPACES
from podscaler.controlplane.metrics.resource.pods import PodFact
from podscaler.controlplane.registry.registry import Object, Registry

SERVICES: Final = "services"
DEPLOYMENTS: Final = "deployments.apps"
INGRESSES: Final = "ingresses.networking.k8s.io"
REPLICA_SETS: Final = "replicasets.apps"

PodNames = frozenset[str]

GetRunningPods = Callable[[str], Mapping[str, PodFact]]
"""Returns the running pods of a namespace by name."""


class PodAssociation:
    """Finds the running pods behind the objects of the table above.

    Args:
        registry: where objects are read.
        get_running_pods: returns the running pods of a namespace.
    """

    def __init__(self, registry: Registry, get_running_pods: GetRunningPods) -> None:
        self._registry = registry
        self._get_running_pods = get_running_pods
        self._pods_by_kind: Mapping[str, Callable[[Object], PodNames]] = {
            SERVICES: self._of_service,
            DEPLOYMENTS: self._of_deployment,
            INGRESSES: self._of_ingress,
        }
        """Functions from an object to the names of its pods, by the `Resource.key` of the object's kind."""

    @property
    def kinds(self) -> Iterable[str]:
        """The `Resource.key` of each kind in the table above."""
        return (NAMESPACES, *self._pods_by_kind)

    def pods_behind(self, namespace: str, kind: str, name: str = "") -> Mapping[str, PodNames]:
        """The running pods behind objects of a namespace.

        Args:
            namespace: the namespace of objects and pods.
            kind: one of `kinds`; the result is empty for others.
            name: the name of the object; empty for all objects of the kind.

        Returns:
            The names of the pods by the object's name; an object without pods is left out.
        """
        if kind == NAMESPACES:
            pods_by_object = {namespace: frozenset(self._get_running_pods(namespace))}
        elif kind not in self._pods_by_kind:
            return {}
        elif name:
            described_object = self._registry.find(kind, namespace, name)
            pods_by_object = {} if described_object is None else {name: self._pods_by_kind[kind](described_object)}
        else:
            objects = self._registry.list(kind, namespace)
            pods_by_object = {
                described_object["metadata"]["name"]: self._pods_by_kind[kind](described_object)
                for described_object in objects
            }
        return {object_name: pods for object_name, pods in pods_by_object.items() if pods}

    def _of_service(self, service: Object) -> PodNames:
        """The names of the running pods that a Service selects."""
        labels = service["spec"].get("selector")
        if not labels:
            return frozenset()
        pods = self._get_running_pods(service["metadata"]["namespace"])
        selector = selectors.from_labels(labels)
        return frozenset(name for name, pod in pods.items() if selector.matches(pod.labels))

    def _of_deployment(self, deployment: Object) -> PodNames:
        """The names of the running pods whose controller is a ReplicaSet of the Deployment."""
        replica_sets = self._registry.owned_by(REPLICA_SETS, deployment["metadata"]["uid"])
        replica_set_uids = {replica_set["metadata"]["uid"] for replica_set in replica_sets}
        pods = self._get_running_pods(deployment["metadata"]["namespace"])
        controllers = {name: pod.controller for name, pod in pods.items() if pod.controller is not None}
        return frozenset(name for name, (_, _, uid) in controllers.items() if uid in replica_set_uids)

    def _of_ingress(self, ingress: Object) -> PodNames:
        """The names of the pods behind the Services of an Ingress."""
        namespace = ingress["metadata"]["namespace"]
        services = (self._registry.find(SERVICES, namespace, name) for name in set(_backend_services(ingress["spec"])))
        return frozenset().union(*(self._of_service(service) for service in services if service is not None))


def _backend_services(spec: Mapping[str, Any]) -> Iterable[str]:
    """The names of the Services in the backends of an Ingress' spec."""
    rules = spec.get("rules") or []
    paths = (path for rule in rules for path in (rule.get("http") or {}).get("paths") or [])
    for backend in (spec.get("defaultBackend") or {}, *(path["backend"] for path in paths)):
        if name := (backend.get("service") or {}).get("name"):
            yield name
