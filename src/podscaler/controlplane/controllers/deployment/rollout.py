"""The operations on ReplicaSets that one sync of a Deployment consists of; each adds to the `DeploymentPlan`.

`deployment_planning.plan` chooses the operations and `deployment.Deployments` carries the plan out. Nothing is written
here; the objects are the caller's copies. A new operation: a method of `Rollout`; a new write: a field of
`DeploymentPlan`, and a step of `Deployments._carry_out`.

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
        update: ReplicaSets whose annotations, size or minReadySeconds change, with their resourceVersions.
        delete: ReplicaSets beyond the history limit.
        events: the ScalingReplicaSet events in order: name of the ReplicaSet, and message.
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
    """The state of one sync: copies of the objects, which are changed, and the plan so far (`plan`).

    `new_set` is the ReplicaSet with the Deployment's template (None before there is one), `old_sets` are all others.
    The size of a ReplicaSet is its `spec.replicas`. `deployment_planning` calls the methods in the order of a strategy.

    Args:
        deployment: the Deployment, changed in place.
        sets: its ReplicaSets in any order, changed in place.
        now_ns: the time of this sync, in nanoseconds since the epoch.
    """

    def __init__(self, deployment: Object, sets: list[Object], now_ns: int) -> None:
        self.deployment = deployment
        self.desired_replicas = rollout_bounds.desired_replicas(deployment)
        self.new_set = replica_sets.find_new(deployment, sets)
        self.old_sets = [replica_set for replica_set in sets if replica_set is not self.new_set]
        self.now_ns = now_ns
        self.plan = DeploymentPlan()

    @property
    def sets(self) -> list[Object]:
        """All ReplicaSets, the new one last."""
        return [*self.old_sets, self.new_set] if self.new_set else self.old_sets

    def was_scaled(self) -> bool:
        """Whether an active ReplicaSet was sized for another `spec.replicas` than the present one (annotation)."""
        for replica_set in replica_sets.active(self.sets):
            noted_replicas = revisions.parse_number(replica_set, revisions.DESIRED_REPLICAS)
            if noted_replicas is not None and noted_replicas != self.desired_replicas:
                return True
        return False

    def can_resize(self) -> bool:
        """Whether `resize` applies a new size in any case: not with Recreate and several active ReplicaSets.

        Differs: upstream resizes nothing in that case, and the rollout is stuck. Here the rollout proceeds.
        """
        return rollout_bounds.is_rolling(self.deployment) or len(replica_sets.active(self.sets)) <= 1

    def set_pause_condition(self) -> None:
        """Set the condition after the Deployment was paused or resumed."""
        condition = progress.pause_condition(self.deployment, self.now_ns)
        if condition is not None:
            self._set_condition(condition)

    def update_new(self) -> None:
        """Update annotations and minReadySeconds of the new ReplicaSet if it exists, and add a missing Progressing."""
        if self.new_set is None:
            return
        facts_before = _written_facts(self.new_set)
        revisions.annotate(self.new_set, self.deployment, revisions.next_revision(self.old_sets))
        min_ready_s = self.deployment["spec"].get("minReadySeconds", 0)
        if min_ready_s != self.new_set["spec"].get("minReadySeconds", 0):
            self.new_set["spec"]["minReadySeconds"] = min_ready_s
        if _written_facts(self.new_set) != facts_before:
            self._plan_update(self.new_set)
        self.plan.revision = str(revisions.revision(self.new_set))
        if progress.find_progressing(self.deployment.get("status") or {}) is None:
            self._set_progress(progress.FOUND, f'Found new replica set "{self.new_set["metadata"]["name"]}"')

    def create_new(self) -> None:
        """Plan the creation of the new ReplicaSet, as large as the strategy allows."""
        new_set, revision = _new_replica_set(self.deployment), revisions.next_revision(self.old_sets)
        name, size = new_set["metadata"]["name"], self.allowed_size(new_set)
        new_set["spec"]["replicas"] = size
        revisions.annotate(new_set, self.deployment, revision)
        self._note_sizes(new_set)
        self.new_set = self.plan.create = new_set
        self.plan.revision = str(revision)
        if size:
            self.plan.events.append((name, f"Scaled up replica set {name} from 0 to {size}"))
        self._set_progress(progress.CREATED, f'Created new replica set "{name}"')

    def allowed_size(self, new_set: Object) -> int:
        """The size that the new ReplicaSet may have now: in a rolling update limited by maxSurge."""
        if not rollout_bounds.is_rolling(self.deployment):
            return self.desired_replicas
        size = replica_sets.size(new_set)
        allowed_pods = self.desired_replicas + rollout_bounds.max_surge(self.deployment)
        addable_pods = allowed_pods - replica_sets.total_size(self.old_sets) - size
        return size if addable_pods <= 0 else size + min(addable_pods, self.desired_replicas - size)

    def scale(self, replica_set: Object, size: int) -> bool:
        """Plan another size for a ReplicaSet; returns False, and plans nothing, if it has that size already."""
        if replica_sets.size(replica_set) == size:
            return False
        self._set_size(replica_set, size)
        return True

    def resize(self) -> None:
        """Distribute `spec.replicas` among the ReplicaSets without proceeding with the rollout."""
        active = replica_sets.active(self.sets)
        if len(active) <= 1:  # no rollout is under way
            only_set = active[0] if active else self._find_latest_set()
            if only_set is not None:
                self._set_size(only_set, self.desired_replicas)
        elif self._is_saturated():  # the old pods are not needed any more
            for replica_set in replica_sets.active(self.old_sets):
                self.scale(replica_set, 0)
        elif rollout_bounds.is_rolling(self.deployment):
            self._resize_in_proportion(active)

    def clean_up(self) -> None:
        """Plan the deletion of old ReplicaSets beyond the history limit, lowest revisions first."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        candidates = [replica_set for replica_set in self.old_sets if not pods.is_terminating(replica_set)]
        candidates.sort(key=_revision_order)
        surplus = candidates[: max(len(candidates) - limit, 0)]  # as upstream, one with pods is counted, but stays
        self.plan.delete += [replica_set for replica_set in surplus if _is_unused(replica_set)]

    def compute_status(self, *, with_progress: bool) -> None:
        """Plan the status; `with_progress` updates Progressing and ReplicaFailure, and plans a sync at the deadline."""
        status = deployment_status.status(self.deployment, self.sets, self.new_set, self.now_ns)
        if with_progress:
            status = progress.with_progress(
                self.deployment, status, sets=self.sets, new_set=self.new_set, now_ns=self.now_ns
            )
            self.plan.requeue_after_s = progress.requeue_after_s(self.deployment, status, self.now_ns)
        self.plan.status = status

    def is_complete(self) -> bool:
        """Whether the rollout is complete according to the status before this sync."""
        return deployment_status.is_complete(self.deployment, self.deployment.get("status") or {})

    def _find_latest_set(self) -> Object | None:
        """The new ReplicaSet, or else the youngest old one; None without any."""
        if self.new_set is not None:
            return self.new_set
        return replica_sets.by_age(self.old_sets)[-1] if self.old_sets else None

    def _is_saturated(self) -> bool:
        """Whether the new ReplicaSet has all desired pods, they are available, and it was sized for that number."""
        if self.new_set is None:
            return False
        noted_replicas = revisions.parse_number(self.new_set, revisions.DESIRED_REPLICAS)
        available = replica_sets.count(self.new_set, "availableReplicas")
        return replica_sets.size(self.new_set) == self.desired_replicas == noted_replicas == available

    def _resize_in_proportion(self, active: list[Object]) -> None:
        """Plan the sizes of `proportional_sizes` for the active ReplicaSets."""
        surge = rollout_bounds.max_surge(self.deployment)
        current_pods = (self.deployment.get("status") or {}).get("replicas", 0)
        sizes = proportional_sizes(
            active, desired_replicas=self.desired_replicas, surge=surge, current_pods=current_pods
        )
        for replica_set, size in sizes:
            self._set_size(replica_set, size)

    def _set_size(self, replica_set: Object, size: int) -> None:
        """Set size and annotations of a ReplicaSet, and plan the update and the event if that changes it."""
        old_size, facts_before = replica_sets.size(replica_set), _written_facts(replica_set)
        self._note_sizes(replica_set)
        replica_set["spec"]["replicas"] = size
        if size != old_size:
            direction = "up" if size > old_size else "down"
            name = replica_set["metadata"]["name"]
            self.plan.events.append((name, f"Scaled {direction} replica set {name} from {old_size} to {size}"))
        if size != old_size or _written_facts(replica_set) != facts_before:
            self._plan_update(replica_set)

    def _note_sizes(self, replica_set: Object) -> None:
        """Write the sizes that the ReplicaSet is scaled for into its annotations, in place."""
        allowed_pods = self.desired_replicas + rollout_bounds.max_surge(self.deployment)
        revisions.note_sizes(replica_set, self.desired_replicas, allowed_pods)

    def _plan_update(self, replica_set: Object) -> None:
        """Add a ReplicaSet to the updates, unless it is to be created or is among them already."""
        if replica_set is not self.plan.create and not any(replica_set is updated for updated in self.plan.update):
            self.plan.update.append(replica_set)

    def _set_progress(self, reason: str, message: str) -> None:
        """Set the condition Progressing to True with this reason, if the Deployment has a progress deadline."""
        if progress.deadline_s(self.deployment) is not None:
            self._set_condition(progress.progressing_condition("True", reason, message=message, now_ns=self.now_ns))

    def _set_condition(self, condition: Object) -> None:
        """Set a condition in the status before this sync, which the new status is computed from."""
        status = self.deployment.setdefault("status", {})
        status["conditions"] = conditions.with_condition(status.get("conditions") or [], condition)


