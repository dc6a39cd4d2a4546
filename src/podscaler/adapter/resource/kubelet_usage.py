"""Provides the usage of pods and nodes from the kubelets, for the server of metrics.k8s.io.

`adapter.server.resource_api` calls it in place of `providers.resource_metrics` (usage from Prometheus), with
`--resource`.

Source: metrics-server v0.9: only nodes and running pods that the API server knows, with their labels; a pod is left
out until all its containers have usage.
"""

from collections.abc import Sequence

from podscaler.adapter.cluster.object_names import LabeledObject, ObjectNames
from podscaler.adapter.cluster.rest_mapper import RESTMapper
from podscaler.adapter.config.rules import GroupResource
from podscaler.adapter.naming.resource_labels import NODES, PODS
from podscaler.adapter.providers import protocols
from podscaler.adapter.providers.resource_metrics import CPU, MEMORY, Usage
from podscaler.adapter.resource.usage_storage import MeasuredUsage, UsageStorage
from podscaler.api.machinery import selectors
from podscaler.api.machinery.quantity import Format, Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.base.errors import StatusError

NANO = -9
"""The decimal exponent of nanocores."""


class KubeletUsage:
    """Computes the usage of pods and nodes from stored points; a UsageProvider of `providers.resource_metrics`.

    Args:
        storage: the points that the kubelets reported.
        mapper: maps names of resources.
        objects: finds pods and nodes.
    """

    def __init__(self, storage: UsageStorage, mapper: RESTMapper, objects: ObjectNames) -> None:
        self._storage = storage
        self._mapper = mapper
        self._objects = objects

    async def of_pods(self, namespace: str, selector: Selector = selectors.EVERYTHING) -> Sequence[Usage]:
        """The usage of pods, of all namespaces where none is given, in order. Raises StatusError."""
        return [usage for pod in await self._select(PODS, namespace, selector) if (usage := self._of_pod(pod))]

    async def of_nodes(self, selector: Selector = selectors.EVERYTHING) -> Sequence[Usage]:
        """The usage of nodes, in order. Raises StatusError."""
        return [usage for node in await self._select(NODES, "", selector) if (usage := self._of_node(node))]

    async def find_object(self, resource: GroupResource, namespace: str, name: str) -> LabeledObject | None:
        """The pod or node of that name; None if there is no such pod.

        Raises StatusError; for a node that does not exist it has the text of metrics-server.
        """
        objects = await self._select(resource, namespace, selectors.EVERYTHING)
        described = next((labeled for labeled in objects if labeled.metadata.name == name), None)
        if described is None and resource == NODES:
            details = {"name": name, "kind": "node"}
            raise StatusError(f'node "{name}" not found', code=404, reason="NotFound", details=details)
        return described

    async def of_object(self, resource: GroupResource, described: LabeledObject) -> Usage | None:
        """The usage of a pod or node; None if it is not known."""
        return self._of_pod(described) if resource == PODS else self._of_node(described)

    async def _select(self, resource: GroupResource, namespace: str, selector: Selector) -> Sequence[LabeledObject]:
        """The running pods, or the nodes, that a selector matches, in order. Raises StatusError."""
        mapped_resource = self._mapper.mapping.find(resource)
        if mapped_resource is None:
            raise protocols.internal_error(f"failed listing {resource}")
        objects = await self._objects.objects(mapped_resource, namespace, selector)
        return [labeled for labeled in objects if labeled.is_running] if resource == PODS else objects

    def _of_pod(self, pod: LabeledObject) -> Usage | None:
        """The usage of a pod, with time and window of its container that was measured first; None if it has none."""
        containers = self._storage.find_pod(pod.metadata.namespace, pod.metadata.name)
        if not containers:
            return None
        earliest = min(containers.values(), key=lambda usage: usage.at_ns)
        by_container = {name: _amounts(container) for name, container in containers.items()}
        return Usage(pod, earliest.at_ns, earliest.window_ns, by_container)

    def _of_node(self, node: LabeledObject) -> Usage | None:
        """The usage of a node; None if it has none."""
        usage = self._storage.find_node(node.metadata.name)
        return None if usage is None else Usage(node, usage.at_ns, usage.window_ns, {"": _amounts(usage)})


def _amounts(usage: MeasuredUsage) -> dict[str, Quantity]:
    """The amounts of cpu and memory, in the formats of metrics-server."""
    return {CPU: Quantity(usage.cpu_nanocores, NANO), MEMORY: Quantity(usage.memory_bytes, 0, Format.BINARY_SI)}
