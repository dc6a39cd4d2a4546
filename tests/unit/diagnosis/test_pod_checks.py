"""Pods of a target for `podscaler doctor`: what is wrong with each, together where it is the same, and what to do."""

from typing import Any

import pytest

from podscaler.api.machinery import instants
from podscaler.cli.diagnosis import pod_checks
from podscaler.cli.diagnosis.findings import Area, DoctorFinding, FindingLevel

NOW = instants.parse("2026-03-03T10:30:00Z")
LONG_AGO, JUST_NOW = "2026-03-03T09:00:00Z", "2026-03-03T10:29:50Z"
Json = dict[str, Any]


def pod(name: str = "web-1", *, ready: bool = True, since: str = LONG_AGO, **more: Any) -> Json:
    """A pod with one container that runs; `more` are fields of its status."""
    container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    state = {"name": "main", "ready": ready, "restartCount": 0, "state": {"running": {"startedAt": since}}}
    conditions = [{"type": "Ready", "status": str(ready), "message": "" if ready else "containers with unready status"}]
    status = {"phase": "Running", "startTime": since, "conditions": conditions, "containerStatuses": [state]}
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": since}
    return {"metadata": metadata, "spec": {"containers": [container]}, "status": status | more}


def waiting(name: str, reason: str, message: str = "", restarts: int = 0) -> Json:
    """A pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    statuses = [{"name": "main", "ready": False, "restartCount": restarts, "state": state}]
    return pod(name, ready=False, containerStatuses=statuses)


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: no cpu"}
PENDING = [
    pod(name, ready=False, phase="Pending", conditions=[UNSCHEDULABLE], containerStatuses=[], startTime=None)
    for name in ("web-2", "web-3")
]
KILLED = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-03-03T10:20:00Z", "exitCode": 137}}
OOM_KILLED = pod(
    containerStatuses=[
        {"name": "main", "ready": True, "restartCount": 1, "state": {"running": {}}, "lastState": KILLED}
    ]
)
LOGS = "kubectl -n shop logs web-1 --all-containers --previous"


def finding(level: FindingLevel, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(level, Area.PODS, message, fix)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(None, (), id="not known"),
        pytest.param([], (), id="none"),
        pytest.param([pod()], (), id="ready"),
        pytest.param([pod(ready=False, since=JUST_NOW)], (), id="starting"),
        pytest.param(
            [pod(ready=False)],
            (
                finding(
                    FindingLevel.WARNING,
                    "1 pod is NotReady (web-1): containers with unready status",
                    "kubectl -n shop describe pod web-1",
                ),
            ),
            id="not ready",
        ),
        pytest.param(
            [pod(), *PENDING],
            (
                finding(
                    FindingLevel.ERROR,
                    "2 pods are Pending (web-2, web-3): 0/1 nodes: no cpu",
                    "kubectl -n shop describe pod web-2",
                ),
            ),
            id="pending for the same reason",
        ),
        pytest.param(
            [waiting("web-1", "CrashLoopBackOff", "back-off 40s", 7)],
            (
                finding(
                    FindingLevel.ERROR,
                    "1 pod is CrashLoopBackOff (web-1): container main: back-off 40s, restarted 7 times",
                    LOGS,
                ),
            ),
            id="crashing",
        ),
        pytest.param(
            [waiting("web-1", "ImagePullBackOff")],
            (
                finding(
                    FindingLevel.ERROR,
                    "1 pod is ImagePullBackOff (web-1): container main: ImagePullBackOff",
                    "kubectl -n shop describe pod web-1",
                ),
            ),
            id="no image",
        ),
        pytest.param(
            [OOM_KILLED],
            (
                finding(
                    FindingLevel.WARNING,
                    "1 pod is Ready (web-1): container main was killed for memory 10 min ago",
                    f"raise the memory limit of that container, or find the leak: {LOGS}",
                ),
            ),
            id="killed for memory",
        ),
    ],
)
def test_states(pods: list[Json] | None, expected: tuple[DoctorFinding, ...]) -> None:
    """A finding for each state and reason."""
    assert pod_checks.check(pods, ["cpu"], NOW).findings == expected


def test_requests_that_are_missing() -> None:
    """By container and resource; pod-level requests are enough."""
    whole = pod("web-2")
    whole["spec"] = {"containers": [{"name": "main"}], "resources": {"requests": {"memory": "1Gi"}}}
    found = pod_checks.check([pod(), whole], ["cpu", "memory"], NOW).findings
    assert found == (
        finding(
            FindingLevel.ERROR,
            "container main of web-1 requests no memory, so that its utilization is not known",
            "set resources.requests.memory of this container in the target's pod template",
        ),
    )


def test_the_section_counts_states() -> None:
    """As kubectl names them."""
    lines = pod_checks.check([pod(), *PENDING], [], NOW).section.lines
    assert [(each.label, each.text) for each in lines] == [
        ("pods", "2 Pending, 1 Ready"),
        ("Pending", "web-2, web-3: 0/1 nodes: no cpu"),
    ]
