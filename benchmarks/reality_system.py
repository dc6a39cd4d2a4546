"""The real system of the benchmark simulation_reality: a web service on `podscaler up`, under a scripted load.

`observe` records what the autoscaler wanted, and measures what the simulation needs to know: the CPU time of starts,
the time until pods run and are ready, and when syncs were. `measured_costs` measures the CPU time of requests.
"""

import asyncio
import base64
import gzip
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from podscaler.cli.demo.load import LoadGenerator

SYNC_S = 5
METRIC_S = 5
WINDOW_S = 30
CPU_INITIALIZATION_S = 10
REQUEST_MILLI = 50
TARGET_PCT = 50
MAXIMUM = 12
BURN_MS = 20
SETTLE_S = 25.0
START_LIMIT_S = 90.0
STARTED_PODS = 4
"""So many pods start together before the load, so that the CPU time of a start is known."""
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"

PHASES: Sequence[tuple[str, float, float, float]] = (
    ("idle", 20, 1, 1),
    ("step", 80, 5.5, 5.5),
    ("idle", 60, 1, 1),
    ("ramp", 90, 1, 8),
    ("idle", 60, 1, 1),
    ("spike", 20, 10, 10),
    ("idle", 60, 1, 1),
)
"""The name, the length in seconds, and the requests per second at the beginning and at the end of each phase."""

SERVER = """
import os, signal, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        burn_s = 0 if self.path == "/ready" else float(os.environ["BURN_MS"]) / 1000
        end = time.thread_time() + burn_s
        while time.thread_time() < end:
            pass
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, *arguments):
        pass

class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
Server((os.environ.get("POD_IP", "127.0.0.1"), int(os.environ["PORT"])), Handler).serve_forever()
"""


class Point(NamedTuple):
    """The wanted and the ready replicas at a second after the load began."""

    at_s: float
    wanted: int
    ready: int


class Run(NamedTuple):
    """What was observed of the real system.

    Attributes:
        start_us: the mean CPU time in the first samples of pods that start, in microseconds.
        launch_ms, startup_ms: medians over all new pods: from creation until the container ran, and then until ready.
        first_sync_ms: the first sync after the load began, by the recording.
    """

    points: list[Point]
    start_us: int
    launch_ms: int
    startup_ms: int
    first_sync_ms: int


def rate_steps() -> Iterator[tuple[float, float]]:
    """The second and the requests per second of every step of the load; a ramp has a step each second."""
    at_s = 0.0
    for _, length_s, first, last in PHASES:
        steps = 1 if first == last else round(length_s)
        for step in range(steps):
            yield at_s + step * length_s / steps, first + (last - first) * step / max(steps - 1, 1)
        at_s += length_s


class Costs(NamedTuple):
    """The CPU time of a request and of a readiness probe, in microseconds."""

    request_us: int
    probe_us: int


def measured_costs() -> Costs:
    """The costs, measured on the server alone."""
    address = "http://127.0.0.1:18089"
    environment = {"BURN_MS": str(BURN_MS), "PORT": "18089", "PATH": os.environ["PATH"]}
    server = subprocess.Popen([sys.executable, "-c", SERVER], env=environment)
    try:
        wait_until(lambda: _answers(f"{address}/ready"))
        process = psutil.Process(server.pid)
        return Costs(_cost_us(process, address), _cost_us(process, f"{address}/ready"))
    finally:
        server.terminate()
        server.wait()


def _cost_us(process: psutil.Process, url: str) -> int:
    """The CPU time of the process for each of 200 requests."""
    before = process.cpu_times()
    for _ in range(200):
        urllib.request.urlopen(url, timeout=10).read()
    after = process.cpu_times()
    return round((after.user + after.system - before.user - before.system) / 200 * 1e6)


def wait_until(condition: Any) -> None:
    """Ends the benchmark where it takes too long."""
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > START_LIMIT_S:
            sys.exit(f"not ready within {START_LIMIT_S:.0f} s")
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


class Plane:
    """The API server of an `up`, by its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._server = cluster["server"]
        self._token = config["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)

    def call(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """The object at a path, after a POST (or `method`) of `body` where there is one."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        request = urllib.request.Request(self._server + path, data, headers, method=method)
        with urllib.request.urlopen(request, context=self._context, timeout=10) as response:
            return json.load(response)


