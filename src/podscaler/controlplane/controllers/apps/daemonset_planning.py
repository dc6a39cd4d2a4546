"""What one sync of a DaemonSet does: on which nodes to start pods, which pods to delete.

`daemonset.DaemonSets` carries it out. Pure: objects in, a plan out; nothing is changed.

1. A wanted node has one pod; where there are more of one template, the oldest available one stays. Other nodes have
   none.
2. A pod that ended is deleted; the next one is started when it is gone.
3. `RollingUpdate` without surge: pods of an old template that are not available are deleted; available ones as long as
   no more than `maxUnavailable` nodes are without.
4. `RollingUpdate` with `maxSurge`: on so many nodes a new pod is started beside the old one, which is deleted when the
   new one is available.
5. `OnDelete` leaves replacing to the user.

Source: documentation of DaemonSet, "Perform a Rolling Update on a DaemonSet"; KEP-1591 (surge).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.apps import daemonset_nodes
from podscaler.controlplane.controllers.deployment import rollout_bounds
from podscaler.controlplane.controllers.framework import controller_revisions, pods


@dataclass(frozen=True, slots=True)
class DaemonSetFacts:
    """What a plan is made of.

    Attributes:
        daemon_set: with defaults.
        nodes: all nodes.
        owned: all pods that it controls.
        hash: of the newest revision; pods with another one are old.
        now_ns: the instant of this sync.
    """

    daemon_set: Object
    nodes: Sequence[Object]
    owned: Sequence[Object]
    hash: str
    now_ns: int

    def wanted(self) -> list[str]:
        """The names of the nodes that should run a pod."""
        fitting = (node for node in self.nodes if daemonset_nodes.should_run(self.daemon_set, node))
        return [node["metadata"]["name"] for node in fitting]

    def by_node(self) -> dict[str, list[Object]]:
        """The pods of each node, oldest first; those without a node belong to none."""
        found: dict[str, list[Object]] = {}
        for pod in sorted(self.owned, key=_age_order):
            if node := daemonset_nodes.node_of(pod):
                found.setdefault(node, []).append(pod)
        return found

    def is_new(self, pod: Object) -> bool:
        """Whether it is of the newest template."""
        return (pod["metadata"].get("labels") or {}).get(controller_revisions.POD_LABEL) == self.hash

    def is_available(self, pod: Object) -> bool:
        """Whether it is to stay and has been ready for `minReadySeconds`."""
        seconds = self.daemon_set["spec"].get("minReadySeconds", 0)
        return pods.is_active(pod) and pods.is_available(pod, seconds, self.now_ns)


@dataclass(slots=True)
class DaemonSetPlan:
    """Nodes to start a pod on, pods to delete, and among those that ended."""

    create: list[str] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    ended: list[Object] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.create or self.delete or self.ended)


def plan(facts: DaemonSetFacts) -> DaemonSetPlan:
    """The plan for these facts; the set is not being deleted."""
    made = DaemonSetPlan()
    present = facts.by_node()
    wanted = facts.wanted()
    for name in wanted:
        _plan_node(facts, name, present.get(name, []), made)
    stay = {n["metadata"]["name"] for n in facts.nodes if daemonset_nodes.may_stay(facts.daemon_set, n)}
    for name in present.keys() - stay:
        made.delete += [pod for pod in present[name] if not pods.is_terminating(pod)]
    _plan_update(facts, {name: present.get(name, []) for name in wanted}, made)
    return made


def _plan_node(facts: DaemonSetFacts, name: str, here: Sequence[Object], made: DaemonSetPlan) -> None:
    """Rules 1 and 2."""
    if not here:
        made.create.append(name)
        return
    made.ended += [pod for pod in here if pods.is_finished(pod) and not pods.is_terminating(pod)]
    active = [pod for pod in here if pods.is_active(pod)]
    best_first = sorted(active, key=lambda pod: not facts.is_available(pod))
    made.delete += [pod for pod in best_first if facts.is_new(pod)][1:]
    made.delete += [pod for pod in best_first if not facts.is_new(pod)][1:]


def _plan_update(facts: DaemonSetFacts, present: Mapping[str, Sequence[Object]], made: DaemonSetPlan) -> None:
    doomed = {pod["metadata"]["uid"] for pod in made.delete}
    left = {name: [pod for pod in here if pod["metadata"]["uid"] not in doomed] for name, here in present.items()}
    strategy = facts.daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    rolling = strategy.get("rollingUpdate") or {}
    surge = rollout_bounds.resolve(rolling.get("maxSurge", 0), 1, len(present))[0]
    if surge:
        _plan_with_surge(facts, left, made, surge)
    else:
        share = rolling.get("maxUnavailable", 1)
        _plan_without_surge(facts, left, made, rollout_bounds.resolve(share, 0, len(present))[0])


def _plan_without_surge(
    facts: DaemonSetFacts, present: Mapping[str, Sequence[Object]], made: DaemonSetPlan, most: int
) -> None:
    """Rule 3; `most` nodes may be without an available pod."""
    without = sum(not any(map(facts.is_available, here)) for here in present.values())
    for here in present.values():
        old = next((pod for pod in here if pods.is_active(pod) and not facts.is_new(pod)), None)
        if old is None:
            continue
        if facts.is_available(old):
            if without >= most:
                continue
            without += 1
        made.delete.append(old)


def _plan_with_surge(
    facts: DaemonSetFacts, present: Mapping[str, Sequence[Object]], made: DaemonSetPlan, most: int
) -> None:
    """Rule 4; at most `most` nodes may have a new pod beside an available old one."""
    doubled = 0
    waiting: list[str] = []
    for name, here in present.items():
        old = [pod for pod in here if pods.is_active(pod) and not facts.is_new(pod)]
        new = [pod for pod in here if pods.is_active(pod) and facts.is_new(pod)]
        if old and any(map(facts.is_available, new)):
            made.delete.append(old[0])
        elif old and new:
            doubled += 1
        elif old and facts.is_available(old[0]):
            waiting.append(name)
        elif old:
            made.create.append(name)
    made.create += waiting[: max(most - doubled, 0)]


def _age_order(pod: Object) -> tuple[str, str]:
    metadata = pod["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["name"]
