"""Which pods go first when a ReplicaSet has too many; the ReplicaSet controller calls it.

The order, first to go first (each rule only decides between pods that the rules before call equal):

1. not assigned to a node
2. phase Pending, then Unknown, then Running
3. not ready
4. lower `controller.kubernetes.io/pod-deletion-cost` (0 where absent or not a number)
5. more related pods on the same node
6. ready for a shorter time, by order of magnitude (power of two); within one magnitude by uid, so that the choice is
   spread over ages
7. more container restarts, then more sidecar restarts
8. created more recently, by order of magnitude; within one magnitude by uid

Source: documentation of ReplicaSet ("Scaling a ReplicaSet"), KEP-2185 (magnitudes), KEP-2255 (deletion cost).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Protocol

from podscaler.api import instants
from podscaler.api.resources import Object
from podscaler.controlplane.workloads import pods


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1}


def first_to_go(
    candidates: Sequence[Object], count: int, *, now_ns: int, related_on_node: Mapping[str, int] | None = None
) -> list[Object]:
    """The `count` pods of `candidates` that should be deleted, worst first.

    Args:
        candidates: active pods of one ReplicaSet, in any order.
        count: how many; with all of them or more, the order is not worked out.
        now_ns: against which ages are measured.
        related_on_node: how many related pods each node holds (rule 5); without it the rule decides nothing.
    """
    if count >= len(candidates):
        return list(candidates)
    on_node = related_on_node or {}

    def compare(left: Object, right: Object) -> int:
        return _standing(left, on_node, right) or _age(left, right, now_ns)

    return sorted(candidates, key=cmp_to_key(compare))[:count]


def deletion_cost(pod: Object) -> int:
    """The pod's deletion cost, 0 where it has none that can be read."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def restarts(pod: Object) -> tuple[int, int]:
    """The most restarts among its containers, and among its sidecars (init containers that are always restarted)."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {c["name"] for c in spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"}
    main = [c.get("restartCount", 0) for c in status.get("containerStatuses") or []]
    side = [c.get("restartCount", 0) for c in status.get("initContainerStatuses") or [] if c.get("name") in sidecars]
    return max(main, default=0), max(side, default=0)


def _standing(left: Object, on_node: Mapping[str, int], right: Object) -> int:
    left_node, right_node = _node(left), _node(right)
    if bool(left_node) != bool(right_node):
        return 1 if left_node else -1
    return _sign(_merit(left, on_node, left_node), _merit(right, on_node, right_node))


def _merit(pod: Object, on_node: Mapping[str, int], node: str) -> tuple[int, bool, int, int]:
    return _PHASE_ORDER.get(pods.phase(pod), 2), pods.is_ready(pod), deletion_cost(pod), -on_node.get(node, 0)


def _age(left: Object, right: Object, now_ns: int) -> int:
    if pods.is_ready(left):
        by_readiness = _younger_first(left, right, pods.ready_since_ns, now_ns)
        if by_readiness:
            return by_readiness
    by_restarts = _sign(restarts(right), restarts(left))
    return by_restarts or _younger_first(left, right, _created_ns, now_ns)


def _younger_first(left: Object, right: Object, since: Callable[[Object], int | None], now_ns: int) -> int:
    left_ns, right_ns = since(left), since(right)
    if left_ns == right_ns:
        return 0
    if left_ns is None or right_ns is None:
        return -1 if left_ns is None else 1
    by_magnitude = _sign(_magnitude(now_ns - left_ns), _magnitude(now_ns - right_ns))
    return by_magnitude or _sign(left["metadata"].get("uid", ""), right["metadata"].get("uid", ""))


def _magnitude(age_ns: int) -> int:
    return age_ns.bit_length() - 1 if age_ns > 0 else -1


def _node(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _created_ns(pod: Object) -> int | None:
    created = pod["metadata"].get("creationTimestamp")
    return instants.parse(created) if created else None


def _sign(left: _Ordered, right: _Ordered) -> int:
    return int(right < left) - int(left < right)
