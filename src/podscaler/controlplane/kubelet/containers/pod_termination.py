"""The termination of a pod: its deadline, grace period and reason.

`kubelet.pods.pod_worker` keeps one `PodTermination` once its pod is deleted or past its active deadline, or the node
stops; each further cause can only bring the deadline nearer. `container_run` and `simulated_pod` read the grace periods
of pods here. Pure. A new cause to end a pod needs nothing here: `pod_worker` calls `terminate` for each.

Source: Pod Lifecycle, "Termination of Pods" (Kubernetes documentation).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS

REMOVED_GRACE_S: Final = 1
"""The grace period of a pod whose object is gone already (`kubectl delete --force`)."""

DEFAULT_GRACE_S: Final = 30
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"


@dataclass(frozen=True, slots=True)
class PodTermination:
    """A pod that is being terminated.

    Attributes:
        deadline_ns: the instant at which its containers are killed.
        grace_s: the grace period that led to the deadline, in seconds.
        reason, message: of the pod's status, empty for a deletion.
    """

    deadline_ns: int
    grace_s: float
    reason: str = ""
    message: str = ""


def terminate(
    former: PodTermination | None, grace_s: float, *, now_ns: int, reason: str = "", message: str = ""
) -> PodTermination:
    """The termination after one more cause: `former`, or one with an earlier deadline.

    Args:
        former: the termination so far, None for a pod that is not being terminated.
        grace_s: the seconds that this cause allows from now on.
        reason, message: of the pod's status, where this is the first cause; empty for a deletion.
    """
    deadline_ns = now_ns + round(grace_s * NANOSECONDS)
    if former is None:
        return PodTermination(deadline_ns, grace_s, reason, message)
    if grace_s < former.grace_s:  # as the kubelet, which compares grace periods, not deadlines
        return replace(former, deadline_ns=min(former.deadline_ns, deadline_ns), grace_s=grace_s)
    return former


def own_grace_s(pod: Mapping[str, Any]) -> int:
    """spec.terminationGracePeriodSeconds, or its default."""
    grace_s = pod["spec"].get("terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if grace_s is None else int(grace_s)


def deletion_grace_s(pod: Mapping[str, Any]) -> int | None:
    """The grace period in seconds of a pod that is being deleted, None for other pods."""
    meta = pod["metadata"]
    if not meta.get("deletionTimestamp"):
        return None
    return int(meta.get("deletionGracePeriodSeconds") or 0)


def active_deadline_ns(pod: Mapping[str, Any], *, started_ns: int) -> int | None:
    """The instant at which spec.activeDeadlineSeconds is over, None without one.

    Args:
        started_ns: when the node began with the pod, used before its status has a startTime.
    """
    active_deadline_s = pod["spec"].get("activeDeadlineSeconds")
    if active_deadline_s is None:
        return None
    start_time = (pod.get("status") or {}).get("startTime")
    start_ns = instants.parse(start_time) if start_time else started_ns
    return start_ns + int(active_deadline_s) * NANOSECONDS
