"""Runs the command of an `exec` probe or hook in a container.

`kubelet.containers.container_run` calls `run` with a command that has the container's environment, user, working
directory and mounts. The command's process group is killed at the timeout. The first 10 KiB of its output are kept.

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
from podscaler.controlplane.kubelet.processes.streams import ChildStreams

OUTPUT_BYTES_MAX: Final = 10 * 1024
REAPED_WITHIN_S: Final = 2.0
"""The seconds to wait until a command that was killed is reaped."""


async def run(spec: ProcessSpec, threads: ThreadPool, *, timeout_s: float) -> HandlerOutcome:
    """Run `spec` until it ends or `timeout_s` is over.

    Returns the outcome: ok for exit status 0; its text is the output, or why the command failed. Raises OSError where
    no pipe can be opened.
    """
    output = bytearray()
    reader, writer = os.pipe()
    output_reader = PipeReader(reader, lambda chunk: output.extend(chunk[: OUTPUT_BYTES_MAX - len(output)]))
    try:
        try:
            process = await processes.start(spec, threads, ChildStreams(stdout=writer, stderr=writer))
        finally:
            os.close(writer)
        return_code = await _wait_for_exit(process, timeout_s)
    except StartFailure as failure:
        return HandlerOutcome(False, str(failure))
    finally:
        output_reader.drain()
    if return_code is None:
        return HandlerOutcome(False, f"command timed out after {timeout_s:g} s")
    outcome_text = output.decode("utf-8", "replace").strip()
    if return_code and not outcome_text:
        outcome_text = f"the command ended with exit status {return_code}"
    return HandlerOutcome(return_code == 0, outcome_text)


async def _wait_for_exit(process: processes.Process, timeout_s: float) -> int | None:
    """Wait for the exit; returns the return code, None for a command that was killed at the timeout.

    No process of its group is left then.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await asyncio.shield(process.exited)
    except TimeoutError:
        process.signal_group(signal.SIGKILL)
        await asyncio.wait([process.exited], timeout=REAPED_WITHIN_S)
        return None
    finally:
        process.signal_group(signal.SIGKILL)
