"""What a Deployment notes on its ReplicaSets: revision, history, and the sizes that it last worked towards.

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
"""Annotations that belong to the one object that carries them: never copied."""


def number(obj: Object, annotation: str) -> int | None:
    """The annotation as a number, None where it is absent or no number."""
    try:
        return int((obj["metadata"].get("annotations") or {})[annotation])
    except (KeyError, ValueError):
        return None


def revision(obj: Object) -> int:
    """Its revision, 0 without one."""
    return number(obj, REVISION) or 0


def next_revision(old: Iterable[Object]) -> int:
    """One more than the highest of `old`."""
    return max((revision(one) for one in old), default=0) + 1


def annotate(replica_set: Object, deployment: Object, new_revision: int) -> None:
    """Copy the Deployment's annotations (change-cause and the like) to its new ReplicaSet and give it `new_revision`.

    In place. A revision never falls; one that is replaced joins the history.
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
    """Note what the Deployment wants and may have at most, in place; a later change of it is then seen."""
    notes = replica_set["metadata"].setdefault("annotations", {})
    notes.update({DESIRED: str(desired), MAXIMUM: str(maximum)})


def _with_entry(history: str, entry: str) -> str:
    entries = [*history.split(","), entry] if history else [entry]
    while len(",".join(entries)) > HISTORY_MAX_CHARACTERS and len(entries) > 1:
        entries.pop(0)
    return ",".join(entries)
