"""`podscaler top` on a real terminal and a real control plane."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminals import Terminal
from up_process import QUICK, Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
APPS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
ROWS, COLUMNS = 24, 80


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """A control plane with a Deployment and its autoscaler, which follows the memory of simulated pods."""
    instance = Up(tmp_path / "data", flags=QUICK).start()
    container = {"name": "web", "image": "busybox", "resources": {"requests": {"memory": "200Mi"}}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runtimeClassName": "simulated", "containers": [container]},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {"podscaler.dev/simulated-total-memory": "200Mi"}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, "replicas": 2},
    }
    instance.create(APPS, deployment)
    target = {"type": "Utilization", "averageUtilization": 50}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}],
    }
    metadata = {"name": "web"}
    body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
    instance.create(AUTOSCALERS, body)
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


class TopTerminal(Terminal):
    """`podscaler top` on a terminal of 80 columns and 24 rows, without colours beyond the first sixteen."""

    def __init__(self, up: Up) -> None:
        env = {"KUBECONFIG": str(up.kubeconfig), "TERM": "xterm", "COLORTERM": ""}
        super().__init__([sys.executable, "-m", "podscaler", "top"], env, columns=COLUMNS, rows=ROWS)

    def type(self, text: str) -> None:
        """Press keys; what was shown before them counts no more."""
        self.shown = b""
        super().type(text)


def test_list_detail_and_explanation(up: Up) -> None:
    """The autoscaler is in the list; Enter shows its plots, `d` its explanation, and `q` ends the program."""
    terminal = TopTerminal(up)
    terminal.until("memory 50%/50%")
    terminal.type("\r")
    terminal.until("after limits")
    terminal.type("d")
    terminal.until("default/web stays at 2")
    terminal.type("\x1b")
    terminal.until("after limits")
    terminal.type("\x1b")
    terminal.until("1 of 1 autoscalers")
    terminal.type("q")
    assert terminal.end() == 0


def test_once(up: Up) -> None:
    """`--once` prints the list as text."""
    environment = os.environ | {"KUBECONFIG": str(up.kubeconfig)}
    command = [sys.executable, "-m", "podscaler", "top", "--once"]

    def lines() -> list[str]:
        text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        return text.splitlines()

    header, row = eventually(lines, until=lambda found: "50%/50%" in found[-1])
    assert header.split()[:3] == ["NAMESPACE", "NAME", "STATE"]
    assert row.split()[:4] == ["default", "web", "ok", "Steady"]
