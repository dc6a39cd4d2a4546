"""The chart of podscaler on `podscaler up --without-autoscaler`, unchanged: its image stands for this podscaler."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually, require_pod_networks

from patience import COMMAND_WITHIN_S
from real_programs import real_program

pytestmark = [pytest.mark.e2e, pytest.mark.real]

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "podscaler"
NAMESPACE = "podscaler"
WORKLOAD = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
FLAGS = ("--without-autoscaler", "--metric-resolution=1s", "--pod-network=namespaces")
QUICK = {
    "horizontal-pod-autoscaler-sync-period": "1s",
    "horizontal-pod-autoscaler-cpu-initialization-period": "2s",
    "horizontal-pod-autoscaler-initial-readiness-delay": "1s",
}
"""Values of the chart: the flags of the controller."""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """An `up` whose autoscaling is left to the chart's controller."""
    require_pod_networks()
    instance = Up(tmp_path / "data", FLAGS).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def install(up: Up, home: Path) -> None:
    """`helm install --wait` of the chart."""
    values = [f"--set=controller.flags.{name}={value}" for name, value in QUICK.items()]
    command = [real_program("helm"), "install", "podscaler", str(CHART), "--wait", *values]
    command += [f"--namespace={NAMESPACE}", "--create-namespace", f"--kubeconfig={up.kubeconfig}"]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=COMMAND_WITHIN_S, check=False)
    assert done.returncode == 0, done.stderr + up.log.read_text()


def workload() -> dict[str, Any]:
    """A Deployment whose pods use all the CPU that they get."""
    container = {
        "name": "c",
        "image": "any",
        "command": ["/bin/sh", "-c", "while :; do :; done"],
        "resources": {"requests": {"cpu": "100m"}},
    }
    labels = {"app": "busy"}
    template = {"metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}
    return {"metadata": {"name": "busy"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def autoscaler() -> dict[str, Any]:
    """An autoscaler of it."""
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"}
    return {"metadata": {"name": "busy"}, "spec": {"scaleTargetRef": target, "maxReplicas": 2, "metrics": [metric]}}


def test_two_replicas_one_leads_and_an_autoscaler_follows_load(up: Up, tmp_path: Path) -> None:
    """Both replicas are ready, the Lease names one, and it scales a Deployment that is busy."""
    install(up, tmp_path)
    controllers = up.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/podscaler")["status"]
    pods = up.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    assert (controllers["readyReplicas"], len(pods)) == (2, 2)
    holder = eventually(lambda: up.find(f"{LEASES}/podscaler-controller"))["spec"]["holderIdentity"]
    assert [pod["metadata"]["name"] for pod in pods if holder.startswith(pod["metadata"]["name"])] != []
    up.create(WORKLOAD, workload())
    up.create(AUTOSCALERS, autoscaler())
    eventually(lambda: up.get(f"{WORKLOAD}/busy")["status"].get("replicas"), until=lambda count: count == 2)
    status = up.get(f"{AUTOSCALERS}/busy")["status"]
    assert status["desiredReplicas"] == 2
    up.delete(f"{WORKLOAD}/busy")
