"""What a controller wants to know of one pod; the ReplicaSet and endpoint controllers ask.

Pods are JSON-ready dicts (core/v1). Nothing here changes them.
Source: the pod life cycle (Kubernetes documentation), PodCondition Ready, minReadySeconds.
"""

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


def phase(pod: Object) -> str:
    """`status.phase`; a pod that no node has looked at yet is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    """Whether its containers have all ended for good."""
    return phase(pod) in FINISHED_PHASES


def is_terminating(pod: Object) -> bool:
    """Whether it has been asked to go."""
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Object) -> bool:
    """Whether it counts as a replica: neither finished nor asked to go."""
    return not is_finished(pod) and not is_terminating(pod)


def ready_condition(pod: Object) -> Object | None:
    """Its Ready condition, None where the node has not written one."""
    conditions: list[Object] = (pod.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == "Ready"), None)


def is_ready(pod: Object) -> bool:
    """Whether its Ready condition is True."""
    condition = ready_condition(pod)
    return condition is not None and condition.get("status") == "True"


def ready_since_ns(pod: Object) -> int | None:
    """Since when it is ready; None while it is not, or where nobody noted the instant."""
    condition = ready_condition(pod)
    if condition is None or condition.get("status") != "True":
        return None
    since = condition.get("lastTransitionTime")
    return instants.parse(since) if since else None


def available_at(pod: Object, min_ready_s: int) -> int | None:
    """From when on the pod counts as available, if it stays ready; None while it is not ready.

    Without `min_ready_s` a ready pod has always been available (0).
    """
    if not is_ready(pod):
        return None
    if min_ready_s == 0:
        return 0
    since = ready_since_ns(pod)
    return None if since is None else since + min_ready_s * NANOSECONDS


def is_available(pod: Object, min_ready_s: int, now_ns: int) -> bool:
    """Whether it has been ready for `min_ready_s` seconds without a break."""
    at = available_at(pod, min_ready_s)
    return at is not None and at <= now_ns
