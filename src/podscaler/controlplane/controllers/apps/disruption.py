"""The disruption controller: keeps the statuses of PodDisruptionBudgets, which evictions go by.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; `registry.evictions` reads and lowers what it
writes.

Source: documentation of PodDisruptionBudget.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.machinery.selectors import SelectorError
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.apps import disruption_budgets
from podscaler.controlplane.controllers.apps.disruption_budgets import BudgetFacts
from podscaler.controlplane.controllers.framework import ownership, selection
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

BUDGETS = "poddisruptionbudgets.policy"
PODS = "pods"
_CONTROLLERS = {
    "ReplicaSet": "replicasets.apps",
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}
SETTLE_S = 0.05
"""Changes of pods are collected for so long at least, and longer where a budget has many."""
SETTLE_S_PER_POD = 0.00025
LONGEST_SETTLE_S = 1.0


class DisruptionBudgets:
    """See the module. Keys are namespace and name."""

    name = "disruption-controller"

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._selecting = selection.Selecting()
        self._sizes: dict[Key, int] = {}

    def watches(self) -> Sequence[Watched[Key]]:
        """Budgets, and pods that they select."""
        return [Watched(BUDGETS, self._of_budget), Watched(PODS, self._of_pod, self._settle_s)]

    def prime(self) -> Iterable[Key]:
        """Rebuild the index."""
        self._selecting.clear()
        for budget in self._registry.list(BUDGETS):
            self._note(budget)
        return list(self._selecting.keys())

    async def sync(self, key: Key) -> float | None:
        """Write the status, if it says something else."""
        budget = self._registry.find(BUDGETS, *key)
        if budget is None:
            self._sizes.pop(key, None)
            return None
        selector = selection.object_selector(budget)
        in_namespace = self._registry.list(PODS, key[0])
        selected = [pod for pod in in_namespace if selector.matches(selection.labels_of(pod))]
        self._sizes[key] = len(in_namespace)
        facts = BudgetFacts(budget, selected, self._wanted(selected), self._clock.now_ns())
        new = disruption_budgets.status(facts)
        if new != budget.get("status"):
            await self._write(budget, new)
        return disruption_budgets.next_expiry_s(facts)

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more: a budget whose status is old allows no eviction."""

    def _of_budget(self, change: ObjectEvent) -> Iterable[Key]:
        if change.type == "DELETED":
            self._selecting.drop(change.object)
        else:
            self._note(change.object)
        return [selection.key_of(change.object)]

    def _note(self, budget: Object) -> None:
        try:
            self._selecting.put(budget, selection.object_selector(budget))
        except SelectorError:
            self._selecting.drop(budget)

    def _of_pod(self, change: ObjectEvent) -> Iterable[Key]:
        return self._selecting.matching(change.object)

    def _settle_s(self, key: Key) -> float:
        return min(SETTLE_S + self._sizes.get(key, 0) * SETTLE_S_PER_POD, LONGEST_SETTLE_S)

    async def _write(self, budget: Object, new: Object) -> None:
        """With its resourceVersion: an eviction in between makes it be counted again."""
        try:
            await self._registry.update(BUDGETS, {**budget, "status": new}, subresource="status")
        except StatusError as error:
            if error.code != 404:
                raise

    def _wanted(self, selected: Sequence[Object]) -> int:
        """How many pods the controllers of these want; one for each pod that has none that says."""
        alone = 0
        sizes: dict[str, int] = {}
        tops: dict[str, Object | None] = {}
        for pod in selected:
            owner = (ownership.controller_of(pod) or {}).get("uid", "")
            if owner not in tops:
                tops[owner] = self._top(pod)
            top = tops[owner]
            if top is None:
                alone += 1
            else:
                sizes[top["metadata"]["uid"]] = top["spec"].get("replicas", 1)
        return alone + sum(sizes.values())

    def _top(self, pod: Object) -> Object | None:
        """What decides how many such pods there are: the ReplicaSet's Deployment rather than the ReplicaSet."""
        found, namespace = None, pod["metadata"]["namespace"]
        owner = ownership.controller_of(pod)
        while owner is not None and owner["kind"] in _CONTROLLERS:
            above = self._registry.find(_CONTROLLERS[owner["kind"]], namespace, owner["name"])
            if above is None or above["metadata"]["uid"] != owner["uid"]:
                break
            found, owner = above, ownership.controller_of(above)
        return found
