"""The dashboard with many autoscalers: the list, updates, and what each viewer costs the server.

    python -m benchmarks.dashboard [AUTOSCALERS]

The server, its controller and an API server in memory run in this process; viewers are HTTP clients in another one. The
controller's own work is measured without viewers first. The page's rendering is not part of it.
"""

import asyncio
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

import aiohttp
import psutil

from podscaler.base.clock import SystemClock
from podscaler.controller import assembly
from podscaler.controller.options.settings import ControllerSettings
from podscaler.dashboard.server import DashboardOptions, DashboardServer
from podscaler.kube.client.client import Client
from podscaler.observe import decision_history
from podscaler.observe.decision_history import DecisionHistory
from podscaler.observe.live_cluster import LiveCluster
from podscaler.testing.autoscaling import spec
from podscaler.testing.cluster import FakeCluster

AUTOSCALERS = 1000
NAMESPACES = 50
WARM_UP_S = 35.0
WINDOW_S = 30.0
VIEWERS = (1, 10)
UPDATES = 40
UPDATE_PAUSE_S = 0.7
LISTS = 10


def fill(cluster: FakeCluster, autoscalers: int) -> None:
    """So many Deployments of one pod each, with an autoscaler whose metric is on target."""
    for number in range(autoscalers):
        name, namespace = f"web-{number}", f"team-{number % NAMESPACES}"
        cluster.put_deployment(name, 1, namespace=namespace)
        cluster.put_pod(f"{name}-0", name, "500m", namespace=namespace)
        cluster.put_autoscaler(name, spec(name), namespace=namespace, uid=name)


async def vary(cluster: FakeCluster) -> None:
    """Change the usage of each pod a little, so that every sync has another value."""
    while True:
        for number, key in enumerate(cluster.usage):
            cluster.usage[key] = f"{random.randint(480, 520)}m"
            if number % 20 == 0:
                await asyncio.sleep(0.2)


async def _read(session: aiohttp.ClientSession, url: str, found: dict[str, float], counts: list[int]) -> None:
    """Read one event stream: count its bytes, and note when the update of a maximum arrived."""
    async with session.get(f"{url}/api/stream", timeout=aiohttp.ClientTimeout(total=None)) as response:
        async for line in response.content:
            counts[0] += len(line)
            if line.startswith(b"data: ["):
                arrived_s = time.monotonic()
                for row in json.loads(line[6:]):
                    found.setdefault(f"{row['name']}={row['max']}", arrived_s)


async def _view(url: str, cookie: tuple[str, str], viewers: int, pipe: Connection) -> None:
    """So many viewers, until the other end asks for the result."""
    arrivals: dict[str, float] = {}
    counts = [0]
    async with aiohttp.ClientSession(read_bufsize=2**24, headers={"Cookie": "=".join(cookie)}) as session:
        reading = [asyncio.ensure_future(_read(session, url, arrivals, counts)) for _ in range(viewers)]
        await asyncio.sleep(3)
        counts[0] = 0
        pipe.send("reading")
        await asyncio.to_thread(pipe.recv)
        for each in reading:
            each.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    pipe.send((counts[0] / viewers, arrivals))


def view(url: str, cookie: tuple[str, str], viewers: int, pipe: Connection) -> None:
    """The process of the viewers."""
    asyncio.run(_view(url, cookie, viewers, pipe))


