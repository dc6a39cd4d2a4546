"""Running a command beside a container's process, as exec probes and hooks do.

`container_run` calls it. The command has the container's environment, user, folder and mounts. It is killed with its
process group when its time is over; of what it prints the first 10 KiB are kept.
"""

import asyncio
import contextlib
import os
import signal
from typing import Final

from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome
from podscaler.controlplane.kubelet.processes import processes
from podscaler.controlplane.kubelet.processes.processes import ProcessSpec, StartFailure
from podscaler.controlplane.kubelet.processes.threads import Threads

KEPT_BYTES: Final = 10 * 1024
REAPED_WITHIN_S: Final = 2.0
_READ_BYTES: Final = 1 << 16


async def run(spec: ProcessSpec, threads: Threads, *, timeout_s: float) -> HandlerOutcome:
    """Run `spec` to its end; ok is exit status 0, the text what it printed or why it did not end well."""
    reader, writer = os.pipe()
    output = _Output(reader)
    try:
        try:
            process = await processes.start(spec, threads, stdout=writer, stderr=writer)
        finally:
            os.close(writer)
        return await _outcome(process, output, timeout_s)
    except StartFailure as failure:
        return HandlerOutcome(False, str(failure))
    finally:
        output.close()


async def _outcome(process: processes.Process, output: "_Output", timeout_s: float) -> HandlerOutcome:
    try:
        async with asyncio.timeout(timeout_s):
            code = await asyncio.shield(process.exited)
    except TimeoutError:
        process.signal_group(signal.SIGKILL)
        await asyncio.wait([process.exited], timeout=REAPED_WITHIN_S)
        return HandlerOutcome(False, f"command timed out after {timeout_s:g} s")
    finally:
        process.signal_group(signal.SIGKILL)
    text = output.text().strip()
    return HandlerOutcome(code == 0, text or (f"the command ended with exit status {code}" if code else ""))


class _Output:
    """The first bytes that come from a pipe; the rest is read and thrown away, so that the command goes on."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._kept = bytearray()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._take)

    def text(self) -> str:
        """What was printed so far."""
        while self._take():
            pass
        return self._kept.decode("utf-8", "replace")

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _take(self) -> int:
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._descriptor, _READ_BYTES)
            if not data:
                self._loop.remove_reader(self._descriptor)
        self._kept += data[: KEPT_BYTES - len(self._kept)]
        return len(data)
