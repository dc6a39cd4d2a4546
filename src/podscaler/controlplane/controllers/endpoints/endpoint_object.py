"""From a Service, its pods and the Endpoints object that there is to the one that there should be.

The endpoint controller calls it. Pure. Rules:

1. Ready pods are addresses, others notReadyAddresses unless the Service publishes those too; ending pods are neither.
2. An object holds at most 1,000 addresses, ready ones first; subsets lose the same share, and an annotation says so.
3. Its labels are the Service's and the controller's own; other annotations are left alone.

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


class KnownAddresses(endpoints.Known[tuple[str, Object]]):
    """The addresses of the pods of one Service, each with the field of a subset in which it is listed."""

    def __init__(self) -> None:
        super().__init__(_described)


def wanted(
    service: Object,
    candidates: Iterable[Object],
    current: Object | None,
    trigger_time: str,
    known: KnownAddresses | None = None,
) -> Object | None:
    """The object to be written, None where the current one says it all.

    Args:
        service: with a selector.
        candidates: the pods that it selects, finished ones included.
        current: None where there is none yet.
        trigger_time: the earliest change (RFC 3339) that the new object reflects, empty where none is known.
        known: what was found for this Service before, so that pods that have not changed are not looked at again.
    """
    groups = (known or KnownAddresses()).groups(service, candidates)
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
    """Whether Endpoints are the lock of a leader election: those of no Service, which nobody mirrors."""
    return _LEADER in (endpoints_["metadata"].get("annotations") or {})


def limited(subsets: Sequence[Object]) -> tuple[list[Object], bool]:
    """The subsets with at most 1,000 addresses, and whether that took any away."""
    ready = sum(len(subset.get("addresses") or []) for subset in subsets)
    waiting = sum(len(subset.get("notReadyAddresses") or []) for subset in subsets)
    if ready + waiting <= MAX_ADDRESSES:
        return list(subsets), False
    if ready > MAX_ADDRESSES:
        bare = [{name: part for name, part in one.items() if name != "notReadyAddresses"} for one in subsets]
        return _cut(bare, "addresses", ready, MAX_ADDRESSES), True
    return _cut(subsets, "notReadyAddresses", waiting, MAX_ADDRESSES - ready), True


def _cut(subsets: Sequence[Object], field: str, total: int, room: int) -> list[Object]:
    """Subsets that share `room` in proportion to what they have; one that is left without any address is left out."""
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
    """The ports of a pod, where its address is listed, and that; None for one that is not listed."""
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
    """The subset of all addresses that have these ports."""
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
