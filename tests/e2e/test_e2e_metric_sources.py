"""A Deployment follows a real Redis list that a MetricSource names: up, down to zero and back; what failures show."""

import base64
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from up_process import Up, eventually

import prerequisites
from own_ports import own_place
from patience import COMMAND_WITHIN_S, WITHIN_S

PROGRAM = shutil.which("redis-server")
pytestmark = [pytest.mark.e2e, prerequisites.REDIS.mark(is_there=PROGRAM is not None)]

FLAGS = ("--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=0s")
SOURCES = "/apis/podscaler.dev/v1alpha1/namespaces/default/metricsources"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SECRETS = "/api/v1/namespaces/default/secrets"
PASSWORD = "sentinel-password"
ALLOWED = {"podscaler.dev/metric-source": "true"}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis with a password."""
    assert PROGRAM is not None
    host, port = own_place()
    command = [PROGRAM, "--bind", host, "--port", str(port), "--save", "", "--requirepass", PASSWORD]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_until_it_listens(host, port)
    with Redis(host=host, port=port, password=PASSWORD) as client:
        yield client
    process.terminate()
    process.wait(timeout=WITHIN_S)


def wait_until_it_listens(host: str, port: int) -> None:
    """Return once something accepts connections there."""
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        with socket.socket() as probe:
            if probe.connect_ex((host, port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing listens on {host}:{port}")


@pytest.fixture
def quick_up(tmp_path: Path) -> Iterator[Up]:
    """An `up` with a short period."""
    instance = Up(tmp_path / "data", flags=FLAGS).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def create_worker(up: Up, redis: Redis, *, secret_labels: dict[str, str] | None = None) -> None:
    """The worker, its autoscaler, and the MetricSource `jobs` with its Secret."""
    container = {"name": "worker", "image": "worker", "command": ["sleep", "3600"]}
    template = {"metadata": {"labels": {"app": "worker"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "worker"}}, "template": template}
    up.create(DEPLOYMENTS, {"metadata": {"name": "worker"}, "spec": spec})
    data = {"password": base64.b64encode(PASSWORD.encode()).decode()}
    up.create(SECRETS, {"metadata": {"name": "redis", "labels": secret_labels or {}}, "data": data})
    place = redis.connection_pool.connection_kwargs
    source = {
        "redis": {"address": f"{place['host']}:{place['port']}", "list": "jobs"},
        "credentials": [{"name": "password", "secretKeyRef": {"name": "redis", "key": "password"}}],
    }
    kind = {"apiVersion": "podscaler.dev/v1alpha1", "kind": "MetricSource"}
    up.create(SOURCES, {**kind, "metadata": {"name": "jobs"}, "spec": source})
    metric = {"metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    autoscaler = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
        "minReplicas": 0,
        "maxReplicas": 6,
        "metrics": [{"type": "External", "external": metric}],
    }
    up.create(AUTOSCALERS, {"metadata": {"name": "worker"}, "spec": autoscaler})


def replicas(up: Up) -> int:
    """The replicas of the worker."""
    return int(up.get(f"{DEPLOYMENTS}/worker")["spec"]["replicas"])


def conditions(obj: Any) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    found = obj.get("status", {}).get("conditions") or []
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def explain(up: Up) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "podscaler", "explain", "worker", "--kubeconfig", str(up.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=COMMAND_WITHIN_S).stdout


def test_a_worker_follows_its_queue(quick_up: Up, redis: Redis) -> None:
    """25 jobs, five for each worker, are five workers; none are none; seven are two. `explain` shows the query."""
    up = quick_up
    redis.rpush("jobs", *range(25))
    create_worker(up, redis, secret_labels=ALLOWED)
    eventually(lambda: replicas(up), until=lambda found: found == 5)
    place = redis.connection_pool.connection_kwargs
    assert f"query     redis list jobs at {place['host']}:{place['port']}/0: 25\n" in explain(up)
    redis.delete("jobs")
    eventually(lambda: replicas(up), until=lambda found: found == 0)
    redis.rpush("jobs", *range(7))
    eventually(lambda: replicas(up), until=lambda found: found == 2)
    assert conditions(up.get(f"{SOURCES}/jobs")) == {"Ready": ("True", "ReadSucceeded")}


@pytest.mark.slow
def test_a_failure_keeps_the_replicas_and_says_why(quick_up: Up, redis: Redis) -> None:
    """A Secret without the label is not used; with it the next sync works. No text has the password."""
    up = quick_up
    redis.rpush("jobs", *range(25))
    create_worker(up, redis)
    source = eventually(lambda: up.get(f"{SOURCES}/jobs"), until=conditions)
    assert conditions(source) == {"Ready": ("False", "CredentialsUnavailable")}
    autoscaler = eventually(
        lambda: up.get(f"{AUTOSCALERS}/worker"), until=lambda obj: "ScalingActive" in conditions(obj)
    )
    assert (conditions(autoscaler)["ScalingActive"], replicas(up)) == (("False", "FailedGetExternalMetric"), 1)
    assert "the Secret redis lacks the label podscaler.dev/metric-source" in explain(up)
    up.patch(f"{SECRETS}/redis", {"metadata": {"labels": ALLOWED}})
    eventually(lambda: replicas(up), until=lambda found: found == 5)
    shown = f"{source}{autoscaler}{up.get('/api/v1/namespaces/default/events')}{up.log.read_text()}"
    assert PASSWORD not in shown
