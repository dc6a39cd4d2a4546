"""The Progressing condition and the rest of a Deployment's status."""

import pytest

from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.controlplane.controllers.deployment import deployment_status, progress
from podscaler.testing import workloads as build

NOW = 1_767_225_600 * NANOSECONDS
AGO = NOW - 60 * NANOSECONDS


def condition(reason, status="True", updated_at=AGO):
    return {
        "type": "Progressing",
        "status": status,
        "lastUpdateTime": rfc3339(updated_at),
        "lastTransitionTime": rfc3339(AGO),
        "reason": reason,
        "message": "",
    }


def judged(before, sets, *, replicas=2, **spec):
    deployment = build.deployment(replicas=replicas, **({"progressDeadlineSeconds": 60} | spec))
    deployment["status"] = before
    new = sets[-1] if sets else None
    status = deployment_status.status(deployment, sets, new, NOW)
    return progress.with_progress(deployment, status, sets=sets, new_set=new, now_ns=NOW)


def the_set(pods, available):
    return build.replica_set("web-x", 2, pods=pods, ready=available, available=available)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(
            {"conditions": [condition("NewReplicaSetCreated")]},
            the_set(1, 0),
            ("True", "ReplicaSetUpdated", 'ReplicaSet "web-x" is progressing.', NOW),
            id="a pod more is progress",
        ),
        pytest.param(
            {"conditions": [condition("ReplicaSetUpdated")], "replicas": 2, "updatedReplicas": 2},
            the_set(2, 1),
            ("True", "ReplicaSetUpdated", 'ReplicaSet "web-x" is progressing.', NOW),
            id="a pod available is progress: the deadline starts again",
        ),
        pytest.param(
            {"conditions": [condition("ReplicaSetUpdated")], "replicas": 2, "updatedReplicas": 2},
            the_set(2, 2),
            ("True", "NewReplicaSetAvailable", 'ReplicaSet "web-x" has successfully progressed.', NOW),
            id="all there: complete",
        ),
        pytest.param(
            {"conditions": [condition("ReplicaSetUpdated")], "replicas": 2, "updatedReplicas": 2},
            the_set(2, 0),
            ("True", "ReplicaSetUpdated", "", AGO),
            id="no news within the deadline: as it was",
        ),
        pytest.param(
            {
                "conditions": [condition("ReplicaSetUpdated", updated_at=AGO - NANOSECONDS)],
                "replicas": 2,
                "updatedReplicas": 2,
            },
            the_set(2, 0),
            ("False", "ProgressDeadlineExceeded", 'ReplicaSet "web-x" has timed out progressing.', NOW),
            id="no news beyond the deadline: timed out",
        ),
        pytest.param(
            {"conditions": [condition("ProgressDeadlineExceeded", "False")], "replicas": 2, "updatedReplicas": 2},
            the_set(2, 1),
            ("True", "ReplicaSetUpdated", 'ReplicaSet "web-x" is progressing.', NOW),
            id="news after the deadline heal it",
        ),
        pytest.param(
            {"conditions": [condition("NewReplicaSetAvailable")], "replicas": 2, "updatedReplicas": 2},
            the_set(2, 0),
            ("True", "NewReplicaSetAvailable", "", AGO),
            id="complete stays complete when a pod fails later",
        ),
    ],
)
def test_the_condition_follows_the_rollout(before, now, expected):
    """What `kubectl rollout status` waits for: status, reason, message and lastUpdateTime."""
    found = progress.find_progressing(judged(before, [now]))
    assert (found["status"], found["reason"], found["message"]) == expected[:3]
    assert found["lastUpdateTime"] == rfc3339(expected[3])


def test_without_a_deadline_nothing_is_said():
    """A condition of earlier times goes."""
    assert (
        progress.find_progressing(
            judged({"conditions": [condition("X")]}, [the_set(1, 0)], progressDeadlineSeconds=None)
        )
        is None
    )


def test_a_failure_of_the_new_set_is_passed_on():
    """Why pods are missing stands in the Deployment too, and goes with its cause."""
    failing = the_set(0, 0)
    cause = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    failing["status"]["conditions"] = [cause]
    status = judged({}, [failing])
    assert status["conditions"][-1] == {
        "type": "ReplicaFailure",
        "status": "True",
        "lastUpdateTime": rfc3339(NOW),
        "lastTransitionTime": rfc3339(NOW),
        "reason": "FailedCreate",
        "message": "quota",
    }
    healed = judged(status, [the_set(0, 0)])
    assert [one["type"] for one in healed["conditions"]] == ["Available"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([condition("ReplicaSetUpdated")], 1.0, id="due now: a second later"),
        pytest.param([condition("ReplicaSetUpdated", updated_at=NOW)], 61.0, id="a second after the deadline"),
        pytest.param([condition("ReplicaSetUpdated", updated_at=NOW - 600 * NANOSECONDS)], 1.0, id="overdue"),
        pytest.param([condition("ProgressDeadlineExceeded")], None, id="it has passed already"),
        pytest.param([], None, id="nothing to wait for"),
    ],
)
def test_when_the_deadline_is_looked_at_again(conditions, expected):
    """It passes without any event."""
    deployment = build.deployment(replicas=2, progressDeadlineSeconds=60)
    assert progress.requeue_after_s(deployment, {"conditions": conditions}, NOW) == expected


@pytest.mark.parametrize(
    ("available", "expected"),
    [(2, ("False", "MinimumReplicasUnavailable")), (3, ("True", "MinimumReplicasAvailable"))],
)
def test_available_means_enough_pods(available, expected):
    """4 replicas of which 1 (25%) may be missing."""
    status = judged({}, [build.replica_set(size=4, pods=4, available=available)], replicas=4)
    found = next(one for one in status["conditions"] if one["type"] == "Available")
    assert (found["status"], found["reason"]) == expected


def test_pods_that_are_not_created_yet_are_unavailable():
    """The count is that of the specs of the ReplicaSets, not that of their statuses."""
    status = judged({}, [build.replica_set(size=4, pods=1, available=1)], replicas=4)
    assert (status["replicas"], status["unavailableReplicas"]) == (1, 3)


def test_the_counts():
    """Sums over all sets; updated are those of the new one."""
    old = build.replica_set("old", 3, pods=3, ready=2, available=1)
    new = build.replica_set("new", 2, pods=2, ready=1, available=1)
    old["status"]["terminatingReplicas"] = 2
    status = judged({"collisionCount": 1}, [old, new])
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "replicas": 5,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "terminatingReplicas": 2,
        "updatedReplicas": 2,
        "unavailableReplicas": 3,
        "observedGeneration": 1,
        "collisionCount": 1,
    }
