"""Phase, readiness and availability of a pod, and its sidecars, as controllers need them.

All controllers of pods call it. Pods are core/v1 objects as dicts; the functions do not change them. A fact that
several controllers need: a function here.

Source: the pod life cycle (Kubernetes documentation), PodCondition Ready, minReadySeconds.
"""

from collections.abc import Iterable

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


def phase(pod: Object) -> str:
    """`status.phase`; Pending for a pod without one, which no kubelet has reported yet."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    """Whether all containers have terminated and none is restarted."""
    return phase(pod) in FINISHED_PHASES


def is_terminating(pod: Object) -> bool:
    """Whether an object (a pod or any other) is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Object) -> bool:
    """Whether a pod counts as a replica: neither finished nor being deleted."""
    return not is_finished(pod) and not is_terminating(pod)


def ready_condition(pod: Object) -> Object | None:
    """The Ready condition of a pod, None if the node has not written one yet."""
    conditions: list[Object] = (pod.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == "Ready"), None)


def is_ready(pod: Object) -> bool:
    """Whether the Ready condition of a pod is True."""
    condition = ready_condition(pod)
    return condition is not None and condition.get("status") == "True"


def available_at_ns(pod: Object, min_ready_s: int) -> int | None:
    """When a pod that stays ready becomes available (nanoseconds since the epoch).

    None while it is not ready, or its condition has no time. Without `min_ready_s` the result for a ready pod is 0: it
    is available at once.
    """
    condition = ready_condition(pod)
    if condition is None or condition.get("status") != "True":
        return None
    if min_ready_s == 0:
        return 0
    ready_since = condition.get("lastTransitionTime")
    return instants.parse(ready_since) + min_ready_s * NANOSECONDS if ready_since else None


def is_available(pod: Object, min_ready_s: int, now_ns: int) -> bool:
    """Whether a pod has been ready for `min_ready_s` seconds without a break."""
    instant_ns = available_at_ns(pod, min_ready_s)
    return instant_ns is not None and instant_ns <= now_ns


def sidecars(pod: Object) -> list[Object]:
    """The sidecars of a pod: its init containers with restartPolicy Always, which run beside the containers."""
    init_containers = (pod.get("spec") or {}).get("initContainers") or []
    return [container for container in init_containers if container.get("restartPolicy") == "Always"]


def next_available_s(pods: Iterable[Object], min_ready_s: int, now_ns: int) -> float | None:
    """The seconds until the next of the active pods becomes available if it stays ready, None if none will.

    Without `min_ready_s` that is None: a pod becomes available with the change that makes it ready.
    """
    if not min_ready_s:
        return None
    instants_ns = (available_at_ns(pod, min_ready_s) for pod in pods if is_active(pod))
    future_ns = [instant_ns for instant_ns in instants_ns if instant_ns is not None and instant_ns > now_ns]
    return (min(future_ns) - now_ns) / NANOSECONDS if future_ns else None
