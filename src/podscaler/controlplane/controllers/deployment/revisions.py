"""Annotations of a Deployment's ReplicaSets: revision, revision history, and the sizes of the last scaling.

The rollout computations call it; `kubectl rollout history` and `undo` read the revisions.

Source: annotations `deployment.kubernetes.io/*`.
"""

from collections.abc import Iterable

from podscaler.api.resource.resources import Object

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HISTORY_MAX_CHARACTERS = 2000
_OWN = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
    }
)
"""Annotations that are not copied from the Deployment to its ReplicaSets."""


def number(obj: Object, annotation: str) -> int | None:
    """An annotation as a number, None if it is absent or not a number."""
    try:
        return int((obj["metadata"].get("annotations") or {})[annotation])
    except (KeyError, ValueError):
        return None


def revision(obj: Object) -> int:
    """The revision of an object, 0 without one."""
    return number(obj, REVISION) or 0


def next_revision(old: Iterable[Object]) -> int:
    """One more than the highest of `old`."""
    return max((revision(replica_set) for replica_set in old), default=0) + 1


def annotate(replica_set: Object, deployment: Object, new_revision: int) -> None:
    """Copy the Deployment's annotations (change-cause, ...) to its new ReplicaSet and set its revision, in place.

    A revision never decreases; a replaced one is added to the history.
    """
    notes = replica_set["metadata"].setdefault("annotations", {})
    copied = deployment["metadata"].get("annotations") or {}
    notes.update({key: value for key, value in copied.items() if key not in _OWN})
    before = notes.get(REVISION)
    if revision(replica_set) < new_revision:
        notes[REVISION] = str(new_revision)
        if before:
            notes[HISTORY] = _with_entry(notes.get(HISTORY, ""), before)


def note_sizes(replica_set: Object, desired: int, maximum: int) -> None:
    """Write the desired and maximum replicas of the Deployment, in place, so that a later change is detected."""
    notes = replica_set["metadata"].setdefault("annotations", {})
    notes.update({DESIRED: str(desired), MAXIMUM: str(maximum)})


def _with_entry(history: str, entry: str) -> str:
    entries = [*history.split(","), entry] if history else [entry]
    while len(",".join(entries)) > HISTORY_MAX_CHARACTERS and len(entries) > 1:
        entries.pop(0)
    return ",".join(entries)
