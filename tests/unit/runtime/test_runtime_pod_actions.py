"""What a pod does next: the plan from the states of its containers."""

from dataclasses import replace

import pytest

from podscaler.controlplane.kubelet.containers.container_state import ContainerState, Role, Running, Terminated, Waiting
from podscaler.controlplane.kubelet.pods import pod_actions
from podscaler.controlplane.kubelet.pods.pod_actions import PodActions

NOW_NS = 1_000_000_000_000
LATER_NS = NOW_NS + 5


def new(name: str, role: Role = Role.MAIN) -> ContainerState:
    return ContainerState(name, role, "Always" if role is not Role.INIT else "OnFailure")


def running(name: str, role: Role = Role.MAIN, *, started: bool = True) -> ContainerState:
    return replace(new(name, role), state=Running(NOW_NS, "id"), start_tried=True, started=started)


def ended(name: str, role: Role = Role.MAIN, *, code: int = 0) -> ContainerState:
    return replace(new(name, role), state=Terminated(code, "Completed", NOW_NS), start_tried=True, start_due_ns=None)


def waiting(name: str, role: Role = Role.MAIN, *, until_ns: int = LATER_NS) -> ContainerState:
    last = Terminated(1, "Error", NOW_NS)
    return replace(
        new(name, role),
        state=Waiting("CrashLoopBackOff"),
        last_termination=last,
        start_tried=True,
        start_due_ns=until_ns,
    )


INIT, SIDECAR = Role.INIT, Role.SIDECAR


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param(
            [new("a"), new("b")], PodActions(start=("a", "b"), initialized=True), id="all regular containers at once"
        ),
        pytest.param(
            [new("i", INIT), new("j", INIT), new("a")], PodActions(start=("i",)), id="init containers one by one"
        ),
        pytest.param(
            [running("i", INIT), new("j", INIT), new("a")], PodActions(), id="an init container is waited for"
        ),
        pytest.param([ended("i", INIT), new("j", INIT), new("a")], PodActions(start=("j",)), id="then the next"),
        pytest.param(
            [ended("i", INIT), new("a")], PodActions(start=("a",), initialized=True), id="then the regular ones"
        ),
        pytest.param(
            [waiting("i", INIT), new("a")],
            PodActions(wake_at_ns=LATER_NS),
            id="a failed init container is tried again later",
        ),
        pytest.param(
            [new("s", SIDECAR), new("a")], PodActions(start=("s",)), id="a sidecar begins in the order of the inits"
        ),
        pytest.param(
            [running("s", SIDECAR, started=False), new("a")],
            PodActions(),
            id="a sidecar holds back until it has started",
        ),
        pytest.param(
            [running("s", SIDECAR), new("a")],
            PodActions(start=("a",), initialized=True),
            id="a started sidecar lets them go",
        ),
        pytest.param(
            [waiting("s", SIDECAR, until_ns=NOW_NS), running("i", INIT), new("a")],
            PodActions(start=("s",)),
            id="a sidecar is restarted while init containers run",
        ),
        pytest.param([running("a")], PodActions(initialized=True), id="nothing to do"),
        pytest.param([waiting("a"), running("b")], PodActions(wake_at_ns=LATER_NS, initialized=True), id="back-off"),
        pytest.param(
            [waiting("a", until_ns=NOW_NS)], PodActions(start=("a",), initialized=True), id="a back-off that is over"
        ),
        pytest.param(
            [waiting("a", until_ns=LATER_NS + 1), waiting("b")],
            PodActions(wake_at_ns=LATER_NS, initialized=True),
            id="the next one that is due",
        ),
        pytest.param(
            [running("s", SIDECAR), running("t", SIDECAR), ended("a")],
            PodActions(stop=("t",)),
            id="sidecars end last first when the work is done",
        ),
        pytest.param(
            [running("s", SIDECAR), ended("t", SIDECAR), ended("a")], PodActions(stop=("s",)), id="then the first"
        ),
        pytest.param(
            [ended("s", SIDECAR, code=143), ended("a")], PodActions(outcome="Succeeded"), id="sidecars do not count"
        ),
        pytest.param([ended("a"), ended("b", code=3)], PodActions(outcome="Failed"), id="one failure fails the pod"),
        pytest.param(
            [ended("i", INIT, code=1), new("a")], PodActions(outcome="Failed"), id="an init container fails the pod"
        ),
        pytest.param(
            [running("s", SIDECAR), ended("i", INIT, code=1), new("a")],
            PodActions(stop=("s",)),
            id="and its sidecars are stopped",
        ),
    ],
)
def test_the_next_steps(containers: list[ContainerState], expected: PodActions) -> None:
    """Rules 1 to 4 of the module, one case a row."""
    assert pod_actions.compute_pod_actions(containers, initialized=False, terminating=False, now_ns=NOW_NS) == expected


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([new("a")], PodActions(outcome="Failed"), id="nothing ever ran"),
        pytest.param(
            [running("s", SIDECAR), running("a"), running("b")], PodActions(stop=("a", "b")), id="sidecars wait"
        ),
        pytest.param(
            [running("s", SIDECAR), ended("a")], PodActions(stop=("s",)), id="and go when the others are gone"
        ),
        pytest.param([waiting("a", until_ns=NOW_NS)], PodActions(outcome="Failed"), id="nothing is restarted"),
        pytest.param([ended("i", INIT), ended("a")], PodActions(outcome="Succeeded"), id="all ended well"),
        pytest.param([running("i", INIT), new("a")], PodActions(stop=("i",)), id="in the middle of init containers"),
    ],
)
def test_a_pod_that_is_ended(containers: list[ContainerState], expected: PodActions) -> None:
    """Rule 4: nothing is started, everything is stopped, sidecars last."""
    assert pod_actions.compute_pod_actions(containers, initialized=False, terminating=True, now_ns=NOW_NS) == expected


def test_init_containers_are_through_only_once() -> None:
    """A sidecar that is restarted later does not hold back a regular container's restart."""
    containers = [running("s", SIDECAR, started=False), waiting("a", until_ns=NOW_NS)]
    found = pod_actions.compute_pod_actions(containers, initialized=True, terminating=False, now_ns=NOW_NS)
    assert found == PodActions(start=("a",), initialized=True)
