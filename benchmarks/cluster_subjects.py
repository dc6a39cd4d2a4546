"""The controllers that the benchmark compares, as command lines, and what they and the API server say of themselves.

CPU and memory are the kernel's figures of the process; counts are differences of Prometheus counters.
"""

import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster_plane import free_port

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ENDS_WITHIN_S = 30
SYNCS = "horizontal_pod_autoscaler_controller_reconciliations_total"
QUEUE_S = "workqueue_queue_duration_seconds_bucket"
FREE_QPS = ("--kube-api-qps=10000", "--kube-api-burst=10000")

Series = dict[tuple[str, str], float]
"""Values by name and by the text of the labels."""


@dataclass(frozen=True)
class Subject:
    """One controller with its flags."""

    name: str
    is_ours: bool
    flags: tuple[str, ...] = ()

    def command(self, kubeconfig: Path, period_s: float, port: int, programs: Mapping[str, Path]) -> list[str]:
        """What to run."""
        period = f"--horizontal-pod-autoscaler-sync-period={round(period_s * 1000)}ms"
        if self.is_ours:
            run = [sys.executable, "-m", "podscaler", "controller", "--history=memory"]
            run += ["--other-controller=ignore", "--leader-elect=false"]  # the one before has just ended
            return [*run, f"--kubeconfig={kubeconfig}", period, f"--metrics-bind-address=127.0.0.1:{port}", *self.flags]
        return [
            str(programs["kube-controller-manager"]),
            f"--kubeconfig={kubeconfig}",
            "--controllers=horizontal-pod-autoscaler-controller",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={kubeconfig.parent}/controller-manager",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
            period,
            *self.flags,
        ]


OURS = Subject("podscaler", is_ours=True)
BUILT_IN = tuple(
    Subject(
        f"built-in, {workers} workers",
        is_ours=False,
        flags=(*FREE_QPS, f"--concurrent-horizontal-pod-autoscaler-syncs={workers}"),
    )
    for workers in (5, 50)
)
BUILT_IN_STOCK = Subject("built-in, as it comes", is_ours=False)


class Running:
    """A controller at work.

    Args:
        subject: which.
        process: its process.
        port: of its /metrics.
    """

    def __init__(self, subject: Subject, process: "subprocess.Popen[bytes]", port: int) -> None:
        scheme = "http" if subject.is_ours else "https"
        self._url = f"{scheme}://127.0.0.1:{port}/metrics"
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self.process = process

    def series(self) -> Series:
        """Its counters; empty while it does not answer."""
        try:
            context = self._context if self._url.startswith("https") else None
            with urllib.request.urlopen(self._url, context=context, timeout=20) as answer:
                return parse(answer.read().decode(), (SYNCS, QUEUE_S))
        except OSError:
            return {}

    def stop(self) -> None:
        """End it."""
        end(self.process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a controller, by force where it takes longer than ENDS_WITHIN_S."""
    process.terminate()
    try:
        process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start(subject: Subject, kubeconfig: Path, period_s: float, programs: Mapping[str, Path]) -> Running:
    """Start it; it is not ready yet."""
    port = free_port()
    with (kubeconfig.parent / f"{'podscaler' if subject.is_ours else 'built-in'}.log").open("ab") as log:
        command = subject.command(kubeconfig, period_s, port, programs)
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    return Running(subject, process, port)


def cpu_s(process_id: int) -> float:
    """CPU that a process has used."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def rss_mib(process_id: int) -> float:
    """Memory of a process now."""
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def machine_busy_s() -> float:
    """CPU that the whole machine has used."""
    values = [int(each) for each in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return (sum(values) - values[3] - values[4]) / TICKS_PER_S


def parse(text: str, prefixes: tuple[str, ...]) -> Series:
    """The series of a Prometheus text whose name begins with one of the prefixes."""
    found: Series = {}
    for line in text.splitlines():
        if line.startswith(prefixes):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.partition("{")
            found[name, labels.rstrip("}")] = float(value)
    return found


def total(series: Series, name: str, *needed: str) -> float:
    """The sum of a metric's series whose labels contain all of `needed`."""
    return sum(value for (each, labels), value in series.items() if each == name and all(n in labels for n in needed))


def quantile_of_buckets(before: Series, after: Series, quantile: float) -> str:
    """The bucket in which a quantile of what was observed in between lies: `up to 0.1`."""
    counts: dict[float, float] = {}
    for (name, labels), value in after.items():
        if name == QUEUE_S and "horizontalpodautoscaler" in labels:
            edge = labels.partition('le="')[2].partition('"')[0].replace("+Inf", "inf")
            counts[float(edge)] = value - before.get((name, labels), 0.0)
    edges = sorted(counts)
    if not edges or not counts[edges[-1]]:
        return "-"
    return f"<= {next(edge for edge in edges if counts[edge] >= quantile * counts[edges[-1]]):g}"


def quantile(values: Sequence[float], which: float) -> float:
    """Of at least one value."""
    return sorted(values)[min(len(values) - 1, int(which * len(values)))]
