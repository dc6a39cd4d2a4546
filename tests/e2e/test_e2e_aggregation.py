"""An adapter of metrics in a pod, behind a Service and an APIService: autoscalers and kubectl use it like any API."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import QUICK, Up, eventually

from podscaler.testing import extension_server

pytestmark = pytest.mark.e2e

Object = dict[str, Any]
ADAPTER = Path(__file__).parent / "metrics_adapter.py"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
APISERVICE = f"{APISERVICES}/v1beta1.custom.metrics.k8s.io"
CORE = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
VALUES = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/hits?labelSelector=app%3Dweb"
ACCOUNT = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}


@pytest.fixture
def aggregating(tmp_path: Path) -> Iterator[Up]:
    """An `up` whose autoscaler looks often, and forgets what it recommended at once."""
    flags = (*QUICK, "--horizontal-pod-autoscaler-downscale-stabilization=0s")
    instance = Up(tmp_path / "data", flags=flags).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def bind(up: Up) -> None:
    """Let the adapter read whom to believe, delegate its decisions, and list the pods that it speaks of."""
    binding = {"metadata": {"name": "adapter-reads"}, "subjects": [ACCOUNT]}
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "extension-apiserver-authentication-reader",
    }
    up.create(f"{RBAC}/namespaces/kube-system/rolebindings", {**binding, "roleRef": role})
    for name in ("system:auth-delegator", "view"):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        body = {"metadata": {"name": f"adapter-{name}"}, "subjects": [ACCOUNT], "roleRef": reference}
        up.create(f"{RBAC}/clusterrolebindings", body)


def deploy_adapter(up: Up, certificate: Path, value: Path) -> None:
    """A Deployment of one adapter, and its Service."""
    container = {
        "name": "adapter",
        "image": "adapter",
        "command": [sys.executable, str(ADAPTER), str(certificate), str(value)],
        "ports": [{"name": "https", "containerPort": 6443}],
        "readinessProbe": {"tcpSocket": {"port": 6443}, "periodSeconds": 1},
    }
    template = {"metadata": {"labels": {"app": "adapter"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "adapter"}}, "template": template}
    up.create(DEPLOYMENTS, {"metadata": {"name": "adapter"}, "spec": spec})
    ports = [{"name": "https", "port": 443, "targetPort": "https"}]
    up.create(
        f"{CORE}/services", {"metadata": {"name": "adapter"}, "spec": {"selector": {"app": "adapter"}, "ports": ports}}
    )


def register(up: Up, authority: bytes) -> None:
    """The APIService, of the one version that the adapter has."""
    spec = {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta1",
        "service": {"namespace": "default", "name": "adapter"},
        "caBundle": base64.b64encode(authority).decode(),
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    up.create(APISERVICES, {"metadata": {"name": "v1beta1.custom.metrics.k8s.io"}, "spec": spec})


def autoscale(up: Up) -> None:
    """Simulated pods, and an autoscaler that wants 10 hits for each."""
    container = {"name": "app", "image": "none"}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runtimeClassName": "simulated", "containers": [container]},
    }
    spec: Object = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    up.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    target = {"type": "AverageValue", "averageValue": "10"}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 4,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": target}}],
    }
    up.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})


def availability(up: Up) -> tuple[str, str]:
    """Status and reason of the APIService's condition."""
    conditions = up.get(APISERVICE).get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"]) for each in conditions), ("", ""))


def activity(up: Up) -> tuple[str, str]:
    """Status and reason of the autoscaler's ScalingActive."""
    conditions = up.get(f"{AUTOSCALERS}/web").get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"]) for each in conditions if each["type"] == "ScalingActive"), ("", ""))


def replicas(up: Up) -> int:
    """What the Deployment is asked for."""
    found: int = up.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"]
    return found


def test_an_adapter_in_a_pod(aggregating: Up, tmp_path: Path) -> None:
    """It is found available, scales, is missed while it is gone, and used again after; without it ours is back."""
    up, certificate, value = aggregating, tmp_path / "adapter.pem", tmp_path / "value"
    value.write_text("30")
    authority = extension_server.write_certificate(certificate, "adapter.default.svc")
    bind(up)
    deploy_adapter(up, certificate, value)
    register(up, authority)
    autoscale(up)
    eventually(lambda: availability(up), until=lambda found: found == ("True", "Passed"))
    eventually(lambda: replicas(up), until=lambda found: found == 4)
    assert up.get(VALUES)["items"][0]["value"] == "30"
    assert up.get("/apis/custom.metrics.k8s.io")["versions"] == [
        {"groupVersion": "custom.metrics.k8s.io/v1beta1", "version": "v1beta1"}
    ]

    up.patch(f"{DEPLOYMENTS}/adapter", {"spec": {"replicas": 0}})
    eventually(lambda: availability(up), until=lambda found: found == ("False", "MissingEndpoints"))
    answer = up.request("GET", VALUES)
    assert (answer.status, answer.body) == (503, "service unavailable\n")
    eventually(lambda: activity(up), until=lambda found: found == ("False", "FailedGetPodsMetric"))

    value.write_text("2")
    up.patch(f"{DEPLOYMENTS}/adapter", {"spec": {"replicas": 1}})
    eventually(lambda: availability(up), until=lambda found: found == ("True", "Passed"))
    eventually(lambda: activity(up), until=lambda found: found == ("True", "ValidMetricFound"))
    eventually(lambda: replicas(up), until=lambda found: found == 1)

    up.delete(APISERVICE)
    versions = eventually(
        lambda: up.get("/apis/custom.metrics.k8s.io")["versions"], until=lambda found: len(found) == 2
    )
    assert [each["version"] for each in versions] == ["v1beta2", "v1beta1"]
