"""Pods that expose metrics are scraped by a real `up`, and scaled by what they say."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from exposing_pods import exposing_deployment
from up_process import Up, eventually

pytestmark = pytest.mark.e2e

QUICK = ("--horizontal-pod-autoscaler-sync-period=1s", "--metric-resolution=1s")
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SERVICES = "/api/v1/namespaces/default/services"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"


@pytest.fixture
def scraping_up(tmp_path: Path) -> Iterator[Up]:
    """An `up` with short periods."""
    instance = Up(tmp_path / "data", flags=QUICK).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def values(up: Up, path: str) -> list[int]:
    """The values of a custom metric in thousandths; empty where there is none."""
    answer = up.request("GET", f"{CUSTOM}/{path}")
    texts = [each["value"] for each in answer.body.get("items", [])]
    return [int(text[:-1]) if text.endswith("m") else int(text) * 1000 for text in texts]


def test_a_deployment_follows_what_its_pods_expose(scraping_up: Up) -> None:
    """A gauge of 20 for each pod with a target of 10 doubles the pods up to the maximum; the counter is a rate."""
    up = scraping_up
    up.create(DEPLOYMENTS, exposing_deployment("worker"))
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
