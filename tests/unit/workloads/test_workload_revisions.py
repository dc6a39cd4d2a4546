"""Annotations of ReplicaSets."""

from podscaler.controlplane.controllers.deployment import revisions
from podscaler.testing import workloads as build

REVISION, HISTORY = revisions.REVISION, revisions.HISTORY


def annotated(notes, new_revision, deployment_notes=None):
    replica_set, deployment = build.replica_set(annotations=dict(notes)), build.deployment()
    deployment["metadata"]["annotations"] = deployment_notes or {}
    revisions.annotate(replica_set, deployment, new_revision)
    return replica_set["metadata"]["annotations"]


def test_the_deployments_annotations_are_copied_but_its_own():
    """change-cause reaches `rollout history`; what belongs to the Deployment alone does not."""
    notes = {
        "kubernetes.io/change-cause": "new image",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        REVISION: "7",
    }
    assert annotated({}, 1, notes) == {"kubernetes.io/change-cause": "new image", REVISION: "1"}


def test_a_revision_that_is_raised_joins_the_history():
    """A rollback gives an old ReplicaSet a new revision."""
    assert annotated({REVISION: "2", HISTORY: "1"}, 5) == {REVISION: "5", HISTORY: "1,2"}


def test_a_revision_never_falls():
    """The newest stays the newest."""
    assert annotated({REVISION: "5"}, 3) == {REVISION: "5"}


def test_the_history_is_bounded():
    """The oldest entries go beyond 2000 characters."""
    history = annotated({REVISION: "9999", HISTORY: ",".join(["1234"] * 400)}, 10000)[HISTORY]
    assert (len(history), history[-9:]) == (1999, "1234,9999")


def test_the_next_revision_is_above_all_old_ones():
    """Unreadable revisions count as none."""
    old = [build.replica_set(annotations={REVISION: text}) for text in ("3", "11", "x")]
    assert (revisions.next_revision(old), revisions.next_revision([])) == (12, 1)
