"""The DaemonSet controller: one pod of the template on every eligible node, and the status.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync carries out one
`daemonset_planning.plan`; the watch events of its writes trigger the next sync.

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
FIRST_RESTART_S = 1.0
LONGEST_RESTART_S = 900.0
"""How long failed pods are kept before they are replaced: doubled with each failure, up to this."""


class DaemonSets(Reconciler[Key]):
    """Reconciles DaemonSets. Keys are namespace and name."""

    name = "daemonset-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._pods = PodControl(registry, self._events)
        self._index = OwnerIndex(registry, owners=DAEMON_SETS, kind="DaemonSet", dependents=PODS)
        self._nodes: dict[str, Object] = {}
        self._restarts: dict[Key, dict[str, int]] = {}
        self._backoff: ExponentialFailureRateLimiter[Key] = ExponentialFailureRateLimiter(
            FIRST_RESTART_S, LONGEST_RESTART_S
        )

    def watches(self) -> Sequence[Watched[Key]]:
        """DaemonSets, the pods that they own or may adopt, and nodes."""
        return [
            Watched(DAEMON_SETS, self._index.owner_keys),
            Watched(PODS, self._index.dependent_keys),
            Watched(NODES, self._keys_of_node),
        ]

    def prime(self) -> Iterable[Key]:
        """All DaemonSets."""
        self._nodes = {
            node["metadata"]["name"]: daemonset_nodes.scheduling_facts(node) for node in self._registry.list(NODES)
        }
        return self._index.prime()

    async def sync(self, key: Key) -> float | None:
        """Create or delete pods, then write the status."""
        daemon_set = self._registry.find(DAEMON_SETS, *key)
        if daemon_set is None or pods.is_terminating(daemon_set):
            self._forget(key)
            return None
        try:
            facts, revision = await self._observe(daemon_set)
        except StatusError as error:
            if write_errors.is_namespace_terminating(error):
                return None
            raise
        plan = daemonset_planning.plan(facts)
        restart_s = self._postpone_restarts(key, plan)
        failure = await self._carry_out(plan, daemon_set, revision)
        if not plan.is_empty:
            facts = replace(facts, owned=ownership.controlled_by(self._registry, PODS, daemon_set))
        if not plan.ended and all(map(facts.is_available, facts.owned)):
            self._forget(key)
        stored = self._registry.find(DAEMON_SETS, *key)
        if stored is not None:
            await write_errors.write_status(self._registry, DAEMON_SETS, stored, status(facts))
        await self._truncate_history(facts, revision)
        if failure is not None:
            raise failure
        available_s = pods.next_available_s(facts.owned, facts.min_ready_s, facts.now_ns)
        return min((span_s for span_s in (restart_s, available_s) if span_s is not None), default=None)

    def _keys_of_node(self, event: ObjectEvent) -> Iterable[Key]:
        """All keys, if something changed that pods are scheduled by: nodes write their status every few seconds."""
        name = event.object["metadata"]["name"]
        before = self._nodes.pop(name, None)
        if event.type != "DELETED":
            self._nodes[name] = daemonset_nodes.scheduling_facts(event.object)
        return [] if before == self._nodes.get(name) else self._index.keys()

    async def _observe(self, daemon_set: Object) -> tuple[DaemonSetFacts, Object]:
        """The facts after adopting and releasing pods, and the revision to run."""
        selector = selection.object_selector(daemon_set)
        orphans = self._index.orphans(daemon_set["metadata"]["namespace"], selector)
        owned = await claims.claim(self._registry, PODS, daemon_set, selector=selector, orphans=orphans)
        history = controller_revisions.owned(self._registry, daemon_set)
        revision = await controller_revisions.newest(self._registry, daemon_set, history)
        nodes, now_ns = self._registry.list(NODES), self._clock.now_ns()
        return DaemonSetFacts(daemon_set, nodes, owned, controller_revisions.hash_of(revision), now_ns), revision

    def _forget(self, key: Key) -> None:
        self._backoff.succeeded(key)
        self._restarts.pop(key, None)

    def _postpone_restarts(self, key: Key, plan: DaemonSetPlan) -> float | None:
        """Remove failed pods in back-off from the plan; returns the seconds until the first is due, else None."""
        now_ns = self._clock.now_ns()
        known = self._restarts.pop(key, {})
        failed = [pod["metadata"]["uid"] for pod in plan.ended if pods.phase(pod) == "Failed"]
        due = {uid: known.get(uid) or now_ns + int(self._backoff.failed(key) * NANOSECONDS) for uid in failed}
        waiting = {uid: at for uid, at in due.items() if at > now_ns}
        if not waiting:
            return None
        self._restarts[key] = waiting
        plan.ended = [pod for pod in plan.ended if pod["metadata"]["uid"] not in waiting]
        return (min(waiting.values()) - now_ns) / NANOSECONDS

    async def _carry_out(self, plan: DaemonSetPlan, daemon_set: Object, revision: Object) -> StatusError | None:
        """Write what the plan says; returns why not all writes succeeded, None if they did."""
        for pod in plan.ended:
            self._report_ended(daemon_set, pod)
        new = [daemonset_nodes.new_pod(daemon_set, revision, node) for node in plan.create]
        outcomes = await asyncio.gather(
            *(self._pods.delete(daemon_set, pod) for pod in (*plan.ended, *plan.delete)),
            *(self._pods.create(daemon_set, pod) for pod in new),
            return_exceptions=True,
        )
        return write_errors.first_error(outcomes)

    def _report_ended(self, daemon_set: Object, pod: Object) -> None:
        """Report a pod that has ended, and is replaced."""
        namespace, name = selection.key_of(pod)
        what = f"daemon pod {namespace}/{name} on node {daemonset_nodes.node_of(pod)}"
        if pods.phase(pod) == "Failed":
            text = f"Found failed {what}, will try to kill it"
            self._events.event(daemon_set, "Warning", "FailedDaemonPod", text)
        else:
            text = f"Found succeeded {what}, will try to delete it"
            self._events.event(daemon_set, "Normal", "SucceededDaemonPod", text)

    async def _truncate_history(self, facts: DaemonSetFacts, revision: Object) -> None:
        history = controller_revisions.owned(self._registry, facts.daemon_set)
        used = {selection.labels_of(pod).get(controller_revisions.POD_LABEL) for pod in facts.owned}
        live = {one["metadata"]["name"] for one in history if controller_revisions.hash_of(one) in used}
        live.add(revision["metadata"]["name"])
        await controller_revisions.truncate(self._registry, facts.daemon_set, history, live)


def status(facts: DaemonSetFacts) -> Object:
    """The status to write, without the counts that the API omits when they are 0.

    Of several pods on a node the oldest is counted; during a surge the new one as soon as it is available.
    """
    wanted, present = facts.wanted(), facts.by_node()
    counted = [_counted_pod(facts, present[name]) for name in wanted if name in present]
    available = sum(map(facts.is_available, counted))
    always = {
        "currentNumberScheduled": len(counted),
        "numberMisscheduled": len(present.keys() - set(wanted)),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(map(pods.is_ready, counted)),
    }
    sometimes = {
        "observedGeneration": facts.daemon_set["metadata"].get("generation", 0),
        "updatedNumberScheduled": sum(map(facts.is_new, counted)),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    new: Object = always | {name: count for name, count in sometimes.items() if count}
    before = facts.daemon_set.get("status") or {}
    return new | {name: before[name] for name in ("collisionCount", "conditions") if before.get(name)}


def _counted_pod(facts: DaemonSetFacts, here: Sequence[Object]) -> Object:
    available_new = [pod for pod in here if facts.is_new(pod) and facts.is_available(pod)]
    return (available_new or here)[0]
