"""The controller in the soak: its process, and what its /metrics say.

`benchmarks.soak` starts one, with the settings that users have: history in the cluster, and a Lease.
"""

import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster_plane
from benchmarks import cluster_subjects as subjects
from benchmarks.cluster_subjects import Subject

SUBJECT = Subject("podscaler", is_ours=True, flags=("--history=cluster", "--leader-elect=true"))
LATENESS = "podscaler_sync_lateness_seconds"


@dataclass(frozen=True)
class SoakController:
    """One at work.

    Attributes:
        process: its process.
        port: of its /metrics.
    """

    process: "subprocess.Popen[bytes]"
    port: int

    def lateness(self) -> str:
        """Within which bounds half of the syncs began after they were due, and 99 of 100."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=20) as answer:
            series = subjects.parse(answer.read().decode(), (f"{LATENESS}_bucket",))
        counts = {
            float(labels.partition('le="')[2].partition('"')[0].replace("+Inf", "inf")): value
            for (_, labels), value in series.items()
        }
        edges = sorted(counts)
        bounds = [next(edge for edge in edges if counts[edge] >= which * counts[edges[-1]]) for which in (0.5, 0.99)]
        return "lateness p50 <= {:g} s, p99 <= {:g} s".format(*bounds)

    def stop(self) -> None:
        """End it."""
        subjects.end(self.process)


def start(kubeconfig: Path, period_s: float) -> SoakController:
    """Start it; it is not ready yet. Its log is beside the kubeconfig."""
    port = cluster_plane.free_port()
    command = SUBJECT.command(kubeconfig, period_s, port, {})
    with (kubeconfig.parent / "controller.log").open("ab") as log:
        return SoakController(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL), port)
