"""Computes the endpoints of a Service: addresses, ports and conditions of the pods that it selects.

`endpointslices` and `endpoint_object` call it; nothing is written. A new field of an endpoint: `endpoint`. Pods are
grouped by their port numbers, since a slice has one list of ports for all its endpoints; the numbers differ with a
named targetPort or a port map.

Source: discovery.k8s.io/v1 EndpointSlice, documentation of Service.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from podscaler.api import port_map
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import pods


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a slice; `number` is the port at the pods' addresses, an empty `app_protocol` is not stated."""

    name: str
    protocol: str
    number: int
    app_protocol: str = ""


Ports = tuple[Port, ...]
"""The ports of a slice, in the order of the Service."""
T = TypeVar("T")


class PodCache(Generic[T]):
    """Caches a value for each pod of one Service, so that only changed pods are read again.

    A pod is unchanged if the registry returns the very same object again.

    Args:
        describe: returns the ports of a pod and its value, from the Service and the pod; None for a skipped pod.
    """

    def __init__(self, describe: Callable[[Object, Object], tuple[Ports, T] | None]) -> None:
        self._describe = describe
        self._service: Object = {}
        self._described: dict[str, tuple[Object, tuple[Ports, T] | None]] = {}
        """By the uid of each pod of the last call: the pod and the result of `describe`."""

    def groups(self, service: Object, selected: Iterable[Object]) -> dict[Ports, list[T]]:
        """The values by the ports of the pods, in their order; shared with later results, so not to be changed.

        Args:
            service: with a selector.
            selected: the pods that its selector matches.
        """
        if service != self._service:
            self._service, self._described = service, {}
        described_before, self._described = self._described, {}
        values_by_ports: dict[Ports, list[T]] = {}
        for pod in selected:
            uid = pod["metadata"]["uid"]
            described_pod, description = described_before.get(uid, (None, None))
            if described_pod is not pod:
                description = self._describe(service, pod)
            self._described[uid] = (pod, description)
            if description is not None:
                ports, value = description
                values_by_ports.setdefault(ports, []).append(value)
        return values_by_ports


class EndpointCache(PodCache[Object]):
    """The EndpointSlice endpoints of the pods of one Service; finished pods and those without address are skipped."""

    def __init__(self) -> None:
        super().__init__(_ports_and_endpoint)


def _ports_and_endpoint(service: Object, pod: Object) -> tuple[Ports, Object] | None:
    """The ports and the endpoint of a pod; None for a pod that is finished or has no address."""
    if pods.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
        return None
    return ports_on(service, pod), endpoint(service, pod)


def endpoint(service: Object, pod: Object) -> Object:
    """The EndpointSlice endpoint of a pod: address, conditions, target and node.

    It has a hostname if the pod's subdomain is the Service, as for the pods of a StatefulSet.
    """
    is_serving, is_terminating = pods.is_ready(pod), pods.is_terminating(pod)
    publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
    slice_endpoint: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": publishes_all or (is_serving and not is_terminating),
            "serving": is_serving,
            "terminating": is_terminating,
        },
        "targetRef": {
            "kind": "Pod",
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        },
    }
    if pod["spec"].get("nodeName"):
        slice_endpoint["nodeName"] = pod["spec"]["nodeName"]
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        slice_endpoint["hostname"] = pod["spec"]["hostname"]
    return slice_endpoint


def ports_on(service: Object, pod: Object) -> Ports:
    """The Service's ports with their numbers on this pod; a port whose named targetPort the pod lacks is left out."""
    mapped_ports = port_map.of(pod)
    ports = []
    for service_port in service["spec"].get("ports") or []:
        protocol = service_port.get("protocol", "TCP")
        target_port = service_port.get("targetPort", service_port["port"])
        container_port = target_port if isinstance(target_port, int) else _find_port(pod, target_port, protocol)
        if container_port is not None:
            number = mapped_ports.get(container_port, container_port)
            ports.append(Port(service_port.get("name", ""), protocol, number, service_port.get("appProtocol", "")))
    return tuple(ports)


def _find_port(pod: Object, name: str, protocol: str) -> int | None:
    """The number of the container port with a name and protocol; None if the pod has none."""
    for port in _container_ports(pod):
        if port.get("name") == name and port.get("protocol", "TCP") == protocol:
            return int(port["containerPort"])
    return None


def _container_ports(pod: Object) -> Iterator[Object]:
    """The ports of containers and sidecars."""
    for container in (*(pod["spec"].get("containers") or []), *pods.sidecars(pod)):
        yield from container.get("ports") or []
