"""Ranks the pods of a ReplicaSet for deletion; the ReplicaSet controller calls it when there are too many.

Pods with an earlier property are deleted first; each rule only orders pods that are equal by the rules before it:

1. not assigned to a node
2. phase Pending, then Unknown, then Running
3. not ready
4. lower `controller.kubernetes.io/pod-deletion-cost` (0 where absent or not a number)
5. more related pods on the same node
6. ready for a shorter time, by order of magnitude (power of two); within one magnitude by uid, so that pods of
   different ages are chosen
7. more container restarts, then more sidecar restarts
8. created more recently, by order of magnitude; within one magnitude by uid

Source: documentation of ReplicaSet ("Scaling a ReplicaSet"), KEP-2185 (magnitudes), KEP-2255 (deletion cost).
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, Protocol

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import pods


class _Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1}


def select_for_deletion(
    candidates: Sequence[Object], count: int, *, now_ns: int, related_on_node: Mapping[str, int] | None = None
) -> list[Object]:
    """The `count` pods of `candidates` to delete, in order of deletion.

    Args:
        candidates: active pods of one ReplicaSet, in any order.
        count: how many pods; if all or more are to be deleted, they are returned unordered.
        now_ns: the wall clock, from which ages are computed.
        related_on_node: the number of related pods by node name (rule 5); without it the rule is skipped.
    """
    if count >= len(candidates):
        return list(candidates)
    on_node = related_on_node or {}
    ranked = [_ranked(pod, on_node, now_ns) for pod in candidates]
    return [ranked_pod.pod for ranked_pod in heapq.nsmallest(count, ranked, key=cmp_to_key(_compare))]


def deletion_cost(pod: Object) -> int:
    """The pod's deletion cost, 0 without the annotation or for a value that is not a number."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def restarts(pod: Object) -> tuple[int, int]:
    """The highest restart count of the containers, and of the sidecars (init containers with restartPolicy Always)."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    }
    init_statuses = status.get("initContainerStatuses") or []
    main_counts = [container.get("restartCount", 0) for container in status.get("containerStatuses") or []]
    sidecar_counts = [init.get("restartCount", 0) for init in init_statuses if init.get("name") in sidecars]
    return max(main_counts, default=0), max(sidecar_counts, default=0)


@dataclass(frozen=True, slots=True)
class _Since:
    """The start of a state (None if unknown), and the order of magnitude of its age."""

    at_ns: int | None
    magnitude: int


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A pod with its sort keys.

    Attributes:
        standing: the keys of rules 1 to 5; the lowest is deleted first.
        ready: since when it is ready (rule 6), None if it is not.
        restarts: negative restart counts (rule 7).
        created: since when it exists (rule 8).
        uid: orders pods within one magnitude.
    """

    pod: Object
    standing: tuple[bool, int, bool, int, int]
    ready: _Since | None
    restarts: tuple[int, int]
    created: _Since
    uid: str


def _ranked(pod: Object, on_node: Mapping[str, int], now_ns: int) -> _Ranked:
    """A pod with what it is compared by; pods that share a node with others go first."""
    metadata, node, is_ready = pod["metadata"], _node(pod), pods.is_ready(pod)
    main_count, sidecar_count = restarts(pod)
    return _Ranked(
        pod=pod,
        standing=(
            bool(node),
            _PHASE_ORDER.get(pods.phase(pod), 2),
            is_ready,
            deletion_cost(pod),
            -on_node.get(node, 0),
        ),
        ready=_since((pods.ready_condition(pod) or {}).get("lastTransitionTime"), now_ns) if is_ready else None,
        restarts=(-main_count, -sidecar_count),
        created=_since(metadata.get("creationTimestamp"), now_ns),
        uid=metadata.get("uid", ""),
    )


def _since(text: str | None, now_ns: int) -> _Since:
    at_ns = instants.parse(text) if text else None
    return _Since(at_ns, 0 if at_ns is None else _magnitude(now_ns - at_ns))


def _compare(left: _Ranked, right: _Ranked) -> int:
    """Negative if `left` is deleted before `right`, positive if after it, 0 if the rules do not tell."""
    if left.standing != right.standing:
        return -1 if left.standing < right.standing else 1
    if left.ready is not None and right.ready is not None:
        by_readiness = _younger_first(left, left.ready, right, right.ready)
        if by_readiness:
            return by_readiness
    by_restarts = _sign(left.restarts, right.restarts)
    return by_restarts or _younger_first(left, left.created, right, right.created)


def _younger_first(left: _Ranked, left_since: _Since, right: _Ranked, right_since: _Since) -> int:
    """Rules 6 and 8: the shorter time, by magnitude, comes first; an unknown start counts as the shortest time."""
    if left_since.at_ns == right_since.at_ns:
        return 0
    if left_since.at_ns is None or right_since.at_ns is None:
        return -1 if left_since.at_ns is None else 1
    return _sign(left_since.magnitude, right_since.magnitude) or _sign(left.uid, right.uid)


def _magnitude(age_ns: int) -> int:
    """The power of two of an age: 9 for 512 to 1023 ns; -1 for no age or a negative one."""
    return age_ns.bit_length() - 1 if age_ns > 0 else -1


def _node(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _sign(left: _Ordered, right: _Ordered) -> int:
    """-1, 0 or 1 if `left` is less than, equal to or greater than `right`."""
    return int(right < left) - int(left < right)
