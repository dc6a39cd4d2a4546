"""metrics-server, and Prometheus with prometheus-adapter, run in pods of `podscaler up` by their own manifests."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import ecosystem_programs
import pytest
import yaml
from ecosystem_programs import Object
from exposing_pods import exposing_deployment
from up_process import QUICK, Up, eventually

import prerequisites

pytestmark = [pytest.mark.e2e, pytest.mark.real, pytest.mark.usefixtures("kubectl_present")]

AUTHORITY = "--kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
WORKER = "/apis/apps/v1/namespaces/default/deployments/worker"
SCRAPING = """
global: {scrape_interval: 1s}
scrape_configs:
- job_name: pods
  http_sd_configs:
  - url: https://kubernetes.default.svc/podscaler/targets
    authorization: {type: Bearer, credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
    tls_config: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}
    refresh_interval: 1s
"""
PROMETHEUS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus, namespace: monitoring}
spec:
  selector: {matchLabels: {app: prometheus}}
  template:
    metadata: {labels: {app: prometheus}}
    spec:
      serviceAccountName: prometheus
      terminationGracePeriodSeconds: 1
      containers:
      - name: prometheus
        image: prom/prometheus
        args: [--config.file=/etc/prometheus/prometheus.yml, --storage.tsdb.path=/data]
        readinessProbe: {httpGet: {path: /-/ready, port: 9090}, periodSeconds: 1}
        volumeMounts: [{name: config, mountPath: /etc/prometheus}, {name: data, mountPath: /data}]
      volumes: [{name: config, configMap: {name: prometheus}}, {name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: prometheus, namespace: monitoring}
spec: {selector: {app: prometheus}, ports: [{port: 9090}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus}
rules: [{nonResourceURLs: [/podscaler/targets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
"""
RULES = """
rules:
- seriesQuery: '{__name__="jobs_total",namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {matches: "^(.*)_total$", as: "${1}_per_second"}
  metricsQuery: sum(rate(<<.Series>>{<<.LabelMatchers>>}[10s])) by (<<.GroupBy>>)
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One running `up` that does not serve metrics.k8s.io itself."""
    instance = Up(tmp_path_factory.mktemp("up") / "data", flags=(*QUICK, "--without-metrics-api")).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def config_map(name: str, key: str, text: str) -> Object:
    """A ConfigMap of the namespace `monitoring`."""
    metadata = {"name": name, "namespace": "monitoring"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def test_metrics_server_in_a_pod(up: Up) -> None:
    """`kubectl top` shows the node and the pod of metrics-server itself."""
    objects = ecosystem_programs.kustomized(ecosystem_programs.manifests("metrics_server", "base"))
    deployment = ecosystem_programs.of_kind(objects, "Deployment", "metrics-server")
    with ecosystem_programs.shared_programs("metrics-server") as programs:
        listening = () if up.pods_have_networks() else ("--bind-address=$(POD_IP)",)
        ecosystem_programs.run_program(deployment, programs["metrics-server"], AUTHORITY, *listening)
        ecosystem_programs.apply(up, objects)
        ecosystem_programs.await_ready(up, deployment)
        node = up.node()["metadata"]["name"]
        eventually(lambda: up.run_kubectl("top", "nodes").stdout, until=lambda text: node in text)
        assert "metrics-server" in up.kubectl("top", "pods", "--containers", "-n", "kube-system")


def test_prometheus_and_its_adapter_scale_a_deployment(up: Up) -> None:
    """Each pod counts 40 jobs in a second, and 20 for each are wanted: the Deployment grows to its maximum."""
    up.kubectl("create", "namespace", "monitoring")
    deploy_prometheus(up)
    up.create("/apis/apps/v1/namespaces/default/deployments", exposing_deployment("worker"))
    with ecosystem_programs.shared_programs("prometheus-adapter") as programs:
        deploy_adapter(up, programs["prometheus-adapter"])
        up.create("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", autoscaler())
        eventually(lambda: up.get(WORKER)["spec"]["replicas"], until=lambda count: count == 3)
    path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/jobs_per_second"
    metrics = json.loads(up.kubectl("get", "--raw", path))["items"]
    assert {each["describedObject"]["name"].rpartition("-")[0].rpartition("-")[0] for each in metrics} == {"worker"}


def deploy_prometheus(up: Up) -> None:
    """Run the installed Prometheus, which finds the pods of `up` by HTTP service discovery."""
    program = shutil.which("prometheus")
    if program is None:
        prerequisites.PROMETHEUS.skip()
    objects = [each for each in yaml.safe_load_all(PROMETHEUS) if each]
    listening = () if up.pods_have_networks() else ("--web.listen-address=$(POD_IP):9090",)
    ecosystem_programs.run_program(objects[0], Path(program), *listening)
    ecosystem_programs.apply(up, [config_map("prometheus", "prometheus.yml", SCRAPING), *objects])
    ecosystem_programs.await_ready(up, objects[0])


def deploy_adapter(up: Up, program: Path) -> None:
    """Apply the adapter's own manifests with rules of the test, an address of Prometheus, and its group of metrics."""
    folder = ecosystem_programs.manifests("prometheus_adapter")
    objects = [each for file in sorted(folder.glob("*.yaml")) for each in ecosystem_programs.read_objects(file)]
    deployment = ecosystem_programs.of_kind(objects, "Deployment", "prometheus-adapter")
    listening = () if up.pods_have_networks() else ("--bind-address=$(POD_IP)",)
    url = "--prometheus-url=http://prometheus.monitoring.svc:9090/"
    ecosystem_programs.run_program(deployment, program, url, "--metrics-relist-interval=2s", *listening)
    service = ecosystem_programs.of_kind(objects, "APIService", "v1beta1.metrics.k8s.io")
    service["metadata"]["name"] = "v1beta1.custom.metrics.k8s.io"
    service["spec"]["group"] = "custom.metrics.k8s.io"
    rules = config_map("adapter-config", "config.yaml", RULES)
    kept = [each for each in objects if each["kind"] != "ConfigMap"]
    ecosystem_programs.apply(up, [rules, *kept])
    ecosystem_programs.await_ready(up, deployment, replicas=2)


def autoscaler() -> Object:
    """Wants 20 jobs a second for each pod, 1 to 3 pods."""
    target = {"type": "AverageValue", "averageValue": "20"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "jobs_per_second"}, "target": target}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"}
    return {
        "metadata": {"name": "worker"},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 3, "metrics": [metric]},
    }
