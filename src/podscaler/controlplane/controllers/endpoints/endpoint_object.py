"""Computes the Endpoints object of a Service from its pods; the endpoint controller calls it. Pure.

1. Ready pods are listed in addresses, others in notReadyAddresses unless the Service publishes not-ready addresses;
   terminating pods are in neither.
2. An object holds at most 1,000 addresses, ready ones first; subsets are cut in proportion, and an annotation says so.
3. The labels are the Service's and the controller's own; other annotations are kept.

Source: upstream's endpoint controller; core/v1 Endpoints.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.kinds.networking.endpoints import MANAGED_BY, MANAGER
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.endpoints import endpoint_subsets, endpoints
from podscaler.controlplane.controllers.endpoints.slices import HEADLESS
from podscaler.controlplane.controllers.framework import pods

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MAX_ADDRESSES = 1000
_LEADER = "control-plane.alpha.kubernetes.io/leader"


class AddressCache(endpoints.PodCache[tuple[str, Object]]):
    """The addresses of the pods of one Service, each with the field of a subset in which it is listed."""

    def __init__(self) -> None:
        super().__init__(_described)


def wanted(
    service: Object,
    candidates: Iterable[Object],
    current: Object | None,
    trigger_time: str,
    cache: AddressCache | None = None,
) -> Object | None:
    """The object to write, None if the current one is up to date.

    Args:
        service: with a selector.
        candidates: the pods that it selects, including finished ones.
        current: the stored object, None without one.
        trigger_time: the earliest change (RFC 3339) that the new object reflects, empty if unknown.
        cache: that of earlier calls for this Service, so that unchanged pods are not read again.
    """
    groups = (cache or AddressCache()).groups(service, candidates)
    subsets = endpoint_subsets.canonical(_subset(ports, listed) for ports, listed in groups.items())
    kept, is_cut = limited(subsets)
    labels = _labels(service)
    old = current or {"metadata": {"name": service["metadata"]["name"], "namespace": service["metadata"]["namespace"]}}
    annotations = dict(old["metadata"].get("annotations") or {})
    is_marked = annotations.pop(OVER_CAPACITY, None) == "truncated"
    is_same = kept == (old.get("subsets") or []) and labels == old["metadata"].get("labels") and is_cut == is_marked
    if current is not None and is_same:
        return None
    annotations.pop(TRIGGER_TIME, None)
    annotations |= {TRIGGER_TIME: trigger_time} if trigger_time else {}
    annotations |= {OVER_CAPACITY: "truncated"} if is_cut else {}
    metadata = {**old["metadata"], "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": kept}


def is_election_lock(endpoints_: Object) -> bool:
    """Whether Endpoints are the lock of a leader election: they belong to no Service and are not mirrored."""
    return _LEADER in (endpoints_["metadata"].get("annotations") or {})


def limited(subsets: Sequence[Object]) -> tuple[list[Object], bool]:
    """The subsets cut to 1,000 addresses, and whether any address was removed."""
    ready = sum(len(subset.get("addresses") or []) for subset in subsets)
    waiting = sum(len(subset.get("notReadyAddresses") or []) for subset in subsets)
    if ready + waiting <= MAX_ADDRESSES:
        return list(subsets), False
    if ready > MAX_ADDRESSES:
        bare = [{name: part for name, part in subset.items() if name != "notReadyAddresses"} for subset in subsets]
        return _cut(bare, "addresses", ready, MAX_ADDRESSES), True
    return _cut(subsets, "notReadyAddresses", waiting, MAX_ADDRESSES - ready), True


def _cut(subsets: Sequence[Object], field: str, total: int, room: int) -> list[Object]:
    """Subsets with `room` addresses in proportion to their sizes; a subset without any address is removed."""
    result, left = [], room
    for subset in subsets:
        listed = subset.get(field) or []
        share = min(-(-len(listed) * room // total), left)
        left -= share
        rest = {name: part for name, part in subset.items() if name != field}
        kept = ({field: listed[:share]} if share else {}) | rest
        if kept.get("addresses") or kept.get("notReadyAddresses"):
            result.append(kept)
    return result


def _described(service: Object, pod: Object) -> tuple[endpoints.Ports, tuple[str, Object]] | None:
    """The ports of a pod, and the field and address that list it; None for a pod that is not listed."""
    spec = service["spec"]
    publishes_all = bool(spec.get("publishNotReadyAddresses"))
    if pods.is_finished(pod) or not (pod.get("status") or {}).get("podIP"):
        return None
    if pods.is_terminating(pod) and not publishes_all:
        return None
    ports = endpoints.ports_on(service, pod)
    if not ports and (spec.get("ports") or spec.get("clusterIP") != "None"):
        return None
    field = "addresses" if publishes_all or pods.is_ready(pod) else "notReadyAddresses"
    return ports, (field, _address(service, pod))


def _subset(ports: endpoints.Ports, listed: Iterable[tuple[str, Object]]) -> Object:
    """The subset of the addresses that have these ports."""
    result: Object = {}
    for field, address in listed:
        result.setdefault(field, []).append(address)
    return result | ({"ports": [_port_json(port) for port in ports]} if ports else {})


def _address(service: Object, pod: Object) -> Object:
    slice_endpoint = endpoints.endpoint(service, pod)
    result: Object = {"ip": slice_endpoint["addresses"][0]}
    result |= {name: slice_endpoint[name] for name in ("hostname", "nodeName", "targetRef") if name in slice_endpoint}
    return result


def _port_json(port: endpoints.Port) -> Object:
    result: Object = {"name": port.name} if port.name else {}
    result |= {"port": port.number, "protocol": port.protocol}
    return result | ({"appProtocol": port.app_protocol} if port.app_protocol else {})


def _labels(service: Object) -> dict[str, str]:
    labels = {**(service["metadata"].get("labels") or {})}
    labels.pop(HEADLESS, None)
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    return labels | {MANAGED_BY: MANAGER}
