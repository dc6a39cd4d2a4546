"""The DaemonSet controller: one pod of the template on every eligible node, and the status.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync carries out one
`daemonset_planning.plan`; the watch events of its writes trigger the next sync. A change of what a sync plans belongs
in `daemonset_planning`; a new count of the status: `status`.

Source: documentation of DaemonSet; events are upstream's; apps/v1 DaemonSetStatus (API reference).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import daemonset_nodes, daemonset_planning
from podscaler.controlplane.controllers.apps.daemonset_planning import DaemonSetFacts, DaemonSetPlan
from podscaler.controlplane.controllers.framework import (
    claims,
    controller_revisions,
    ownership,
    pods,
    selection,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import (
    ExponentialFailureRateLimiter,
    Reconciler,
    Watched,
)
from podscaler.controlplane.controllers.framework.owner_index import OwnerIndex
from podscaler.controlplane.controllers.framework.pod_control import PODS, PodControl
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

DAEMON_SETS = "daemonsets.apps"
NODES = "nodes"
FIRST_REPLACEMENT_S = 1.0
LONGEST_REPLACEMENT_S = 900.0
"""How long failed pods are kept before they are replaced: doubled with each failure, up to this."""


class DaemonSets(Reconciler[Key]):
    """Reconciles the DaemonSets of `registry`. Keys are namespace and name; `clock` times back-off and availability."""

    name = "daemonset-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = PodControl(registry, self._events)
        self._index = OwnerIndex(registry, owner_resource=DAEMON_SETS, owner_kind="DaemonSet", dependent_resource=PODS)
        self._nodes: dict[str, Object] = {}
        """The labels and taints of the nodes, by name."""
        self._replacement_due_ns: dict[Key, dict[str, int]] = {}
        """For each DaemonSet the uids of failed pods in back-off, with the times at which they are replaced."""
        self._backoff: ExponentialFailureRateLimiter[Key] = ExponentialFailureRateLimiter(
            FIRST_REPLACEMENT_S, LONGEST_REPLACEMENT_S
        )

    def watches(self) -> Sequence[Watched[Key]]:
        """DaemonSets, the pods that they own or may adopt, and nodes."""
        return [
            Watched(DAEMON_SETS, self._index.index_owner),
            Watched(PODS, self._index.index_dependent),
            Watched(NODES, self._index_node),
        ]

    def prime(self) -> Iterable[Key]:
        """All DaemonSets."""
        self._nodes = {
            node["metadata"]["name"]: daemonset_nodes.scheduling_facts(node) for node in self._registry.list(NODES)
        }
        return self._index.prime()

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods, then write the status; returns the seconds until a pod is replaced or available.

        None without such a pod. Raises StatusError if a write failed.
        """
        daemon_set = self._registry.find(DAEMON_SETS, *key)
        if daemon_set is None or pods.is_terminating(daemon_set):
            self._reset_backoff(key)
            return None
        try:
            facts, revision = await self._claim_and_observe(daemon_set)
        except StatusError as error:
            if write_errors.is_namespace_terminating(error):
                return None
            raise
        plan = daemonset_planning.plan(facts)
        replacement_s = self._postpone_replacements(key, plan)
        failure = await self._carry_out(plan, daemon_set, revision)
        if not plan.is_empty:
            facts = replace(facts, owned=ownership.controlled_by(self._registry, PODS, daemon_set))
        if not plan.ended and all(map(facts.is_available, facts.owned)):  # the failures are over
            self._reset_backoff(key)
        await self._write_status(key, facts)
        await self._truncate_history(facts, revision)
        if failure is not None:
            raise failure
        available_s = pods.next_available_s(facts.owned, facts.min_ready_s, facts.now_ns)
        return min((delay_s for delay_s in (replacement_s, available_s) if delay_s is not None), default=None)

    def _index_node(self, event: ObjectEvent) -> Iterable[Key]:
        """Note labels and taints of a node; returns all keys if they changed, else none: a status changes often."""
        name = event.object["metadata"]["name"]
        old_facts = self._nodes.pop(name, None)
        if event.type != "DELETED":
            self._nodes[name] = daemonset_nodes.scheduling_facts(event.object)
        return [] if old_facts == self._nodes.get(name) else self._index.keys()

    async def _write_status(self, key: Key, facts: DaemonSetFacts) -> None:
        """Write the status if it changed; the object is read again, as `_claim_and_observe` may change its own copy."""
        stored = self._registry.find(DAEMON_SETS, *key)
        if stored is not None:
            await write_errors.write_status(self._registry, DAEMON_SETS, stored, status(facts))

    async def _claim_and_observe(self, daemon_set: Object) -> tuple[DaemonSetFacts, Object]:
        """Adopt and release pods, and ensure the revision of the template; returns the facts and that revision."""
        selector = selection.object_selector(daemon_set)
        orphan_names = self._index.orphan_names(daemon_set["metadata"]["namespace"], selector)
        owned = await claims.claim(self._registry, PODS, daemon_set, selector=selector, orphan_names=orphan_names)
        history = controller_revisions.list_owned(self._registry, daemon_set)
        revision = await controller_revisions.ensure_newest(self._registry, daemon_set, history)
        nodes, now_ns = self._registry.list(NODES), self._clock.now_ns()
        return DaemonSetFacts(daemon_set, nodes, owned, controller_revisions.hash_of(revision), now_ns), revision

    def _reset_backoff(self, key: Key) -> None:
        """Reset the back-off of a DaemonSet: its next failed pod is replaced after the shortest delay."""
        self._backoff.succeeded(key)
        self._replacement_due_ns.pop(key, None)

    def _postpone_replacements(self, key: Key, plan: DaemonSetPlan) -> float | None:
        """Remove failed pods in back-off from the plan; returns the seconds until the first is due, else None.

        A failed pod that is new to this controller is counted as a failure, which doubles the delay.
        """
        now_ns = self._clock.now_ns()
        noted_due_ns = self._replacement_due_ns.pop(key, {})
        waiting: dict[str, int] = {}
        for pod in plan.ended:
            if pods.phase(pod) != "Failed":  # a succeeded pod is replaced at once
                continue
            uid = pod["metadata"]["uid"]
            due_ns = noted_due_ns.get(uid) or now_ns + int(self._backoff.failed(key) * NANOSECONDS)
            if due_ns > now_ns:
                waiting[uid] = due_ns
        if not waiting:
            return None
        self._replacement_due_ns[key] = waiting
        plan.ended = [pod for pod in plan.ended if pod["metadata"]["uid"] not in waiting]
        return (min(waiting.values()) - now_ns) / NANOSECONDS

    async def _carry_out(self, plan: DaemonSetPlan, daemon_set: Object, revision: Object) -> StatusError | None:
        """Create and delete the pods of the plan; returns the first error, None if all writes succeeded."""
        for pod in plan.ended:
            self._report_ended(daemon_set, pod)
        new_pods = [daemonset_nodes.new_pod(daemon_set, revision, node_name) for node_name in plan.create]
        outcomes = await asyncio.gather(
            *(self._pods.delete(daemon_set, pod) for pod in (*plan.ended, *plan.delete)),
            *(self._pods.create(daemon_set, pod) for pod in new_pods),
            return_exceptions=True,
        )
        return write_errors.first_error(outcomes)

    def _report_ended(self, daemon_set: Object, pod: Object) -> None:
        """Report a pod that has ended, and is replaced."""
        namespace, name = selection.key_of(pod)
        pod_description = f"daemon pod {namespace}/{name} on node {daemonset_nodes.node_of(pod)}"
        if pods.phase(pod) == "Failed":
            message = f"Found failed {pod_description}, will try to kill it"
            self._events.event(daemon_set, "Warning", "FailedDaemonPod", message)
        else:
            message = f"Found succeeded {pod_description}, will try to delete it"
            self._events.event(daemon_set, "Normal", "SucceededDaemonPod", message)

    async def _truncate_history(self, facts: DaemonSetFacts, revision: Object) -> None:
        """Delete revisions beyond the limit, except the newest one and those that pods have."""
        history = controller_revisions.list_owned(self._registry, facts.daemon_set)
        used_hashes = {selection.labels_of(pod).get(controller_revisions.POD_LABEL) for pod in facts.owned}
        used_revisions = [stored for stored in history if controller_revisions.hash_of(stored) in used_hashes]
        live_names = {stored["metadata"]["name"] for stored in used_revisions}
        live_names.add(revision["metadata"]["name"])
        await controller_revisions.truncate(self._registry, facts.daemon_set, history, live_names)


