"""Runs the command of an `exec` probe or hook in a container.

`container_run` calls it with a command that has the container's environment, user, working directory and mounts. The
command's process group is killed at the timeout. The first 10 KiB of its output are kept.

Source: ExecAction (API reference); pkg/probe/exec (kubelet), whose limit of the output is the same.
"""

import asyncio
import os
import signal
from typing import Final

from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome
from podscaler.controlplane.kubelet.processes import processes
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.descriptors import PipeReader
from podscaler.controlplane.kubelet.processes.processes import ProcessSpec, StartFailure
from podscaler.controlplane.kubelet.processes.streams import Descriptors

KEPT_BYTES: Final = 10 * 1024
REAPED_WITHIN_S: Final = 2.0


async def run(spec: ProcessSpec, threads: ThreadPool, *, timeout_s: float) -> HandlerOutcome:
    """Run `spec` until it ends or `timeout_s` is over.

    Returns the outcome: ok for exit status 0; its text is the output, or why the command failed. Raises OSError where
    no pipe can be opened.
    """
    kept = bytearray()
    reader, writer = os.pipe()
    output = PipeReader(reader, lambda data: kept.extend(data[: KEPT_BYTES - len(kept)]))
    try:
        try:
            process = await processes.start(spec, threads, Descriptors(stdout=writer, stderr=writer))
        finally:
            os.close(writer)
        code = await _exit_code(process, timeout_s)
    except StartFailure as failure:
        return HandlerOutcome(False, str(failure))
    finally:
        output.drain()
    if code is None:
        return HandlerOutcome(False, f"command timed out after {timeout_s:g} s")
    text = kept.decode("utf-8", "replace").strip()
    return HandlerOutcome(code == 0, text or (f"the command ended with exit status {code}" if code else ""))


async def _exit_code(process: processes.Process, timeout_s: float) -> int | None:
    """The return code; None for a command that was killed at the timeout. No process of its group is left."""
    try:
        async with asyncio.timeout(timeout_s):
            return await asyncio.shield(process.exited)
    except TimeoutError:
        process.signal_group(signal.SIGKILL)
        await asyncio.wait([process.exited], timeout=REAPED_WITHIN_S)
        return None
    finally:
        process.signal_group(signal.SIGKILL)
