"""Helm installs, tests, upgrades, rolls back and removes charts with and without hooks on our plane as it is."""

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
JOBS = "/apis/batch/v1/namespaces/charts/jobs"
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
HOOKED = {
    "Chart.yaml": "apiVersion: v2\nname: hooked\nversion: 0.1.0\n",
    "values.yaml": "migration: 'true'\n",
    "templates/server.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: hooked}
spec:
  selector: {matchLabels: {app: hooked}}
  template:
    metadata: {labels: {app: hooked}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [netexec, --http-port=8080]
        readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: hooked}
spec: {selector: {app: hooked}, ports: [{port: 80, targetPort: 8080}]}
""",
    "templates/jobs.yaml": """
{{- $deletions := dict "pre-install" "before-hook-creation" "post-install" "hook-succeeded" "pre-delete" "" }}
{{- range $hook, $deletion := $deletions }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $hook }}
  annotations:
    helm.sh/hook: {{ $hook }}
    {{- with $deletion }}
    helm.sh/hook-delete-policy: {{ . }}
    {{- end }}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: ["true"]}]
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migration, annotations: {helm.sh/hook: pre-upgrade}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: [sh, -c, {{ .Values.migration | quote }}]}]
""",
    "templates/tests/answers.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: answers, annotations: {helm.sh/hook: test}}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox, command: [wget, -q, -O, "-", "http://hooked/echo?msg=through-the-service"]}]
""",
}
"""Hooks before and after the installation, before an upgrade and before the removal, and a test of the Service."""
FAILS = "exit 3"
Helm = Callable[..., str]


def written(folder: Path, files: dict[str, str]) -> Path:
    """The folder with the files of a chart."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of a Deployment with an autoscaler, where the cluster knows autoscaling/v2."""
    return written(tmp_path / "web", CHART)


@pytest.fixture
def helm(up: Up, tmp_path: Path) -> Helm:
    """Runs helm in the namespace `charts`; gives what it prints, with `fails` its errors."""

    def run(*args: str, fails: bool = False) -> str:
        command = [real_program("helm"), *args, "--namespace=charts", f"--kubeconfig={up.kubeconfig}"]
        environment = {"HOME": str(tmp_path), "PATH": "/nowhere"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=COMMAND_WITHIN_S)
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout

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


def test_hooks_run_in_their_order(up: Up, helm: Helm, tmp_path: Path) -> None:
    """Jobs end before and after the installation and before the removal, and a failing one stops an upgrade."""
    chart = str(written(tmp_path / "hooked", HOOKED))
    helm("install", "hooked", chart, "--create-namespace", "--wait", "--timeout=120s")
    first = up.get(f"{JOBS}/pre-install")["status"]["completionTime"]
    assert first <= up.get("/apis/apps/v1/namespaces/charts/deployments/hooked")["metadata"]["creationTimestamp"]
    assert up.find(f"{JOBS}/post-install") is None
    assert "through-the-service" in helm("test", "hooked", "--logs", "--timeout=120s")
    assert "pre-upgrade hooks failed" in helm("upgrade", "hooked", chart, f"--set=migration={FAILS}", fails=True)
    helm("rollback", "hooked", "1", "--wait", "--timeout=120s")
    helm("uninstall", "hooked", "--wait", "--timeout=120s")
    assert up.get(f"{JOBS}/pre-delete")["status"]["succeeded"] == 1
