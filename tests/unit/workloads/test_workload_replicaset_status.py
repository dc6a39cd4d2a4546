"""The status of a ReplicaSet."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.apps import replicaset_status
from podscaler.controlplane.controllers.apps.replicaset_status import ReplicaFailure
from podscaler.controlplane.controllers.framework import pods
from podscaler.testing import workloads as build

NOW = 1_767_225_600 * NANOSECONDS
LABELS = {"app": "web"}


def ready(name, seconds_ago=100, **extra):
    return build.pod(name, labels=LABELS, node="n", ready_at=NOW - seconds_ago * NANOSECONDS, **extra)


def test_pods_are_counted():
    """Active pods, those with all labels, ready and available ones; terminating ones apart; finished ones not."""
    owned = [
        ready("a"),
        ready("b", seconds_ago=5),
        build.pod("c", labels=LABELS),
        build.pod("d", labels={"app": "web", "more": "x"}),
        build.pod("e"),
        ready("f", deleting=True),
        build.pod("g", labels=LABELS, phase="Failed"),
    ]
    replica_set = build.replica_set(size=5, min_ready_s=10, generation=3)
    assert replicaset_status.status(replica_set, owned, None, NOW) == {
        "replicas": 5,
        "fullyLabeledReplicas": 4,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 3,
        "terminatingReplicas": 1,
    }


def test_zeros_are_left_out_but_the_replicas():
    """As upstream writes them."""
    status = replicaset_status.status(build.replica_set(size=0), [], None, NOW)
    assert status == {"replicas": 0, "terminatingReplicas": 0}


FAILED = {
    "type": "ReplicaFailure",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "FailedCreate",
    "message": "quota",
}


@pytest.mark.parametrize(
    ("before", "failure", "expected"),
    [
        pytest.param([], ReplicaFailure("FailedCreate", "quota"), [FAILED], id="a failure is told"),
        pytest.param([FAILED], ReplicaFailure("FailedCreate", "other"), [FAILED], id="once"),
        pytest.param([FAILED], None, None, id="a success takes it back"),
    ],
)
def test_failures_are_a_condition(before, failure, expected):
    """ReplicaFailure is there while pods cannot be created or deleted."""
    replica_set = build.replica_set()
    replica_set["status"]["conditions"] = before
    assert replicaset_status.status(replica_set, [], failure, NOW).get("conditions") == expected


@pytest.mark.parametrize(
    ("owned", "expected"),
    [
        pytest.param([], None, id="no pods"),
        pytest.param([ready("a", 30)], None, id="all available"),
        pytest.param([ready("a", 30), ready("b", 4), ready("c", 7)], 3.0, id="the next one"),
        pytest.param([build.pod("a")], None, id="not ready: no waiting makes it available"),
        pytest.param([ready("a", 4, deleting=True)], None, id="terminating"),
    ],
)
def test_when_to_look_again(owned, expected):
    """minReadySeconds pass without any event."""
    assert pods.next_available_s(owned, 10, NOW) == expected
