"""The walkthroughs of docs/walkthrough.md with real servers: every block of a section, as it stands there."""

import re
import shutil
from pathlib import Path

import page_scripts
import pytest
from up_process import Up

import own_ports
import prerequisites

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("kubectl_present")]

PAGE = (page_scripts.ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
TIMEOUT_S = 250.0
"""For all commands of a section, which wait for each other."""

redis = prerequisites.REDIS.mark(is_there=shutil.which("redis-server") is not None)
prometheus = prerequisites.PROMETHEUS.mark(is_there=shutil.which("prometheus") is not None)


def walk(up: Up, title: str, **environment: str) -> str:
    """The output of all commands of a section; nothing that they created is left."""
    script = "\n".join(page_scripts.blocks(page_scripts.section(PAGE, title), "sh"))
    output = page_scripts.run(up, script, timeout_s=TIMEOUT_S, **environment)
    assert up.kubectl("get", "deployments,hpa,metricsources,ingresses", "-o", "name") == ""
    return output


@redis
def test_several_metrics(up: Up) -> None:
    """Packets, requests of the Ingress and messages of the queue decide in turn."""
    output = walk(up, "Several metrics, and metrics of your own")
    assert '"requests-per-second" on Ingress/main-route (target value):' in output
    assert re.search(r"^  query +redis list worker_tasks at .*: 240$", output, re.MULTILINE), "explain names the list"


@prometheus
def test_requests_per_second(up: Up, tmp_path: Path) -> None:
    """The web service follows what Prometheus counts, and Prometheus ends with the script."""
    host, port = own_ports.own_place()
    environment = {"PROMETHEUS": f"{host}:{port}", "TMPDIR": str(tmp_path)}
    output = walk(up, "Requests per second, counted by Prometheus", **environment)
    assert "external metric requests-per-second(nil) above target" in output
    assert list(tmp_path.iterdir()) == []


@redis
def test_workers_follow_a_queue_to_zero(up: Up) -> None:
    """The autoscaler wakes the workers, and they do all jobs."""
    output = walk(up, "Workers that follow a queue to zero")
    assert "external metric queue_messages_ready" in output