def cpu_s() -> float:
    """The processor time of this process."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


async def cpu_percent() -> float:
    """Percent of a core over a window."""
    before = cpu_s()
    await asyncio.sleep(WINDOW_S)
    return 100 * (cpu_s() - before) / WINDOW_S


async def viewed(server: DashboardServer, cluster: FakeCluster, viewers: int) -> tuple[float, float, list[float]]:
    """CPU percent with so many viewers, bytes a second of each, and the seconds until each update arrived."""
    cookie = await log_in(server)
    pipe, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=view, args=(server.url, cookie, viewers, other))
    process.start()
    assert await asyncio.to_thread(pipe.recv) == "reading"
    begun_s = time.monotonic()
    percent = await cpu_percent()
    changed: dict[str, float] = {}
    for number in range(UPDATES):
        name, namespace = f"web-{number}", f"team-{number % NAMESPACES}"
        maximum = 1000 * viewers + number
        cluster.put_autoscaler(name, spec(name, maximum=maximum), namespace=namespace, uid=name)
        changed[f"{name}={maximum}"] = time.monotonic()
        await asyncio.sleep(UPDATE_PAUSE_S)
    watched_s = time.monotonic() - begun_s
    pipe.send("end")
    received, arrivals = await asyncio.to_thread(pipe.recv)
    await asyncio.to_thread(process.join)
    delays = [arrivals[key] - at_s for key, at_s in changed.items() if key in arrivals]
    return percent, received / watched_s, delays


async def log_in(server: DashboardServer) -> tuple[str, str]:
    """The cookie of a new session."""
    token = server.login_link().partition("#token=")[2]
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.url}/login", json={"token": token}) as response,
    ):
        name, _, value = response.headers["Set-Cookie"].partition(";")[0].partition("=")
        return name, value


async def lists(server: DashboardServer) -> tuple[float, int]:
    """The seconds of the slowest of some lists, and the bytes of one."""
    name, value = await log_in(server)
    slowest_s, size = 0.0, 0
    async with aiohttp.ClientSession(headers={"Cookie": f"{name}={value}"}) as session:
        for _ in range(LISTS):
            begun_s = time.perf_counter()
            async with session.get(f"{server.url}/api/autoscalers") as response:
                size = len(await response.read())
            slowest_s = max(slowest_s, time.perf_counter() - begun_s)
    return slowest_s, size


async def measure(autoscalers: int) -> None:
    """Measure, and print a table."""
    clock, cluster, settings = (
        SystemClock(),
        FakeCluster(),
        ControllerSettings(history_namespace=None, metric_sources=False),
    )
    fill(cluster, autoscalers)
    client = Client(cluster, clock)
    history = DecisionHistory(decision_history.header_of(settings), clock)
    controller = assembly.new_controller(client, settings, clock, recording=history)
    live = LiveCluster(history, client, clock, name="benchmark")
    live.attach(controller)
    server = DashboardServer(live, clock, DashboardOptions())
    await server.start()
    running = asyncio.gather(controller.run(), vary(cluster))
    await asyncio.sleep(WARM_UP_S)
    slowest_s, size = await lists(server)
    print(f"{autoscalers} autoscalers, synced every 15 s\n")
    print(f"list: {1000 * slowest_s:.0f} ms at most of {LISTS}, {size / 1000:.0f} kB")
    alone = await cpu_percent()
    print(f"server without viewers: {alone:.1f} % of a core\n")
    print("| viewers | CPU of the server, % | more for each viewer, % | kB/s for each | update p50, ms | p99, ms |")
    print("|---|---|---|---|---|---|")
    for viewers in VIEWERS:
        percent, rate, delays = await viewed(server, cluster, viewers)
        ranked = sorted(delays) or [float("nan")]
        print(
            f"| {viewers} | {percent:.1f} | {(percent - alone) / viewers:.2f} | {rate / 1000:.1f} "
            f"| {1000 * statistics.median(ranked):.0f} | {1000 * ranked[int(0.99 * len(ranked))]:.0f} |"
        )
    minutes = (history.now_ms - history.began_at) / 60_000
    print(f"\nhistory: {history.size_bytes / 2**20:.1f} MiB after {minutes:.1f} minutes")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await server.stop()


def main(sizes: Sequence[int] = ()) -> None:
    """Measure with so many autoscalers."""
    asyncio.run(measure(sizes[0] if sizes else AUTOSCALERS))


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]])
