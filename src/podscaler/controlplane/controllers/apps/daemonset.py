"""The DaemonSet controller: one pod of the template on every node that it is for.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync carries out one
`daemonset_planning.plan`; what changes by it brings about the next one.

Source: documentation of DaemonSet; events are upstream's.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace

from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import daemonset_nodes, daemonset_planning, daemonset_status
from podscaler.controlplane.controllers.apps.daemonset_planning import DaemonSetFacts, DaemonSetPlan
from podscaler.controlplane.controllers.framework import (
    claims,
    controller_revisions,
    ownership,
    pods,
    selection,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import ExponentialFailureRateLimiter, Watched
from podscaler.controlplane.controllers.framework.owner_index import Keeping
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

DAEMON_SETS = "daemonsets.apps"
PODS = "pods"
NODES = "nodes"
FIRST_RESTART_S = 1.0
LONGEST_RESTART_S = 900.0
"""How long pods that failed one after the other are left before they are replaced."""


class DaemonSets:
    """See the module. Keys are namespace and name."""

    name = "daemonset-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._keeping = Keeping(registry, keepers=DAEMON_SETS, kind="DaemonSet", kept=PODS)
        self._nodes: dict[str, Object] = {}
        self._restarts: dict[Key, dict[str, int]] = {}
        self._backoff: ExponentialFailureRateLimiter[Key] = ExponentialFailureRateLimiter(
            FIRST_RESTART_S, LONGEST_RESTART_S
        )

    def watches(self) -> Sequence[Watched[Key]]:
        """DaemonSets, the pods that they own or may adopt, and nodes."""
        return [
            Watched(DAEMON_SETS, self._keeping.of_keeper),
            Watched(PODS, self._keeping.of_kept),
            Watched(NODES, self._of_node),
        ]

    def prime(self) -> Iterable[Key]:
        """Rebuild the indexes."""
        self._nodes = {node["metadata"]["name"]: daemonset_nodes.facets(node) for node in self._registry.list(NODES)}
        return self._keeping.prime()

    async def sync(self, key: Key) -> float | None:
        """One step towards the wanted pods, then the status; see the module."""
        daemon_set = self._registry.find(DAEMON_SETS, *key)
        if daemon_set is None or pods.is_terminating(daemon_set):
            self._forget(key)
            return None
        try:
            facts, revision = await self._observe(daemon_set)
        except StatusError as refusal:
            if write_errors.is_namespace_terminating(refusal):
                return None
            raise
        plan = daemonset_planning.plan(facts)
        later_s = self._restart_later_s(key, plan)
        failure = await self._carry_out(plan, daemon_set, revision)
        if not plan.is_empty:
            facts = replace(facts, owned=self._owned(daemon_set))
        if not plan.ended and all(map(facts.is_available, facts.owned)):
            self._forget(key)
        await self._write_status(facts)
        await self._keep_history_short(facts, revision)
        if failure is not None:
            raise failure
        waits = [span_s for span_s in (later_s, daemonset_status.next_available_s(facts)) if span_s is not None]
        return min(waits, default=None)

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more: each pod that could not be created or deleted has had its event."""

    def _of_node(self, change: ObjectEvent) -> Iterable[Key]:
        """All keys, but only for what decides about pods: nodes write their status every few seconds."""
        name = change.object["metadata"]["name"]
        before = self._nodes.pop(name, None)
        if change.type != "DELETED":
            self._nodes[name] = daemonset_nodes.facets(change.object)
        return [] if before == self._nodes.get(name) else self._keeping.keys()

    async def _observe(self, daemon_set: Object) -> tuple[DaemonSetFacts, Object]:
        """What there is after adopting and releasing pods, and the revision to run."""
        selector = selection.object_selector(daemon_set)
        orphans = self._keeping.orphans(daemon_set["metadata"]["namespace"], selector)
        owned = await claims.claim(self._registry, PODS, daemon_set, selector=selector, orphans=orphans)
        history = controller_revisions.owned(self._registry, daemon_set)
        revision = await controller_revisions.newest(self._registry, daemon_set, history)
        nodes, now_ns = self._registry.list(NODES), self._clock.now_ns()
        return DaemonSetFacts(daemon_set, nodes, owned, controller_revisions.hash_of(revision), now_ns), revision

    def _owned(self, daemon_set: Object) -> list[Object]:
        uid = daemon_set["metadata"]["uid"]
        return [pod for pod in self._registry.owned_by(PODS, uid) if ownership.is_controlled_by(pod, uid)]

    def _forget(self, key: Key) -> None:
        self._backoff.succeeded(key)
        self._restarts.pop(key, None)

    def _restart_later_s(self, key: Key, plan: DaemonSetPlan) -> float | None:
        """Take pods that failed out of the plan until their time has come; in how many seconds that is."""
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
        """Returns why not everything could be done, None where it could."""
        for pod in plan.ended:
            self._tell_of_end(daemon_set, pod)
        doomed = (*plan.ended, *plan.delete)
        calls: list[Awaitable[None]] = [self._delete(daemon_set, pod) for pod in doomed]
        calls += [self._create(daemon_set, daemonset_nodes.new_pod(daemon_set, revision, n)) for n in plan.create]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        return write_errors.first(ExceptionGroup("pods", failures)) if failures else None

    async def _create(self, daemon_set: Object, pod: Object) -> None:
        try:
            created = await self._registry.create(PODS, pod)
        except StatusError as error:
            if write_errors.is_namespace_terminating(error):
                return
            self._events.event(daemon_set, "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise
        self._events.event(daemon_set, "Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")

    async def _delete(self, daemon_set: Object, pod: Object) -> None:
        namespace, name = selection.key_of(pod)
        try:
            await self._registry.delete(PODS, namespace, name, uid=pod["metadata"]["uid"])
        except StatusError as error:
            if error.code == 404 or error.reason == "Conflict":
                return
            self._events.event(daemon_set, "Warning", "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._events.event(daemon_set, "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    def _tell_of_end(self, daemon_set: Object, pod: Object) -> None:
        namespace, name = selection.key_of(pod)
        what = f"daemon pod {namespace}/{name} on node {daemonset_nodes.node_of(pod)}"
        if pods.phase(pod) == "Failed":
            text = f"Found failed {what}, will try to kill it"
            self._events.event(daemon_set, "Warning", "FailedDaemonPod", text)
        else:
            text = f"Found succeeded {what}, will try to delete it"
            self._events.event(daemon_set, "Normal", "SucceededDaemonPod", text)

    async def _keep_history_short(self, facts: DaemonSetFacts, revision: Object) -> None:
        history = controller_revisions.owned(self._registry, facts.daemon_set)
        used = {selection.labels_of(pod).get(controller_revisions.POD_LABEL) for pod in facts.owned}
        live = {one["metadata"]["name"] for one in history if controller_revisions.hash_of(one) in used}
        live.add(revision["metadata"]["name"])
        await controller_revisions.truncate(self._registry, facts.daemon_set, history, live)

    async def _write_status(self, facts: DaemonSetFacts) -> None:
        new = daemonset_status.status(facts)
        stored = self._registry.find(DAEMON_SETS, *selection.key_of(facts.daemon_set))
        if stored is None or new == stored.get("status"):
            return

        def change(newest: Object) -> None:
            newest["status"] = new

        try:
            await self._registry.mutate(DAEMON_SETS, *selection.key_of(facts.daemon_set), change, subresource="status")
        except StatusError as refusal:
            if refusal.code != 404:
                raise
