"""Computes the writes of EndpointSlices for the endpoints of a Service.

`endpointslices` calls `plan_writes`, which changes none of its arguments, and carries the writes out. A new field of
slices: `_new_slice`, and `_update_slice` if it can change. The rules:

1. A slice has at most 100 endpoints, all with the same ports.
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


def plan_writes(
    service: Object, existing: Sequence[Object], endpoints_by_ports: Mapping[Ports, Sequence[Object]]
) -> Writes:
    """The writes after which the slices of a Service contain these endpoints.

    Args:
        service: with apiVersion and kind.
        existing: the slices of the Service that this controller manages.
        endpoints_by_ports: the endpoints by ports, as `endpoints.EndpointCache.groups` returns them; may be empty.
    """
    writes = Writes()
    desired = dict(endpoints_by_ports) or {(): []}
    slices_by_ports: dict[Ports, list[Object]] = {ports: [] for ports in desired}
    for endpoint_slice in existing:
        ports = _stored_ports(endpoint_slice)
        if ports in slices_by_ports:
            slices_by_ports[ports].append(endpoint_slice)
        else:
            writes.delete.append(endpoint_slice)
    for ports, endpoints in desired.items():
        _distribute_endpoints(service, ports, endpoints, slices_by_ports[ports], writes)
    return writes


def _distribute_endpoints(
    service: Object, ports: Ports, endpoints: Sequence[Object], slices: Sequence[Object], writes: Writes
) -> None:
    """Distribute the endpoints with the same ports to the existing `slices` and new ones (rules 1 to 3).

    The necessary creations, updates and deletions are appended to `writes`.
    """
    unplaced = {endpoint["targetRef"]["uid"]: endpoint for endpoint in endpoints}
    contents = [_take_staying(endpoint_slice, unplaced) for endpoint_slice in slices]
    for content in sorted(contents, key=len, reverse=True):
        while unplaced and len(content) < MAX_ENDPOINTS:
            content.append(unplaced.pop(next(iter(unplaced))))
    needs_empty_slice = not endpoints  # rule 3
    for endpoint_slice, content in zip(slices, contents, strict=True):
        if content or needs_empty_slice:
            needs_empty_slice = False
            _update_slice(service, endpoint_slice, content, writes)
        else:
            writes.delete.append(endpoint_slice)
    new_endpoints = list(unplaced.values())
    while new_endpoints or needs_empty_slice:
        needs_empty_slice = False
        writes.create.append(_new_slice(service, ports, new_endpoints[:MAX_ENDPOINTS]))
        new_endpoints = new_endpoints[MAX_ENDPOINTS:]


def _take_staying(endpoint_slice: Object, unplaced: dict[str, Object]) -> list[Object]:
    """The current form of the endpoints of a slice that are still needed; they are removed from `unplaced` (by uid)."""
    uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in endpoint_slice.get("endpoints") or []]
    return [unplaced.pop(uid) for uid in uids if uid in unplaced]


def _update_slice(service: Object, endpoint_slice: Object, endpoints: list[Object], writes: Writes) -> None:
    """Append an update of a slice to `writes` if its endpoints or labels change."""
    labels = _slice_labels(service)
    if endpoints != (endpoint_slice.get("endpoints") or []) or labels != endpoint_slice["metadata"].get("labels"):
        metadata = {**endpoint_slice["metadata"], "labels": labels}
        writes.update.append({**endpoint_slice, "metadata": metadata, "endpoints": endpoints})


def _new_slice(service: Object, ports: Ports, endpoints: list[Object]) -> Object:
    """A new slice of a Service; the API server generates its name."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{service['metadata']['name']}-",
            "namespace": service["metadata"]["namespace"],
            "labels": _slice_labels(service),
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [_endpoint_port(port) for port in ports],
    }


def _slice_labels(service: Object) -> dict[str, str]:
    """The labels of the slices of a Service."""
    labels = dict(service["metadata"].get("labels") or {})
    labels |= {SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: MANAGER}
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    return labels


def _endpoint_port(port: Port) -> Object:
    """The EndpointPort of a slice."""
    endpoint_port: Object = {"name": port.name, "protocol": port.protocol, "port": port.number}
    return endpoint_port | ({"appProtocol": port.app_protocol} if port.app_protocol else {})


def _stored_ports(endpoint_slice: Object) -> Ports:
    """The ports of a stored slice, comparable with those of `endpoints`."""
    return tuple(
        Port(port.get("name") or "", port.get("protocol", "TCP"), port.get("port", 0), port.get("appProtocol") or "")
        for port in endpoint_slice.get("ports") or []
    )
