"""kube-state-metrics lists every kind that it knows on `podscaler up`, and shows autoscalers."""

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import ecosystem_programs
import pytest
from ecosystem_programs import Object
from up_process import Up, eventually

from patience import WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.real, pytest.mark.usefixtures("kubectl_present")]

AUTOSCALER: Object = {
    "metadata": {"name": "web"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 7},
}


@pytest.fixture
def exporter() -> Iterator[Path]:
    """The program."""
    with ecosystem_programs.shared_programs("kube-state-metrics") as programs:
        yield programs["kube-state-metrics"]


def test_it_lists_all_kinds(up: Up, exporter: Path) -> None:
    """Its log has no error, and its metrics have the autoscaler."""
    objects = ecosystem_programs.kustomized(ecosystem_programs.manifests("kube_state_metrics"))
    deployment = ecosystem_programs.of_kind(objects, "Deployment", "kube-state-metrics")
    ecosystem_programs.run_program(deployment, exporter, "--host=$(POD_IP)", "--telemetry-host=$(POD_IP)")
    ecosystem_programs.apply(up, objects)
    up.create("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", AUTOSCALER)
    ecosystem_programs.await_ready(up, deployment)
    [pod] = up.get("/api/v1/namespaces/kube-system/pods?labelSelector=app.kubernetes.io%2Fname%3Dkube-state-metrics")[
        "items"
    ]

    def maximum() -> str:
        url = f"http://{pod['status']['podIP']}:8080/metrics"
        with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
            text = response.read().decode()
        found = re.search(r'^kube_horizontalpodautoscaler_spec_max_replicas\{.*"web"\} (.*)$', text, re.MULTILINE)
        return found[1] if found else ""

    assert eventually(maximum) == "7"
    log = up.kubectl("logs", "-n", "kube-system", pod["metadata"]["name"])
    assert [line for line in log.splitlines() if line.startswith(("E", "F"))] == []
