"""Pods that expose metrics are scraped by a real `up`, and scaled by what they say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually

pytestmark = pytest.mark.e2e

QUICK = ("--horizontal-pod-autoscaler-sync-period=1s", "--metric-resolution=1s")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SERVICES = "/api/v1/namespaces/default/services"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"

PROGRAM = """
import os, time, http.server
from http.server import BaseHTTPRequestHandler as Base
class Handler(Base):
    started = time.monotonic()
    def do_GET(self):
        body = "# TYPE jobs counter\\njobs_total %f\\nqueue_depth 20\\n" % ((time.monotonic() - self.started) * 40)
        self.send_response(200 if self.path == "/stats" else 404)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *_):
        pass
http.server.HTTPServer((os.environ["POD_IP"], 8000), Handler).serve_forever()
"""
ANNOTATIONS = {"prometheus.io/scrape": "true", "prometheus.io/port": "8000", "prometheus.io/path": "/stats"}


@pytest.fixture
def scraping_up(tmp_path: Path) -> Iterator[Up]:
    """An `up` with short periods."""
    instance = Up(tmp_path / "data", flags=QUICK).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def deployment() -> dict[str, Any]:
    """One pod, which exposes a counter that rises by 40 in a second, and a gauge."""
    container = {"name": "c", "image": "python", "command": ["python3", "-c", PROGRAM]}
    template = {
        "metadata": {"labels": {"app": "worker"}, "annotations": ANNOTATIONS},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "worker"}}, "template": template}
    return {"metadata": {"name": "worker"}, "spec": spec}


def values(up: Up, path: str) -> list[int]:
    """The values of a custom metric in thousandths; empty where there is none."""
    answer = up.request("GET", f"{CUSTOM}/{path}")
    texts = [each["value"] for each in answer.body.get("items", [])]
    return [int(text[:-1]) if text.endswith("m") else int(text) * 1000 for text in texts]


def test_a_deployment_follows_what_its_pods_expose(scraping_up: Up) -> None:
    """A gauge of 20 for each pod with a target of 10 doubles the pods up to the maximum; the counter is a rate."""
    up = scraping_up
    up.create(DEPLOYMENTS, deployment())
    selected = {"selector": {"app": "worker"}, "ports": [{"port": 80}]}
    up.create(SERVICES, {"metadata": {"name": "worker"}, "spec": selected})
    metric = {"metric": {"name": "queue_depth"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": [{"type": "Pods", "pods": metric}]}
    up.create(AUTOSCALERS, {"metadata": {"name": "worker"}, "spec": spec})
    eventually(lambda: values(up, "pods/*/queue_depth"), until=lambda found: found == [20_000] * 3)
    eventually(lambda: values(up, "services/worker/queue_depth"), until=lambda found: found == [60_000])
    rates = eventually(lambda: values(up, "pods/*/jobs"), until=lambda found: len(found) == 3)
    assert all(20_000 < rate < 60_000 for rate in rates)
