"""The operations on ReplicaSets that one sync of a Deployment consists of; each adds to the `DeploymentPlan`.

`deployment_planning.plan` chooses the operations. Nothing is written; the objects are the caller's copies.

Source: documentation of Deployment; events and annotations are upstream's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.deployment import (
    deployment_status,
    progress,
    replica_sets,
    revisions,
    rollout_bounds,
)
from podscaler.controlplane.controllers.framework import conditions, pods, templates
from podscaler.controlplane.controllers.framework.ownership import controller_reference


@dataclass(slots=True)
class DeploymentPlan:
    """The writes of one sync, in this order; everything may be empty.

    Attributes:
        create: the new ReplicaSet.
        update: ReplicaSets whose annotations, size or minReadySeconds changed, with their resourceVersions.
        delete: ReplicaSets beyond the history limit.
        events: pairs of a ReplicaSet's name and the message of its ScalingReplicaSet event, in order.
        revision: the Deployment's new revision annotation, empty to keep the old one.
        status: the Deployment's new status.
        requeue_after_s: the seconds after which to sync again without a change, None for never.
    """

    create: Object | None = None
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    revision: str = ""
    status: Object = field(default_factory=dict)
    requeue_after_s: float | None = None


class Rollout:
    """The state of one sync: copies of the objects, which are changed, and the plan so far."""

    def __init__(self, deployment: Object, sets: list[Object], now_ns: int) -> None:
        self.deployment = deployment
        self.wanted = rollout_bounds.replicas(deployment)
        self.new = replica_sets.find_new(deployment, sets)
        self.old = [replica_set for replica_set in sets if replica_set is not self.new]
        self.now_ns = now_ns
        self.plan = DeploymentPlan()

    @property
    def sets(self) -> list[Object]:
        """All ReplicaSets, the new one last."""
        return [*self.old, self.new] if self.new else self.old

    def was_scaled(self) -> bool:
        """Whether an active ReplicaSet was sized for another `spec.replicas` than the present one."""
        noted = (revisions.number(replica_set, revisions.DESIRED) for replica_set in replica_sets.active(self.sets))
        return any(desired is not None and desired != self.wanted for desired in noted)

    def can_resize(self) -> bool:
        """Whether `resize` applies a new size: with Recreate and several active ReplicaSets the old ones must end
        first.

        Differs: upstream resizes nothing in that case, and the rollout is stuck.
        """
        return rollout_bounds.is_rolling(self.deployment) or len(replica_sets.active(self.sets)) <= 1

    def set_pause_condition(self) -> None:
        """Set the condition after the Deployment was paused or resumed."""
        condition = progress.pause_condition(self.deployment, self.now_ns)
        if condition is not None:
            self._set_condition(condition)

    def adopt_new(self) -> None:
        """Set revision, annotations and minReadySeconds of the new ReplicaSet, if it exists."""
        if self.new is None:
            return
        before = _noted(self.new)
        revisions.annotate(self.new, self.deployment, revisions.next_revision(self.old))
        if (seconds := self.deployment["spec"].get("minReadySeconds", 0)) != self.new["spec"].get("minReadySeconds", 0):
            self.new["spec"]["minReadySeconds"] = seconds
        if _noted(self.new) != before:
            self._touch(self.new)
        self.plan.revision = str(revisions.revision(self.new))
        if progress.find(self.deployment.get("status") or {}) is None:
            self._set_progress(progress.FOUND, f'Found new replica set "{self.new["metadata"]["name"]}"')

    def create_new(self) -> None:
        """Plan the creation of the new ReplicaSet, as large as the strategy allows."""
        new = _replica_set(self.deployment)
        revision = revisions.next_revision(self.old)
        new["spec"]["replicas"] = self.allowed_size(new)
        revisions.annotate(new, self.deployment, revision)
        self._note_sizes(new)
        self.new = self.plan.create = new
        self.plan.revision = str(revision)
        if new["spec"]["replicas"]:
            name, size = new["metadata"]["name"], new["spec"]["replicas"]
            self.plan.events.append((name, f"Scaled up replica set {name} from 0 to {size}"))
        self._set_progress(progress.CREATED, f'Created new replica set "{new["metadata"]["name"]}"')

    def allowed_size(self, new: Object) -> int:
        """The size that the new ReplicaSet may have now."""
        if not rollout_bounds.is_rolling(self.deployment):
            return self.wanted
        size = replica_sets.size(new)
        room = self.wanted + rollout_bounds.max_surge(self.deployment) - replica_sets.total_size(self.old) - size
        return size if room <= 0 else size + min(room, self.wanted - size)

    def scale(self, replica_set: Object, size: int) -> bool:
        """Plan another size for a ReplicaSet; returns False if it has that size already."""
        if replica_sets.size(replica_set) == size:
            return False
        self._set_size(replica_set, size)
        return True

    def resize(self) -> None:
        """Distribute `spec.replicas` among the ReplicaSets without proceeding with the rollout."""
        active = replica_sets.active(self.sets)
        if len(active) <= 1:
            target = active[0] if active else self._latest()
            if target is not None:
                self._set_size(target, self.wanted)
        elif self._is_saturated():
            for replica_set in replica_sets.active(self.old):
                self.scale(replica_set, 0)
        elif rollout_bounds.is_rolling(self.deployment):
            self._resize_in_proportion(active)

    def clean_up(self) -> None:
        """Plan the deletion of old ReplicaSets beyond the history limit, lowest revisions first."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        candidates = [replica_set for replica_set in self.old if not pods.is_terminating(replica_set)]
        candidates.sort(
            key=lambda candidate: (revisions.revision(candidate), candidate["metadata"].get("creationTimestamp") or "")
        )
        surplus = candidates[: max(len(candidates) - limit, 0)]
        self.plan.delete += [replica_set for replica_set in surplus if _is_spent(replica_set)]

    def compute_status(self, *, with_progress: bool) -> None:
        """Plan the status; `with_progress` includes the conditions Progressing and ReplicaFailure."""
        status = deployment_status.status(self.deployment, self.sets, self.new, self.now_ns)
        if with_progress:
            status = progress.with_progress(self.deployment, status, sets=self.sets, new=self.new, now_ns=self.now_ns)
            self.plan.requeue_after_s = progress.requeue_after_s(self.deployment, status, self.now_ns)
        self.plan.status = status

    def is_complete(self) -> bool:
        """Whether the rollout is complete according to the status before this sync."""
        return deployment_status.is_complete(self.deployment, self.deployment.get("status") or {})

    def _latest(self) -> Object | None:
        if self.new is not None or not self.old:
            return self.new
        return replica_sets.by_age(self.old)[-1]

    def _is_saturated(self) -> bool:
        if self.new is None:
            return False
        noted = revisions.number(self.new, revisions.DESIRED)
        available = replica_sets.count(self.new, "availableReplicas")
        return replica_sets.size(self.new) == self.wanted == noted == available

    def _resize_in_proportion(self, active: list[Object]) -> None:
        surge = rollout_bounds.max_surge(self.deployment)
        current = (self.deployment.get("status") or {}).get("replicas", 0)
        for replica_set, size in proportional_sizes(active, wanted=self.wanted, surge=surge, current=current):
            self._set_size(replica_set, size)

    def _set_size(self, replica_set: Object, size: int) -> None:
        before, notes = replica_sets.size(replica_set), _noted(replica_set)
        self._note_sizes(replica_set)
        replica_set["spec"]["replicas"] = size
        if size != before:
            direction = "up" if size > before else "down"
            name = replica_set["metadata"]["name"]
            self.plan.events.append((name, f"Scaled {direction} replica set {name} from {before} to {size}"))
        if size != before or _noted(replica_set) != notes:
            self._touch(replica_set)

    def _note_sizes(self, replica_set: Object) -> None:
        revisions.note_sizes(replica_set, self.wanted, self.wanted + rollout_bounds.max_surge(self.deployment))

    def _touch(self, replica_set: Object) -> None:
        if replica_set is not self.plan.create and not any(replica_set is other for other in self.plan.update):
            self.plan.update.append(replica_set)

    def _set_progress(self, reason: str, message: str) -> None:
        if progress.deadline_s(self.deployment) is not None:
            self._set_condition(progress.progressing("True", reason, message=message, now_ns=self.now_ns))

    def _set_condition(self, condition: Object) -> None:
        """Set a condition in the status before this sync, which the new status is computed from."""
        status = self.deployment.setdefault("status", {})
        status["conditions"] = conditions.with_condition(status.get("conditions") or [], condition)


