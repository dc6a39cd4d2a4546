"""How many syncs a second the controller does, and what each costs, against a scripted API server.

    .venv/bin/python -m benchmarks.controller_loop [AUTOSCALERS]

The controller is in this process and speaks HTTP to a server in another one; both share the machine. The period is so
short that the loop is saturated. CPU is the controller's process alone.
"""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop
from benchmarks.scripted_api import scripted_api

from podscaler.api.typed import recording
from podscaler.base.clock import SystemClock
from podscaler.cli.options.recording import open_recording
from podscaler.controller import assembly
from podscaler.controller.controller import Controller
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.recording.recording import Recording
from podscaler.kube.client.client import Client
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config

WARM_UP_S = 3.0
MEASURED_S = 8.0
COUNTER = "horizontal_pod_autoscaler_controller_reconciliations_total"


@dataclass(frozen=True)
class Case:
    """One situation."""

    name: str
    is_live: bool
    workers: int
    delay_s: float = 0.0
    keeps_histories: bool = False
    records: bool = False


CASES = (
    Case("status never changes", is_live=False, workers=5),
    Case("status changes every sync", is_live=True, workers=5),
    Case("status changes, histories kept", is_live=True, workers=5, keeps_histories=True),
    Case("status changes, recorded", is_live=True, workers=5, records=True),
    Case("status changes, 50 workers", is_live=True, workers=50),
    Case("metrics answer in 200 ms, 50 workers", is_live=False, workers=50, delay_s=0.2),
)


class Counting:
    """A transport that counts requests."""

    def __init__(self, transport: http_transport.HttpTransport) -> None:
        self._transport = transport
        self.server = transport.server
        self.stream = transport.stream
        self.close = transport.close
        self.requests = 0

    async def request(self, request):  # type: ignore[no-untyped-def]  # as the transport's
        """As the transport."""
        self.requests += 1
        return await self._transport.request(request)


async def measure(case: Case, count: int) -> tuple[str, ...]:
    """One row: syncs a second, CPU for 1,000 syncs, requests for each sync, memory."""
    async with scripted_api(count, is_live=case.is_live, delay_s=case.delay_s) as (url, _), _recording(case) as kept:
        transport = Counting(await http_transport.connect(Config(url), user_agent="benchmark"))
        client = Client(transport, SystemClock())
        settings = ControllerSettings(
            concurrent_syncs=case.workers,
            sync_period_ns=250_000_000,
            history_namespace="kube-system" if case.keeps_histories else None,
        )
        controller = assembly.new_controller(client, settings, SystemClock(), recording=kept)
        task = asyncio.create_task(controller.run())
        await asyncio.sleep(WARM_UP_S)
        syncs, requests, cpu_s, began_s = (
            syncs_of(controller),
            transport.requests,
            time.process_time(),
            time.monotonic(),
        )
        await asyncio.sleep(MEASURED_S)
        syncs, requests = syncs_of(controller) - syncs, transport.requests - requests
        cpu_s, elapsed_s = time.process_time() - cpu_s, time.monotonic() - began_s
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()
    rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        case.name,
        f"{syncs / elapsed_s:,.0f}/s",
        f"{cpu_s / max(syncs, 1) * 1000:.2f} s",
        f"{requests / max(syncs, 1):.2f}",
        f"{rss_mib:.0f} MiB",
    )


@asynccontextmanager
async def _recording(case: Case) -> AsyncIterator[Recording]:
    """To a file that is deleted afterwards, or none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.recording.jsonl.gz"
        file = RecordFile(path, recording.header_line("1.37.0", {}), max_bytes=2**30, files=1)
        async with open_recording(file if case.records else None, SystemClock()) as kept:
            yield kept


def syncs_of(controller: Controller) -> float:
    """How many syncs have ended."""
    families = controller.telemetry.registry.collect()
    return sum(sample.value for family in families for sample in family.samples if sample.name == COUNTER)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """The rows in columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def main(count: int = 1000) -> None:
    """Print the table."""
    rows: list[tuple[str, ...]] = [("controller loop", "syncs", "CPU for 1,000", "requests a sync", "peak memory")]
    for case in CASES:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            rows.append(runner.run(measure(case, count)))
    print_table(rows)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
