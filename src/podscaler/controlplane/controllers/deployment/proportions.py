"""How a Deployment that is scaled in the middle of a rollout shares the difference among its ReplicaSets.

The rollout computations call it. Example: maxSurge 3, wanted 10, sets of 8 and 5 pods (13 at most); now 15 are
wanted, so 18 may be: 5 to add, of which the set of 8 gets round(8 * 18 / 13) - 8 = 3, the other one the 2 left.

Source: documentation of Deployment, "Proportional scaling".
"""

import math
from collections.abc import Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.deployment import replica_sets, revisions


def sizes(sets: Sequence[Object], *, wanted: int, surge: int, current: int) -> list[tuple[Object, int]]:
    """Each set with its new size, in the order in which they should be written.

    Args:
        sets: the ReplicaSets that should have pods now, each noting the maximum of its last scaling; in any order.
        wanted: the Deployment's new `spec.replicas`.
        surge: how many more there may be.
        current: the pods that the Deployment has, for sets that note no maximum.
    """
    allowed = wanted + surge if wanted > 0 else 0
    to_add = allowed - replica_sets.total_size(sets)
    ordered = replica_sets.largest_first(sets, among_equals_newest=to_add > 0)
    added, result = 0, []
    for one in ordered:
        share = _share(one, to_add - added, allowed, current) if to_add else 0
        added += share
        result.append((one, replica_sets.size(one) + share))
    if result and to_add:
        largest, size = result[0]
        result[0] = largest, max(size + to_add - added, 0)
    return result


def _share(one: Object, left: int, allowed: int, current: int) -> int:
    if left == 0:
        return 0
    fair = _fair_share(one, allowed, current)
    return min(fair, left) if left > 0 else max(fair, left)


def _fair_share(one: Object, allowed: int, current: int) -> int:
    size = replica_sets.size(one)
    if allowed == 0:
        return -size
    before = revisions.number(one, revisions.MAXIMUM) or current
    return _rounded(size * allowed / before) - size if before else 0


def _rounded(value: float) -> int:
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)
