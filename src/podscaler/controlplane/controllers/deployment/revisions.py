"""Annotations of a Deployment's ReplicaSets: revision, revision history, and the sizes of the last scaling.

`rollout` calls it, `deployment` writes `REVISION` to the Deployment; `kubectl rollout history` and `undo` read the
revisions. A new annotation: a constant, also in `_NOT_COPIED`.

Source: annotations `deployment.kubernetes.io/*`.
"""

from collections.abc import Iterable

from podscaler.api.resource.resources import Object

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
"""`spec.replicas` of the Deployment at the last scaling of the ReplicaSet."""
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""The same plus maxSurge."""
HISTORY_MAX_CHARACTERS = 2000
"""How long HISTORY becomes at most, as upstream; its oldest revisions are dropped."""
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    }
)
"""Annotations that are not copied from the Deployment to its ReplicaSets."""


def parse_number(obj: Object, annotation: str) -> int | None:
    """An annotation as a number, None if it is absent or not a number."""
    try:
        return int((obj["metadata"].get("annotations") or {})[annotation])
    except (KeyError, ValueError):
        return None


def revision(obj: Object) -> int:
    """The revision of an object, 0 without one."""
    return parse_number(obj, REVISION) or 0


def next_revision(old_sets: Iterable[Object]) -> int:
    """The revision of the new ReplicaSet: one more than the highest of the old ones, 1 without any."""
    return max((revision(replica_set) for replica_set in old_sets), default=0) + 1


def annotate(replica_set: Object, deployment: Object, new_revision: int) -> None:
    """Copy the Deployment's annotations (change-cause, ...) to its new ReplicaSet and set its revision, in place.

    A revision never decreases; a replaced one is added to the history.
    """
    annotations = replica_set["metadata"].setdefault("annotations", {})
    deployment_annotations = deployment["metadata"].get("annotations") or {}
    annotations.update({key: value for key, value in deployment_annotations.items() if key not in _NOT_COPIED})
    old_revision = annotations.get(REVISION)
    if revision(replica_set) < new_revision:
        annotations[REVISION] = str(new_revision)
        if old_revision:
            annotations[HISTORY] = _with_entry(annotations.get(HISTORY, ""), old_revision)


def note_sizes(replica_set: Object, desired_replicas: int, max_replicas: int) -> None:
    """Write the desired and maximum replicas of the Deployment, in place; `rollout` detects a scaling by them."""
    annotations = replica_set["metadata"].setdefault("annotations", {})
    annotations.update({DESIRED_REPLICAS: str(desired_replicas), MAX_REPLICAS: str(max_replicas)})


def _with_entry(history: str, old_revision: str) -> str:
    """The revision history (`1,3,4`) with one more revision, without the oldest ones if it would become too long."""
    entries = [*history.split(","), old_revision] if history else [old_revision]
    while len(",".join(entries)) > HISTORY_MAX_CHARACTERS and len(entries) > 1:
        entries.pop(0)
    return ",".join(entries)
