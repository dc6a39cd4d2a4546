"""Computes the EndpointSlices that mirror an Endpoints object of a user; `mirroring` calls it and writes them.

A new field of a slice: `_new_slice`, and `_updatable_parts` if it can change.

1. There is one slice for each subset and address family; of a subset, at most 1,000 addresses, ready ones first.
2. A slice with the same ports and family is kept, and updated if its content differs.
3. Labels and annotations are those of the Endpoints, except the annotations of kubectl and of trigger times.

Source: upstream's endpoint slice mirroring controller.
"""

from collections.abc import Iterator, Sequence

from podscaler.api.machinery import ip_addresses
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints.endpoint_object import TRIGGER_TIME
from podscaler.controlplane.controllers.endpoints.slices import MANAGED_BY, SERVICE_NAME, Writes
from podscaler.controlplane.controllers.framework.ownership import controller_reference

MANAGER = "endpointslicemirroring-controller.k8s.io"
MAX_ADDRESSES = 1000
_UNMIRRORED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", TRIGGER_TIME})
"""Annotations that slices do not get."""


def plan_writes(mirrored: Object, existing: Sequence[Object]) -> Writes:
    """The writes after which the slices mirror the Endpoints.

    Args:
        mirrored: the Endpoints, with apiVersion and kind.
        existing: the slices that mirror them now.
    """
    writes, unmatched = Writes(), list(existing)
    for desired in _desired_slices(mirrored):
        family_and_ports = _family_and_ports(desired)
        stored = next((candidate for candidate in unmatched if _family_and_ports(candidate) == family_and_ports), None)
        if stored is None:
            writes.create.append(desired)
            continue
        unmatched.remove(stored)
        if _updatable_parts(stored) != _updatable_parts(desired):
            writes.update.append({**desired, "metadata": stored["metadata"] | _mirrored_metadata(mirrored)})
    writes.delete = unmatched
    return writes


def _desired_slices(mirrored: Object) -> Iterator[Object]:
    """The slices that mirror the Endpoints: one for each subset and IP family; text that is no address is left out."""
    for subset in mirrored.get("subsets") or []:
        ports = [{"name": "", **port} for port in subset.get("ports") or []]
        endpoints = list(_slice_endpoints(subset))[:MAX_ADDRESSES]
        for family in ("IPv4", "IPv6"):
            family_endpoints = [endpoint for endpoint in endpoints if _ip_family(endpoint["addresses"][0]) == family]
            if family_endpoints:
                yield _new_slice(mirrored, family, family_endpoints, ports)


def _new_slice(mirrored: Object, family: str, endpoints: list[Object], ports: list[Object]) -> Object:
    """A slice with endpoints of one family (`IPv4`, `IPv6`)."""
    endpoints_metadata = mirrored["metadata"]
    names = {"generateName": f"{endpoints_metadata['name']}-", "namespace": endpoints_metadata["namespace"]}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": names | _mirrored_metadata(mirrored),
        "addressType": family,
        "endpoints": endpoints,
        "ports": ports,
    }


def _mirrored_metadata(mirrored: Object) -> Object:
    """Labels, annotations and owner of a mirroring slice."""
    metadata = mirrored["metadata"]
    labels = {**(metadata.get("labels") or {}), SERVICE_NAME: metadata["name"], MANAGED_BY: MANAGER}
    annotations = metadata.get("annotations") or {}
    return {
        "labels": labels,
        "annotations": {key: annotations[key] for key in annotations if key not in _UNMIRRORED},
        "ownerReferences": [controller_reference(mirrored)],
    }


def _slice_endpoints(subset: Object) -> Iterator[Object]:
    """The EndpointSlice endpoints of an EndpointSubset, ready ones first."""
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or []:
            optional = {name: address[name] for name in ("hostname", "nodeName", "targetRef") if address.get(name)}
            yield {"addresses": [address["ip"]], "conditions": {"ready": is_ready}, **optional}


def _ip_family(ip: str) -> str:
    """`IPv4` or `IPv6`; empty for text that is not an address."""
    address = ip_addresses.find_address(ip)
    return f"IPv{address.version}" if address else ""


def _family_and_ports(slice_: Object) -> tuple[str, list[Object]]:
    """Family and ports of a slice, by which a stored slice is matched with a desired one."""
    return slice_["addressType"], slice_.get("ports") or []


def _updatable_parts(slice_: Object) -> tuple[list[Object], list[Object], Object, Object]:
    """The parts of a slice that an update writes: owners, endpoints, labels, annotations."""
    metadata = slice_["metadata"]
    owners = metadata.get("ownerReferences") or []
    return owners, slice_.get("endpoints") or [], metadata.get("labels") or {}, metadata.get("annotations") or {}
