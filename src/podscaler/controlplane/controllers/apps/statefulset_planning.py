"""Plans one sync of a StatefulSet: the pods to create and to delete, in order.

`statefulset.StatefulSets` carries the plan out. The functions are pure and change no object. Each function names its
rules; `plan` has their order.

1. Finished pods are deleted, to be created again under the same name.
2. Missing pods are created from the lowest ordinal up. With `OrderedReady` one at a time: nothing else is planned while
   a pod with a lower ordinal is missing, terminating, not ready or not available.
3. Pods beyond the range are deleted from the highest ordinal down; with `OrderedReady` one at a time, each after the
   one above is gone.
4. `RollingUpdate`: pods of another revision than the newest are deleted from the highest ordinal down to `partition`,
   as long as no more than `maxUnavailable` pods are missing or not available. With `OnDelete` the user deletes them.
5. New pods below `partition` are created from the current revision, all others from the newest.

Source: documentation of StatefulSet (guarantees, update strategies, forced rollback); upstream's control loop.
Differs: unavailable pods of an old revision are replaced first, since that reduces no availability.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.apps import statefulset_pods
from podscaler.controlplane.controllers.deployment import rollout_bounds
from podscaler.controlplane.controllers.framework import pods


@dataclass(frozen=True, slots=True)
class StatefulSetFacts:
    """The input of a plan; all objects are JSON objects.

    Attributes:
        stateful_set: with defaults filled in.
        owned: all pods that it controls and whose names have an ordinal.
        current, newest: the revisions before and after the rollout; the same without a rollout.
        now_ns: the wall clock of this sync, in nanoseconds since the Unix epoch.
    """

    stateful_set: Object
    owned: Sequence[Object]
    current: Object
    newest: Object
    now_ns: int

    def pods_by_ordinal(self) -> dict[int, Object]:
        """The pods by ordinal."""
        pods_with_ordinals = (
            (statefulset_pods.ordinal(self.stateful_set, pod["metadata"]["name"]), pod) for pod in self.owned
        )
        return {ordinal: pod for ordinal, pod in pods_with_ordinals if ordinal is not None}

    def is_healthy(self, pod: Object | None) -> bool:
        """Whether the pod exists, is not terminating, and is available."""
        return pod is not None and statefulset_pods.is_healthy(self.stateful_set, pod, self.now_ns)


@dataclass(slots=True)
class StatefulSetPlan:
    """Pods to create and to delete; `recreate` are finished pods, deleted now and created in a later sync."""

    create: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    recreate: list[Object] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is planned."""
        return not (self.create or self.delete or self.recreate)


def plan(facts: StatefulSetFacts) -> StatefulSetPlan:
    """The plan for a StatefulSet that is not being deleted."""
    planned = StatefulSetPlan()
    present = facts.pods_by_ordinal()
    if _plan_desired(facts, present, planned) and _plan_surplus(facts, present, planned):
        _plan_update(facts, present, planned)
    return planned


def _plan_desired(facts: StatefulSetFacts, present: Mapping[int, Object], planned: StatefulSetPlan) -> bool:
    """Rules 1 and 2: finished and missing pods; False if rules 3 and 4 have to wait."""
    is_parallel = statefulset_pods.is_parallel(facts.stateful_set)
    for ordinal in statefulset_pods.ordinals(facts.stateful_set):
        pod = present.get(ordinal)
        if pod is None:
            planned.create.append(_new_pod(facts, ordinal))
        elif pods.is_finished(pod) and not pods.is_terminating(pod):
            planned.recreate.append(pod)
        if not is_parallel and not facts.is_healthy(pod):
            return False
    return True


def _plan_surplus(facts: StatefulSetFacts, present: Mapping[int, Object], planned: StatefulSetPlan) -> bool:
    """Rule 3: pods beyond the range; False if rule 4 has to wait."""
    desired_ordinals = statefulset_pods.ordinals(facts.stateful_set)
    surplus = sorted((ordinal for ordinal in present if ordinal not in desired_ordinals), reverse=True)
    unhealthy = [ordinal for ordinal in surplus if not facts.is_healthy(present[ordinal])]
    is_parallel = statefulset_pods.is_parallel(facts.stateful_set)
    candidates = surplus if is_parallel else surplus[:1]
    for ordinal in candidates:
        pod = present[ordinal]
        # as upstream, of several unhealthy pods the lowest is deleted first
        waits_for_lower_pod = ordinal in unhealthy[:-1]
        if not pods.is_terminating(pod) and (is_parallel or not waits_for_lower_pod):
            planned.delete.append(pod)
    return is_parallel or not surplus


def _plan_update(facts: StatefulSetFacts, present: Mapping[int, Object], planned: StatefulSetPlan) -> None:
    """Rule 4: plan the deletion of pods of an old revision."""
    strategy = facts.stateful_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    desired_ordinals = statefulset_pods.ordinals(facts.stateful_set)
    updated_ordinals = desired_ordinals[_partition(facts.stateful_set) :]
    unhealthy_count = sum(not facts.is_healthy(present.get(ordinal)) for ordinal in desired_ordinals)
    for ordinal in _stale_ordinals(facts, present, updated_ordinals):
        pod = present[ordinal]
        if facts.is_healthy(pod):  # its deletion makes one more pod unhealthy
            if unhealthy_count >= _max_unavailable(strategy, len(desired_ordinals)):
                return
            unhealthy_count += 1
        planned.delete.append(pod)


def _stale_ordinals(facts: StatefulSetFacts, present: Mapping[int, Object], ordinals: range) -> list[int]:
    """The ordinals among `ordinals` whose pods are to be replaced: unavailable pods first, highest ordinal first."""
    newest = facts.newest["metadata"]["name"]
    stale: list[int] = []
    for ordinal in reversed(ordinals):
        pod = present.get(ordinal)
        if pod is not None and pods.is_active(pod) and statefulset_pods.revision_name(pod) != newest:
            stale.append(ordinal)
    return sorted(stale, key=lambda ordinal: facts.is_healthy(present[ordinal]))


def _partition(stateful_set: Object) -> int:
    """The number of lowest ordinals whose pods keep the current revision during a rollout."""
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return int(rolling.get("partition", 0))


def _max_unavailable(strategy: Object, desired_replicas: int) -> int:
    """maxUnavailable as a number of pods: percentages are rounded down, and it is at least 1."""
    bound = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    return max(rollout_bounds.round_down(bound, desired_replicas), 1)


def _new_pod(facts: StatefulSetFacts, ordinal: int) -> Object:
    """The pod of an ordinal (rule 5); without a partition every pod is created from the newest revision."""
    start = statefulset_pods.ordinals(facts.stateful_set).start
    is_below_partition = ordinal < start + _partition(facts.stateful_set)
    revision = facts.current if is_below_partition else facts.newest
    return statefulset_pods.new_pod(facts.stateful_set, revision, ordinal)
