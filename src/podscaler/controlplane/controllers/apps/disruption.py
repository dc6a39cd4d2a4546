"""The disruption controller: writes the statuses of PodDisruptionBudgets.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; `registry.evictions` reads the status and
lowers the allowed disruptions. Another kind of scalable controllers: an entry in `_RESOURCE_BY_KIND`.

Source: documentation of PodDisruptionBudget.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.controlplane.controllers.apps import disruption_budgets
from podscaler.controlplane.controllers.apps.disruption_budgets import BudgetFacts
from podscaler.controlplane.controllers.framework import ownership, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import BatchPeriod, Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key, SelectorIndex
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

BUDGETS = "poddisruptionbudgets.policy"
PODS = "pods"
_RESOURCE_BY_KIND = {
    "ReplicaSet": "replicasets.apps",
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}
"""The kinds with `spec.replicas` that control pods, and their `Resource.key`."""
BATCH_S = 0.05
"""How long changes of pods are collected; `BATCH_S_PER_POD` is added for each pod of the namespace."""
BATCH_S_PER_POD = 0.00025
MAX_BATCH_S = 1.0


class DisruptionBudgets(Reconciler[Key]):
    """Reconciles the budgets of `registry`. Keys are namespace and name; `clock` times conditions and evictions."""

    name = "disruption-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._selectors = SelectorIndex()
        self._batch_period: BatchPeriod[Key] = BatchPeriod(BATCH_S_PER_POD, MAX_BATCH_S, base_s=BATCH_S)

    def watches(self) -> Sequence[Watched[Key]]:
        """Budgets, and the pods that they select."""
        return [Watched(BUDGETS, self._selectors.update), Watched(PODS, self._keys_of_pod, self._batch_period)]

    def prime(self) -> Iterable[Key]:
        """All budgets."""
        return self._selectors.replace(self._registry.list(BUDGETS))

    async def sync(self, key: Key) -> float | None:
        """Write the status if it changed; returns the seconds until an allowed eviction no longer counts, or None.

        Raises StatusError, for example 409 after an eviction meanwhile.
        """
        budget = self._registry.find(BUDGETS, *key)
        if budget is None:
            self._batch_period.forget(key)
            return None
        namespace, _ = key
        selector = selection.object_selector(budget)
        all_pods = self._registry.list(PODS, namespace)
        selected = [pod for pod in all_pods if selector.matches(selection.labels_of(pod))]
        self._batch_period.note(key, len(all_pods))
        facts = BudgetFacts(budget, selected, self._desired_pods(selected), self._clock.now_ns())
        new_status = disruption_budgets.status(facts)
        if new_status != budget.get("status"):
            # the update has the budget's resourceVersion: with an eviction meanwhile it is a conflict, and retried
            update = self._registry.update(BUDGETS, {**budget, "status": new_status}, subresource="status")
            await write_errors.ignoring_gone(update)
        return disruption_budgets.next_expiry_s(facts)

    def _keys_of_pod(self, event: ObjectEvent) -> Iterable[Key]:
        """The budgets that select the changed pod."""
        return self._selectors.keys_selecting(event.object)

    def _desired_pods(self, selected: Sequence[Object]) -> int:
        """The sum of the desired replicas of the pods' controllers; a pod without a scalable one counts as one."""
        single_pods = 0
        replicas_by_controller: dict[str, int] = {}
        controller_by_owner: dict[str, Object | None] = {}
        for pod in selected:
            owner_uid = (ownership.controller_of(pod) or {}).get("uid", "")
            if owner_uid not in controller_by_owner:  # each owner is looked up once
                controller_by_owner[owner_uid] = self._find_top_controller(pod)
            controller = controller_by_owner[owner_uid]
            if controller is None:
                single_pods += 1
            else:
                replicas_by_controller[controller["metadata"]["uid"]] = controller["spec"].get("replicas", 1)
        return single_pods + sum(replicas_by_controller.values())

    def _find_top_controller(self, pod: Object) -> Object | None:
        """The topmost controller of a pod (a Deployment rather than its ReplicaSet), None without a scalable one."""
        top_controller, namespace = None, pod["metadata"]["namespace"]
        owner = ownership.controller_of(pod)
        while owner is not None and owner["kind"] in _RESOURCE_BY_KIND:
            controller = self._registry.find(_RESOURCE_BY_KIND[owner["kind"]], namespace, owner["name"])
            if controller is None or controller["metadata"]["uid"] != owner["uid"]:
                break
            top_controller, owner = controller, ownership.controller_of(controller)
        return top_controller
