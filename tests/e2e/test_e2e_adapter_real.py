"""`podscaler adapter` behind a real kube-apiserver, whose front proxy names the user of each request."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_control_plane import real_control_plane
from up_process import KUBECTL, eventually

from patience import COMMAND_WITHIN_S, WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.real]

PATH = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/team-0/pods/*/metric_0_per_second"
DATABASE = Path(__file__).parents[2] / "benchmarks" / "adapter_prometheus.py"
RULES = """
rules:
- seriesQuery: '{__name__=~"metric_.*"}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {matches: "^(.*)_total$", as: "${1}_per_second"}
  metricsQuery: sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """A real control plane."""
    (tmp_path / "plane").mkdir()
    with real_control_plane(tmp_path / "plane") as plane:
        yield plane.kubeconfig


@pytest.fixture
def port(tmp_path: Path, kubeconfig: Path) -> Iterator[int]:
    """The port of an adapter of a Prometheus in which the pods of an app have metrics."""
    (tmp_path / "rules.yaml").write_text(RULES)
    command = [sys.executable, str(DATABASE), "1", "1", "3", "2"]
    database = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert database.stdout is not None
    address = f"http://127.0.0.1:{database.stdout.readline().strip()}"
    command = [sys.executable, "-m", "podscaler", "adapter", f"--config={tmp_path}/rules.yaml"]
    command += [f"--prometheus-url={address}", f"--kubeconfig={kubeconfig}", "--secure-port=0"]
    log = tmp_path / "adapter.log"
    with log.open("w") as output:
        adapter = subprocess.Popen([*command, "--bind-address=127.0.0.1"], stderr=output)
    line = eventually(lambda: [each for each in log.read_text().splitlines() if "serving the metrics APIs" in each])
    yield int(line[0].rpartition(":")[2])
    adapter.terminate()
    assert adapter.wait(timeout=WITHIN_S) == 0
    database.terminate()
    database.wait(timeout=WITHIN_S)
    database.stdout.close()


def kubectl(kubeconfig: Path, *args: str, stdin: Any = None) -> "subprocess.CompletedProcess[str]":
    """The result of a command."""
    assert KUBECTL is not None
    given = None if stdin is None else json.dumps(stdin)
    command = [KUBECTL, f"--kubeconfig={kubeconfig}", *args]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False)


def objects(port: int) -> list[dict[str, Any]]:
    """A namespace with three pods, and the registration of the adapter."""
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": "team-0", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "none"}], "automountServiceAccountToken": False},
        }
        for number in range(3)
    ]
    external = {"type": "ExternalName", "externalName": "localhost"}
    service = {"name": "adapter", "namespace": "team-0", "port": port}
    spec = {"group": "custom.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100}
    registration = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
        "spec": {**spec, "insecureSkipTLSVerify": True, "service": service},
    }
    metadata = {"name": "adapter", "namespace": "team-0"}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": external},
        registration,
        *pods,
    ]


def test_metrics_through_a_real_api_server(kubeconfig: Path, port: int) -> None:
    """kubectl reads the metrics of pods; a user without permission does not."""
    created = kubectl(kubeconfig, "create", "namespace", "team-0")
    assert created.returncode == 0, created.stderr
    items = {"apiVersion": "v1", "kind": "List", "items": objects(port)}
    eventually(lambda: kubectl(kubeconfig, "apply", "-f", "-", stdin=items).returncode == 0, every_s=1.0)
    read = ("get", "--raw", f"{PATH}?labelSelector=app%3Dweb")
    result = eventually(lambda: kubectl(kubeconfig, *read), until=lambda done: done.returncode == 0, every_s=1.0)
    found = json.loads(result.stdout)["items"]
    values = [(each["describedObject"]["name"], each["value"]) for each in found]
    assert values == [("pod-0", "12500m"), ("pod-1", "12500m"), ("pod-2", "12500m")]
    assert "Forbidden" in kubectl(kubeconfig, "--as=nobody", *read).stderr
