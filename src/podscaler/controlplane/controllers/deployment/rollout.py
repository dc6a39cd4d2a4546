"""One sync of a Deployment while it is worked out: what it can do to its ReplicaSets, and the `DeploymentPlan` that
grows.

`deployment_planning.plan` decides which of these things happen. Pure: nothing is written, the objects are the caller's
copies. Source: documentation of Deployment; events and annotations are upstream's.
"""

from dataclasses import dataclass, field

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.deployment import (
    deployment_status,
    progress,
    proportions,
    replica_sets,
    revisions,
    rollout_bounds,
)
from podscaler.controlplane.controllers.framework import conditions, pods, templates
from podscaler.controlplane.controllers.framework.ownership import controller_reference


@dataclass(slots=True)
class DeploymentPlan:
    """What to write, in this order; everything may be empty.

    Attributes:
        create: the new ReplicaSet.
        update: ReplicaSets whose annotations, size or minReadySeconds changed, each with its own resourceVersion.
        delete: ReplicaSets beyond the history limit.
        events: names of ReplicaSets with the message of a ScalingReplicaSet event, in order.
        revision: the Deployment's revision annotation, empty to leave it.
        status: the Deployment's new status.
        check_again_s: when to sync again though nothing changes, None for never.
    """

    create: Object | None = None
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    revision: str = ""
    status: Object = field(default_factory=dict)
    check_again_s: float | None = None


class Rollout:
    """The working state of one `plan`: copies that change, and the plan that grows."""

    def __init__(self, deployment: Object, sets: list[Object], now_ns: int) -> None:
        self.deployment = deployment
        self.wanted = rollout_bounds.replicas(deployment)
        self.new = replica_sets.find_new(deployment, sets)
        self.old = [one for one in sets if one is not self.new]
        self.now_ns = now_ns
        self.plan = DeploymentPlan()

    @property
    def sets(self) -> list[Object]:
        """All ReplicaSets, the new one last."""
        return [*self.old, self.new] if self.new else self.old

    def was_scaled(self) -> bool:
        """Whether an active ReplicaSet was sized for another `spec.replicas` than the present one."""
        noted = (revisions.number(one, revisions.DESIRED) for one in replica_sets.active(self.sets))
        return any(desired is not None and desired != self.wanted for desired in noted)

    def can_resize(self) -> bool:
        """Whether `resize` can answer a new size: Recreate has no shares for several ReplicaSets, it ends the old ones.

        Differs: upstream resizes nothing then, and never gets on.
        """
        return rollout_bounds.is_rolling(self.deployment) or len(replica_sets.active(self.sets)) <= 1

    def note_pause(self) -> None:
        """Tell in the conditions that it was paused or resumed."""
        condition = progress.pause_condition(self.deployment, self.now_ns)
        if condition is not None:
            self.set_condition(condition)

    def set_condition(self, condition: Object) -> None:
        """Set it in the status that this sync started from."""
        status = self.deployment.setdefault("status", {})
        status["conditions"] = conditions.with_condition(status.get("conditions") or [], condition)

    def take_over_new(self) -> None:
        """Give the new ReplicaSet, if it exists, its revision, annotations and minReadySeconds."""
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
            self._tell_progress(progress.FOUND, f'Found new replica set "{self.new["metadata"]["name"]}"')

    def make_new(self) -> None:
        """Plan the new ReplicaSet, as large as the strategy allows at once."""
        new = _replica_set(self.deployment)
        revision = revisions.next_revision(self.old)
        new["spec"]["replicas"] = self.room_for(new)
        revisions.annotate(new, self.deployment, revision)
        self._note_sizes(new)
        self.new = self.plan.create = new
        self.plan.revision = str(revision)
        if new["spec"]["replicas"]:
            name, size = new["metadata"]["name"], new["spec"]["replicas"]
            self.plan.events.append((name, f"Scaled up replica set {name} from 0 to {size}"))
        self._tell_progress(progress.CREATED, f'Created new replica set "{new["metadata"]["name"]}"')

    def room_for(self, new: Object) -> int:
        """How large the new ReplicaSet may be now."""
        if not rollout_bounds.is_rolling(self.deployment):
            return self.wanted
        size = replica_sets.size(new)
        room = self.wanted + rollout_bounds.max_surge(self.deployment) - replica_sets.total_size(self.old) - size
        return size if room <= 0 else size + min(room, self.wanted - size)

    def scale(self, one: Object, size: int) -> bool:
        """Plan another size for a ReplicaSet; False where it has that already."""
        if replica_sets.size(one) == size:
            return False
        self._set_size(one, size)
        return True

    def resize(self) -> None:
        """Share `spec.replicas` among the ReplicaSets without rolling on."""
        active = replica_sets.active(self.sets)
        if len(active) <= 1:
            target = active[0] if active else self._latest()
            if target is not None:
                self._set_size(target, self.wanted)
        elif self._is_saturated():
            for one in replica_sets.active(self.old):
                self.scale(one, 0)
        elif rollout_bounds.is_rolling(self.deployment):
            self._resize_in_proportion(active)

    def clean_up(self) -> None:
        """Plan the deletion of old ReplicaSets beyond the history limit: those with the lowest revisions."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        candidates = [one for one in self.old if not pods.is_terminating(one)]
        candidates.sort(key=lambda one: (revisions.revision(one), one["metadata"].get("creationTimestamp") or ""))
        surplus = candidates[: max(len(candidates) - limit, 0)]
        self.plan.delete += [one for one in surplus if _is_spent(one)]

    def conclude(self, *, with_progress: bool) -> None:
        """Work out the status after everything planned."""
        status = deployment_status.status(self.deployment, self.sets, self.new, self.now_ns)
        if with_progress:
            status = progress.with_progress(self.deployment, status, sets=self.sets, new=self.new, now_ns=self.now_ns)
            self.plan.check_again_s = progress.check_again_s(self.deployment, status, self.now_ns)
        self.plan.status = status

    def is_complete(self) -> bool:
        """Whether the status so far says that the rollout is over."""
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
        for one, size in proportions.sizes(active, wanted=self.wanted, surge=surge, current=current):
            self._set_size(one, size)

    def _set_size(self, one: Object, size: int) -> None:
        before, notes = replica_sets.size(one), _noted(one)
        self._note_sizes(one)
        one["spec"]["replicas"] = size
        if size != before:
            direction = "up" if size > before else "down"
            name = one["metadata"]["name"]
            self.plan.events.append((name, f"Scaled {direction} replica set {name} from {before} to {size}"))
        if size != before or _noted(one) != notes:
            self._touch(one)

    def _note_sizes(self, one: Object) -> None:
        revisions.note_sizes(one, self.wanted, self.wanted + rollout_bounds.max_surge(self.deployment))

    def _touch(self, one: Object) -> None:
        if one is not self.plan.create and not any(one is other for other in self.plan.update):
            self.plan.update.append(one)

    def _tell_progress(self, reason: str, message: str) -> None:
        if progress.deadline_s(self.deployment) is not None:
            self.set_condition(progress.progressing("True", reason, message=message, now_ns=self.now_ns))


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


def _noted(one: Object) -> tuple[dict[str, str], int]:
    return dict(one["metadata"].get("annotations") or {}), one["spec"].get("minReadySeconds", 0)


def _is_spent(one: Object) -> bool:
    observed = replica_sets.count(one, "observedGeneration") >= one["metadata"].get("generation", 0)
    return observed and not replica_sets.size(one) and not replica_sets.count(one, "replicas")
