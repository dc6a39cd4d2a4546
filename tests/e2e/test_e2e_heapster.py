"""The design of Kubernetes 1.1 from end to end: extensions/v1beta1, Heapster, cooldowns, and its alpha annotation."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import KUBECTL, Up, eventually

import prerequisites
from patience import WITHIN_S
from podscaler.api.machinery import instants

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Object = dict[str, Any]
FLAGS = (
    "--serve-removed-apis",
    "--serve-heapster",
    "--without-metrics-api",
    "--algorithm=v1.1",
    "--horizontal-pod-autoscaler-use-rest-clients=false",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-upscale-delay=4s",
    "--metric-resolution=1s",
)
CORE = "/api/v1/namespaces/default"
OLD_AUTOSCALERS = "/apis/extensions/v1beta1/namespaces/default/horizontalpodautoscalers"
AUTOSCALER = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web"
TARGETS = "alpha/target.custom-metrics.podautoscaler.kubernetes.io"


@pytest.fixture
def old_up(tmp_path: Path) -> Iterator[Up]:
    """An `up` as of Kubernetes 1.1: without metrics.k8s.io, its autoscaler reads Heapster."""
    instance = Up(tmp_path / "data", flags=FLAGS).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def create_controller(up: Up, script: str) -> None:
    """A ReplicationController of one pod, which requests little CPU."""
    resources = {"requests": {"cpu": "20m"}}
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], "resources": resources}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"app": "web"}, "template": template}
    up.create(f"{CORE}/replicationcontrollers", {"metadata": {"name": "web"}, "spec": spec})


def create_autoscaler(up: Up, most: int, annotations: dict[str, str] | None = None) -> None:
    """An autoscaler of extensions/v1beta1, with a target of 50 % of CPU."""
    reference = {"kind": "ReplicationController", "name": "web", "apiVersion": "v1", "subresource": "scale"}
    spec = {"scaleRef": reference, "maxReplicas": most, "cpuUtilization": {"targetPercentage": 50}}
    metadata = {"name": "web", "annotations": annotations or {}}
    up.create(OLD_AUTOSCALERS, {"metadata": metadata, "spec": spec})


def replicas(up: Up) -> int:
    """Those that the ReplicationController should have."""
    found: int = up.get(f"{CORE}/replicationcontrollers/web")["spec"]["replicas"]
    return found


def custom_metrics(up: Up) -> list[Object]:
    """The metrics of pods in the autoscaler's status; empty while a new pod has none."""
    metrics = up.get(AUTOSCALER)["status"].get("currentMetrics") or []
    return [metric for metric in metrics if metric["type"] == "Pods"]


def last_scale_ns(up: Up) -> int:
    """When the autoscaler has scaled last."""
    return instants.parse(up.get(AUTOSCALER)["status"]["lastScaleTime"])


def test_a_busy_pod_is_scaled_by_what_heapster_says_of_it(old_up: Up) -> None:
    """The second scale-up waits for the end of the cooldown; metrics.k8s.io is not there."""
    up = old_up
    create_controller(up, "while :; do :; done")
    create_autoscaler(up, most=2)
    eventually(lambda: replicas(up), until=lambda found: found == 2)
    first_ns = eventually(lambda: up.get(AUTOSCALER)["status"].get("lastScaleTime") and last_scale_ns(up))
    up.patch(AUTOSCALER, {"spec": {"maxReplicas": 3}})
    eventually(lambda: replicas(up), until=lambda found: found == 3)
    second_ns = eventually(lambda: last_scale_ns(up), until=lambda found: found != first_ns)
    assert second_ns - first_ns >= 4 * 10**9
    old = up.get(f"{OLD_AUTOSCALERS}/web")
    assert (old["spec"]["cpuUtilization"], old["spec"]["maxReplicas"]) == ({"targetPercentage": 50}, 3)
    assert up.find("/apis/metrics.k8s.io/v1beta1/pods") is None


def test_the_alpha_annotation_scales_by_a_custom_metric(old_up: Up) -> None:
    """Thirty queries a second for each pod with a target of ten are three pods; CPU alone would keep one."""
    up = old_up
    labels = {"podscaler.dev/metrics": "custom"}
    state = {"metadata": {"name": "load", "labels": labels}, "data": {"qps": "{pods: app=web, value: 30}"}}
    up.create(f"{CORE}/configmaps", state)
    create_controller(up, "sleep 3600")
    create_autoscaler(up, most=3, annotations={TARGETS: json.dumps({"items": [{"name": "qps", "value": "10"}]})})
    eventually(lambda: replicas(up), until=lambda found: found == 3)
    (metric,) = eventually(lambda: custom_metrics(up))
    assert metric == {"type": "Pods", "pods": {"metric": {"name": "qps"}, "current": {"averageValue": "30"}}}


@prerequisites.KUBECTL.mark(is_there=KUBECTL is not None)
def test_kubectl_autoscale(old_up: Up) -> None:
    """The command makes the autoscaler; Heapster's API has the usage behind it, also in the models of its own."""
    up = old_up
    create_controller(up, "while :; do :; done")
    up.kubectl("autoscale", "rc", "web", "--max=2", *cpu_target())
    eventually(lambda: replicas(up), until=lambda found: found == 2)
    (slice_,) = up.get("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices")["items"]
    url = f"http://{slice_['endpoints'][0]['addresses'][0]}:{slice_['ports'][0]['port']}"
    name = up.get(f"{CORE}/pods")["items"][0]["metadata"]["name"]
    path = f"/api/v1/model/namespaces/default/pod-list/{name}/metrics/cpu/usage_rate"
    points = eventually(lambda: read(url + path)["items"][0]["metrics"])
    assert points[0]["value"] > 20


def read(url: str) -> Object:
    """The body of a GET from Heapster."""
    with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
        found: Object = json.load(response)
    return found


def cpu_target() -> tuple[str, ...]:
    """The flag for 50 % of CPU, which has another name since kubectl 1.34."""
    usage = subprocess.run([str(KUBECTL), "autoscale", "--help"], capture_output=True, text=True, check=True).stdout
    return ("--cpu=50%",) if "--cpu=" in usage else ("--cpu-percent=50",)
