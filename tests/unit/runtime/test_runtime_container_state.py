"""The states of a container, its back-off, and what is read back after a restart of the node."""

from typing import Any

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.kubelet.containers import container_state
from podscaler.controlplane.kubelet.containers.container_state import (
    ContainerState,
    CrashLoopBackoff,
    RestartPolicy,
    Role,
    Running,
    Terminated,
    Waiting,
    create_retry_s,
)
from podscaler.controlplane.kubelet.pods import pod_status, restored_containers

S = NANOSECONDS
POD = "web_default(u1)"


def end(at_s: int, code: int = 1, started_s: int = 0) -> Terminated:
    return Terminated(code, "Error" if code else "Completed", at_s * S, started_s * S, "c1")


def test_restarts_wait_longer_and_longer() -> None:
    """The first restart is immediate; then 10 s, doubling up to 300 s."""
    memory, delays, at_ns = CrashLoopBackoff(), [], 1_000_000 * S
    for _ in range(9):
        memory = memory.with_exit(at_ns)
        delays.append((memory.restart_due_ns - at_ns) // S)
        at_ns = memory.restart_due_ns + S
    assert delays == [0, 10, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.parametrize(("ran_s", "delay_s"), [(599, 20), (600, 20), (601, 0)])
def test_a_long_run_is_forgiven(ran_s: int, delay_s: int) -> None:
    """More than ten minutes after the last restart the back-off starts over."""
    memory = CrashLoopBackoff(20, 1000 * S).with_exit((1000 + ran_s) * S)
    assert (memory.restart_due_ns - (1000 + ran_s) * S) // S == delay_s
    assert memory.delay_s == (40 if delay_s else 10)


def test_creation_is_tried_again_soon() -> None:
    """A missing ConfigMap is looked for after 1, 2, 4, 8 and then every 15 s."""
    assert [create_retry_s(n) for n in (1, 2, 3, 4, 5, 6, 100)] == [1, 2, 4, 8, 15, 15, 15]


def test_crash_and_restart() -> None:
    """A timeline: start, crash, immediate restart, crash, back-off, restart."""
    begun = container_state.after_start(ContainerState("web", Role.MAIN, "Always"), now_ns=0, container_id="c1")
    crashed = container_state.after_exit(begun, end(1000), may_restart=True, pod_text=POD)
    again = container_state.after_start(crashed, now_ns=1000 * S, container_id="c2")
    waits = container_state.after_exit(again, end(1003, started_s=1000), may_restart=True, pod_text=POD)
    third = container_state.after_start(waits, now_ns=1013 * S, container_id="c3")
    text = "back-off 10s restarting failed container=web pod=web_default(u1)"
    assert [
        (c.state, c.last_termination, c.restart_count, c.start_due_ns) for c in (begun, crashed, again, waits, third)
    ] == [
        (Running(0, "c1"), None, 0, 0),
        (end(1000), None, 0, 1000 * S),
        (Running(1000 * S, "c2"), end(1000), 1, 1000 * S),
        (Waiting("CrashLoopBackOff", text), end(1003, started_s=1000), 1, 1013 * S),
        (Running(1013 * S, "c3"), end(1003, started_s=1000), 2, 1013 * S),
    ]


def test_failed_starts_are_counted() -> None:
    """A program that is never there: every try after the first is a restart."""
    container, counts = ContainerState("web", Role.MAIN, "Always"), []
    for _ in range(3):
        container = container_state.after_exit(container, end(10, 128), may_restart=True, pod_text=POD)
        counts.append(container.restart_count)
    assert (counts, container_state.after_start(container, now_ns=0, container_id="c").restart_count) == ([0, 1, 2], 3)


def test_long_delays_are_shown_as_go_does() -> None:
    """40s, 1m20s, 5m0s."""
    container = ContainerState("web", Role.MAIN, "Always", backoff=CrashLoopBackoff(80, 0))
    shown = container_state.after_exit(container, end(10), may_restart=True, pod_text=POD).state
    assert shown == Waiting("CrashLoopBackOff", "back-off 1m20s restarting failed container=web pod=web_default(u1)")


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_policies(policy: RestartPolicy, code: int, again: bool) -> None:
    """Always, OnFailure, Never."""
    container = ContainerState("web", Role.MAIN, policy, start_tried=True)
    found = container_state.after_exit(container, end(5, code), may_restart=True, pod_text=POD)
    assert found.is_final is not again


def test_nothing_is_restarted_while_the_pod_ends() -> None:
    """An exit during termination is final whatever the policy."""
    found = container_state.after_exit(
        ContainerState("web", Role.MAIN, "Always"), end(5), may_restart=False, pod_text=POD
    )
    assert (found.state, found.is_final, found.exit_code) == (end(5), True, 1)


@pytest.mark.parametrize(
    ("pod_policy", "own", "expected"),
    [
        ("Always", None, (Role.INIT, "OnFailure")),
        ("OnFailure", None, (Role.INIT, "OnFailure")),
        ("Never", None, (Role.INIT, "Never")),
        ("Never", "Always", (Role.SIDECAR, "Always")),
    ],
)
def test_init_containers_have_policies_of_their_own(
    pod_policy: str, own: str | None, expected: tuple[Any, ...]
) -> None:
    """An init container is retried unless the pod says Never; one that is always restarted is a sidecar."""
    init = {"name": "i"} | ({"restartPolicy": own} if own else {})
    spec = {"restartPolicy": pod_policy, "initContainers": [init], "containers": [{"name": "a"}]}
    found = container_state.initial_states(spec)[0]
    assert (found.role, found.policy) == expected


def test_a_container_that_cannot_be_created_is_held() -> None:
    """Waiting with the reason, what happened before is kept, and the next try is later each time."""
    once = container_state.after_failed_creation(
        ContainerState("web", Role.MAIN, "Always"), "CreateContainerConfigError", "no", now_ns=0
    )
    twice = container_state.after_failed_creation(once, "CreateContainerConfigError", "no", now_ns=10 * S)
    assert [(c.state, c.start_due_ns) for c in (once, twice)] == [
        (Waiting("CreateContainerConfigError", "no"), S),
        (Waiting("CreateContainerConfigError", "no"), 12 * S),
    ]


def adopt(*, policy: str = "Always", **statuses: Any) -> list[ContainerState]:
    init, main = statuses.get("init"), statuses.get("main")
    pod = {
        "spec": {"restartPolicy": policy, "initContainers": [{"name": "init"}], "containers": [{"name": "main"}]},
        "status": {
            "initContainerStatuses": [{"name": "init", **init}] if init else [],
            "containerStatuses": [{"name": "main", **main}] if main else [],
        },
    }
    return restored_containers.restore(pod, now_ns=50 * S)


DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "1970-01-01T00:00:02Z"}}}
ALIVE = {"state": {"running": {"startedAt": "1970-01-01T00:00:03Z"}}, "restartCount": 4}


