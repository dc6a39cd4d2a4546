"""The two control planes on which the scenarios run: the embedded one, and a real one.

Both have every controller except the autoscaler's, and their API server can be killed and started again.
"""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from benchmarks import cluster_objects, cluster_plane
from benchmarks.gate import LoopThread
from benchmarks.metrics_server import MetricsServer
from plane_api import PlaneApi
from played_metrics import GROUPS, PlayedMetrics
from real_control_plane import real_control_plane
from up_process import Up, eventually

from podscaler.base.clock import SystemClock
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport

EMBEDDED = ("--without-autoscaler", "--metric-resolution=60s")


class ControlPlane(Protocol):
    """What scenarios know of a control plane.

    Attributes:
        name: `embedded` or `real`.
        kubeconfig: of a user who may do everything.
        aggregates: whether it asks metrics APIs by itself; the gate does otherwise.
    """

    name: str
    kubeconfig: Path
    aggregates: bool

    def kill_server(self) -> None:
        """End the API server as a crash would."""
        ...

    def start_server(self) -> None:
        """Start it again; returns at once or when it is ready."""
        ...

    def serve_metrics(self, metrics: PlayedMetrics) -> None:
        """Have the aggregation layer ask `metrics`, where there is one."""
        ...


class Embedded:
    """`podscaler up`. Pods that are bound to other nodes than its own are nothing to it."""

    name = "embedded"
    aggregates = False

    def __init__(self, up: Up) -> None:
        self._up = up
        self.kubeconfig = up.kubeconfig

    def kill_server(self) -> None:
        """As the protocol says."""
        self._up.kill()

    def start_server(self) -> None:
        """As the protocol says; it has the same port."""
        self._up.start()

    def serve_metrics(self, metrics: PlayedMetrics) -> None:
        """Nothing: the gate answers."""


class Real:
    """etcd, kube-apiserver and kube-controller-manager."""

    name = "real"
    aggregates = True

    def __init__(self, plane: cluster_plane.Plane, thread: LoopThread) -> None:
        self._plane = plane
        self._thread = thread
        self._server: MetricsServer | None = None
        self.kubeconfig = plane.kubeconfig

    def kill_server(self) -> None:
        """As the protocol says."""
        process = self._plane.processes["kube-apiserver"]
        process.send_signal(signal.SIGKILL)
        process.wait()

    def start_server(self) -> None:
        """As the protocol says."""
        command = self._plane.processes["kube-apiserver"].args
        with (self._plane.folder / "kube-apiserver.log").open("ab") as log:
            again = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._plane.processes["kube-apiserver"] = again

    def serve_metrics(self, metrics: PlayedMetrics) -> None:
        """Serve them with TLS, and register them."""
        pair = self._plane.authority.issue("metrics.bench.svc", is_server=True)
        self._server = MetricsServer(metrics, self._thread)
        port = self._server.listen(pair, self._plane.front_authority.path)
        asyncio.run(_register(self.kubeconfig, port, self._plane.authority.pem))

    def close(self) -> None:
        """Serve no metrics any more."""
        if self._server is not None:
            self._server.close()
        self._thread.stop()


async def _register(kubeconfig: Path, port: int, authority_pem: bytes) -> None:
    config = locate.find_config(str(kubeconfig))
    client = Client(await http_transport.connect(config, user_agent="scenarios"), SystemClock())
    groups = {group: version for group, (version, _) in GROUPS.items()}
    try:
        await cluster_objects.register(client, port, authority_pem, groups)
    finally:
        await client.close()


@contextmanager
def embedded(folder: Path) -> Iterator[ControlPlane]:
    """Runs until the block ends."""
    up = Up(folder / "data", EMBEDDED).start()
    try:
        yield Embedded(up)
    finally:
        assert up.stop() == 0, up.log.read_text()


@contextmanager
def real(folder: Path) -> Iterator[ControlPlane]:
    """Runs until the block ends; skips the test where `make assets` was not run."""
    with real_control_plane(folder) as plane:
        found = Real(plane, LoopThread("metrics"))
        try:
            yield found
        finally:
            found.close()


def await_ready(api: PlaneApi) -> None:
    """Returns when the API server is ready."""
    eventually(api.is_ready)
