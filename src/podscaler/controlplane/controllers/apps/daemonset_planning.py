"""Plans one sync of a DaemonSet: the nodes to create pods on, and the pods to delete.

`daemonset.DaemonSets` carries the plan out. The functions are pure and change no object. A new update strategy: a case
in `_plan_update`.

1. An eligible node has one pod; of several pods of one template, the oldest available one stays. On other nodes none is
   created; `daemonset_nodes.may_stay` decides whether a pod there stays.
2. A finished pod is deleted; the next one is created when it is gone.
3. `RollingUpdate` without surge: unavailable pods of an old template are deleted, available ones as long as no more
   than `maxUnavailable` nodes are without an available pod.
4. `RollingUpdate` with `maxSurge`: on that many nodes a new pod is created beside the old one, which is deleted when
   the new one is available.
5. With `OnDelete` the user deletes the old pods.

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
    """The input of a plan.

    Attributes:
        daemon_set: with defaults filled in.
        nodes: all nodes.
        owned: all pods that it controls.
        newest_hash: the hash of the newest revision; pods with another hash are old.
        now_ns: the time of this sync, in nanoseconds since the epoch.
    """

    daemon_set: Object
    nodes: Sequence[Object]
    owned: Sequence[Object]
    newest_hash: str
    now_ns: int

    def eligible_nodes(self) -> list[str]:
        """The names of the nodes that should have a pod."""
        eligible = (node for node in self.nodes if daemonset_nodes.should_run(self.daemon_set, node))
        return [node["metadata"]["name"] for node in eligible]

    def pods_by_node(self) -> dict[str, list[Object]]:
        """The pods of each node, oldest first; pods without a node are left out."""
        pods_by_node: dict[str, list[Object]] = {}
        for pod in sorted(self.owned, key=_age_order):
            if node := daemonset_nodes.node_of(pod):
                pods_by_node.setdefault(node, []).append(pod)
        return pods_by_node

    def is_new(self, pod: Object) -> bool:
        """Whether a pod was created from the newest template."""
        return (pod["metadata"].get("labels") or {}).get(controller_revisions.POD_LABEL) == self.newest_hash

    @property
    def min_ready_s(self) -> int:
        """`spec.minReadySeconds`."""
        return int(self.daemon_set["spec"].get("minReadySeconds", 0))

    def is_available(self, pod: Object) -> bool:
        """Whether a pod is active and has been ready for `minReadySeconds`."""
        return pods.is_active(pod) and pods.is_available(pod, self.min_ready_s, self.now_ns)


@dataclass(slots=True)
class DaemonSetPlan:
    """Names of nodes to create a pod on, active pods to delete, and finished pods (`ended`) to delete."""

    create: list[str] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    ended: list[Object] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is planned."""
        return not (self.create or self.delete or self.ended)


def plan(facts: DaemonSetFacts) -> DaemonSetPlan:
    """The plan for a DaemonSet that is not being deleted."""
    planned = DaemonSetPlan()
    pods_by_node = facts.pods_by_node()
    eligible_nodes = facts.eligible_nodes()
    for name in eligible_nodes:
        _plan_node(facts, name, pods_by_node.get(name, []), planned)
    may_stay_nodes = {
        node["metadata"]["name"] for node in facts.nodes if daemonset_nodes.may_stay(facts.daemon_set, node)
    }
    for name in pods_by_node.keys() - may_stay_nodes:
        planned.delete += [pod for pod in pods_by_node[name] if not pods.is_terminating(pod)]
    _plan_update(facts, {name: pods_by_node.get(name, []) for name in eligible_nodes}, planned)
    return planned


def _plan_node(facts: DaemonSetFacts, name: str, pods_here: Sequence[Object], planned: DaemonSetPlan) -> None:
    """Rules 1 and 2, for the eligible node `name` with the pods `pods_here`."""
    if not pods_here:
        planned.create.append(name)
        return
    planned.ended += [pod for pod in pods_here if pods.is_finished(pod) and not pods.is_terminating(pod)]
    active = [pod for pod in pods_here if pods.is_active(pod)]
    best_first = sorted(active, key=lambda pod: not facts.is_available(pod))  # of each template the first one stays
    planned.delete += [pod for pod in best_first if facts.is_new(pod)][1:]
    planned.delete += [pod for pod in best_first if not facts.is_new(pod)][1:]


def _plan_update(facts: DaemonSetFacts, pods_by_node: Mapping[str, Sequence[Object]], planned: DaemonSetPlan) -> None:
    """Rules 3 and 4: plan the replacement of pods of an old template; `pods_by_node` has the eligible nodes only."""
    strategy = facts.daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    deleted_uids = {pod["metadata"]["uid"] for pod in planned.delete}
    remaining_by_node = {
        name: [pod for pod in pods_here if pod["metadata"]["uid"] not in deleted_uids]
        for name, pods_here in pods_by_node.items()
    }
    rolling = strategy.get("rollingUpdate") or {}
    max_surge_nodes = rollout_bounds.round_up(rolling.get("maxSurge", 0), len(pods_by_node))
    if max_surge_nodes:
        _plan_with_surge(facts, remaining_by_node, planned, max_surge_nodes)
    else:
        # as upstream, which rounds down for Deployments
        max_unavailable_nodes = rollout_bounds.round_up(rolling.get("maxUnavailable", 1), len(pods_by_node))
        _plan_without_surge(facts, remaining_by_node, planned, max_unavailable_nodes)


def _plan_without_surge(
    facts: DaemonSetFacts, pods_by_node: Mapping[str, Sequence[Object]], planned: DaemonSetPlan, max_nodes: int
) -> None:
    """Rule 3; at most `max_nodes` nodes may be without an available pod."""
    nodes_without = sum(not any(map(facts.is_available, pods_here)) for pods_here in pods_by_node.values())
    for pods_here in pods_by_node.values():
        old_pod = next((pod for pod in pods_here if pods.is_active(pod) and not facts.is_new(pod)), None)
        if old_pod is None:
            continue
        if facts.is_available(old_pod):  # its deletion leaves one more node without an available pod
            if nodes_without >= max_nodes:
                continue
            nodes_without += 1
        planned.delete.append(old_pod)


def _plan_with_surge(
    facts: DaemonSetFacts, pods_by_node: Mapping[str, Sequence[Object]], planned: DaemonSetPlan, max_nodes: int
) -> None:
    """Rule 4; at most `max_nodes` nodes may have a new pod beside an available old one."""
    nodes_with_both = 0
    nodes_to_surge: list[str] = []
    for name, pods_here in pods_by_node.items():
        old_pods = [pod for pod in pods_here if pods.is_active(pod) and not facts.is_new(pod)]
        new_pods = [pod for pod in pods_here if pods.is_active(pod) and facts.is_new(pod)]
        if not old_pods:
            continue
        if any(map(facts.is_available, new_pods)):
            planned.delete.append(old_pods[0])
        elif new_pods:
            nodes_with_both += 1
        elif facts.is_available(old_pods[0]):
            nodes_to_surge.append(name)
        else:
            planned.create.append(name)  # no surge, as the node has no available pod
    planned.create += nodes_to_surge[: max(max_nodes - nodes_with_both, 0)]


def _age_order(pod: Object) -> tuple[str, str]:
    """Sort key: the oldest pod first, by name among equals."""
    metadata = pod["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["name"]
