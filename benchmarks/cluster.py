"""The built-in controller and this one in turn on a real API server, with the same objects and scripted metrics.

    .venv/bin/python -m benchmarks cluster                              the quick form: 300 autoscalers, a minute or two
    .venv/bin/python -m benchmarks.cluster 1000 5000                    each case at these numbers of autoscalers
    .venv/bin/python -m benchmarks.cluster 1000 --only latency,three    some of the cases

It needs the programs of `make assets`; without them it says so. Columns: syncs a second; the period that each
autoscaler saw, from the times of its status writes (p50 / p99); the wait in the queue, from the work queue's histogram,
whose buckets are powers of ten (p50 / p99); requests for each sync (scales, status, metrics); CPU seconds for 1,000
syncs of the controller, and of controller, API server and etcd; memory in MiB; seconds from a step of the load to the
write of the scale (p50 / p95); cores of the machine that were busy, with everything else that ran on it.
"""

import argparse
import asyncio
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import uvloop
from benchmarks import cluster_objects as objects
from benchmarks import cluster_plane
from benchmarks.cluster_measure import CLOCK, Case, measure
from benchmarks.cluster_metrics import GROUPS, scripted_metrics
from benchmarks.cluster_objects import Layout
from benchmarks.cluster_plane import Plane
from benchmarks.cluster_subjects import BUILT_IN, BUILT_IN_STOCK, OURS, Subject
from benchmarks.controller_loop import print_table

from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport

HEAD = (
    "case",
    "controller",
    "syncs/s",
    "period p50 / p99",
    "queued p50 / p99",
    "requests",
    "CPU",
    "CPU of all",
    "MiB",
    "reaction p50 / p95",
    "busy",
)
ALL = (*BUILT_IN, OURS)
SLOW_STATUS = Subject("podscaler, --status-period=60s", is_ours=True, flags=("--status-period=60s",))
"""Its second writes begin a minute after the first and are spread over another: two minutes on it is in its stride."""
REACTING = Subject("podscaler, --react-to-changes", is_ours=True, flags=("--react-to-changes",))


def cases(count: int) -> dict[str, Case]:
    """All of them, by short names; those of one layout are together."""
    one, three = Layout(count), Layout(count, metrics=3)
    together = Layout(count, per_namespace=count)
    return {
        "live": Case(f"{count:,}, status changing", one, ALL, stepped=60),
        "status-period": Case(
            f"{count:,}, status changing", one, (SLOW_STATUS,), window_s=60.0, stepped=60, warm_up_s=120.0
        ),
        "quiet": Case(f"{count:,}, status not changing", one, ALL, is_live=False),
        "react": Case(f"{count:,}, reacting", one, (REACTING,), is_live=False, stepped=60),
        "stock": Case(f"{count:,}, default settings", one, (BUILT_IN_STOCK, OURS), window_s=60.0),
        "latency": Case(f"{count:,}, metrics take 200 ms", one, ALL, delay_s=0.2),
        "saturated": Case(f"{count:,}, 1 s asked, changing", one, ALL, period_s=1.0, window_s=15.0),
        "saturated-quiet": Case(
            f"{count:,}, 1 s asked, not changing", one, ALL, period_s=1.0, window_s=15.0, is_live=False
        ),
        "three": Case(f"{count:,}, three metrics", three, ALL),
        "three-quiet": Case(f"{count:,}, three metrics, not changing", three, ALL, is_live=False),
        "three-latency": Case(f"{count:,}, three metrics, 200 ms", three, (BUILT_IN[1], OURS), delay_s=0.2),
        "one-namespace": Case(f"{count:,}, one namespace", together, ALL),
    }


async def run(chosen: Sequence[Case], programs: dict[str, Path]) -> list[tuple[str, ...]]:
    """The rows of the table."""
    rows: list[tuple[str, ...]] = []
    for layout, group in groupby(chosen, key=lambda case: case.layout):
        with tempfile.TemporaryDirectory(prefix="podscaler-bench-") as folder:
            plane = Plane(Path(folder), programs)
            try:
                await asyncio.to_thread(plane.start)
                rows += await _on(plane, layout, list(group))
            finally:
                await asyncio.to_thread(plane.stop)
    return rows


async def _on(plane: Plane, layout: Layout, chosen: Sequence[Case]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    config = await asyncio.to_thread(locate.find_config, str(plane.kubeconfig))
    client = Client(await http_transport.connect(config, user_agent="benchmark"), CLOCK)
    pair = plane.authority.issue("metrics.bench.svc", is_server=True)
    with scripted_metrics(layout, pair, plane.front_authority.path) as metrics:
        try:
            groups = {group: version for group, (version, _) in GROUPS.items()}
            await objects.register(client, metrics.port, plane.authority.pem, groups)
            began_s = CLOCK.monotonic_s()
            await objects.populate(client, layout)
            print(f"   {layout.count:,} autoscalers made in {CLOCK.monotonic_s() - began_s:.0f} s", flush=True)
            for case in chosen:
                for subject in case.subjects:
                    rows.append(await measure(case, subject, plane, client, metrics))
                    print("  ", " | ".join(rows[-1]), flush=True)
        finally:
            await client.close()
    return rows


def main(counts: Sequence[int] = (), only: Sequence[str] = (), controllers: str = "") -> None:
    """Print the table: without counts the quick form; `controllers` leaves out those without that in their name."""
    programs = cluster_plane.programs()
    if programs is None:
        print("etcd, kube-apiserver and kube-controller-manager are not built: run `make assets` first")
        return
    if counts:
        chosen = [case for count in counts for name, case in cases(count).items() if not only or name in only]
    else:
        layout = Layout(300)
        chosen = [
            Case("300, status changing", layout, (BUILT_IN[0], OURS), window_s=32.0),
            Case("300, status not changing", layout, (BUILT_IN[0], OURS), window_s=32.0, is_live=False),
        ]
    chosen = [
        replace(case, subjects=tuple(each for each in case.subjects if re.search(controllers, each.name)))
        for case in chosen
    ]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(run(chosen, programs))
    print()
    print_table([HEAD, *rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The built-in controller and this one on a real API server.")
    parser.add_argument("counts", type=int, nargs="*", help="numbers of autoscalers; none: the quick form")
    parser.add_argument("--only", default="", help=f"some of {', '.join(cases(1))}")
    parser.add_argument("--controllers", default="", help="a regular expression of the controllers' names")
    arguments = parser.parse_args()
    main(arguments.counts, [name for name in arguments.only.split(",") if name], arguments.controllers)
