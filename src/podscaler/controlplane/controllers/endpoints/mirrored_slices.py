"""Computes the EndpointSlices that mirror an Endpoints object of a user; the mirroring controller calls it. Pure.

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


def writes(mirrored: Object, existing: Sequence[Object]) -> Writes:
    """The writes after which the slices mirror the Endpoints.

    Args:
        mirrored: the Endpoints, with apiVersion and kind.
        existing: the slices that mirror them now.
    """
    result, left = Writes(), list(existing)
    for wanted in _slices(mirrored):
        kept = next((stored for stored in left if _shape(stored) == _shape(wanted)), None)
        if kept is None:
            result.create.append(wanted)
            continue
        left.remove(kept)
        if _content(kept) != _content(wanted):
            result.update.append({**wanted, "metadata": kept["metadata"] | _mirrored_metadata(mirrored)})
    result.delete = left
    return result


def _slices(mirrored: Object) -> Iterator[Object]:
    """The wanted slices: one for each subset and IP family."""
    for subset in mirrored.get("subsets") or []:
        ports = [{"name": "", **port} for port in subset.get("ports") or []]
        endpoints = list(_endpoints(subset))[:MAX_ADDRESSES]
        for family in ("IPv4", "IPv6"):
            listed = [endpoint for endpoint in endpoints if _family(endpoint["addresses"][0]) == family]
            if listed:
                yield _slice(mirrored, family, listed, ports)


def _slice(mirrored: Object, family: str, endpoints: list[Object], ports: list[Object]) -> Object:
    """A slice with endpoints of one family."""
    metadata = mirrored["metadata"]
    made = {"generateName": f"{metadata['name']}-", "namespace": metadata["namespace"]}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": made | _mirrored_metadata(mirrored),
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


def _endpoints(subset: Object) -> Iterator[Object]:
    for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(field) or []:
            further = {name: address[name] for name in ("hostname", "nodeName", "targetRef") if address.get(name)}
            yield {"addresses": [address["ip"]], "conditions": {"ready": is_ready}, **further}


def _family(ip: str) -> str:
    address = ip_addresses.find_address(ip)
    return f"IPv{address.version}" if address else ""


def _shape(slice_: Object) -> tuple[str, list[Object]]:
    return slice_["addressType"], slice_.get("ports") or []


def _content(slice_: Object) -> tuple[list[Object], list[Object], Object, Object]:
    metadata = slice_["metadata"]
    owners = metadata.get("ownerReferences") or []
    return owners, slice_.get("endpoints") or [], metadata.get("labels") or {}, metadata.get("annotations") or {}
