"""`podscaler adapter` beside `podscaler up`: autoscalers follow a real Prometheus by all three kinds of metrics."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from exposing_pods import exposing_deployment
from up_process import Up, eventually

import prerequisites
from own_ports import own_place
from patience import WITHIN_S

PROGRAM = shutil.which("prometheus")
pytestmark = [pytest.mark.e2e, pytest.mark.slow, prerequisites.PROMETHEUS.mark(is_there=PROGRAM is not None)]

Object = dict[str, Any]
CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
RULES = """
rules:
- seriesQuery: 'jobs_total{namespace!="",pod!=""}'
  resources: {template: "<<.Resource>>"}
  name: {matches: "^(.*)_total$", as: "${1}_per_second"}
  metricsQuery: sum(rate(<<.Series>>{<<.LabelMatchers>>}[10s])) by (<<.GroupBy>>)
- seriesQuery: 'queue_depth{namespace!=""}'
  resources: {overrides: {namespace: {resource: namespace}, app: {group: apps, resource: deployment}}}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: 'queue_depth{app!=""}'
  resources: {namespaced: false}
  name: {as: all_queues}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (app)
"""


def start(command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    """A process whose output goes to a file."""
    with log.open("w") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


@pytest.fixture
def prometheus(up: Up, tmp_path: Path) -> Iterator[str]:
    """A Prometheus that finds the pods of `up`."""
    admin = yaml.safe_load(up.kubeconfig.read_text())
    (tmp_path / "token").write_text(admin["users"][0]["user"]["token"])
    discovery = {
        "url": f"{admin['clusters'][0]['cluster']['server']}/podscaler/targets",
        "authorization": {"type": "Bearer", "credentials_file": str(tmp_path / "token")},
        "tls_config": {"insecure_skip_verify": True},
        "refresh_interval": "1s",
    }
    relabeled = {"source_labels": ["__meta_kubernetes_pod_label_app"], "target_label": "app"}
    job = {"job_name": "pods", "http_sd_configs": [discovery], "relabel_configs": [relabeled]}
    (tmp_path / "prometheus.yml").write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    address = ":".join(map(str, own_place()))
    flags = [f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address={address}"]
    assert PROGRAM is not None
    process = start([PROGRAM, *flags, f"--storage.tsdb.path={tmp_path}/tsdb"], tmp_path / "prometheus.log")
    yield f"http://{address}"
    process.terminate()
    process.wait(timeout=WITHIN_S)


@pytest.fixture
def adapter(up: Up, prometheus: str, tmp_path: Path) -> Iterator[Path]:
    """The adapter, registered as an API server beside the control plane; its log."""
    (tmp_path / "rules.yaml").write_text(RULES)
    host, port = own_place()
    command = [sys.executable, "-m", "podscaler", "adapter", f"--config={tmp_path}/rules.yaml"]
    command += [f"--prometheus-url={prometheus}", f"--kubeconfig={up.kubeconfig}", "--metrics-relist-interval=1s"]
    command += ["--metrics-max-age=1m", "--query-tick=1s", f"--bind-address={host}", f"--secure-port={port}"]
    process = start(command, tmp_path / "adapter.log")
    up.create("/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
    service = {"type": "ExternalName", "externalName": host}
    up.create("/api/v1/namespaces/monitoring/services", {"metadata": {"name": "adapter"}, "spec": service})
    for group, version in ((CUSTOM, "v1beta2"), (CUSTOM, "v1beta1"), (EXTERNAL, "v1beta1")):
        up.create("/apis/apiregistration.k8s.io/v1/apiservices", api_service(group, version, port))
    eventually(lambda: "serving the metrics APIs" in (tmp_path / "adapter.log").read_text() or process.poll())
    assert process.poll() is None, (tmp_path / "adapter.log").read_text()
    yield tmp_path / "adapter.log"
    process.terminate()
    assert process.wait(timeout=WITHIN_S) == 0


def api_service(group: str, version: str, port: int) -> Object:
    """The registration of a group and version at that port."""
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": 100,
        "versionPriority": 200 if version == "v1beta2" else 100,
        "service": {"namespace": "monitoring", "name": "adapter", "port": port},
        "insecureSkipTLSVerify": True,
    }
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}


def autoscaler(name: str, metric: Object) -> Object:
    """An autoscaler of the Deployment of that name, up to three replicas."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": [metric]},
    }


DESCRIBED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "by-object"}
METRICS: dict[str, Object] = {
    "by-pods": {
        "type": "Pods",
        "pods": {"metric": {"name": "jobs_per_second"}, "target": {"type": "AverageValue", "averageValue": "10"}},
    },
    "by-object": {
        "type": "Object",
        "object": {
            "metric": {"name": "queue_depth"},
            "describedObject": DESCRIBED,
            "target": {"type": "Value", "value": "5"},
        },
    },
    "by-external": {
        "type": "External",
        "external": {
            "metric": {"name": "all_queues", "selector": {"matchLabels": {"app": "by-external"}}},
            "target": {"type": "AverageValue", "averageValue": "5"},
        },
    },
}


def replicas(up: Up) -> list[int]:
    """The replicas of the three Deployments."""
    return [up.get(f"{DEPLOYMENTS}/{name}")["spec"]["replicas"] for name in METRICS]


def test_autoscalers_follow_prometheus(up: Up, adapter: Path) -> None:
    """A Pods, an Object and an External metric scale their Deployments up; the front proxy is who asks."""
    for name, metric in METRICS.items():
        up.create(DEPLOYMENTS, exposing_deployment(name))
        up.create(AUTOSCALERS, autoscaler(name, metric))
    eventually(lambda: replicas(up), until=lambda found: found == [3, 3, 3])
    listed = up.get(f"/apis/{CUSTOM}/v1beta2")["resources"]
    assert {"pods/jobs_per_second", "deployments.apps/queue_depth"} <= {each["name"] for each in listed}
    external = f"/apis/{EXTERNAL}/v1beta1/namespaces/default/all_queues?labelSelector=app%3Dby-external"
    eventually(
        lambda: [(each["metricLabels"], each["value"]) for each in up.get(external)["items"]],
        until=lambda items: items == [({"app": "by-external"}, "60")],  # once all three pods were scraped
    )
    assert "Traceback" not in adapter.read_text()
