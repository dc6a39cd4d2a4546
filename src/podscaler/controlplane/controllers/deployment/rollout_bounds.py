"""Resolves maxSurge and maxUnavailable to numbers of pods.

This package calls it for Deployments; `apps.daemonset_planning`, `apps.statefulset_planning` and
`apps.disruption_budgets` call `round_up` and `round_down` for their bounds.

Source: documentation of Deployment ("Rolling update"); surge is rounded up, unavailability down, and both cannot be 0.
"""

from podscaler.api.resource.resources import Object

IntOrPercent = int | str


def desired_replicas(deployment: Object) -> int:
    """`spec.replicas`, 1 if it is not set."""
    replicas = deployment["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def is_rolling(deployment: Object) -> bool:
    """Whether the strategy of a Deployment is RollingUpdate (the default)."""
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def resolve(surge: IntOrPercent, unavailable: IntOrPercent, replicas: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of pods; unavailable is 1 if both would be 0.

    Args:
        surge, unavailable: a number of pods, or a percentage of `replicas` as `"25%"`.
        replicas: the number of pods that percentages refer to.

    Raises:
        ValueError: for a text that is not a percentage.
    """
    surge_pods, unavailable_pods = round_up(surge, replicas), round_down(unavailable, replicas)
    if surge_pods == 0 and unavailable_pods == 0:  # no pod could be replaced
        return 0, 1
    return surge_pods, unavailable_pods


def round_up(bound: IntOrPercent, replicas: int) -> int:
    """A bound (as of `resolve`) as a number of pods, a percentage rounded up. Raises ValueError."""
    return -(-_pods_in_hundredths(bound, replicas) // 100)


def round_down(bound: IntOrPercent, replicas: int) -> int:
    """A bound (as of `resolve`) as a number of pods, a percentage rounded down. Raises ValueError."""
    return _pods_in_hundredths(bound, replicas) // 100


def max_surge(deployment: Object) -> int:
    """How many pods are allowed beyond `spec.replicas`; 0 for Recreate."""
    if not is_rolling(deployment):
        return 0
    surge_pods, _ = _resolved_bounds(deployment)
    return surge_pods


def max_unavailable(deployment: Object) -> int:
    """How many of `spec.replicas` may be unavailable; 0 for Recreate and for no replicas."""
    replicas = desired_replicas(deployment)
    if not is_rolling(deployment) or replicas == 0:
        return 0
    _, unavailable_pods = _resolved_bounds(deployment)
    return min(unavailable_pods, replicas)


def _resolved_bounds(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable of a Deployment as numbers of pods."""
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return resolve(rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"), desired_replicas(deployment))


def _pods_in_hundredths(bound: IntOrPercent, replicas: int) -> int:
    """A bound in hundredths of a pod, so that the caller rounds: "25%" of 10 is 250. Raises ValueError."""
    if isinstance(bound, int):
        return bound * 100
    if not bound.endswith("%"):
        raise ValueError(f"{bound!r} is neither a number nor a percentage")
    return int(bound[:-1]) * replicas