def status(facts: DaemonSetFacts) -> Object:
    """The status to write, without the counts that the API omits when they are 0.

    Of several pods on a node the oldest is counted; during a surge the new one as soon as it is available.
    """
    eligible_nodes, pods_by_node = facts.eligible_nodes(), facts.pods_by_node()
    counted_pods = [_counted_pod(facts, pods_by_node[name]) for name in eligible_nodes if name in pods_by_node]
    available = sum(map(facts.is_available, counted_pods))
    required_counts = {
        "currentNumberScheduled": len(counted_pods),
        "numberMisscheduled": len(pods_by_node.keys() - set(eligible_nodes)),
        "desiredNumberScheduled": len(eligible_nodes),
        "numberReady": sum(map(pods.is_ready, counted_pods)),
    }
    optional_counts = {
        "observedGeneration": facts.daemon_set["metadata"].get("generation", 0),
        "updatedNumberScheduled": sum(map(facts.is_new, counted_pods)),
        "numberAvailable": available,
        "numberUnavailable": len(eligible_nodes) - available,
    }
    new_status: Object = required_counts | {field: count for field, count in optional_counts.items() if count}
    old_status = facts.daemon_set.get("status") or {}
    kept_fields = ("collisionCount", "conditions")
    return new_status | {field: old_status[field] for field in kept_fields if old_status.get(field)}


def _counted_pod(facts: DaemonSetFacts, pods_here: Sequence[Object]) -> Object:
    """The pod that stands for a node in the status: the first available new one, otherwise the oldest."""
    available_new = [pod for pod in pods_here if facts.is_new(pod) and facts.is_available(pod)]
    return available_new[0] if available_new else pods_here[0]
