"""The endpoints of a Service: which pods stand behind it, on which ports, in what state.

The endpoint slice controller calls it. Pure; objects are JSON-ready dicts with defaults filled in. Pods on which a port
has another number (a named targetPort, a port map) are a group of their own, as a slice has one set of ports for all
its endpoints.

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
    """EndpointSlice endpoints by the ports that they have, in the order of the pods.

    Args:
        service: with a selector.
        candidates: the pods that its selector matches; those without an address and finished ones are passed over.
    """
    return KnownEndpoints().groups(service, candidates)


class Known(Generic[T]):
    """What was found out about the pods of one Service, so that only those that have changed since are looked at again.

    A pod is unchanged where the registry gives the very same object once more.

    Args:
        describe: from a Service and a pod to the ports that the pod has and what is to be known of it; None for a pod
            that does not count.
    """

    def __init__(self, describe: Callable[[Object, Object], tuple[Ports, T] | None]) -> None:
        self._describe = describe
        self._service: Object = {}
        self._known: dict[str, tuple[Object, tuple[Ports, T] | None]] = {}

    def groups(self, service: Object, candidates: Iterable[Object]) -> dict[Ports, list[T]]:
        """What is known of the pods that count, by their ports; it is shared with later results: change nothing."""
        if service != self._service:
            self._service, self._known = service, {}
        before, self._known = self._known, {}
        found: dict[Ports, list[T]] = {}
        for pod in candidates:
            uid = pod["metadata"]["uid"]
            known = before.get(uid)
            if known is None or known[0] is not pod:
                known = (pod, self._describe(service, pod))
            self._known[uid] = known
            if known[1] is not None:
                found.setdefault(known[1][0], []).append(known[1][1])
        return found


class KnownEndpoints(Known[Object]):
    """What `groups` found for one Service."""

    def __init__(self) -> None:
        super().__init__(_described)


def _described(service: Object, pod: Object) -> tuple[Ports, Object] | None:
    if pods.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
        return None
    return ports_on(service, pod), endpoint(service, pod)


def endpoint(service: Object, pod: Object) -> Object:
    """The pod as an endpoint: its address and whether it is ready, serving and terminating.

    A pod whose subdomain is the Service (those of its StatefulSet) has its hostname as name below the Service's.
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
    """The Service's ports as they are on this pod; one whose named targetPort the pod lacks is left out."""
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
    sidecars = (one for one in pod["spec"].get("initContainers") or [] if one.get("restartPolicy") == "Always")
    for container in (*(pod["spec"].get("containers") or []), *sidecars):
        yield from container.get("ports") or []