def _new_replica_set(deployment: Object) -> Object:
    """The manifest of a ReplicaSet of size 0 for the Deployment's template."""
    template = deployment["spec"]["template"]
    collisions = (deployment.get("status") or {}).get("collisionCount", 0)
    hash_label = {templates.HASH_LABEL: templates.template_hash(template, collisions)}
    template_metadata = template.get("metadata") or {}
    labels = (template_metadata.get("labels") or {}) | hash_label
    selector = deployment["spec"]["selector"]
    spec: Object = {
        "replicas": 0,
        "selector": {**selector, "matchLabels": (selector.get("matchLabels") or {}) | hash_label},
        "template": {**template, "metadata": {**template_metadata, "labels": labels}},
    }
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    name = f"{deployment['metadata']['name']}-{hash_label[templates.HASH_LABEL]}"
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


def _written_facts(replica_set: Object) -> tuple[dict[str, str], int]:
    """The annotations and minReadySeconds of a ReplicaSet: what a rollout changes besides the size."""
    return dict(replica_set["metadata"].get("annotations") or {}), replica_set["spec"].get("minReadySeconds", 0)


def _revision_order(replica_set: Object) -> tuple[int, str]:
    """Sort key: the lowest revision first, the oldest among equals."""
    return revisions.revision(replica_set), replica_set["metadata"].get("creationTimestamp") or ""


