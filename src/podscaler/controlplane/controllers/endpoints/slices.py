"""Computes the writes of EndpointSlices for the endpoints of a Service; the endpoint slice controller calls it. Pure.

1. A slice holds at most 100 endpoints, all with the same ports.
2. As few slices as possible are written: endpoints stay in their slice, new ones fill the fullest slices with room.
3. A Service without endpoints has one empty slice.

Source: discovery.k8s.io/v1, documentation of EndpointSlice ("Distribution of EndpointSlices").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints.endpoints import Port, Ports
from podscaler.controlplane.controllers.framework.ownership import controller_reference

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"
MAX_ENDPOINTS = 100


@dataclass(slots=True)
class Writes:
    """Slices to create, to update (with the resourceVersion that was read) and to delete."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)


def writes(service: Object, existing: Sequence[Object], groups: Mapping[Ports, Sequence[Object]]) -> Writes:
    """The writes after which the slices of a Service hold these endpoints.

    Args:
        service: with apiVersion and kind.
        existing: the slices of the Service that this controller manages.
        groups: the endpoints by ports, as `endpoints.groups` returns them.
    """
    result = Writes()
    wanted = dict(groups) or {(): []}
    left = {ports: [one for one in existing if _ports(one) == ports] for ports in wanted}
    kept = [one for slices in left.values() for one in slices]
    result.delete = [one for one in existing if not any(one is other for other in kept)]
    for ports, endpoints in wanted.items():
        _arrange(service, ports, endpoints, left[ports], result)
    return result


def _arrange(
    service: Object, ports: Ports, endpoints: Sequence[Object], slices: Sequence[Object], result: Writes
) -> None:
    missing = {endpoint["targetRef"]["uid"]: endpoint for endpoint in endpoints}
    contents = [_staying(one, missing) for one in slices]
    for content in sorted(contents, key=len, reverse=True):
        while missing and len(content) < MAX_ENDPOINTS:
            content.append(missing.pop(next(iter(missing))))
    empty_allowed = 0 if endpoints else 1
    for one, content in zip(slices, contents, strict=True):
        if not content and not empty_allowed:
            result.delete.append(one)
            continue
        empty_allowed -= not content
        _keep(service, one, content, result)
    rest = list(missing.values())
    while rest or empty_allowed > 0:
        empty_allowed = 0
        result.create.append(_new_slice(service, ports, rest[:MAX_ENDPOINTS]))
        rest = rest[MAX_ENDPOINTS:]


def _staying(one: Object, missing: dict[str, Object]) -> list[Object]:
    """The current form of the endpoints of a slice that are still needed; they are removed from `missing`."""
    uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in one.get("endpoints") or []]
    return [missing.pop(uid) for uid in uids if uid in missing]


def _keep(service: Object, one: Object, content: list[Object], result: Writes) -> None:
    labels = _labels(service)
    if content != (one.get("endpoints") or []) or labels != one["metadata"].get("labels"):
        metadata = {**one["metadata"], "labels": labels}
        result.update.append({**one, "metadata": metadata, "endpoints": content})


def _new_slice(service: Object, ports: Ports, endpoints: list[Object]) -> Object:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{service['metadata']['name']}-",
            "namespace": service["metadata"]["namespace"],
            "labels": _labels(service),
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [_port_json(port) for port in ports],
    }


def _labels(service: Object) -> dict[str, str]:
    labels = dict(service["metadata"].get("labels") or {})
    labels |= {SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: MANAGER}
    return labels | ({HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {})


def _port_json(port: Port) -> Object:
    result: Object = {"name": port.name, "protocol": port.protocol, "port": port.number}
    return result | ({"appProtocol": port.app_protocol} if port.app_protocol else {})


def _ports(one: Object) -> Ports:
    return tuple(
        Port(port.get("name") or "", port.get("protocol", "TCP"), port.get("port", 0), port.get("appProtocol") or "")
        for port in one.get("ports") or []
    )
