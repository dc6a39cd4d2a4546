"""Ranks the pods of a ReplicaSet or Job for deletion; their controllers call `select_for_deletion` for surplus pods.

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

A new rule: a field of `_Ranked`, which `_with_sort_keys` fills in, and a comparison in `_compare`.

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


_DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1}
_LAST_PHASE = 2
"""The order of Running, and of any other phase."""


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
    ranked_pods = [_with_sort_keys(pod, related_on_node or {}, now_ns) for pod in candidates]
    return [ranked.pod for ranked in heapq.nsmallest(count, ranked_pods, key=cmp_to_key(_compare))]


def _deletion_cost(pod: Object) -> int:
    """The pod's deletion cost, 0 without the annotation or for a value that is not a number."""
    cost_text = (pod["metadata"].get("annotations") or {}).get(_DELETION_COST_ANNOTATION, "0")
    try:
        return int(cost_text)
    except ValueError:
        return 0


def restart_counts(pod: Object) -> tuple[int, int]:
    """The highest restart count of the containers, and of the sidecars; 0 without any."""
    status, sidecar_names = pod.get("status") or {}, {sidecar["name"] for sidecar in pods.sidecars(pod)}
    init_statuses = status.get("initContainerStatuses") or []
    main_counts = [container.get("restartCount", 0) for container in status.get("containerStatuses") or []]
    sidecar_counts = [init.get("restartCount", 0) for init in init_statuses if init.get("name") in sidecar_names]
    return max(main_counts, default=0), max(sidecar_counts, default=0)


@dataclass(frozen=True, slots=True)
class _Age:
    """How long a state lasts: its start (None if unknown), and the `_magnitude` of the time since then."""

    start_ns: int | None
    magnitude: int


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A pod with its sort keys.

    Attributes:
        first_keys: the keys of rules 1 to 5; the lowest is deleted first.
        ready_age: since when it is ready (rule 6), None if it is not.
        negative_restarts: the negated `restart_counts` (rule 7), so that more restarts come first.
        pod_age: since when it exists (rule 8).
        uid: orders pods within one magnitude.
    """

    pod: Object
    first_keys: tuple[bool, int, bool, int, int]
    ready_age: _Age | None
    negative_restarts: tuple[int, int]
    pod_age: _Age
    uid: str


def _with_sort_keys(pod: Object, related_on_node: Mapping[str, int], now_ns: int) -> _Ranked:
    """A pod with its sort keys; `related_on_node` is that of `select_for_deletion`."""
    metadata, node_name, is_ready = pod["metadata"], _node_name(pod), pods.is_ready(pod)
    ready_since = (pods.ready_condition(pod) or {}).get("lastTransitionTime")
    main_count, sidecar_count = restart_counts(pod)
    return _Ranked(
        pod=pod,
        first_keys=(
            bool(node_name),
            _PHASE_ORDER.get(pods.phase(pod), _LAST_PHASE),
            is_ready,
            _deletion_cost(pod),
            -related_on_node.get(node_name, 0),
        ),
        ready_age=_age_since(ready_since, now_ns) if is_ready else None,
        negative_restarts=(-main_count, -sidecar_count),
        pod_age=_age_since(metadata.get("creationTimestamp"), now_ns),
        uid=metadata.get("uid", ""),
    )


def _age_since(start_time: str | None, now_ns: int) -> _Age:
    """The age of a state that began at a time (RFC 3339, None if it is unknown)."""
    start_ns = instants.parse(start_time) if start_time else None
    return _Age(start_ns, 0 if start_ns is None else _magnitude(now_ns - start_ns))


def _compare(left: _Ranked, right: _Ranked) -> int:
    """Negative if `left` is deleted before `right`, positive if after it, 0 if the rules leave the order open."""
    if left.first_keys != right.first_keys:
        return -1 if left.first_keys < right.first_keys else 1
    if left.ready_age is not None and right.ready_age is not None:  # both or none, as `first_keys` are equal
        by_readiness = _compare_ages(left, left.ready_age, right, right.ready_age)
        if by_readiness:
            return by_readiness
    by_restarts = _sign(left.negative_restarts, right.negative_restarts)
    return by_restarts or _compare_ages(left, left.pod_age, right, right.pod_age)


def _compare_ages(left: _Ranked, left_age: _Age, right: _Ranked, right_age: _Age) -> int:
    """Rules 6 and 8: the shorter time, by magnitude, comes first; an unknown start counts as the shortest time."""
    if left_age.start_ns == right_age.start_ns:
        return 0
    if left_age.start_ns is None or right_age.start_ns is None:
        return -1 if left_age.start_ns is None else 1
    return _sign(left_age.magnitude, right_age.magnitude) or _sign(left.uid, right.uid)


def _magnitude(age_ns: int) -> int:
    """The power of two of an age: 9 for 512 to 1023 ns; -1 for no age or a negative one."""
    return age_ns.bit_length() - 1 if age_ns > 0 else -1


def _node_name(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _sign(left: _Ordered, right: _Ordered) -> int:
    """-1, 0 or 1 if `left` is less than, equal to or greater than `right`."""
    return int(right < left) - int(left < right)
