"""The ReplicaSets of one Deployment: which is the new one, in what orders they are taken, how many pods they stand for.

The rollout computations call it. ReplicaSets are JSON-ready dicts.
Source: the Deployment controller's rules (documentation: "Rollover", "Clean up policy", "Proportional scaling").
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import templates


def size(replica_set: Object) -> int:
    """`spec.replicas`: how many pods it should have; 1 where it is not set."""
    wanted = replica_set["spec"].get("replicas")
    return 1 if wanted is None else int(wanted)


def count(replica_set: Object, field: str) -> int:
    """A number of its status (`replicas`, `readyReplicas`, `availableReplicas`, ...), 0 where absent."""
    return int((replica_set.get("status") or {}).get(field) or 0)


def total_size(replica_sets: Iterable[Object]) -> int:
    """The pods that all of them should have."""
    return sum(size(replica_set) for replica_set in replica_sets)


def total(replica_sets: Iterable[Object], field: str) -> int:
    """The sum of a number of their status."""
    return sum(count(replica_set, field) for replica_set in replica_sets)


def active(replica_sets: Iterable[Object]) -> list[Object]:
    """Those that should have pods."""
    return [replica_set for replica_set in replica_sets if size(replica_set) > 0]


def by_age(replica_sets: Iterable[Object]) -> list[Object]:
    """Oldest first; names decide between equal ages."""
    return sorted(replica_sets, key=_age)


def largest_first(replica_sets: Iterable[Object], *, among_equals_newest: bool) -> list[Object]:
    """By size; among equals newest or oldest first."""
    ordered = sorted(replica_sets, key=_age, reverse=among_equals_newest)
    return sorted(ordered, key=size, reverse=True)


def find_new(deployment: Object, replica_sets: Sequence[Object]) -> Object | None:
    """The one with the Deployment's template (the oldest, if several have it), None before there is one."""
    template = deployment["spec"]["template"]
    return next((one for one in by_age(replica_sets) if templates.same(one["spec"]["template"], template)), None)


def _age(replica_set: Object) -> tuple[str, str]:
    metadata = replica_set["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["name"]
