"""The subresource `proxy` of a real `up` reaches the programs in pods, a Service's endpoints, and the node."""

from typing import Any

import pytest
from up_process import Up, eventually

pytestmark = pytest.mark.e2e

CORE = "/api/v1/namespaces/default"
SERVER = (
    "import http.server as web, os; "
    "web.ThreadingHTTPServer((os.environ['POD_IP'], 8000), web.SimpleHTTPRequestHandler).serve_forever()"
)
POD: dict[str, Any] = {
    "metadata": {"name": "files", "labels": {"app": "files"}},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "main",
                "image": "python",
                "command": ["python3", "-c", SERVER],
                "ports": [{"containerPort": 8000}],
                "readinessProbe": {"httpGet": {"port": 8000}, "periodSeconds": 1},
            }
        ],
    },
}
SERVICE = {
    "metadata": {"name": "files"},
    "spec": {"selector": {"app": "files"}, "ports": [{"name": "http", "port": 80, "targetPort": 8000}]},
}


@pytest.mark.parametrize("target", ["pods/files", "pods/files:8000", "services/files:80", "services/http:files:http"])
def test_a_pod_and_its_service(up: Up, target: str) -> None:
    """The page of a Python server, once the pod is ready."""
    if up.find(f"{CORE}/pods/files") is None:
        up.create(f"{CORE}/pods", POD)
        up.create(f"{CORE}/services", SERVICE)
    path = f"{CORE}/{target}/proxy/"
    answer = eventually(lambda: up.request("GET", path), until=lambda found: found.status == 200)
    assert "<h1>Directory listing for /</h1>" in answer.body


def test_the_node(up: Up) -> None:
    """The kubelet's pages, as the API server asks for them, with the permission for nodes/proxy alone."""
    name = up.node()["metadata"]["name"]
    healthy = eventually(
        lambda: up.request("GET", f"/api/v1/nodes/{name}/proxy/healthz"), until=lambda a: a.status == 200
    )
    metrics = up.request("GET", f"/api/v1/nodes/{name}/proxy/metrics/resource")
    assert (healthy.body, "node_cpu_usage_seconds_total" in metrics.body) == ("ok", True)
