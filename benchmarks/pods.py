"""Simulated pods by the thousand: how long until all are ready and until all are gone, what it costs, what stalls.

`python -m benchmarks pods` counts with 1,000 pods; numbers after the name (`python -m benchmarks pods 1000 5000`) with
as many as they say. `podscaler up` runs in a process of its own, which counts how late its event loop is.
"""

import asyncio
import cProfile
import http.client
import json
import pstats
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from podscaler.base.clock import SystemClock
from podscaler.cli.up.control_plane import ControlPlane, UpSettings
from podscaler.cli.up.garbage_collection import OldGenerationCollector
from podscaler.controller.options.settings import ControllerSettings

PODS = (1000,)
LIMIT_S = 540.0
BEAT_S = 0.01
PROBE_S = 0.05
POLL_S = 0.25
NAME = "many"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"


# --- the process that is measured -------------------------------------------------------------------------------------


class Heartbeat:
    """How late the event loop is: a task that wakes every 10 ms and writes the longest delay to a file.

    The file has two numbers: the longest delay, and the most CPU time that the loop's thread used between two beats,
    which the other load of the machine does not lengthen. Counting begins anew where the file is gone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._longest_s = self._busiest_s = 0.0
        self._write()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            due_s, used_s = time.perf_counter() + BEAT_S, time.thread_time()
            await asyncio.sleep(BEAT_S)
            late_s, used_s = time.perf_counter() - due_s, time.thread_time() - used_s
            if not self._path.exists():
                self._longest_s = self._busiest_s = 0.0
                self._write()
            elif late_s > self._longest_s or used_s > self._busiest_s:
                self._longest_s, self._busiest_s = max(late_s, self._longest_s), max(used_s, self._busiest_s)
                self._write()

    def _write(self) -> None:
        other = self._path.with_suffix(".new")
        other.write_text(f"{self._longest_s:.3f} {self._busiest_s:.3f}", encoding="ascii")
        other.replace(self._path)


async def serve(folder: Path) -> None:
    """`podscaler up` and its heartbeat, until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    wanted = UpSettings(folder, 0, folder / "kubeconfig", metric_resolution_s=15.0, autoscaler=ControllerSettings())
    clock = SystemClock()
    plane = ControlPlane(wanted, clock)
    await plane.start()
    collecting = asyncio.create_task(OldGenerationCollector(clock).run())
    heartbeat = Heartbeat(folder / "loop")
    beat = asyncio.create_task(heartbeat.run())
    print(plane.url, flush=True)
    await ended.wait()
    beat.cancel()
    collecting.cancel()
    await plane.stop()


