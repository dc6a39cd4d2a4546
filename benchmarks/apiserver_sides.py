"""The two API servers that are compared: `podscaler up --api-only`, and a real kube-apiserver with its etcd.

`benchmarks.apiserver` has both run at the same time and loads them in turn. Both sync every write to the same disk,
speak TLS, and know the one who asks by a bearer token of the group system:masters.
"""

import base64
import json
import secrets
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster_plane, cluster_subjects, up
from benchmarks.apiserver_load import Address

STOP_WITHIN_S = 30.0


@dataclass(frozen=True)
class Side:
    """One API server.

    Attributes:
        name: for the table.
        address: where it is.
        pids: of all processes that it consists of.
    """

    name: str
    address: Address
    pids: Sequence[int]

    def cpu_s(self) -> float:
        """CPU that it has used."""
        return sum(map(cluster_subjects.cpu_s, self.pids))

    def rss_mib(self) -> float:
        """Memory that it holds now."""
        return sum(map(cluster_subjects.rss_mib, self.pids))


class Ours:
    """`podscaler up --api-only` from `start` to `stop`; everything it writes is in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._data_dir = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Side:
        """Start it, and return when it is ready."""
        command = [sys.executable, "-m", "podscaler", "up", "--api-only", "--data-dir", str(self._data_dir)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        kubeconfig = self._data_dir / "kubeconfig"
        up.seconds_until_ready(kubeconfig, time.perf_counter())
        return Side("podscaler", _address(kubeconfig), (self._process.pid,))

    def stop(self) -> None:
        """End it. Does nothing where it was not started."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_WITHIN_S)


class Real:
    """etcd and kube-apiserver from `start` to `stop`; everything they write is in `folder`."""

    def __init__(self, folder: Path, programs: dict[str, Path]) -> None:
        self._token = secrets.token_urlsafe(32)
        users = folder / "users.csv"
        users.touch(0o600)
        users.write_text(f"{self._token},bench,bench,system:masters\n")
        flags = (f"--token-auth-file={users}",)
        self._plane = cluster_plane.Plane(folder, programs, is_synced=True, server_flags=flags)

    def start(self) -> Side:
        """Start both, and return when they are ready."""
        self._plane.start()
        pids = [each.pid for each in self._plane.processes.values()]
        return Side("kube-apiserver + etcd", _address(self._plane.kubeconfig, self._token), pids)

    def stop(self) -> None:
        """End what was started."""
        self._plane.stop()


def _address(kubeconfig: Path, token: str = "") -> Address:
    """What a kubeconfig says; its user's token where none is given."""
    config = json.loads(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    host, _, port = cluster["server"].removeprefix("https://").partition(":")
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return Address(host, int(port), token or user["token"], ssl.create_default_context(cadata=authority))
