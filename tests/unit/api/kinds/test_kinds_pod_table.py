"""The one word of status, the readiness and the restarts that `kubectl get pods` shows."""

from typing import Any

import pytest

from podscaler.api.kinds.pods import pod_table

_NOW_NS = 1_767_225_600 * 10**9
_RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def _ended(**details: Any) -> dict[str, Any]:
    return {"terminated": details}


def _waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def _container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "app", "state": state, "ready": False, "restartCount": 0, **more}


def _pod(status: dict[str, Any], *, init: list[dict[str, Any]] | None = None, **meta: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "app"}], "initContainers": init or []}
    return {"metadata": {"name": "web", **meta}, "spec": spec, "status": status}


def _shown(pod: dict[str, Any]) -> tuple[str, str, str]:
    cells = pod_table.PRINTER.row(pod, _NOW_NS)
    return cells[1], cells[2], cells[3]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param({"phase": "Pending"}, ("0/1", "Pending", "0"), id="new"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0"), id="reason of the pod"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [_container(_RUNNING, ready=True)]},
            ("1/1", "Running", "0"),
            id="ready",
        ),
        pytest.param(
            {"phase": "Running", "containerStatuses": [_container(_waiting("CrashLoopBackOff"), restartCount=4)]},
            ("0/1", "CrashLoopBackOff", "4"),
            id="waits",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [_container(_ended(exitCode=3))]},
            ("0/1", "ExitCode:3", "0"),
            id="ended without a reason",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [_container(_ended(exitCode=137, signal=9))]},
            ("0/1", "Signal:9", "0"),
            id="ended by a signal",
        ),
        pytest.param(
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            ("0/1", "SchedulingGated", "0"),
            id="held back",
        ),
    ],
)
def test_status_word(status: dict[str, Any], shown: tuple[str, str, str]) -> None:
    """The most telling of phase, reason and containers' states is shown."""
    assert _shown(_pod(status)) == shown


@pytest.mark.parametrize(
    ("is_ready", "word"), [pytest.param("True", "Running", id="ready"), pytest.param("False", "NotReady", id="not")]
)
def test_a_completed_container_does_not_hide_a_running_one(is_ready: str, word: str) -> None:
    """A pod of which one container is done and another runs is running, or not ready."""
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": is_ready}],
        "containerStatuses": [
            _container(_ended(exitCode=0, reason="Completed")),
            _container(_RUNNING, ready=True, name="other"),
        ],
    }
    assert _shown(_pod(status)) == ("1/1", word, "0")


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        pytest.param([_container({}, restartCount=2), _container({})], ("0/1", "Init:0/2", "2"), id="first runs"),
        pytest.param(
            [_container(_ended(exitCode=0)), _container(_waiting("PodInitializing"))],
            ("0/1", "Init:1/2", "0"),
            id="second begins",
        ),
        pytest.param([_container(_ended(exitCode=1, reason="Error"))], ("0/1", "Init:Error", "0"), id="failed"),
        pytest.param([_container(_ended(exitCode=2))], ("0/1", "Init:ExitCode:2", "0"), id="failed without a reason"),
        pytest.param([_container(_waiting("ImagePullBackOff"))], ("0/1", "Init:ImagePullBackOff", "0"), id="waits"),
    ],
)
def test_init_containers_come_first(states: list[dict[str, Any]], shown: tuple[str, str, str]) -> None:
    """While a pod initializes, its first unfinished init container is shown."""
    status = {
        "phase": "Pending",
        "initContainerStatuses": states,
        "containerStatuses": [_container(_waiting("PodInitializing"))],
    }
    assert _shown(_pod(status, init=[{"name": "a"}, {"name": "b"}])) == shown


def test_sidecars_count_as_containers() -> None:
    """A started sidecar is one of the containers that are ready, and its restarts count."""
    status = {
        "phase": "Running",
        "initContainerStatuses": [
            _container(_RUNNING, name="side", ready=True, started=True, restartCount=1),
            _container(_ended(exitCode=0), name="once", restartCount=5),
        ],
        "containerStatuses": [_container(_RUNNING, ready=True, restartCount=2)],
    }
    init = [{"name": "side", "restartPolicy": "Always"}, {"name": "once"}]
    assert _shown(_pod(status, init=init)) == ("2/2", "Running", "3")


def test_the_last_restart_is_told() -> None:
    """How long ago the last restart was stands behind the count."""
    last = [{"terminated": {"finishedAt": f"2025-12-31T23:{minute}:00Z"}} for minute in (50, 56)]
    states = [_container(_RUNNING, restartCount=1, lastState=state) for state in last]
    assert _shown(_pod({"phase": "Running", "containerStatuses": states}))[2] == "2 (4m ago)"


@pytest.mark.parametrize(
    ("status", "word"),
    [
        pytest.param({"phase": "Running"}, "Terminating", id="running"),
        pytest.param({"phase": "Succeeded"}, "Succeeded", id="done"),
        pytest.param({"phase": "Running", "reason": "NodeLost"}, "Unknown", id="node lost"),
    ],
)
def test_deleted_pods_terminate(status: dict[str, Any], word: str) -> None:
    """A pod that is being deleted is terminating, unless it has ended or its node is gone."""
    assert _shown(_pod(status, deletionTimestamp="2026-01-01T00:00:00Z"))[1] == word


def test_wide_cells() -> None:
    """Address, node, nominated node and readiness gates, `<none>` where there are none."""
    pod = _pod({"podIPs": [{"ip": "127.9.0.2"}], "conditions": [{"type": "g/a", "status": "True"}]})
    pod["spec"] |= {"nodeName": "n", "readinessGates": [{"conditionType": "g/a"}, {"conditionType": "g/b"}]}
    assert pod_table.PRINTER.row(pod, _NOW_NS)[5:] == ["127.9.0.2", "n", "<none>", "1/2"]
    assert pod_table.PRINTER.row(_pod({}), _NOW_NS)[5:] == ["<none>"] * 4
