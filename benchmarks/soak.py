"""Two thousand autoscalers for half an hour, with a fault every ten seconds: does memory grow, does everything heal?

    .venv/bin/python -m benchmarks.soak                                 30 minutes, or SOAK_MINUTES
    .venv/bin/python -m benchmarks.soak --minutes 10 --count 2000 --plane embedded

On a real control plane where `make assets` was run, on the embedded API server otherwise; the controller reaches it
through a gate. Exit status 1 where memory at the end is more than 1.05 times that at 10 minutes (a third of a shorter
run), or an autoscaler was not synced, with good metrics, within two periods after a fault's end.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

import uvloop
from benchmarks import cluster_objects as objects
from benchmarks import cluster_plane, soak_controller, soak_faults, soak_report
from benchmarks import cluster_subjects as subjects
from benchmarks.cluster_measure import CLOCK
from benchmarks.cluster_objects import Layout
from benchmarks.gate import Gate
from benchmarks.soak_controller import SoakController
from benchmarks.soak_faults import Fault
from benchmarks.soak_plane import SoakPlane, SwayingScript, make_plane
from benchmarks.soak_syncs import Syncs

from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport

PERIOD_S = 15.0
FAULT_EVERY_S = 10.0
SAMPLE_EVERY_S = 5.0
BASELINE_AT_S = 600.0


async def soak(minutes: float, layout: Layout, plane: SoakPlane, script: SwayingScript) -> bool:
    """Run it on a plane that is up; whether everything that was required was so."""
    config = await asyncio.to_thread(locate.find_config, str(plane.kubeconfig))
    client = Client(await http_transport.connect(config, user_agent="soak"), CLOCK)
    gate = Gate(plane.kubeconfig, None if plane.aggregates else script.answer)
    try:
        await plane.register(client, script)
        began_s = CLOCK.monotonic_s()
        await objects.populate(client, layout)
        print(f"   {layout.count:,} autoscalers made in {CLOCK.monotonic_s() - began_s:.0f} s", flush=True)
        return await _observe(minutes, plane, client, gate)
    finally:
        await client.close()
        await asyncio.to_thread(gate.stop)


async def _observe(minutes: float, plane: SoakPlane, client: Client, gate: Gate) -> bool:
    config = gate.write_kubeconfig(plane.folder / "gate-kubeconfig")
    controller = soak_controller.start(config, PERIOD_S)
    syncs = Syncs(client)
    tasks = [asyncio.ensure_future(syncs.follow())]
    memory: list[tuple[float, float]] = []
    try:
        await syncs.all_seen(120.0)
        began_s, cpu_s = CLOCK.monotonic_s(), subjects.cpu_s(controller.process.pid)
        tasks.append(asyncio.ensure_future(_sample(controller, began_s, memory)))
        faults = await _inject(began_s + minutes * 60, plane, gate)
        await asyncio.sleep(2 * PERIOD_S)
        cpu_s = subjects.cpu_s(controller.process.pid) - cpu_s
        report = soak_report.Report(minutes, syncs, faults, memory, cpu_s, await asyncio.to_thread(controller.lateness))
        return report.tell(2 * PERIOD_S, min(BASELINE_AT_S, minutes * 20))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.to_thread(controller.stop)


async def _sample(controller: SoakController, began_s: float, memory: list[tuple[float, float]]) -> None:
    """Seconds since the beginning and MiB, as long as the controller lives."""
    while controller.process.poll() is None:
        memory.append((CLOCK.monotonic_s() - began_s, subjects.rss_mib(controller.process.pid)))
        await asyncio.sleep(SAMPLE_EVERY_S)
    raise SystemExit(f"the controller ended by itself with status {controller.process.returncode}")


async def _inject(until_s: float, plane: SoakPlane, gate: Gate) -> list[Fault]:
    """One fault after the other; those that were, with the times of their ends."""
    chosen = soak_faults.endless(random.Random(6))
    done: list[Fault] = []
    while CLOCK.monotonic_s() < until_s:
        next_s = CLOCK.monotonic_s() + FAULT_EVERY_S
        done.append(await soak_faults.inject(next(chosen), plane, gate))
        await asyncio.sleep(max(next_s - CLOCK.monotonic_s(), 0))
    return done


def main_soak() -> int:
    """As the command line says."""
    parser = argparse.ArgumentParser(description="Autoscalers under faults, for long.")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("SOAK_MINUTES", "30")))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--plane", choices=("real", "embedded"), default=None)
    arguments = parser.parse_args()
    programs = cluster_plane.programs()
    wants_real = arguments.plane == "real" or (arguments.plane is None and programs is not None)
    layout = Layout(arguments.count)
    with tempfile.TemporaryDirectory(prefix="podscaler-soak-") as folder:
        plane = make_plane(Path(folder), programs if wants_real else None)
        try:
            plane.start()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                print(f"   {plane.name} control plane, {arguments.minutes:g} minutes", flush=True)
                was_fine = runner.run(soak(arguments.minutes, layout, plane, SwayingScript(layout)))
        finally:
            plane.stop()
    return 0 if was_fine else 1


if __name__ == "__main__":
    sys.exit(main_soak())
