"""The StatefulSet controller: pods with names that stay, started, stopped and replaced in order.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. A sync carries out one
`statefulset_planning.plan`; what changes by it brings about the next one. It never acts on old facts: the registry
shows own writes at once.

Source: documentation of StatefulSet; events are upstream's.
Differs: volumeClaimTemplates become empty directories (an event says so); retention policies have nothing to retain.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import statefulset_planning, statefulset_pods, statefulset_status
from podscaler.controlplane.controllers.apps.statefulset_planning import StatefulSetFacts, StatefulSetPlan
from podscaler.controlplane.controllers.framework import (
    batches,
    claims,
    controller_revisions,
    ownership,
    pods,
    selection,
    write_errors,
)
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.owner_index import Keeping
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.events import EventRecorder
from podscaler.controlplane.registry.registry import Registry

STATEFUL_SETS = "statefulsets.apps"
PODS = "pods"
BURST_PODS = 500
"""The most pods created or deleted in one sync."""
SETTLE_S_PER_POD = 0.00025
"""Changes of pods are collected for so long per pod: the work for n pods that all change stays linear in n."""
LONGEST_SETTLE_S = 1.0


class StatefulSets:
    """See the module. Keys are namespace and name."""

    name = "statefulset-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._events = EventRecorder(registry, self.name, clock)
        self._keeping = Keeping(registry, keepers=STATEFUL_SETS, kind="StatefulSet", kept=PODS)
        self._sizes: dict[Key, int] = {}

    def watches(self) -> Sequence[Watched[Key]]:
        """StatefulSets, and the pods that they own or may adopt."""
        return [Watched(STATEFUL_SETS, self._keeping.of_keeper), Watched(PODS, self._keeping.of_kept, self._settle_s)]

    def prime(self) -> Iterable[Key]:
        """Rebuild the indexes."""
        return self._keeping.prime()

    async def sync(self, key: Key) -> float | None:
        """One step towards the wanted pods, then the status; see the module."""
        stateful_set = self._registry.find(STATEFUL_SETS, *key)
        if stateful_set is None or pods.is_terminating(stateful_set):
            self._sizes.pop(key, None)
            return None
        try:
            facts = await self._facts(stateful_set)
        except StatusError as refusal:
            if write_errors.is_namespace_terminating(refusal):
                return None
            raise
        self._sizes[key] = len(facts.owned)
        plan = statefulset_planning.plan(facts)
        failure = await self._carry_out(plan, stateful_set)
        if not plan.is_empty:
            facts = replace(facts, owned=self._members(stateful_set, self._owned(stateful_set)))
        await self._write_status(facts)
        await self._keep_history_short(facts)
        if failure is not None:
            raise failure
        return statefulset_status.next_available_s(facts)

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more: each pod that could not be created or deleted has had its event."""

    def _settle_s(self, key: Key) -> float:
        return min(self._sizes.get(key, 0) * SETTLE_S_PER_POD, LONGEST_SETTLE_S)

    async def _facts(self, stateful_set: Object) -> StatefulSetFacts:
        """What there is after adopting and releasing pods and keeping the history."""
        selector = selection.object_selector(stateful_set)
        found = self._keeping.orphans(stateful_set["metadata"]["namespace"], selector)
        orphans = [name for name in found if statefulset_pods.ordinal(stateful_set, name) is not None]
        owned = await claims.claim(self._registry, PODS, stateful_set, selector=selector, orphans=orphans)
        members = [await self._with_identity(stateful_set, pod) for pod in self._members(stateful_set, owned)]
        history = controller_revisions.owned(self._registry, stateful_set)
        newest = await controller_revisions.newest(self._registry, stateful_set, history)
        noted = (stateful_set.get("status") or {}).get("currentRevision")
        current = next((one for one in history if one["metadata"]["name"] == noted), newest)
        return StatefulSetFacts(stateful_set, members, current, newest, self._clock.now_ns())

    async def _with_identity(self, stateful_set: Object, pod: Object) -> Object:
        """The pod; an adopted or relabelled one gets the labels that Services select single pods by."""
        number = statefulset_pods.ordinal(stateful_set, pod["metadata"]["name"])
        if number is None or pods.is_terminating(pod):
            return pod
        wanted = statefulset_pods.identity(stateful_set, number)
        if wanted.items() <= selection.labels_of(pod).items():
            return pod
        try:
            return await self._registry.mutate(
                PODS, *selection.key_of(pod), lambda newest: newest["metadata"].setdefault("labels", {}).update(wanted)
            )
        except StatusError as error:
            if error.code != 404:
                raise
            return pod

    def _owned(self, stateful_set: Object) -> list[Object]:
        uid = stateful_set["metadata"]["uid"]
        return [pod for pod in self._registry.owned_by(PODS, uid) if ownership.is_controlled_by(pod, uid)]

    def _members(self, stateful_set: Object, owned: Sequence[Object]) -> list[Object]:
        """Those with a name that the set's pods have; what else it owns is none of its pods."""
        return [p for p in owned if statefulset_pods.ordinal(stateful_set, p["metadata"]["name"]) is not None]

    async def _keep_history_short(self, facts: StatefulSetFacts) -> None:
        live = {facts.current["metadata"]["name"], facts.newest["metadata"]["name"]}
        live.update(statefulset_pods.revision_name(pod) for pod in facts.owned)
        history = controller_revisions.owned(self._registry, facts.stateful_set)
        await controller_revisions.truncate(self._registry, facts.stateful_set, history, live)

    async def _carry_out(self, plan: StatefulSetPlan, stateful_set: Object) -> StatusError | None:
        """Returns why not everything could be done, None where it could."""
        if plan.create:
            self._tell_of_claims(stateful_set)
        for pod in plan.recreate:
            self._tell_of_recreation(stateful_set, pod)
        doomed = (*plan.recreate, *plan.delete)[:BURST_PODS]
        outcomes = await asyncio.gather(*(self._delete(stateful_set, pod) for pod in doomed), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        waiting = iter(plan.create[:BURST_PODS])
        try:
            await batches.slow_start(len(plan.create[:BURST_PODS]), lambda: self._create(stateful_set, next(waiting)))
        except ExceptionGroup as group:
            failures += group.exceptions
        return write_errors.first(ExceptionGroup("pods", failures)) if failures else None

    async def _create(self, stateful_set: Object, pod: Object) -> None:
        try:
            await self._registry.create(PODS, pod)
        except StatusError as error:
            if not write_errors.is_namespace_terminating(error):
                self._tell(stateful_set, "create", pod, error)
                raise
        else:
            self._tell(stateful_set, "create", pod)

    async def _delete(self, stateful_set: Object, pod: Object) -> None:
        try:
            await self._registry.delete(PODS, *selection.key_of(pod), uid=pod["metadata"]["uid"])
        except StatusError as error:
            if error.code == 404 or error.reason == "Conflict":
                return
            self._tell(stateful_set, "delete", pod, error)
            raise
        self._tell(stateful_set, "delete", pod)

    def _tell(self, stateful_set: Object, verb: str, pod: Object, error: StatusError | None = None) -> None:
        what = f"{verb} Pod {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']}"
        if error is None:
            self._events.event(stateful_set, "Normal", f"Successful{verb.capitalize()}", f"{what} successful")
        else:
            message = f"{what} failed error: {error.message}"
            self._events.event(stateful_set, "Warning", f"Failed{verb.capitalize()}", message)

    def _tell_of_recreation(self, stateful_set: Object, pod: Object) -> None:
        namespace, name = selection.key_of(stateful_set)
        what = f"StatefulSet {namespace}/{name} is recreating"
        if pods.phase(pod) == "Failed":
            message = f"{what} failed Pod {pod['metadata']['name']}"
            self._events.event(stateful_set, "Warning", "RecreatingFailedPod", message)
        else:
            message = f"{what} terminated Pod {pod['metadata']['name']}"
            self._events.event(stateful_set, "Normal", "RecreatingTerminatedPod", message)

    def _tell_of_claims(self, stateful_set: Object) -> None:
        names = statefulset_pods.claim_names(stateful_set)
        if names:
            message = (
                f"There are no persistent volumes here: {', '.join(names)} of volumeClaimTemplates become empty "
                "directories, which end with their pods."
            )
            self._events.event(stateful_set, "Warning", "VolumeClaimsNotSupported", message)

    async def _write_status(self, facts: StatefulSetFacts) -> None:
        new = statefulset_status.status(facts)
        stored = self._registry.find(STATEFUL_SETS, *selection.key_of(facts.stateful_set))
        if stored is None or new == stored.get("status"):
            return

        def change(newest: Object) -> None:
            newest["status"] = new

        try:
            await self._registry.mutate(
                STATEFUL_SETS, *selection.key_of(facts.stateful_set), change, subresource="status"
            )
        except StatusError as refusal:
            if refusal.code != 404:
                raise
