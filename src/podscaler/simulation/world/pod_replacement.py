"""Decides which pods a workload makes and removes: to reach its replicas, and to replace pods of an old template.

Pure functions, called by `podscaler.simulation.world.workload` whenever its pods or its replicas change.

Source: the ReplicaSet controller's order of deletion (not ready before ready, then the youngest) and the Deployment's
rolling update (docs of `maxSurge`, `maxUnavailable`); the StatefulSet's ordinals.
Differs: pods that became ready within one power of two of seconds are not shuffled, and no pod has a deletion cost.
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from podscaler.simulation.model.workloads import RolloutModel
from podscaler.simulation.world.pods import VirtualPod


class PodChanges(msgspec.Struct, frozen=True):
    """How many pods to make now, and which to remove; equal to PodChanges() if there is nothing to do."""

    make: int = 0
    remove: tuple[VirtualPod, ...] = ()


def next_changes(
    pods: Sequence[VirtualPod], replicas: int, revision: int, rollout: RolloutModel, *, is_ordered: bool
) -> PodChanges:
    """The next changes towards `replicas` pods of the newest `revision`; no changes once they are reached,
    or until another pod is ready.

    The caller applies them, and calls again until there are none.

    Args:
        pods: those that are not removed.
        is_ordered: whether pods are made and removed one after another, as those of a StatefulSet.
    """
    if is_ordered:
        return _ordered_changes(pods, replicas, revision)
    outdated_pods = [pod for pod in pods if pod.revision != revision]
    if not outdated_pods:
        surplus = max(len(pods) - replicas, 0)
        return PodChanges(make=max(replicas - len(pods), 0), remove=tuple(_in_order_of_removal(pods)[:surplus]))
    return _rolling_changes(pods, outdated_pods, replicas, rollout)


def _in_order_of_removal(pods: Sequence[VirtualPod]) -> list[VirtualPod]:
    """The pods in the order in which they are removed."""
    return sorted(pods, key=lambda pod: (pod.is_ready, -pod.number))


def _rolling_changes(
    pods: Sequence[VirtualPod], outdated_pods: Sequence[VirtualPod], replicas: int, rollout: RolloutModel
) -> PodChanges:
    """The pods that a rolling update makes and removes now: outdated ones at once if not ready, others as it allows."""
    surge = _resolve_int_or_percent(rollout.max_surge, replicas, math.ceil)
    unavailable = _resolve_int_or_percent(rollout.max_unavailable, replicas, math.floor)
    if not surge and not unavailable:  # as upstream, since nothing could be replaced
        unavailable = 1
    outdated_ids = {id(pod) for pod in outdated_pods}
    current_pods = [pod for pod in pods if id(pod) not in outdated_ids]
    make = max(min(replicas - len(current_pods), replicas + surge - len(pods)), 0)
    removable_ready = sum(pod.is_ready for pod in pods) - (replicas - unavailable)
    remove: list[VirtualPod] = []
    for pod in _in_order_of_removal(outdated_pods):
        if not pod.is_ready:
            remove.append(pod)
        elif removable_ready > 0:
            remove.append(pod)
            removable_ready -= 1
    surplus = max(len(current_pods) - replicas, 0)
    remove.extend(_in_order_of_removal(current_pods)[:surplus])
    return PodChanges(make, tuple(remove))


def _resolve_int_or_percent(int_or_percent: int | str, replicas: int, round_pods: Callable[[float], int]) -> int:
    """A number of pods that is stated as a number or as a percentage (`25%`) of the replicas.

    Args:
        round_pods: `math.ceil` or `math.floor`.
    """
    if isinstance(int_or_percent, int):
        return int_or_percent
    return round_pods(replicas * int(int_or_percent.removesuffix("%")) / 100)


def _ordered_changes(pods: Sequence[VirtualPod], replicas: int, revision: int) -> PodChanges:
    """One pod at a time: made from the lowest ordinal on, removed from the highest; none while a pod is not ready."""
    by_ordinal = sorted(pods, key=lambda pod: pod.number)
    surplus_pods = [pod for pod in by_ordinal if pod.number >= replicas]
    if surplus_pods:
        return PodChanges(remove=(surplus_pods[-1],))
    if any(not pod.is_ready for pod in by_ordinal):
        return PodChanges()
    if len(by_ordinal) < replicas:
        return PodChanges(make=1)
    outdated_pods = [pod for pod in by_ordinal if pod.revision != revision]
    return PodChanges(remove=(outdated_pods[-1],)) if outdated_pods else PodChanges()
