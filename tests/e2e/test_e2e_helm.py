"""Helm installs, upgrades, rolls back and removes a chart on our plane as it is."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually

from patience import COMMAND_WITHIN_S
from real_programs import real_program

pytestmark = [pytest.mark.e2e, pytest.mark.real]

DEPLOYMENT = "/apis/apps/v1/namespaces/charts/deployments/web"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/charts/horizontalpodautoscalers"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "values.yaml": "maximum: 3\nimage: registry.k8s.io/pause\n",
    "templates/deployment.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector:
    matchLabels: {app: {{ .Release.Name }}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: {{ .Values.image }}
""",
    "templates/autoscaler.yaml": """
{{- if .Capabilities.APIVersions.Has "autoscaling/v2/HorizontalPodAutoscaler" }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .Release.Name }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ .Release.Name }}}
  minReplicas: 1
  maxReplicas: {{ .Values.maximum }}
{{- end }}
""",
}
Helm = Callable[..., str]


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of a Deployment with an autoscaler, where the cluster knows autoscaling/v2."""
    for name, text in CHART.items():
        file = tmp_path / "web" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "web"


@pytest.fixture
def helm(up: Up, tmp_path: Path) -> Helm:
    """Runs helm in the namespace `charts`; gives what it prints."""

    def run(*args: str) -> str:
        command = [real_program("helm"), *args, "--namespace=charts", f"--kubeconfig={up.kubeconfig}"]
        environment = {"HOME": str(tmp_path), "PATH": "/nowhere"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=COMMAND_WITHIN_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_life_of_a_release(up: Up, helm: Helm, chart: Path) -> None:
    """What a release has is what the chart of its revision says; nothing is left in the end."""
    helm("install", "web", str(chart), "--create-namespace", "--wait", "--timeout=120s")
    assert up.get(DEPLOYMENT)["status"]["availableReplicas"] == 1
    assert maximum(up) == 3
    helm("upgrade", "web", str(chart), "--set=maximum=5", "--wait", "--timeout=120s")
    assert maximum(up) == 5
    helm("rollback", "web", "1", "--wait", "--timeout=120s")
    assert maximum(up) == 3
    history: list[dict[str, Any]] = json.loads(helm("history", "web", "--output=json"))
    assert [(each["revision"], each["status"]) for each in history] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]
    helm("uninstall", "web", "--wait", "--timeout=120s")
    assert up.get(AUTOSCALERS)["items"] == []
    eventually(lambda: up.get("/api/v1/namespaces/charts/pods")["items"], until=lambda items: items == [])
    kept = up.get("/api/v1/namespaces/charts/secrets")["items"]
    assert [each["metadata"]["name"] for each in kept if each["type"].startswith("helm.sh/")] == []


def maximum(up: Up) -> int:
    """The autoscaler's maxReplicas."""
    found: int = up.get(f"{AUTOSCALERS}/web")["spec"]["maxReplicas"]
    return found