def serve_profiled(folder: Path, path: str) -> None:
    """The same under cProfile, whose statistics go to a file."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(asyncio.run, serve(folder))
    pstats.Stats(profile).dump_stats(path)


# --- the one that measures --------------------------------------------------------------------------------------------


class Api:
    """Requests of the admin, one at a time, on one connection."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, self._token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
        self._netloc = urlsplit(cluster["server"]).netloc
        self._context = ssl._create_unverified_context()
        self._connection = http.client.HTTPSConnection(self._netloc, context=self._context, timeout=LIMIT_S)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "json") -> Any:
        """The answer's body, None for one that is not found."""
        sent = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": f"application/{kind}"}
        self._connection.request(method, path, sent, headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.status == 404:
            return None
        if response.status >= 300:
            sys.exit(f"{method} {path}: {response.status} {text.decode()}")
        return json.loads(text) if text.startswith(b"{") else text


class Probe(threading.Thread):
    """Asks for /readyz twenty times a second and remembers the slowest answer."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(daemon=True)
        self._api = Api(kubeconfig)
        self._ended = threading.Event()
        self.longest_s = 0.0

    def run(self) -> None:
        """Until `end`."""
        while not self._ended.wait(PROBE_S):
            begun_s = time.perf_counter()
            self._api.ask("GET", "/readyz")
            self.longest_s = max(self.longest_s, time.perf_counter() - begun_s)

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()
        self.join()


@dataclass(frozen=True, slots=True)
class Phase:
    """What one phase took.

    Attributes:
        wall_s, cpu_s: time, and the server's CPU time.
        loop_s: the longest delay of its event loop.
        busy_s: the most CPU time that its event loop used between two beats.
        readyz_s: the slowest answer of /readyz.
        memory_mib: resident at the end.
    """

    wall_s: float
    cpu_s: float
    loop_s: float
    busy_s: float
    readyz_s: float
    memory_mib: float


class Plane:
    """A running control plane, from outside."""

    def __init__(self, folder: Path, profile: str = "") -> None:
        command = [sys.executable, "-m", "benchmarks.pods", "serve", str(folder), *([profile] if profile else [])]
        self._folder = folder
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        if self._process.stdout is None or not self._process.stdout.readline():
            sys.exit("up did not start")
        self.api = Api(folder / "kubeconfig")

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()

    def _cpu_s(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def measure(self, begin: Callable[[], object], is_done: Callable[[], bool]) -> Phase:
        """Begin something and count until it is done."""
        loop = self._folder / "loop"
        loop.unlink()
        probe = Probe(self._folder / "kubeconfig")
        begun_s, cpu_s = time.perf_counter(), self._cpu_s()
        probe.start()
        begin()
        while not is_done():
            if time.perf_counter() - begun_s > LIMIT_S:
                sys.exit(f"not done within {LIMIT_S} s")
            time.sleep(POLL_S)
        wall_s, cpu_s = time.perf_counter() - begun_s, self._cpu_s() - cpu_s
        probe.end()
        loop_s, busy_s = map(float, loop.read_text().split())
        memory_mib = psutil.Process(self._process.pid).memory_info().rss / 2**20
        return Phase(wall_s, cpu_s, loop_s, busy_s, probe.longest_s, memory_mib)


def deployment(count: int) -> dict[str, Any]:
    """A Deployment of simulated pods."""
    container = {"name": "app", "image": "python", "ports": [{"containerPort": 8080}]}
    labels = {"app": NAME}
    template = {"metadata": {"labels": labels}, "spec": {"runtimeClassName": "simulated", "containers": [container]}}
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": spec}


def service() -> dict[str, Any]:
    """A Service in front of them."""
    spec = {"selector": {"app": NAME}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME}, "spec": spec}


def _endpoints(api: Api) -> int:
    slices = api.ask("GET", f"{SLICES}?labelSelector=kubernetes.io/service-name={NAME}")["items"]
    return sum(one["conditions"]["ready"] for each in slices for one in each.get("endpoints") or [])


def _is_ready(api: Api, count: int, *, served: bool) -> bool:
    found = api.ask("GET", f"{DEPLOYMENTS}/{NAME}")
    ready = (found.get("status") or {}).get("readyReplicas", 0)
    return bool(ready == count) and (not served or _endpoints(api) == count)


def _is_gone(api: Api, *, served: bool) -> bool:
    left = api.ask("GET", f"{REPLICA_SETS}?labelSelector=app={NAME}")["items"]
    status = left[0].get("status") or {} if left else {}
    gone = not status.get("replicas") and not status.get("terminatingReplicas")
    return gone and (not served or _endpoints(api) == 0)


def phases(count: int, *, served: bool, profile: str = "") -> tuple[Phase, Phase]:
    """So many pods made ready, then none any more.

    Args:
        count: of pods.
        served: whether a Service selects them.
        profile: where a profile is written, empty for none.
    """
    with tempfile.TemporaryDirectory(prefix="podscaler-bench-") as folder:
        plane = Plane(Path(folder), profile)
        api = plane.api
        try:
            if served:
                api.ask("POST", SERVICES, service())
            time.sleep(2 * PROBE_S)
            up = plane.measure(
                lambda: api.ask("POST", DEPLOYMENTS, deployment(count)), lambda: _is_ready(api, count, served=served)
            )
            none = {"spec": {"replicas": 0}}
            patch = "merge-patch+json"
            down = plane.measure(
                lambda: api.ask("PATCH", f"{DEPLOYMENTS}/{NAME}", none, patch), lambda: _is_gone(api, served=served)
            )
        finally:
            plane.end()
    return up, down


def main(counts: tuple[int, ...] = PODS) -> None:
    """A row for each number of pods, with and without a Service."""
    print("| pods | Service | | s | CPU s | /readyz, s | loop, s | loop, CPU s | MiB |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for count in counts:
        for served in (False, True):
            ready, gone = phases(count, served=served)
            for name, one in (("ready", ready), ("gone", gone)):
                shown = f"| {count:,} | {'yes' if served else 'no'} | {name} | {one.wall_s:.1f} | {one.cpu_s:.1f} "
                shown += f"| {one.readyz_s:.2f} | {one.loop_s:.2f} | {one.busy_s:.2f} | {one.memory_mib:.0f} |"
                print(shown, flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            asyncio.run(serve(Path(folder)))
        case ["serve", folder, profile]:
            serve_profiled(Path(folder), profile)
        case ["profile", path, count]:
            print(*phases(int(count), served=True, profile=path), sep="\n")
        case numbers:
            main(tuple(int(number) for number in numbers) or PODS)
