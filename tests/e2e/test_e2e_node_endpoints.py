"""Prometheus, the real metrics-server and `podscaler adapter --resource` read the endpoints of the embedded node."""

import base64
import json
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from up_process import QUICK, Up, eventually

import prerequisites
from own_ports import own_place
from patience import WITHIN_S
from podscaler.api.machinery import quantity
from real_programs import real_program

PROMETHEUS = shutil.which("prometheus")
pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
TIMEOUT = "--kubelet-request-timeout=2s"
CORE = "/api/v1/namespaces/default"
USAGE = "/apis/metrics.k8s.io/v1beta1"


@pytest.fixture
def measured_up(tmp_path: Path) -> Iterator[Up]:
    """An `up` without metrics.k8s.io, with two pods: one that works for the CPU, and one that sleeps."""
    instance = Up(tmp_path / "data", flags=(*QUICK, "--without-metrics-api")).start()
    for name, script in (("busy", "while :; do :; done"), ("idle", "sleep 3600")):
        container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
        body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container]}}
        instance.create(f"{CORE}/pods", body | {"apiVersion": "v1", "kind": "Pod"})
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def endpoint_of(up: Up) -> str:
    """Address and port of the node's endpoints."""
    node = eventually(up.node, until=lambda found: "addresses" in found["status"])
    (address,) = [each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
    return f"{address}:{node['status']['daemonEndpoints']['kubeletEndpoint']['Port']}"


def write_access(up: Up, folder: Path) -> None:
    """The files `token` and `ca.crt` of the administrator."""
    config = yaml.safe_load(up.kubeconfig.read_text())
    (folder / "token").write_text(config["users"][0]["user"]["token"])
    authority = config["clusters"][0]["cluster"]["certificate-authority-data"]
    (folder / "ca.crt").write_bytes(base64.b64decode(authority))


@pytest.fixture
def prometheus(measured_up: Up, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes the node, and verifies its certificate."""
    write_access(measured_up, tmp_path)
    job = {
        "job_name": "node",
        "scheme": "https",
        "metrics_path": "/metrics/resource",
        "authorization": {"credentials_file": str(tmp_path / "token")},
        "tls_config": {"ca_file": str(tmp_path / "ca.crt")},
        "static_configs": [{"targets": [endpoint_of(measured_up)]}],
    }
    path = tmp_path / "prometheus.yml"
    path.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    host, port = own_place()
    command = [str(PROMETHEUS), f"--config.file={path}", f"--web.listen-address={host}:{port}"]
    with (tmp_path / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={tmp_path / 'tsdb'}"], stdout=log, stderr=subprocess.STDOUT
        )
    yield f"{host}:{port}"
    process.terminate()
    process.wait(timeout=WITHIN_S)


def query(address: str, promql: str) -> dict[str, float]:
    """The values of an instant query by pod; empty as long as Prometheus does not answer."""
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
    try:
        with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
            found: Object = json.load(response)
    except OSError:
        return {}
    return {each["metric"].get("pod", ""): float(each["value"][1]) for each in found["data"]["result"]}


@prerequisites.PROMETHEUS.mark(is_there=PROMETHEUS is not None)
def test_a_real_prometheus_scrapes_the_node(prometheus: str) -> None:
    """CPU counters become rates: that of the busy pod is above that of the idle one; memory and errors are there."""
    rate = "rate(container_cpu_usage_seconds_total[20s])"
    rates = eventually(
        lambda: query(prometheus, rate), until=lambda found: "idle" in found and found.get("busy", 0) > 0.05
    )
    assert rates["idle"] < rates["busy"]
    memory = query(prometheus, 'pod_memory_working_set_bytes{namespace="default"}')
    assert sorted(memory) == ["busy", "idle"]
    assert min(memory.values()) > 0
    assert query(prometheus, "resource_scrape_error") == {"": 0.0}


def account_kubeconfig(up: Up, folder: Path) -> Path:
    """The kubeconfig of an account with the permissions that docs/resource-metrics.md grants, and no others."""
    page = (ROOT / "docs" / "resource-metrics.md").read_text()
    documents = yaml.safe_load_all(page.split("```yaml\n")[1].split("```")[0])
    for obj in documents:
        group = "/api/v1" if obj["apiVersion"] == "v1" else f"/apis/{obj['apiVersion']}"
        place = f"/namespaces/{obj['metadata']['namespace']}" if "namespace" in obj["metadata"] else ""
        up.create(f"{group}{place}/{obj['kind'].lower()}s", obj)
    path = "/api/v1/namespaces/kube-system/serviceaccounts/podscaler-adapter/token"
    token = up.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    config = yaml.safe_load(up.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token["status"]["token"]}
    file = folder / "account.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def command(server: str) -> list[str]:
    """The program that serves metrics.k8s.io, with a resolution that it allows."""
    if server == "metrics-server":
        return [str(real_program("metrics-server")), "--metric-resolution=10s", "--kubelet-request-timeout=5s"]
    return [sys.executable, "-m", "podscaler", "adapter", "--resource", "--metric-resolution=2s", TIMEOUT]


@pytest.fixture(params=[pytest.param("metrics-server", marks=pytest.mark.real), "podscaler"])
def resource_server(request: pytest.FixtureRequest, measured_up: Up, tmp_path: Path) -> Iterator[Up]:
    """An `up` whose metrics.k8s.io is served by the real metrics-server, or by ours."""
    up, program = measured_up, command(request.param)
    write_access(up, tmp_path)
    kubeconfig = account_kubeconfig(up, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    kubeconfigs = [f"--{name}kubeconfig={kubeconfig}" for name in ("", "authentication-", "authorization-")]
    flags = [
        *kubeconfigs,
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={tmp_path / 'certificates'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        f"--kubelet-certificate-authority={tmp_path / 'ca.crt'}",
    ]
    with (tmp_path / "server.log").open("w") as log:
        process = subprocess.Popen([*program, *flags], stdout=log, stderr=subprocess.STDOUT)
    register(up, port)
    yield up
    process.terminate()
    process.wait(timeout=WITHIN_S)


def register(up: Up, port: int) -> None:
    """The APIService of metrics.k8s.io, at a port of this machine."""
    services = "/api/v1/namespaces/kube-system/services"
    spec: Object = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    up.create(services, {"metadata": {"name": "metrics-server"}, "spec": spec})
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "service": {"namespace": "kube-system", "name": "metrics-server", "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    apiservices = "/apis/apiregistration.k8s.io/v1/apiservices"
    up.create(apiservices, {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec})


def used_cores(metrics: Object) -> dict[str, float]:
    """The CPU usage by pod."""
    return {item["metadata"]["name"]: cores(item["containers"][0]["usage"]) for item in metrics.get("items", [])}


def cores(usage: Object) -> float:
    """The CPU of a usage such as `{"cpu": "12345678n"}`."""
    return quantity.parse(usage["cpu"]).approximate_float()


def test_metrics_are_served_from_the_node(resource_server: Up) -> None:
    """The node's /metrics/resource is read over verified HTTPS, and becomes usage of pods and the node."""
    up = resource_server

    def usage() -> dict[str, float]:
        body = up.request("GET", f"{USAGE}/namespaces/default/pods").body
        return used_cores(body) if isinstance(body, dict) else {}

    used = eventually(usage, until=lambda used: len(used) == 2 and used["busy"] > 0)
    assert used["busy"] > used["idle"]
    (node,) = up.get(f"{USAGE}/nodes")["items"]
    assert node["metadata"]["name"] == up.node()["metadata"]["name"]
    assert cores(node["usage"]) >= used["busy"] / 2


def test_the_pages_of_the_node_for_a_client_with_permission(measured_up: Up, tmp_path: Path) -> None:
    """Health, pods and cAdvisor's metrics over HTTPS; a client without credentials is refused."""
    write_access(measured_up, tmp_path)
    url = f"https://{endpoint_of(measured_up)}"
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))

    def page(path: str, token: str = "") -> bytes:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(url + path, headers=headers)
        with urllib.request.urlopen(request, context=context, timeout=WITHIN_S) as response:
            return bytes(response.read())

    token = (tmp_path / "token").read_text()
    assert page("/healthz", token) == b"ok"
    busy = 'container_cpu_usage_seconds_total{container="main",cpu="total"'
    eventually(lambda: page("/metrics/cadvisor", token).decode(), until=lambda text: busy in text)
    pods = json.loads(page("/pods", token))["items"]
    assert sorted(each["metadata"]["name"] for each in pods) == ["busy", "idle"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        page("/pods")
