"""A real Prometheus finds the pods of `up` by HTTP service discovery, and scrapes them."""

import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from exposing_pods import exposing_deployment
from up_process import Up, eventually

import prerequisites
from patience import WITHIN_S

PROGRAM = shutil.which("prometheus")
pytestmark = [pytest.mark.e2e, pytest.mark.slow, prerequisites.PROMETHEUS.mark(is_there=PROGRAM is not None)]


def configuration(up: Up, folder: Path) -> Path:
    """Discovery through the API server, with the admin's token, as docs/metrics.md shows it."""
    admin = yaml.safe_load(up.kubeconfig.read_text())
    server = admin["clusters"][0]["cluster"]["server"]
    (folder / "token").write_text(admin["users"][0]["user"]["token"])
    discovery = {
        "url": f"{server}/podscaler/targets",
        "authorization": {"type": "Bearer", "credentials_file": str(folder / "token")},
        "tls_config": {"insecure_skip_verify": True},
        "refresh_interval": "1s",
    }
    relabeled = {"source_labels": ["__meta_kubernetes_pod_label_app"], "target_label": "app"}
    job = {"job_name": "pods", "http_sd_configs": [discovery], "relabel_configs": [relabeled]}
    path = folder / "prometheus.yml"
    path.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    return path


@pytest.fixture
def prometheus(up: Up, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes what `up` tells it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    assert PROGRAM is not None
    command = [PROGRAM, f"--config.file={configuration(up, tmp_path)}", f"--web.listen-address={address}"]
    with (tmp_path / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={tmp_path / 'tsdb'}"], stdout=log, stderr=subprocess.STDOUT
        )
    yield address
    process.terminate()
    process.wait(timeout=WITHIN_S)


def query(address: str, promql: str) -> list[tuple[dict[str, str], float]]:
    """Labels and values of an instant query; empty as long as Prometheus does not answer."""
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
    try:
        with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
            found: dict[str, Any] = json.load(response)
    except OSError:
        return []
    return [(each["metric"], float(each["value"][1])) for each in found["data"]["result"]]


def test_a_real_prometheus_scrapes_the_pods(up: Up, prometheus: str) -> None:
    """Every pod is a target with its names and labels, and what it exposes can be queried."""
    up.create("/apis/apps/v1/namespaces/default/deployments", exposing_deployment("worker", replicas=2))
    found = eventually(lambda: query(prometheus, "queue_depth"), until=lambda found: len(found) == 2)
    pods = up.get("/api/v1/namespaces/default/pods")["items"]
    assert sorted((labels["namespace"], labels["pod"], labels["app"], value) for labels, value in found) == sorted(
        ("default", pod["metadata"]["name"], "worker", 20.0) for pod in pods
    )


def test_targets_are_for_those_who_may_read_them(up: Up) -> None:
    """The path needs a known user, as all paths of the API server."""
    assert isinstance(up.request("GET", "/podscaler/targets").body, list)
    assert [up.request("GET", "/podscaler/targets", token=token).status for token in ("", "wrong")] == [401, 401]
