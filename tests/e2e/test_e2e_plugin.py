"""A real kubectl runs podscaler as its plugin, on a real `up`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dashboard_process import DashboardPage
from up_process import KUBECTL, Up, eventually

from patience import COMMAND_WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kubectl_present")]

DEPLOYMENT = {
    "metadata": {"name": "idle"},
    "spec": {
        "selector": {"matchLabels": {"app": "idle"}},
        "template": {
            "metadata": {"labels": {"app": "idle"}},
            "spec": {"containers": [{"name": "main", "image": "none", "command": ["sleep", "1000000"]}]},
        },
    },
}
METRIC = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "idle"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "idle"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": METRIC}],
    },
}


def environment_of(up: Up) -> dict[str, str]:
    """The programs of this environment on PATH, and the cluster."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "KUBECONFIG": str(up.kubeconfig)}


def plugin(up: Up, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`kubectl podscaler ...`."""
    assert KUBECTL is not None
    command = [KUBECTL, "podscaler", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment_of(up), timeout=COMMAND_WITHIN_S)


@pytest.fixture(scope="module")
def scaled(up: Up) -> Up:
    """An autoscaler whose pods request nothing, so that its metric cannot be read."""
    assert up.request("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT).status == 201
    hpas = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    assert up.request("POST", hpas, AUTOSCALER).status == 201
    eventually(lambda: up.get(f"{hpas}/idle").get("status", {}).get("conditions"))
    return up


def test_list(scaled: Up) -> None:
    """The table, by kubectl's own kubeconfig."""
    eventually(lambda: plugin(scaled, "list", "--problem").stdout, until=lambda text: " NoMetrics " in text)
    done = plugin(scaled, "list", "-A")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[:3] for line in done.stdout.splitlines()] == [
        ["NAMESPACE", "NAME", "STATE"],
        ["default", "idle", "NoMetrics"],
    ]


def test_doctor(scaled: Up) -> None:
    """The reason is the request that is missing."""
    done = eventually(
        lambda: plugin(scaled, "doctor", "idle"), until=lambda done: "container main of idle-" in done.stdout
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "requests no cpu, so that its utilization is not known" in done.stdout


def test_timeline(scaled: Up) -> None:
    """With what happened to the target, too."""
    done = plugin(scaled, "timeline", "default/idle", "--since", "30m")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Deployment/idle created" in done.stdout


def test_top(scaled: Up) -> None:
    """The list is printed once."""
    done = plugin(scaled, "top", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].split()[:4] == ["default", "idle", "!!", "NoMetrics"]


def test_dashboard(scaled: Up) -> None:
    """The list in JSON, after a login with the link that was printed; the process ends when it is asked."""
    assert KUBECTL is not None
    command = [KUBECTL, "podscaler", "dashboard"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment_of(scaled)) as process:
        assert process.stdout is not None
        page = DashboardPage(process.stdout)
        status, body = eventually(lambda: page.get("/api/autoscalers"), until=lambda answer: answer[0] == 200)
        process.terminate()
    assert (status, [row["name"] for row in body["rows"]], process.returncode) == (200, ["idle"], 0)


@pytest.mark.parametrize("command", ["explain", "list", "doctor", "timeline", "lint", "record", "top", "dashboard"])
def test_the_commands_are_named_as_kubectl_has_them(up: Up, command: str) -> None:
    """Their help says `kubectl podscaler`."""
    done = plugin(up, command, "--help")
    assert (done.returncode, done.stdout.partition("[")[0].strip()) == (0, f"Usage: kubectl podscaler {command}")
