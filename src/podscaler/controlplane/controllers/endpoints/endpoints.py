"""Computes the endpoints of a Service: addresses, ports and conditions of the pods that it selects. Pure.

The endpoint and endpoint slice controllers call it. Pods are grouped by their port numbers, which differ with a named
targetPort or a port map, since a slice has one list of ports for all its endpoints.

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
    """One port of a slice."""

    name: str
    protocol: str
    number: int
    app_protocol: str = ""


Ports = tuple[Port, ...]
T = TypeVar("T")


def groups(service: Object, candidates: Iterable[Object]) -> dict[Ports, list[Object]]:
    """EndpointSlice endpoints by their ports, in the order of the pods.

    Args:
        service: with a selector.
        candidates: the pods that its selector matches; finished pods and those without an address are skipped.
    """
    return EndpointCache().groups(service, candidates)


class PodCache(Generic[T]):
    """Caches a value for each pod of one Service, so that only changed pods are read again.

    A pod is unchanged if the registry returns the very same object again.

    Args:
        describe: from a Service and a pod to the ports of the pod and its value; None for a pod that is skipped.
    """

    def __init__(self, describe: Callable[[Object, Object], tuple[Ports, T] | None]) -> None:
        self._describe = describe
        self._service: Object = {}
        self._cached: dict[str, tuple[Object, tuple[Ports, T] | None]] = {}

    def groups(self, service: Object, candidates: Iterable[Object]) -> dict[Ports, list[T]]:
        """The values by the ports of the pods; they are shared with later results and must not be changed."""
        if service != self._service:
            self._service, self._cached = service, {}
        before, self._cached = self._cached, {}
        grouped: dict[Ports, list[T]] = {}
        for pod in candidates:
            uid = pod["metadata"]["uid"]
            cached = before.get(uid)
            if cached is None or cached[0] is not pod:
                cached = (pod, self._describe(service, pod))
            self._cached[uid] = cached
            if cached[1] is not None:
                grouped.setdefault(cached[1][0], []).append(cached[1][1])
        return grouped


class EndpointCache(PodCache[Object]):
    """The EndpointSlice endpoints of the pods of one Service."""

    def __init__(self) -> None:
        super().__init__(_described)


def _described(service: Object, pod: Object) -> tuple[Ports, Object] | None:
    if pods.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
        return None
    return ports_on(service, pod), endpoint(service, pod)


def endpoint(service: Object, pod: Object) -> Object:
    """The EndpointSlice endpoint of a pod: address, conditions, target and node.

    It has a hostname if the pod's subdomain is the Service, as for the pods of a StatefulSet.
    """
    serving, terminating = pods.is_ready(pod), pods.is_terminating(pod)
    publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
    result: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": publishes_all or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {
            "kind": "Pod",
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        },
    }
    if pod["spec"].get("nodeName"):
        result["nodeName"] = pod["spec"]["nodeName"]
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        result["hostname"] = pod["spec"]["hostname"]
    return result


def ports_on(service: Object, pod: Object) -> Ports:
    """The Service's ports with their numbers on this pod; a port whose named targetPort the pod lacks is left out."""
    mapped = port_map.of(pod)
    result = []
    for port in service["spec"].get("ports") or []:
        protocol = port.get("protocol", "TCP")
        target = port.get("targetPort", port["port"])
        number = target if isinstance(target, int) else _named(pod, target, protocol)
        if number is not None:
            real = mapped.get(number, number)
            result.append(Port(port.get("name", ""), protocol, real, port.get("appProtocol", "")))
    return tuple(result)


def _named(pod: Object, name: str, protocol: str) -> int | None:
    for port in _container_ports(pod):
        if port.get("name") == name and port.get("protocol", "TCP") == protocol:
            return int(port["containerPort"])
    return None


def _container_ports(pod: Object) -> Iterator[Object]:
    """The ports of containers and sidecars."""
    sidecars = (
        init_container
        for init_container in pod["spec"].get("initContainers") or []
        if init_container.get("restartPolicy") == "Always"
    )
    for container in (*(pod["spec"].get("containers") or []), *sidecars):
        yield from container.get("ports") or []
