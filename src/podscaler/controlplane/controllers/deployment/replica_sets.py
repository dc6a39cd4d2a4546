"""Finds the new ReplicaSet of a Deployment, and orders and counts ReplicaSets.

The modules of this package call it, and `apps.replicaset` calls `size`. The functions change nothing.

Source: the Deployment controller's rules (documentation: "Rollover", "Clean up policy", "Proportional scaling").
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import templates


def size(replica_set: Object) -> int:
    """`spec.replicas`, 1 if it is not set."""
    replicas = replica_set["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def count(replica_set: Object, field: str) -> int:
    """A count of the status (`replicas`, `readyReplicas`, `availableReplicas`, ...), 0 if it is absent."""
    return int((replica_set.get("status") or {}).get(field) or 0)


def total_size(replica_sets: Iterable[Object]) -> int:
    """The sum of `spec.replicas` of ReplicaSets."""
    return sum(size(replica_set) for replica_set in replica_sets)


def total_count(replica_sets: Iterable[Object], field: str) -> int:
    """The sum of a count (as of `count`) over the statuses of ReplicaSets."""
    return sum(count(replica_set, field) for replica_set in replica_sets)


def active(replica_sets: Iterable[Object]) -> list[Object]:
    """The ReplicaSets with `spec.replicas` above 0."""
    return [replica_set for replica_set in replica_sets if size(replica_set) > 0]


def by_age(replica_sets: Iterable[Object]) -> list[Object]:
    """The ReplicaSets, oldest first, those of the same age by name."""
    return sorted(replica_sets, key=_age_order)


def largest_first(replica_sets: Iterable[Object], *, among_equals_newest: bool) -> list[Object]:
    """The ReplicaSets by size, largest first; those of the same size newest or oldest first."""
    by_creation = sorted(replica_sets, key=_age_order, reverse=among_equals_newest)
    return sorted(by_creation, key=size, reverse=True)


def find_new(deployment: Object, replica_sets: Sequence[Object]) -> Object | None:
    """The ReplicaSet with the Deployment's template (the oldest, if several have it), None before there is one."""
    template = deployment["spec"]["template"]
    for replica_set in by_age(replica_sets):
        if templates.are_equal(replica_set["spec"]["template"], template):
            return replica_set
    return None


def _age_order(replica_set: Object) -> tuple[str, str]:
    """Sort key: the oldest first, by name among equals."""
    metadata = replica_set["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["name"]