def _is_unused(replica_set: Object) -> bool:
    """Whether a ReplicaSet neither has nor wants pods, according to an up-to-date status."""
    is_observed = replica_sets.count(replica_set, "observedGeneration") >= replica_set["metadata"].get("generation", 0)
    return is_observed and not replica_sets.size(replica_set) and not replica_sets.count(replica_set, "replicas")


def proportional_sizes(
    sets: Sequence[Object], *, desired_replicas: int, surge: int, current_pods: int
) -> list[tuple[Object, int]]:
    """The ReplicaSets with their new sizes after a change of `spec.replicas` during a rollout, in the order of writing.

    Example: maxSurge 3, 10 desired, sets of 8 and 5 pods (13 at most). Now 15 are desired, so 18 are allowed: 5 pods to
    add, of which the set of 8 gets round(8 * 18 / 13) - 8 = 3 and the other one the remaining 2.

    Args:
        sets: the active ReplicaSets, each with the maximum of its last scaling as an annotation; in any order.
        desired_replicas: the Deployment's new `spec.replicas`.
        surge: the number of pods allowed beyond that; none if it is 0.
        current_pods: the number of pods of the Deployment, for sets without that annotation.

    Source: documentation of Deployment, "Proportional scaling".
    """
    allowed_pods = desired_replicas + surge if desired_replicas > 0 else 0
    pods_to_add = allowed_pods - replica_sets.total_size(sets)  # negative: to remove
    ordered = replica_sets.largest_first(sets, among_equals_newest=pods_to_add > 0)
    added, new_sizes = 0, []
    for replica_set in ordered:
        share = _limited_share(replica_set, pods_to_add - added, allowed_pods, current_pods) if pods_to_add else 0
        added += share
        new_sizes.append((replica_set, replica_sets.size(replica_set) + share))
    if new_sizes and pods_to_add:  # the largest one gets what rounding left over
        largest, size = new_sizes[0]
        new_sizes[0] = largest, max(size + pods_to_add - added, 0)
    return new_sizes


def _limited_share(replica_set: Object, remaining_pods: int, allowed_pods: int, current_pods: int) -> int:
    """How many of the pods still to add (negative: to remove) a ReplicaSet gets: its fair share at most."""
    if remaining_pods == 0:
        return 0
    fair_share = _fair_share(replica_set, allowed_pods, current_pods)
    return min(fair_share, remaining_pods) if remaining_pods > 0 else max(fair_share, remaining_pods)


def _fair_share(replica_set: Object, allowed_pods: int, current_pods: int) -> int:
    """By how many pods the size of a ReplicaSet changes in proportion to the allowed pods; negative to shrink."""
    size = replica_sets.size(replica_set)
    if allowed_pods == 0:
        return -size
    old_allowed_pods = revisions.parse_number(replica_set, revisions.MAX_REPLICAS) or current_pods
    return _round_half_away_from_zero(size * allowed_pods / old_allowed_pods) - size if old_allowed_pods else 0


def _round_half_away_from_zero(number: float) -> int:
    """The nearest integer; halves are rounded away from 0."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)