def test_what_ran_has_ended_and_runs_again() -> None:
    """After a restart of the node: ContainerStatusUnknown, due at once, counts go on, inits again."""
    init, main = adopt(init=DONE, main=ALIVE)
    assert isinstance(main.state, Terminated)
    assert (main.state.reason, main.state.exit_code, main.state.started_ns) == ("ContainerStatusUnknown", 137, 3 * S)
    assert (main.start_due_ns, main.restart_count, main.start_tried) == (0, 4, True)
    assert (init.state, init.start_due_ns) == (Waiting("PodInitializing"), 0)
    assert container_state.after_start(main, now_ns=60 * S, container_id="c9").restart_count == 5


def test_a_restored_container_keeps_its_id() -> None:
    """The id of a status is the container's id after a scheme; the restored state has it without."""
    (container,) = restored_containers.restore(
        {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]},
            "status": {
                "containerStatuses": [
                    {"name": "main", "state": {"terminated": {"exitCode": 0, "containerID": "podscaler://c1"}}}
                ]
            },
        },
        now_ns=50 * S,
    )
    assert pod_status.container_status(container, {"name": "main"})["containerID"] == "podscaler://c1"


def test_what_may_not_restart_stays_ended() -> None:
    """With Never the pod that ran when the node stopped has failed; its init containers stay done."""
    init, main = adopt(policy="Never", init=DONE, main=ALIVE)
    assert (main.is_final, main.exit_code, init.is_final, init.exit_code) == (True, 137, True, 0)


def test_a_new_pod_has_nothing_to_adopt() -> None:
    """Without statuses the containers are fresh."""
    assert [(c.state, c.start_tried) for c in adopt()] == [(Waiting("PodInitializing"), False)] * 2


def test_a_waiting_container_keeps_its_last_end() -> None:
    """CrashLoopBackOff of the last run: due at once, counted as a restart."""
    crashed = {"exitCode": 3, "reason": "Error", "finishedAt": "1970-01-01T00:00:02Z"}
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": crashed}}
    _, main = adopt(main={**waiting, "restartCount": 2})
    assert main.last_termination == Terminated(3, "Error", 2 * S)
    assert container_state.after_start(main, now_ns=60 * S, container_id="c9").restart_count == 3