def _replica_set(deployment: Object) -> Object:
    """A ReplicaSet of size 0 for the Deployment's template."""
    template = deployment["spec"]["template"]
    collisions = (deployment.get("status") or {}).get("collisionCount", 0)
    label = {templates.HASH_LABEL: templates.template_hash(template, collisions)}
    metadata = template.get("metadata") or {}
    labels = (metadata.get("labels") or {}) | label
    selector = deployment["spec"]["selector"]
    spec: Object = {
        "replicas": 0,
        "selector": {**selector, "matchLabels": (selector.get("matchLabels") or {}) | label},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    name = f"{deployment['metadata']['name']}-{label[templates.HASH_LABEL]}"
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "annotations": {},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": spec,
    }


def _noted(replica_set: Object) -> tuple[dict[str, str], int]:
    return dict(replica_set["metadata"].get("annotations") or {}), replica_set["spec"].get("minReadySeconds", 0)


def _is_spent(replica_set: Object) -> bool:
    observed = replica_sets.count(replica_set, "observedGeneration") >= replica_set["metadata"].get("generation", 0)
    return observed and not replica_sets.size(replica_set) and not replica_sets.count(replica_set, "replicas")


def proportional_sizes(sets: Sequence[Object], *, wanted: int, surge: int, current: int) -> list[tuple[Object, int]]:
    """The ReplicaSets with their new sizes after a change of `spec.replicas` during a rollout, in the order of writing.

    Example: maxSurge 3, 10 desired, sets of 8 and 5 pods (13 at most). Now 15 are desired, so 18 are allowed: 5 pods to
    add, of which the set of 8 gets round(8 * 18 / 13) - 8 = 3 and the other one the remaining 2.

    Args:
        sets: the active ReplicaSets, each with the maximum of its last scaling as an annotation; in any order.
        wanted: the Deployment's new `spec.replicas`.
        surge: the number of pods allowed beyond that.
        current: the number of pods of the Deployment, for sets without that annotation.

    Source: documentation of Deployment, "Proportional scaling".
    """
    allowed = wanted + surge if wanted > 0 else 0
    to_add = allowed - replica_sets.total_size(sets)
    ordered = replica_sets.largest_first(sets, among_equals_newest=to_add > 0)
    added, result = 0, []
    for replica_set in ordered:
        share = _share(replica_set, to_add - added, allowed, current) if to_add else 0
        added += share
        result.append((replica_set, replica_sets.size(replica_set) + share))
    if result and to_add:
        largest, size = result[0]
        result[0] = largest, max(size + to_add - added, 0)
    return result


def _share(replica_set: Object, left: int, allowed: int, current: int) -> int:
    if left == 0:
        return 0
    fair = _fair_share(replica_set, allowed, current)
    return min(fair, left) if left > 0 else max(fair, left)


def _fair_share(replica_set: Object, allowed: int, current: int) -> int:
    size = replica_sets.size(replica_set)
    if allowed == 0:
        return -size
    before = revisions.number(replica_set, revisions.MAXIMUM) or current
    return _rounded(size * allowed / before) - size if before else 0


def _rounded(value: float) -> int:
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)
