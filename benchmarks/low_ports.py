"""Connects of pods whose calls are translated: how many a second, and what one costs `up`.

Processes connect datagram sockets to port 80 of a pod, one after the other: nothing but the call is measured. Without
the filter nobody answers it; with it, the event loop of this process does.
"""

import asyncio
import os
import sys
import time
from dataclasses import dataclass

from podscaler.controlplane.kubelet.launching import capabilities, container_config
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.launching.port_translation import PortTranslator
from podscaler.controlplane.kubelet.processes import processes
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.streams import ChildStreams
from podscaler.controlplane.network.addresses import AddressBlock

POD = "127.255.1.1"
CALLS = 20_000
CLIENT = f"""
import socket
ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range({CALLS}):
    ours.connect(("{POD}", 80))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What some processes took together: seconds, this process' CPU seconds, and the longest stall of its loop."""

    elapsed_s: float
    cpu_s: float
    stall_s: float


async def measure(clients: int, *, trapped: bool, threads: ThreadPool) -> Outcome:
    """Run that many clients at once."""
    translator = PortTranslator(AddressBlock(255), unprivileged_port_start=1024)
    trap = translator.trap(POD, lambda _: None) if trapped else None
    launch = ContainerConfig(argv=(sys.executable, "-I", "-S", "-c", CLIENT), env={}, cwd="/", port_trap=trap)
    stalls: list[float] = [0.0]
    ticking = asyncio.create_task(_tick(stalls))
    nothing = os.open(os.devnull, os.O_WRONLY)
    begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
    spec = container_config.process_spec(launch)
    started = [
        await processes.start(spec, threads, ChildStreams(stdout=nothing, stderr=nothing)) for _ in range(clients)
    ]
    await asyncio.gather(*(process.exited for process in started))
    outcome = Outcome(time.perf_counter() - begun_s, time.process_time() - begun_cpu_s, max(stalls))
    ticking.cancel()
    os.close(nothing)
    return outcome


async def _tick(stalls: list[float]) -> None:
    """Note how much longer than it should a short sleep takes."""
    while True:
        begun_s = time.perf_counter()
        await asyncio.sleep(0.005)
        stalls.append(time.perf_counter() - begun_s - 0.005)


async def _all() -> None:
    threads = ThreadPool()
    print("clients  filter   connects/s   CPU of `up` a call   longest stall")
    for clients in (1, 4):
        for trapped in (False, True):
            found = await measure(clients, trapped=trapped, threads=threads)
            calls = clients * CALLS
            print(
                f"{clients:7}  {'yes' if trapped else 'no ':6} {calls / found.elapsed_s:12,.0f}"
                f"{found.cpu_s / calls * 1e6:18.1f} us {found.stall_s * 1000:12.1f} ms",
                flush=True,
            )
    threads.close()


def main() -> None:
    """Print the table."""
    if fault := capabilities.port_translation_error():
        print(f"not possible here: {fault}")
        return
    asyncio.run(_all())


if __name__ == "__main__":
    main()
