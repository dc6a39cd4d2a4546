"""Computes the writes of EndpointSlices for the endpoints of a Service.

The endpoint slice controller calls `writes`, which changes none of its arguments. The rules:

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
    slices_by_ports = {
        ports: [endpoint_slice for endpoint_slice in existing if _ports(endpoint_slice) == ports] for ports in wanted
    }
    kept = [endpoint_slice for slices in slices_by_ports.values() for endpoint_slice in slices]
    result.delete = [
        endpoint_slice for endpoint_slice in existing if not any(endpoint_slice is other for other in kept)
    ]
    for ports, endpoints in wanted.items():
        _arrange(service, ports, endpoints, slices_by_ports[ports], result)
    return result


def _arrange(
    service: Object, ports: Ports, endpoints: Sequence[Object], slices: Sequence[Object], result: Writes
) -> None:
    """Append to `result` what puts the endpoints with the same ports into `slices` and new ones (rules 1 to 3)."""
    missing = {endpoint["targetRef"]["uid"]: endpoint for endpoint in endpoints}
    contents = [_staying(endpoint_slice, missing) for endpoint_slice in slices]
    for content in sorted(contents, key=len, reverse=True):
        while missing and len(content) < MAX_ENDPOINTS:
            content.append(missing.pop(next(iter(missing))))
    empty_slices_allowed = 0 if endpoints else 1
    for endpoint_slice, content in zip(slices, contents, strict=True):
        if not content and not empty_slices_allowed:
            result.delete.append(endpoint_slice)
            continue
        if not content:
            empty_slices_allowed -= 1
        _keep(service, endpoint_slice, content, result)
    unplaced = list(missing.values())
    while unplaced or empty_slices_allowed > 0:
        empty_slices_allowed = 0
        result.create.append(_new_slice(service, ports, unplaced[:MAX_ENDPOINTS]))
        unplaced = unplaced[MAX_ENDPOINTS:]


def _staying(endpoint_slice: Object, missing: dict[str, Object]) -> list[Object]:
    """The current form of the endpoints of a slice that are still needed; they are removed from `missing`."""
    uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in endpoint_slice.get("endpoints") or []]
    return [missing.pop(uid) for uid in uids if uid in missing]


def _keep(service: Object, endpoint_slice: Object, content: list[Object], result: Writes) -> None:
    """Append an update of a slice to `result` if its endpoints or labels change."""
    labels = _labels(service)
    if content != (endpoint_slice.get("endpoints") or []) or labels != endpoint_slice["metadata"].get("labels"):
        metadata = {**endpoint_slice["metadata"], "labels": labels}
        result.update.append({**endpoint_slice, "metadata": metadata, "endpoints": content})


def _new_slice(service: Object, ports: Ports, endpoints: list[Object]) -> Object:
    """A new slice of a Service; the server gives it a name."""
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


def _ports(endpoint_slice: Object) -> Ports:
    return tuple(
        Port(port.get("name") or "", port.get("protocol", "TCP"), port.get("port", 0), port.get("appProtocol") or "")
        for port in endpoint_slice.get("ports") or []
    )
