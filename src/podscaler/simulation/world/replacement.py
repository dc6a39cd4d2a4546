"""Which pods a workload makes and removes: to reach its replicas, and to replace pods of an old template.

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
    """How many pods to make now, and which to remove."""

    make: int = 0
    remove: tuple[VirtualPod, ...] = ()


def changes(
    pods: Sequence[VirtualPod], replicas: int, revision: int, rollout: RolloutModel, *, is_ordered: bool
) -> PodChanges:
    """The next changes towards `replicas` pods of the newest `revision`."""
    if is_ordered:
        return _ordered_changes(pods, replicas, revision)
    old = [pod for pod in pods if pod.revision != revision]
    if not old:
        return PodChanges(max(replicas - len(pods), 0), tuple(_first_to_remove(pods)[: max(len(pods) - replicas, 0)]))
    return _rolling_changes(pods, old, replicas, rollout)


def _first_to_remove(pods: Sequence[VirtualPod]) -> list[VirtualPod]:
    """The pods in the order in which they are removed."""
    return sorted(pods, key=lambda pod: (pod.is_ready, -pod.number))


def _rolling_changes(
    pods: Sequence[VirtualPod], old: Sequence[VirtualPod], replicas: int, rollout: RolloutModel
) -> PodChanges:
    """The pods that a rolling update makes and removes now: those that are not ready go first."""
    surge = _count(rollout.max_surge, replicas, math.ceil)
    unavailable = _count(rollout.max_unavailable, replicas, math.floor)
    if not surge and not unavailable:
        unavailable = 1
    replaced = {id(pod) for pod in old}
    new = [pod for pod in pods if id(pod) not in replaced]
    make = max(min(replicas - len(new), replicas + surge - len(pods)), 0)
    removable = sum(pod.is_ready for pod in pods) - (replicas - unavailable)
    remove: list[VirtualPod] = []
    for pod in _first_to_remove(old):
        if not pod.is_ready:
            remove.append(pod)
        elif removable > 0:
            remove.append(pod)
            removable -= 1
    surplus = max(len(new) - replicas, 0)
    remove.extend(_first_to_remove(new)[:surplus])
    return PodChanges(make, tuple(remove))


def _count(int_or_percent: int | str, replicas: int, rounded: Callable[[float], int]) -> int:
    """A number of pods that is stated as a number or as a percentage of the replicas."""
    if isinstance(int_or_percent, int):
        return int_or_percent
    return rounded(replicas * int(int_or_percent.removesuffix("%")) / 100)


def _ordered_changes(pods: Sequence[VirtualPod], replicas: int, revision: int) -> PodChanges:
    """One pod at a time, by ordinals."""
    by_ordinal = sorted(pods, key=lambda pod: pod.number)
    surplus = [pod for pod in by_ordinal if pod.number >= replicas]
    if surplus:
        return PodChanges(remove=(surplus[-1],))
    if any(not pod.is_ready for pod in by_ordinal):
        return PodChanges()
    if len(by_ordinal) < replicas:
        return PodChanges(make=1)
    old = [pod for pod in by_ordinal if pod.revision != revision]
    return PodChanges(remove=(old[-1],)) if old else PodChanges()