@contextmanager
def plane(recording: Path) -> Iterator[Plane]:
    """A control plane with short periods, whose autoscaler records its syncs."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder, "data")
        prefix = "--horizontal-pod-autoscaler-"
        flags = [
            f"{prefix}sync-period={SYNC_S}s",
            f"{prefix}downscale-stabilization={WINDOW_S}s",
            f"{prefix}cpu-initialization-period={CPU_INITIALIZATION_S}s",
            f"--metric-resolution={METRIC_S}s",
            f"--record={recording}",
        ]
        command = [sys.executable, "-m", "podscaler", "up", "--data-dir", str(data_dir), *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        try:
            process.stdout.readline()
            yield Plane(data_dir / "kubeconfig")
        finally:
            process.terminate()
            process.wait()


def objects() -> Sequence[tuple[str, dict[str, Any]]]:
    """The paths and the bodies of Deployment, Service and autoscaler."""
    container = {
        "name": "web",
        "image": "python",
        "command": ["python3", "-c", SERVER],
        "env": [{"name": "BURN_MS", "value": str(BURN_MS)}, {"name": "PORT", "value": "8080"}],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": f"{REQUEST_MILLI}m"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
    }
    labels = {"app": "web"}
    deployment = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": STARTED_PODS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    service = {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 8080}]}}
    autoscaler = {
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": MAXIMUM,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": TARGET_PCT},
                    },
                }
            ],
        },
    }
    return (
        ("/apis/apps/v1/namespaces/default/deployments", deployment),
        ("/api/v1/namespaces/default/services", service),
        (AUTOSCALERS, autoscaler),
    )


def observe(recording: Path) -> Run:
    """The real system under the load."""
    with plane(recording) as control_plane:
        *workload, autoscaler = objects()
        for path, body in workload:
            control_plane.call(path, body)
        start_us = _start_cost_us(control_plane)
        control_plane.call(DEPLOYMENT, {"spec": {"replicas": 1}}, "PATCH")
        wait_until(lambda: len(_samples(control_plane)) == 1)
        _wait_for_measurement(control_plane)
        time.sleep(METRIC_S / 2)  # syncs are then halfway between two measurements, in both systems
        control_plane.call(*autoscaler)
        address = control_plane.call("/api/v1/namespaces/default/services/web")["spec"]["clusterIP"]
        _wait_for_measurement(control_plane)
        begun_at_s = time.time() + SETTLE_S
        loading = threading.Thread(target=lambda: asyncio.run(_load(f"http://{address}:8080")))
        loading.start()
        points, pods = _watch(control_plane)
        loading.join()
    new_pods = [pod for pod in pods.values() if pod.ready_s is not None and pod.created_s > 0]
    if not new_pods:
        sys.exit("no pod was made: nothing to compare")
    launch_s = statistics.median(pod.running_s - pod.created_s for pod in new_pods)
    startup_s = statistics.median((pod.ready_s or 0) - pod.running_s for pod in new_pods)
    first_sync_s = min(at_s - begun_at_s for at_s in _sync_times(recording) if at_s >= begun_at_s)
    return Run(points, start_us, *(round(each * 1000) for each in (launch_s, startup_s, first_sync_s)))


def _samples(control_plane: Plane) -> dict[str, tuple[str, int]]:
    """For each pod that has a sample: its timestamp, and the CPU time in its window, in microseconds."""
    items = control_plane.call("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")["items"]
    samples = {}
    for item in items:
        used_nanocores = int(item["containers"][0]["usage"]["cpu"].removesuffix("n"))
        window_s = float(item["window"].removesuffix("s"))
        samples[item["metadata"]["name"]] = (item["timestamp"], round(used_nanocores * window_s / 1000))
    return samples


def _start_cost_us(control_plane: Plane) -> int:
    """The mean CPU time in the first samples of pods that start at the same time and serve nothing, in microseconds."""
    first: dict[str, int] = {}

    def have_all() -> bool:
        for name, (_, used_us) in _samples(control_plane).items():
            first.setdefault(name, used_us)
        return len(first) == STARTED_PODS

    wait_until(have_all)
    return round(statistics.mean(first.values()))


def _wait_for_measurement(control_plane: Plane) -> None:
    """Until the metrics API shows a new sample."""
    before, begun = _samples(control_plane), time.monotonic()
    while _samples(control_plane) == before and time.monotonic() - begun < 3 * METRIC_S:
        time.sleep(0.02)


def _sync_times(recording: Path) -> list[float]:
    """The instants of the recorded syncs, in seconds since the epoch."""
    with gzip.open(recording, "rt") as file:
        lines = [json.loads(line) for line in file]
    return [datetime.fromisoformat(line["time"]).timestamp() for line in lines if "time" in line]


async def _load(url: str) -> None:
    generator = LoadGenerator(url)
    task = asyncio.create_task(generator.run())
    begun = time.monotonic()
    generator.requests_per_s = PHASES[0][2]
    await asyncio.sleep(SETTLE_S)
    for at_s, rate in rate_steps():
        await asyncio.sleep(max(begun + SETTLE_S + at_s - time.monotonic(), 0))
        generator.requests_per_s = rate
    await asyncio.sleep(PHASES[-1][1])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    outcomes = generator.outcomes
    print(f"requests: {outcomes.served} served, {outcomes.failed} failed", flush=True)


class _SeenPod:
    """When a pod was first seen, running, and ready, in seconds after the load began."""

    def __init__(self, created_s: float) -> None:
        self.created_s = created_s
        self.running_s = created_s
        self.ready_s: float | None = None


def _watch(control_plane: Plane) -> tuple[list[Point], dict[str, _SeenPod]]:
    points: list[Point] = []
    pods: dict[str, _SeenPod] = {}
    begun = time.monotonic() + SETTLE_S
    length_s = sum(phase[1] for phase in PHASES)
    while (at_s := time.monotonic() - begun) < length_s:
        ready = 0
        for pod in control_plane.call("/api/v1/namespaces/default/pods")["items"]:
            seen = pods.setdefault(pod["metadata"]["uid"], _SeenPod(at_s))
            if pod["status"].get("phase") != "Running":
                seen.running_s = at_s
            is_ready = any(
                each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", [])
            )
            ready += is_ready and "deletionTimestamp" not in pod["metadata"]
            if is_ready and seen.ready_s is None:
                seen.ready_s = at_s
        if at_s >= 0:
            points.append(Point(at_s, control_plane.call(DEPLOYMENT)["spec"]["replicas"], ready))
        time.sleep(0.25)
    return points, pods
