"""The endpoints of a Service: which pods stand behind it, on which ports, in what state.

The endpoint slice controller calls it. Pure; objects are JSON-ready dicts with defaults filled in. Pods on which a port
has another number (a named targetPort, a port map) are a group of their own, as a slice has one set of ports for all
its endpoints.

Source: discovery.k8s.io/v1 EndpointSlice, documentation of Service.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podscaler.api import port_map
from podscaler.api.resources import Object
from podscaler.controlplane.workloads import pods


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a slice."""

    name: str
    protocol: str
    number: int
    app_protocol: str = ""


Ports = tuple[Port, ...]


def groups(service: Object, candidates: Iterable[Object]) -> dict[Ports, list[Object]]:
    """EndpointSlice endpoints by the ports that they have, in the order of the pods.

    Args:
        service: with a selector.
        candidates: the pods that its selector matches; those without an address and finished ones are passed over.
    """
    return KnownEndpoints().groups(service, candidates)


class KnownEndpoints:
    """What `groups` found for one Service, so that only pods that have changed since are looked at again.

    A pod is unchanged where the registry gives the very same object once more.
    """

    def __init__(self) -> None:
        self._service: Object = {}
        self._known: dict[str, tuple[Object, Ports, Object]] = {}

    def groups(self, service: Object, candidates: Iterable[Object]) -> dict[Ports, list[Object]]:
        """As the function; endpoints are shared with later results and must not be changed."""
        if service != self._service:
            self._service, self._known = service, {}
        before, self._known = self._known, {}
        found: dict[Ports, list[Object]] = {}
        for pod in candidates:
            if pods.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
                continue
            uid = pod["metadata"]["uid"]
            known = before.get(uid)
            if known is None or known[0] is not pod:
                known = (pod, ports_on(service, pod), endpoint(service, pod))
            self._known[uid] = known
            found.setdefault(known[1], []).append(known[2])
        return found


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
