"""A fleet for a day on two Dask workers, with and without a worker that is killed in the middle.

    .venv/bin/python -m benchmarks fleet [AUTOSCALERS]

10,000 autoscalers by default, 10 candidates each, syncs every 15 s. The rows of both runs are compared, and the memory
of every process is that of its peak (VmHWM), read each second.
"""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars
import psutil

from podscaler.simulation.fleet import partition_runs, result_files, summary, synthetic
from podscaler.simulation.fleet.cluster import ClusterRequest
from podscaler.simulation.fleet.partition_runs import FleetProgress, FleetRun
from podscaler.simulation.fleet.trials import PRESENT, FleetTrials

AUTOSCALERS = 10_000
TARGET = "metrics[0].target.averageUtilization"
WINDOW = "behavior.scaleDown.stabilizationWindowSeconds"
CHANGES = (
    *(f"{TARGET}={pct}" for pct in (40, 55, 65, 75, 90)),
    *(f"{WINDOW}={window_s}" for window_s in (0, 60, 120, 600)),
)


@contextmanager
def peaks() -> Iterator[dict[int, int]]:
    """The peak memory in KiB of this process and its descendants, by pid."""
    found: dict[int, int] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(1):
            own = psutil.Process()
            for process in [own, *own.children(recursive=True)]:
                try:
                    status = Path(f"/proc/{process.pid}/status").read_text()
                except OSError:
                    continue
                for line in status.splitlines():
                    if line.startswith("VmHWM:"):
                        found[process.pid] = int(line.split()[1])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def worker_pids() -> list[int]:
    """The workers of the local cluster: the children that multiprocessing spawned."""
    children = psutil.Process().children()
    return [each.pid for each in children if any("spawn_main" in part for part in each.cmdline())]


def measured(autoscalers: int, folder: Path, *, kills: bool) -> str:
    """Run the fleet, and return what it took."""
    killed: list[int] = []

    def on_progress(progress: FleetProgress) -> None:
        if kills and not killed and progress.done >= progress.partitions // 2:
            killed.append(worker_pids()[0])
            os.kill(killed[0], signal.SIGKILL)

    trials = FleetTrials(changes=CHANGES)
    fleet = FleetRun(
        partitions=synthetic.partitions(autoscalers),
        make_trial=trials,
        description=trials.description,
        folder=folder,
    )
    begun = time.monotonic()
    with peaks() as found:
        progress = partition_runs.run(fleet, ClusterRequest(workers=2, memory="1GiB"), on_progress)
    assert progress.autoscalers == autoscalers
    memory = ", ".join(f"{each / 1024:,.0f}" for each in sorted(found.values(), reverse=True))
    ended = f"killed worker {killed[0]}" if killed else "no worker killed"
    return f"{time.monotonic() - begun:,.0f} s, {ended}; peak MiB of each process: {memory}"


def table(folder: Path) -> polars.DataFrame:
    """All rows, in a fixed order."""
    return polars.read_parquet(folder / result_files.FOLDER / "*.parquet").sort("autoscaler", "candidate")


def main(sizes: Sequence[int] = (AUTOSCALERS,)) -> None:
    """Print the figures and the summary of a fleet of each size."""
    for autoscalers in sizes:
        compare_runs(autoscalers)


def compare_runs(autoscalers: int) -> None:
    """Print the figures of two runs, whether their rows are equal, and the summary."""
    with tempfile.TemporaryDirectory() as name:
        whole, killed = Path(name, "whole"), Path(name, "killed")
        print(f"{autoscalers:,} autoscalers, a day, {1 + len(CHANGES)} candidates: rows {autoscalers * 10:,}")
        print(f"  {measured(autoscalers, whole, kills=False)}", flush=True)
        print(f"  {measured(autoscalers, killed, kills=True)}", flush=True)
        print(f"  equal rows: {table(whole).equals(table(killed))}")
        names = [each.name for each in synthetic.partitions(autoscalers)]
        for each in summary.summarize(whole, names, PRESENT).candidates:
            print(
                f"  {each.candidate:<55} {each.pod_hours:>13,.0f} pod-hours, {each.under_timeshare_pct:6.2f} % under, "
                f"{each.scale_changes:>10,} changes, better for {each.better:,}, worse for {each.worse:,}"
            )


if __name__ == "__main__":
    main()
