"""Computes the Endpoints object of a Service from its pods; `endpoint_controller` calls `object_to_write`.

1. Ready pods are listed in addresses, others in notReadyAddresses unless the Service publishes not-ready addresses;
   terminating pods are in neither.
2. An object has at most 1,000 addresses, ready ones first; subsets are cut in proportion, which an annotation reports.
3. The labels are the Service's and the controller's own; other annotations are kept.

`_ports_and_address` decides which pods are listed; an address is made of `endpoints.endpoint`, as in slices.

Source: upstream's endpoint controller; core/v1 Endpoints.
"""

from collections.abc import Iterable, Sequence
from itertools import starmap

from podscaler.api.kinds.networking.endpoints import MANAGED_BY, MANAGER
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints import endpoint_subsets, endpoints
from podscaler.controlplane.controllers.endpoints.slices import HEADLESS
from podscaler.controlplane.controllers.framework import pods

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MAX_ADDRESSES = 1000
_LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"


class AddressCache(endpoints.PodCache[tuple[str, Object]]):
    """The addresses of the pods of one Service, each with the field of a subset in which it is listed."""

    def __init__(self) -> None:
        super().__init__(_ports_and_address)


def object_to_write(
    service: Object,
    selected: Iterable[Object],
    current: Object | None,
    trigger_time: str,
    cache: AddressCache | None = None,
) -> Object | None:
    """The object to write, None if the current one is up to date.

    Args:
        service: with a selector.
        selected: the pods that it selects, including finished ones.
        current: the stored object, None without one.
        trigger_time: the earliest change (RFC 3339) that the new object reflects, empty if unknown.
        cache: that of earlier calls for this Service, so that unchanged pods are not read again.
    """
    addresses_by_ports = (cache or AddressCache()).groups(service, selected)
    all_subsets = endpoint_subsets.canonical(starmap(_new_subset, addresses_by_ports.items()))
    subsets, is_truncated = truncate(all_subsets)
    labels = _endpoints_labels(service)
    service_metadata = service["metadata"]
    stored = current or {"metadata": {"name": service_metadata["name"], "namespace": service_metadata["namespace"]}}
    annotations = dict(stored["metadata"].get("annotations") or {})
    was_truncated = annotations.pop(OVER_CAPACITY, None) == "truncated"
    has_same_subsets = subsets == (stored.get("subsets") or []) and is_truncated == was_truncated
    if current is not None and has_same_subsets and labels == stored["metadata"].get("labels"):
        return None
    annotations.pop(TRIGGER_TIME, None)
    if trigger_time:
        annotations[TRIGGER_TIME] = trigger_time
    if is_truncated:
        annotations[OVER_CAPACITY] = "truncated"
    metadata = {**stored["metadata"], "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets}


def is_election_lock(endpoints_: Object) -> bool:
    """Whether Endpoints are the lock of a leader election: no Service needs them, and they are not mirrored."""
    return _LEADER_ANNOTATION in (endpoints_["metadata"].get("annotations") or {})


def truncate(subsets: Sequence[Object]) -> tuple[list[Object], bool]:
    """The subsets cut to 1,000 addresses, and whether any address was removed."""
    ready = sum(len(subset.get("addresses") or []) for subset in subsets)
    not_ready = sum(len(subset.get("notReadyAddresses") or []) for subset in subsets)
    if ready + not_ready <= MAX_ADDRESSES:
        return list(subsets), False
    if ready > MAX_ADDRESSES:
        ready_subsets = [_without_field(subset, "notReadyAddresses") for subset in subsets]
        return _cut_in_proportion(ready_subsets, "addresses", ready, MAX_ADDRESSES), True
    return _cut_in_proportion(subsets, "notReadyAddresses", not_ready, MAX_ADDRESSES - ready), True


def _cut_in_proportion(subsets: Sequence[Object], field: str, total: int, limit: int) -> list[Object]:
    """Subsets with `limit` of the `total` addresses in `field`, each in proportion to its size.

    A subset without any address is removed.
    """
    cut_subsets, remaining = [], limit
    for subset in subsets:
        addresses = subset.get(field) or []
        rounded_up_share = -(-len(addresses) * limit // total)
        share = min(rounded_up_share, remaining)
        remaining -= share
        cut_subset = ({field: addresses[:share]} if share else {}) | _without_field(subset, field)
        if cut_subset.get("addresses") or cut_subset.get("notReadyAddresses"):
            cut_subsets.append(cut_subset)
    return cut_subsets


def _without_field(subset: Object, field: str) -> Object:
    """A copy of a subset without a field."""
    return {name: content for name, content in subset.items() if name != field}


def _ports_and_address(service: Object, pod: Object) -> tuple[endpoints.Ports, tuple[str, Object]] | None:
    """The ports of a pod, and the field and address that list it; None for a pod that is not listed."""
    spec = service["spec"]
    publishes_all = bool(spec.get("publishNotReadyAddresses"))
    if pods.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
        return None
    if pods.is_terminating(pod) and not publishes_all:
        return None
    ports = endpoints.ports_on(service, pod)
    is_headless_without_ports = spec.get("clusterIP") == "None" and not spec.get("ports")
    if not ports and not is_headless_without_ports:
        return None
    field = "addresses" if publishes_all or pods.is_ready(pod) else "notReadyAddresses"
    return ports, (field, _endpoint_address(service, pod))


def _new_subset(ports: endpoints.Ports, fields_and_addresses: Iterable[tuple[str, Object]]) -> Object:
    """The EndpointSubset of the addresses that have these ports."""
    subset: Object = {}
    for field, address in fields_and_addresses:
        subset.setdefault(field, []).append(address)
    if ports:
        subset["ports"] = [_endpoint_port(port) for port in ports]
    return subset


def _endpoint_address(service: Object, pod: Object) -> Object:
    """The EndpointAddress of a pod, from its endpoint in a slice."""
    slice_endpoint = endpoints.endpoint(service, pod)
    address: Object = {"ip": slice_endpoint["addresses"][0]}
    copied_fields = ("hostname", "nodeName", "targetRef")
    return address | {field: slice_endpoint[field] for field in copied_fields if field in slice_endpoint}


def _endpoint_port(port: endpoints.Port) -> Object:
    """The EndpointPort of a port of a slice; an empty name or application protocol is left out."""
    endpoint_port: Object = {"name": port.name} if port.name else {}
    endpoint_port |= {"port": port.number, "protocol": port.protocol}
    if port.app_protocol:
        endpoint_port["appProtocol"] = port.app_protocol
    return endpoint_port


def _endpoints_labels(service: Object) -> dict[str, str]:
    """The labels of the Endpoints of a Service."""
    labels = {**(service["metadata"].get("labels") or {})}
    labels.pop(HEADLESS, None)
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    return labels | {MANAGED_BY: MANAGER}
