"""The simulation beside `podscaler up`: the same load on real processes and in virtual time, compared second by second.

A web service whose requests use a stated CPU time is put under a step, a ramp and a spike, and the syncs are recorded.
The replicas that the real autoscaler wanted are compared with those of the simulation. What the simulation needs to
know is measured before (CPU of a request), read from the pods (time until they run and are ready) and from the
recording (when syncs were). The load begins with a measurement of the pods, as the simulation assumes.
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

from podscaler.api.typed import autoscaling
from podscaler.cli.demo.load import LoadGenerator
from podscaler.core.model import spec
from podscaler.core.model.settings import SECOND_NS, Settings
from podscaler.simulation import engine
from podscaler.simulation.model.distributions import fixed
from podscaler.simulation.model.scenario import AutoscalerModel, MetricsServerModel, SimulationScenario
from podscaler.simulation.model.step_series import from_steps
from podscaler.simulation.model.workloads import ContainerModel, PodModel, RequestLoad, WorkloadModel

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
        launch_ms, startup_ms: medians over all new pods: from creation until the container ran, and then until ready.
        first_sync_ms: the first sync after the load began, by the recording.
    """

    points: list[Point]
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
    """The CPU time of the start, of a request and of a readiness probe, in microseconds."""

    start_us: int
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
        begun = process.cpu_times()
        start_us = round((begun.user + begun.system) * 1e6)
        return Costs(start_us, _cost_us(process, address), _cost_us(process, f"{address}/ready"))
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

    def call(self, path: str, body: Any = None) -> Any:
        """The object at a path, after a POST of `body` where there is one."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._server + path, data, headers)
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
        ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", autoscaler),
    )


def observe(recording: Path) -> Run:
    """The real system under the load."""
    with plane(recording) as control_plane:
        for path, body in objects():
            control_plane.call(path, body)
        deployment = "/apis/apps/v1/namespaces/default/deployments/web"
        wait_until(lambda: control_plane.call(deployment).get("status", {}).get("readyReplicas"))
        address = control_plane.call("/api/v1/namespaces/default/services/web")["spec"]["clusterIP"]
        _wait_for_measurement(control_plane)
        begun_at_s = time.time() + SETTLE_S
        loading = threading.Thread(target=lambda: asyncio.run(_load(f"http://{address}:8080")))
        loading.start()
        points, pods = _watch(control_plane, deployment)
        loading.join()
    new_pods = [pod for pod in pods.values() if pod.ready_s is not None and pod.created_s > 0]
    if not new_pods:
        sys.exit("no pod was made: nothing to compare")
    launch_s = statistics.median(pod.running_s - pod.created_s for pod in new_pods)
    startup_s = statistics.median((pod.ready_s or 0) - pod.running_s for pod in new_pods)
    first_sync_s = min(at_s - begun_at_s for at_s in _sync_times(recording) if at_s >= begun_at_s)
    return Run(points, *(round(each * 1000) for each in (launch_s, startup_s, first_sync_s)))


def _wait_for_measurement(control_plane: Plane) -> None:
    """Until the metrics API shows a new sample."""

    def samples() -> Any:
        return control_plane.call("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")["items"]

    wait_until(samples)
    before, begun = samples(), time.monotonic()
    while samples() == before and time.monotonic() - begun < 3 * METRIC_S:
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
    generator.rate = PHASES[0][2]
    await asyncio.sleep(SETTLE_S)
    for at_s, rate in rate_steps():
        await asyncio.sleep(max(begun + SETTLE_S + at_s - time.monotonic(), 0))
        generator.rate = rate
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


def _watch(control_plane: Plane, deployment: str) -> tuple[list[Point], dict[str, _SeenPod]]:
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
            points.append(Point(at_s, control_plane.call(deployment)["spec"]["replicas"], ready))
        time.sleep(0.25)
    return points, pods


def scenario(costs: Costs, run: Run) -> SimulationScenario:
    """The same system in virtual time."""
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=TARGET_PCT)
    metric = autoscaling.MetricSpec(
        type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu", target=target)
    )
    reference = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")
    wire = autoscaling.HorizontalPodAutoscalerSpec(
        scale_target_ref=reference, min_replicas=1, max_replicas=MAXIMUM, metrics=(metric,)
    )
    rate = from_steps((round(at_s * 1000), round(each * 1000)) for at_s, each in rate_steps())
    pod = PodModel(
        containers=(ContainerModel(name="web", requests_milli={"cpu": REQUEST_MILLI}, idle_cpu_ucores=costs.probe_us),),
        launch=fixed(run.launch_ms),
        startup=fixed(run.startup_ms),
        burst_ucores=1_000_000,
        burst_ms=costs.start_us // 1000,
    )
    workload = WorkloadModel(
        key="default/web",
        pod=pod,
        requests=RequestLoad(rate=rate, cpu_per_request_us=costs.request_us),
    )
    return SimulationScenario(
        workloads=(workload,),
        autoscalers=(AutoscalerModel(spec=spec.read("default", "web", wire), workload="default/web"),),
        duration_ms=round(sum(phase[1] for phase in PHASES) * 1000),
        metrics_server=MetricsServerModel(resolution_ms=METRIC_S * 1000, lag_ms=0, fresh_ms=500),
        sync_period_ms=SYNC_S * 1000,
        first_sync_ms=run.first_sync_ms,
        actuation_ms=0,
        settings=Settings(
            downscale_stabilization_ns=WINDOW_S * SECOND_NS,
            cpu_initialization_period_ns=CPU_INITIALIZATION_S * SECOND_NS,
        ),
    )


def simulated(stated: SimulationScenario) -> list[Point]:
    """The replicas of the simulation, at each sync."""
    points = []
    for sync in engine.simulate(stated):
        replicas = sync.workload.replicas if sync.decision.replicas is None else sync.decision.replicas
        points.append(Point(sync.at_ms / 1000, replicas, sync.workload.ready))
    return points


def at(points: Sequence[Point], at_s: float) -> Point:
    """The point that holds at a second."""
    return max((point for point in points if point.at_s <= at_s), key=lambda point: point.at_s, default=points[0])


def reached(points: Sequence[Point], begin_s: float, end_s: float) -> dict[int, float]:
    """For each count of replicas the second at which a phase first wanted that many, or more."""
    levels: dict[int, float] = {}
    before = at(points, begin_s).wanted
    for point in points:
        if begin_s <= point.at_s < end_s:
            for level in range(before + 1, point.wanted + 1):
                levels.setdefault(level, point.at_s - begin_s)
            before = max(before, point.wanted)
    return levels


def compare(real: Sequence[Point], virtual: Sequence[Point]) -> list[str]:
    """The lines of the comparison."""
    seconds = range(round(sum(phase[1] for phase in PHASES)))
    differences = [abs(at(real, second).wanted - at(virtual, second).wanted) for second in seconds]
    within = sum(difference <= 1 for difference in differences) / len(differences)
    lines = [
        f"replicas within one pod: {within:.1%} of the time (goal 95 %)",
        f"replicas equal: {differences.count(0) / len(differences):.1%} of the time",
        f"mean replicas: real {statistics.mean(at(real, s).wanted for s in seconds):.2f}, "
        f"simulated {statistics.mean(at(virtual, s).wanted for s in seconds):.2f}",
        "",
        "| phase | most replicas real | simulated | 2nd pod after, real | simulated | most after, real | simulated |",
        "|---|---|---|---|---|---|---|",
    ]
    begin_s = 0.0
    for name, length_s, first, last in PHASES:
        if max(first, last) > 1:
            ours, theirs = (
                reached(points, begin_s, begin_s + length_s + METRIC_S + SYNC_S) for points in (real, virtual)
            )
            lines.append(_phase_row(f"{name} to {last:g}/s", ours, theirs))
        begin_s += length_s
    return lines


def _phase_row(name: str, real: dict[int, float], virtual: dict[int, float]) -> str:
    both = sorted(real.keys() & virtual.keys())
    if not both:
        return f"| {name} | no common scale-up | | | | | |"
    first, most = both[0], both[-1]
    return (
        f"| {name} | {max(real)} | {max(virtual)} | {real[first]:.1f} s | {virtual[first]:.1f} s "
        f"| {real[most]:.1f} s | {virtual[most]:.1f} s |"
    )


def plot(real: Sequence[Point], virtual: Sequence[Point]) -> list[str]:
    """Two rows of digits: the wanted replicas every five seconds."""
    seconds = range(0, round(sum(phase[1] for phase in PHASES)), 5)
    digits = "0123456789ABCDEF"
    rows = (("real     ", real), ("simulated", virtual))
    return [f"{name} {''.join(digits[min(at(points, s).wanted, 15)] for s in seconds)}" for name, points in rows]


def svg(real: Sequence[Point], virtual: Sequence[Point]) -> str:
    """A picture of both: the wanted replicas over time, and below them the requests per second."""
    length_s = sum(phase[1] for phase in PHASES)
    width, height, load_height = 900, 260, 60
    most = max(point.wanted for point in (*real, *virtual)) + 1

    def path(steps: Sequence[tuple[float, float]], zero: float, scale: float) -> str:
        """A step line through (second, value) pairs; `zero` is the y of the value 0."""
        xs = [40 + (width - 60) * at_s / length_s for at_s, _ in [*steps, (length_s, 0)]]
        ys = [zero - value * scale for _, value in steps]
        return "M" + " L".join(
            f"{x:.1f} {y:.1f} L{end:.1f} {y:.1f}" for x, end, y in zip(xs[:-1], xs[1:], ys, strict=True)
        )

    unit = (height - 30) / most
    lines = [
        (path([(p.at_s, p.wanted) for p in real], height, unit), "#b5541c", "podscaler up, real processes", 20),
        (path([(p.at_s, p.wanted) for p in virtual], height, unit), "#1c5fb5", "simulation", 38),
        (path(list(rate_steps()), height + 30 + load_height, load_height / 10), "#777777", "requests per second", 0),
    ]
    axis = "".join(
        f'<text x="30" y="{height - level * unit + 4:.0f}" text-anchor="end">{level}</text>'
        for level in range(0, most + 1, 2)
    )
    legend = "".join(f'<text x="60" y="{y}" fill="{color}">{name}</text>' for _, color, name, y in lines if y)
    legend += f'<text x="60" y="{height + 45}" fill="#777777">requests per second</text>'
    paths = "".join(
        f'<path d="{line}" fill="none" stroke="{color}" stroke-width="1.5"/>' for line, color, _, _ in lines
    )
    size = f'width="{width}" height="{height + load_height + 45}"'
    style = 'font-family="sans-serif" font-size="13"'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{background}{axis}{legend}{paths}</svg>\n'


def main() -> None:
    """Observe, simulate, compare; PICTURE=FILE.svg keeps the picture."""
    costs = measured_costs()
    with tempfile.TemporaryDirectory() as folder:
        run = observe(Path(folder, "syncs.jsonl.gz"))
    virtual = simulated(scenario(costs, run))
    print(f"a request uses {costs.request_us / 1000:.1f} ms of CPU, a probe {costs.probe_us / 1000:.1f} ms;")
    print(f"a pod uses {costs.start_us / 1000:.0f} ms of CPU to start, runs after {run.launch_ms} ms,")
    print(f"and is ready {run.startup_ms} ms later\n")
    print("\n".join(compare(run.points, virtual)))
    print("\nreplicas wanted, every 5 s (A is 10):\n")
    print("\n".join(plot(run.points, virtual)))
    if picture := os.environ.get("PICTURE"):
        Path(picture).write_text(svg(run.points, virtual))


if __name__ == "__main__":
    main()
