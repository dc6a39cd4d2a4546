"""The API servers of the soak, which can be killed and started again: a real one, and the embedded one.

`benchmarks.soak` makes one. Neither runs controllers: pods and workloads are as they were written.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from benchmarks import cluster_objects as objects
from benchmarks.cluster_metrics import GROUPS, ON_TARGET_MILLI, Script
from benchmarks.cluster_plane import Plane
from benchmarks.gate import LoopThread
from benchmarks.metrics_server import MetricsServer

from podscaler.kube.client.client import Client

SWAY_EVERY_S = 0.6
SWAY_MILLI = 101
"""Within a minute no value comes back, so that each sync finds another; all are within the tolerance."""


class SwayingScript(Script):
    """Loads that climb slowly and begin again, so that every sync writes its status."""

    def milli(self, index: int) -> int:
        """The load of an autoscaler's pods, each."""
        return ON_TARGET_MILLI - SWAY_MILLI // 2 + int(time.time() / SWAY_EVERY_S) % SWAY_MILLI


class SoakPlane(Protocol):
    """What the soak knows of an API server.

    Attributes:
        name: for the report.
        folder: for everything that is written.
        kubeconfig: of a user who may do everything.
        aggregates: whether it asks the metrics APIs itself; the gate answers for them otherwise.
    """

    name: str
    folder: Path
    kubeconfig: Path
    aggregates: bool

    def start(self) -> None:
        """Start it."""
        ...

    def stop(self) -> None:
        """End it."""
        ...

    def restart(self) -> None:
        """Kill the API server, and start it again."""
        ...

    async def register(self, client: Client, script: Script) -> None:
        """Have it ask the script for metrics."""
        ...


class RealPlane:
    """etcd and kube-apiserver."""

    name = "real"
    aggregates = True

    def __init__(self, folder: Path, programs: dict[str, Path]) -> None:
        self.folder = folder
        self._plane = Plane(folder, programs)
        self._thread = LoopThread("metrics")
        self._server: MetricsServer | None = None
        self.kubeconfig = self._plane.kubeconfig

    def start(self) -> None:
        """As the protocol says."""
        self._plane.start()

    def stop(self) -> None:
        """As the protocol says."""
        if self._server is not None:
            self._server.close()
        self._thread.stop()
        self._plane.stop()

    def restart(self) -> None:
        """As the protocol says."""
        process = self._plane.processes["kube-apiserver"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self._plane.processes["kube-apiserver"] = _launch(process.args, self.folder / "kube-apiserver.log")

    async def register(self, client: Client, script: Script) -> None:
        """As the protocol says."""
        pair = self._plane.authority.issue("metrics.bench.svc", is_server=True)
        self._server = MetricsServer(script, self._thread)
        port = self._server.listen(pair, self._plane.front_authority.path)
        groups = {group: version for group, (version, _) in GROUPS.items()}
        await objects.register(client, port, self._plane.authority.pem, groups)


class EmbeddedPlane:
    """`podscaler up --api-only`."""

    name = "embedded"
    aggregates = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "data" / "kubeconfig"
        flags = ["--api-only", "--anonymous-health", f"--data-dir={folder}/data"]
        self._command = [sys.executable, "-m", "podscaler", "up", *flags]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """As the protocol says; the first start writes the kubeconfig."""
        self._process = _launch(self._command, self.folder / "up.log")
        deadline_s = time.monotonic() + 60
        while not self.kubeconfig.exists():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise SystemExit(f"up did not start: {(self.folder / 'up.log').read_text()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """As the protocol says."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)

    def restart(self) -> None:
        """As the protocol says; it has the same port."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = _launch(self._command, self.folder / "up.log")

    async def register(self, client: Client, script: Script) -> None:
        """Nothing: the gate answers."""


def make_plane(folder: Path, programs: dict[str, Path] | None) -> SoakPlane:
    """A real one of the programs, the embedded one without them; not yet started."""
    return RealPlane(folder, programs) if programs else EmbeddedPlane(folder)


def _launch(command: object, log_path: Path) -> "subprocess.Popen[bytes]":
    with log_path.open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)  # type: ignore[call-overload]  # what Popen had
