"""`podscaler adapter` beside the real prometheus-adapter: 2,000 metrics over 5,000 pods, each tick.

Both get the same rules, the same API server (`podscaler up --api-only` with the pods) and the same Prometheus, a
process that counts queries and answers at once, so that the figures are those of the adapters. In each tick every app
asks for its two metrics. `make assets` builds prometheus-adapter, which runs here without its limit of five requests a
second to the API server. Without that program the table has our side alone.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from podscaler.base.clock import SystemClock
from podscaler.kube.client import connect, urls
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import bearer
from podscaler.kube.transport.transport import Request, Transport

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from asset_modules import find_program

NAMESPACES, APPS, PODS = 100, 10, 5
NAMES = 20
"""How many different names the metrics have."""
TICKS = 3
PERIOD_S = 10.0
AT_ONCE = 32
HOST = "127.0.0.1"
FAKE = Path(__file__).parent / "adapter_prometheus.py"
GROUP_VERSION = "/apis/custom.metrics.k8s.io/v1beta1"
RULES = {
    "rules": [
        {
            "seriesQuery": 'load_total{namespace!="",pod!=""}',
            "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
            "seriesFilters": [{"is": "^metric_.*"}],
            "name": {"matches": "^(.*)_total$", "as": "${1}_per_second"},
            "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)",
        }
    ]
}


@dataclass(frozen=True, slots=True)
class Side:
    """What one adapter needed, on average of the ticks.

    Attributes:
        seconds: until all requests of a tick had a response.
        p99_ms: of the responses.
        queries: requests to Prometheus in a tick.
        cpu_s: of the adapter's process.
        memory_mib: its resident memory at the end.
    """

    name: str
    seconds: float
    p99_ms: float
    queries: float
    cpu_s: float
    memory_mib: float


def requests() -> list[str]:
    """The paths of a tick: two metrics of each app."""
    found: list[str] = []
    for namespace in range(NAMESPACES):
        for app in range(APPS):
            number = namespace * APPS + app
            for metric in (2 * number % NAMES, (2 * number + 1) % NAMES):
                where = f"{GROUP_VERSION}/namespaces/team-{namespace}/pods/%2A/metric_{metric}_per_second"
                found.append(f"{where}?labelSelector=app%3Dapp-{app}")
    return found


@contextmanager
def process(command: Sequence[Any], log: Path) -> Iterator["subprocess.Popen[str]"]:
    """A program whose log is a file and whose standard output is a pipe; it ends with the context."""
    with log.open("w") as errors:
        running = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


async def fill(kubeconfig: Path) -> None:
    """Create the namespaces and pods."""
    client = await connect.open_client(locate.find_config(str(kubeconfig)), SystemClock(), user_agent="benchmark")
    for namespace in range(NAMESPACES):
        body = json.dumps({"metadata": {"name": f"team-{namespace}"}}).encode()
        await client.post("/api/v1/namespaces", body, subject="namespaces")
        await asyncio.gather(*(_create_pod(client, namespace, number) for number in range(APPS * PODS)))
    await client.close()


async def _create_pod(client: Client, namespace: int, number: int) -> None:
    metadata = {"name": f"pod-{number}", "labels": {"app": f"app-{number // PODS}"}}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    path = urls.path("api", "v1", "namespaces", f"team-{namespace}", "pods")
    await client.post(path, json.dumps(body).encode(), subject="pods")


async def one_tick(transport: Transport, paths: Sequence[str]) -> tuple[float, list[float]]:
    """The duration of a tick, and that of each request."""
    gate, durations = asyncio.Semaphore(AT_ONCE), list[float]()

    async def ask(path: str) -> None:
        where, _, query = path.partition("?")
        async with gate:
            began = time.perf_counter()
            response = await transport.request(Request("GET", where, query, timeout_s=600.0))
            durations.append(time.perf_counter() - began)
        found = json.loads(response.body)
        if response.status != 200 or len(found["items"]) != PODS:
            raise AssertionError(f"{path}: {response.status} {response.body[:300]!r}")

    began = time.perf_counter()
    await asyncio.gather(*(ask(path) for path in paths))
    return time.perf_counter() - began, durations


async def measure(name: str, port: int, token: str, pid: int, prometheus: str) -> Side:
    """The figures of an adapter that listens on that port."""
    config = Config(f"https://{HOST}:{port}", bearer(token), verify=False)
    transport = await http_transport.connect(config, user_agent="benchmark")
    counter = await http_transport.connect(Config(prometheus), user_agent="benchmark")
    paths, program = requests(), psutil.Process(pid)
    await _wait_listed(transport)
    await one_tick(transport, paths)
    seconds, all_durations = 0.0, list[float]()
    queries_before = int((await counter.request(Request("GET", "/count"))).body)
    cpu_before = sum(program.cpu_times()[:2])
    for _ in range(TICKS):
        await asyncio.sleep(max(0.0, PERIOD_S - seconds / TICKS))
        took_s, durations = await one_tick(transport, paths)
        seconds += took_s
        all_durations += durations
    cpu_s = sum(program.cpu_times()[:2]) - cpu_before
    queries = int((await counter.request(Request("GET", "/count"))).body) - queries_before
    await transport.close()
    await counter.close()
    p99_ms = sorted(all_durations)[int(len(all_durations) * 0.99)] * 1000
    memory_mib = program.memory_info().rss / 2**20
    return Side(name, seconds / TICKS, p99_ms, queries / TICKS, cpu_s / TICKS, memory_mib)


async def _wait_listed(transport: Transport) -> None:
    for _ in range(600):
        try:
            response = await transport.request(Request("GET", GROUP_VERSION, timeout_s=5.0))
            if json.loads(response.body).get("resources"):
                return
        except Exception:
            pass
        await asyncio.sleep(0.1)
    raise AssertionError("the adapter lists no metrics")


def run_side(name: str, command: Sequence[Any], folder: Path, prometheus: str, port: int) -> Side:
    """The figures of one adapter."""
    admin = yaml.safe_load((folder / "data" / "kubeconfig").read_text())
    token = admin["users"][0]["user"]["token"]
    with process(command, folder / f"{name.split(maxsplit=1)[0]}.log") as running:
        return asyncio.run(measure(name, port, token, running.pid, prometheus))


def main() -> None:
    """Print the table."""
    folder = Path(tempfile.mkdtemp())
    RULES["rules"][0]["seriesQuery"] = '{__name__=~"^metric_.*",namespace!="",pod!=""}'
    (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))
    up = [sys.executable, "-m", "podscaler", "up", "--api-only", "--data-dir", folder / "data"]
    fake = [sys.executable, FAKE, NAMESPACES, APPS, PODS, NAMES]
    with process(up, folder / "up.log") as plane, process(fake, folder / "fake.log") as database:
        assert plane.stdout is not None
        assert database.stdout is not None
        plane.stdout.readline()
        prometheus = f"http://{HOST}:{database.stdout.readline().strip()}"
        kubeconfig = folder / "data" / "kubeconfig"
        asyncio.run(fill(kubeconfig))
        common = [f"--config={folder}/rules.yaml", f"--prometheus-url={prometheus}", f"--bind-address={HOST}"]
        common += [f"--{each}-kubeconfig={kubeconfig}" for each in ("lister", "authentication", "authorization")]
        ours = [sys.executable, "-m", "podscaler", "adapter", *common, "--secure-port=16443"]
        sides = [run_side("podscaler adapter", ours, folder, prometheus, 16443)]
        if (program := find_program("prometheus-adapter")) is not None:
            theirs = [program, *common, "--secure-port=16444", f"--cert-dir={folder}", "--client-qps=100000"]
            theirs.append("--client-burst=100000")
            sides.append(run_side("prometheus-adapter", theirs, folder, prometheus, 16444))
    print_table(sides)


def print_table(sides: Sequence[Side]) -> None:
    """The table of the sides."""
    pods, count = NAMESPACES * APPS * PODS, len(requests())
    print(f"   {count:,} metrics of {pods:,} pods, {AT_ONCE} requests at once; each figure is of a tick\n")
    print(f"   {'':20} {'seconds':>9} {'requests/s':>11} {'p99':>10} {'queries':>9} {'CPU':>8} {'memory':>9}")
    for side in sides:
        speed = count / side.seconds
        figures = f"{side.seconds:9.2f} {speed:11,.0f} {side.p99_ms:7.1f} ms {side.queries:9,.0f}"
        print(f"   {side.name:20} {figures} {side.cpu_s:6.2f} s {side.memory_mib:5.0f} MiB")
