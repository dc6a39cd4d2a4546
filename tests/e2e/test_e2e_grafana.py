"""The expressions of the Grafana dashboards, evaluated by a real Prometheus that scrapes a real controller."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grafana_boards
import pytest
from up_process import QUICK, Up, eventually

import prerequisites
from own_ports import own_place
from patience import WITHIN_S

PROMETHEUS = shutil.which("prometheus")
pytestmark = [pytest.mark.e2e, pytest.mark.slow]

AUTOSCALER: dict[str, Any] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 4,
    },
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"runtimeClassName": "simulated", "containers": [{"name": "web", "image": "busybox"}]},
        },
    },
}
SERIES_OF_OTHERS = ("kube_", "podscaler_adapter_", "leader_election_")
"""kube-state-metrics and the adapter do not run in this test, and `up` elects no leader."""


def bind() -> str:
    """A free place for a server."""
    host, port = own_place()
    return f"{host}:{port}"


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[str]:
    """A Prometheus that scrapes the controller of an `up` with an autoscaler whose pods have no requests."""
    metrics, own = bind(), bind()
    up = Up(tmp_path / "data", flags=(*QUICK, f"--metrics-bind-address={metrics}")).start()
    up.create("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    up.create("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", AUTOSCALER)
    job = {"job_name": "podscaler", "static_configs": [{"targets": [metrics]}]}
    path = tmp_path / "prometheus.yml"
    path.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    command = [str(PROMETHEUS), f"--config.file={path}", f"--web.listen-address={own}"]
    with (tmp_path / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={tmp_path / 'tsdb'}"], stdout=log, stderr=subprocess.STDOUT
        )
    yield own
    process.terminate()
    process.wait(timeout=WITHIN_S)
    assert up.stop() == 0, up.log.read_text()


def evaluate(address: str, promql: str) -> list[Any]:
    """The series of an instant query; empty as long as Prometheus does not answer. Fails for a query with an error."""
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"
    try:
        with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
            found: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 503:  # it reads its storage still
            return []
        pytest.fail(f"{promql}: {error.read().decode()}")
    except OSError:
        return []
    result: list[Any] = found["data"]["result"]
    return result


def expressions(board: grafana_boards.Board) -> list[tuple[str, str]]:
    """The title of the panel and each of its expressions, with values in place of variables."""
    values = {"$__rate_interval": "10s", "$job": ".*", "$namespace": "default", "$autoscaler": "web"}
    found = []
    for _, panels in board.rows:
        for panel in panels:
            for query in panel.queries:
                text = query.expression
                for variable, value in values.items():
                    text = text.replace(variable, value)
                found.append((panel.title, text))
    return found


@prerequisites.PROMETHEUS.mark(is_there=PROMETHEUS is not None)
def test_panels_have_series(prometheus: str) -> None:
    """Every expression is evaluated without an error, and those about the controller have series."""
    eventually(
        lambda: evaluate(prometheus, 'rate(workqueue_adds_total{name="horizontalpodautoscaler"}[10s]) > 0'), until=bool
    )
    empty = []
    for board in grafana_boards.BOARDS.values():
        for title, text in expressions(board):
            found = evaluate(prometheus, text)
            if not found and not any(name in text for name in SERIES_OF_OTHERS):
                empty.append(title)
    assert empty == []
