"""What core/v1 shows of a pod."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, Running, Terminated, Waiting
from podscaler.controlplane.kubelet.pods import pod_status
from podscaler.controlplane.kubelet.pods.pod_status import PodStatusFacts

S = NANOSECONDS
T0, T9 = "1970-01-01T00:00:00Z", "1970-01-01T00:00:09Z"
MAIN = ContainerState("web", Role.MAIN, "Always")
RUNNING = replace(MAIN, state=Running(5 * S, "c1"), start_tried=True, started=True, ready=True)
POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u1", "generation": 1},
    "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
}


def facts(**fields: Any) -> PodStatusFacts:
    return PodStatusFacts(
        **{"host_ip": "127.2.0.1", "pod_ip": "127.2.1.1", "started_ns": 0, "initialized": True, **fields}
    )


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c.get("reason", ""), c.get("message", "")) for c in status["conditions"]}


def test_a_running_pod() -> None:
    """The whole status of a pod whose one container runs and is ready."""
    times = {"lastProbeTime": None, "lastTransitionTime": T9, "observedGeneration": 1}
    true = [
        {"type": type_, "status": "True", **times}
        for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    assert pod_status.pod_status(POD, [RUNNING], facts(), now_ns=9 * S) == {
        "phase": "Running",
        "conditions": true,
        "hostIP": "127.2.0.1",
        "hostIPs": [{"ip": "127.2.0.1"}],
        "podIP": "127.2.1.1",
        "podIPs": [{"ip": "127.2.1.1"}],
        "startTime": T0,
        "containerStatuses": [
            {
                "name": "web",
                "state": {"running": {"startedAt": "1970-01-01T00:00:05Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "nginx:1",
                "imageID": "podscaler://image/nginx:1",
                "started": True,
                "containerID": "podscaler://c1",
            }
        ],
        "observedGeneration": 1,
    }


CRASH = Terminated(3, "Error", 8 * S, 6 * S, "c1")
ENDED = replace(MAIN, state=CRASH, start_tried=True, start_due_ns=None)
BACKOFF = replace(MAIN, state=Waiting("CrashLoopBackOff", "wait"), last_termination=CRASH, start_tried=True)
INIT = ContainerState("init", Role.INIT, "OnFailure", Waiting("PodInitializing"))


@pytest.mark.parametrize(
    ("containers", "fields", "phase"),
    [
        pytest.param([MAIN], {}, "Pending", id="never started"),
        pytest.param([RUNNING], {}, "Running", id="running"),
        pytest.param([RUNNING, replace(MAIN, name="b")], {}, "Pending", id="one not yet started"),
        pytest.param([BACKOFF], {}, "Running", id="waiting for a restart"),
        pytest.param([INIT, MAIN], {"initialized": False}, "Pending", id="initialising"),
        pytest.param([ENDED], {"outcome": "Failed"}, "Failed", id="failed"),
        pytest.param([ENDED], {"outcome": "Succeeded"}, "Succeeded", id="succeeded"),
    ],
)
def test_phases(containers: list[ContainerState], fields: dict[str, Any], phase: str) -> None:
    """Pending until every container has run once, Running while any is to run, then the outcome."""
    assert pod_status.phase(containers, facts(**fields)) == phase


def test_a_container_in_back_off_shows_its_last_end() -> None:
    """state.waiting with the reason, lastState.terminated with exit code, times and id."""
    shown = pod_status.container_status(replace(BACKOFF, restart_count=2), {"image": "x"})
    assert (shown["state"], shown["lastState"], shown["restartCount"]) == (
        {"waiting": {"reason": "CrashLoopBackOff", "message": "wait"}},
        {
            "terminated": {
                "exitCode": 3,
                "reason": "Error",
                "startedAt": "1970-01-01T00:00:06Z",
                "finishedAt": "1970-01-01T00:00:08Z",
                "containerID": "podscaler://c1",
            }
        },
        2,
    )


def test_unready_containers_are_named() -> None:
    """Ready and ContainersReady say which containers are not; a pod that initialises says which are incomplete."""
    pod = {**POD, "spec": {"initContainers": [{"name": "init"}], "containers": [{"name": "web"}]}}
    status = pod_status.pod_status(pod, [INIT, MAIN], facts(initialized=False, pod_ip=""), now_ns=0)
    unready = ("False", "ContainersNotReady", "containers with unready status: [web]")
    assert conditions(status) == {
        "PodReadyToStartContainers": ("False", "", ""),
        "Initialized": ("False", "ContainersNotInitialized", "containers with incomplete status: [init]"),
        "Ready": unready,
        "ContainersReady": unready,
        "PodScheduled": ("True", "", ""),
    }


@pytest.mark.parametrize(("outcome", "reason"), [("Succeeded", "PodCompleted"), ("Failed", "PodFailed")])
def test_an_ended_pod_is_not_ready(outcome: str, reason: str) -> None:
    """The reason says how it ended."""
    found = conditions(pod_status.pod_status(POD, [ENDED], facts(outcome=outcome), now_ns=0))
    assert (found["Ready"], found["ContainersReady"]) == (("False", reason, ""), ("False", reason, ""))


def test_transition_times_stay_while_nothing_changes() -> None:
    """A condition keeps its time until its status changes; the result is equal, so that nothing is written."""
    first = pod_status.pod_status(POD, [RUNNING], facts(), now_ns=9 * S)
    again = pod_status.pod_status({**POD, "status": first}, [RUNNING], facts(), now_ns=99 * S)
    assert again == first
    unready = pod_status.pod_status({**POD, "status": first}, [replace(RUNNING, ready=False)], facts(), now_ns=99 * S)
    changed = {c["type"] for c in unready["conditions"] if c["lastTransitionTime"] != T9}
    assert changed == {"Ready", "ContainersReady"}


@pytest.mark.parametrize(
    ("former", "expected"),
    [
        (
            None,
            (
                "False",
                "ReadinessGatesNotReady",
                'corresponding condition of pod readiness gate "example.com/gate" does not exist.',
            ),
        ),
        (
            "False",
            (
                "False",
                "ReadinessGatesNotReady",
                'the status of pod readiness gate "example.com/gate" is not "True", but False',
            ),
        ),
        ("True", ("True", "", "")),
    ],
)
def test_readiness_gates(former: str | None, expected: tuple[str, str, str]) -> None:
    """A pod is ready when its containers and its gates are; conditions of others are kept."""
    gate = {"type": "example.com/gate", "status": former}
    pod = {
        **POD,
        "spec": {**POD["spec"], "readinessGates": [{"conditionType": "example.com/gate"}]},
        "status": {"conditions": [gate] if former else []},
    }
    status = pod_status.pod_status(pod, [RUNNING], facts(), now_ns=0)
    assert conditions(status)["Ready"] == expected
    assert (gate in status["conditions"]) is bool(former)


def test_fields_of_others_are_kept() -> None:
    """qosClass and whatever else others wrote stays."""
    former = {"qosClass": "Burstable", "nominatedNodeName": "n", "phase": "Pending"}
    status = pod_status.pod_status({**POD, "status": former}, [RUNNING], facts(), now_ns=0)
    assert (status["qosClass"], status["nominatedNodeName"], status["phase"]) == ("Burstable", "n", "Running")


def test_init_containers_and_sidecars_have_their_own_list() -> None:
    """An init container is ready once it is done; a sidecar while it runs."""
    done = replace(INIT, state=Terminated(0, "Completed", 2 * S), start_tried=True, start_due_ns=None)
    sidecar = replace(RUNNING, name="side", role=Role.SIDECAR)
    inits = [{"name": "init"}, {"name": "side", "restartPolicy": "Always"}]
    pod = {**POD, "spec": {"initContainers": inits, "containers": [{"name": "web"}]}}
    status = pod_status.pod_status(pod, [done, sidecar, RUNNING], facts(), now_ns=0)
    shown = [(entry["name"], entry["ready"], entry["started"]) for entry in status["initContainerStatuses"]]
    assert shown == [("init", True, False), ("side", True, True)]


async def test_a_deleted_pod_is_seen(played: Any, container: Callable[..., dict[str, Any]]) -> None:
    """A pod whose processes end at once is kept for half a second, so that clients see its deletion."""
    await played.begin(containers=[container()])
    await played.delete()
    assert played.stage.processes["c"].exited.done()
    await played.clock.advance(0.4)
    assert played.pod["metadata"]["deletionTimestamp"]
    await played.clock.advance(0.1)
    assert played.is_gone
