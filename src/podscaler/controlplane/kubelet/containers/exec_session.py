"""A command that a client runs in a container, with its streams: the node's side of `kubectl exec`.

`container_run.ContainerRun.execute` calls `start` for each client. The command has a session and process group of its
own; it shares the container's environment, user, working directory, mounts and cgroup. It is killed with the container,
as its environment has the container's mark (`kubelet.processes.process_identity`).
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Final

from podscaler.controlplane.kubelet.processes import processes, streams
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorReader, DescriptorWriter
from podscaler.controlplane.kubelet.processes.processes import Process, ProcessSpec, StartFailure
from podscaler.controlplane.kubelet.processes.streams import NodeStreamEnds
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams

REAPED_WITHIN_S: Final = 2.0
"""The seconds that `close` waits until a command that it has killed is reaped."""


class ExecSession:
    """The running command and the node's ends of its streams. Implements `pod_connections.PodSession`."""

    def __init__(self, process: Process, ends: NodeStreamEnds) -> None:
        self.process = process
        self._stdin = None if ends.stdin is None else DescriptorWriter(ends.stdin)
        self._stdout = None if ends.stdout is None else DescriptorReader(ends.stdout)
        self._stderr = None if ends.stderr is None else DescriptorReader(ends.stderr)
        self._master = ends.master  # the master side of the terminal, None without one, and after `close`
        process.exited.add_done_callback(self._finish_outputs)

    def stdout(self) -> AsyncIterator[bytes]:
        """Yield its standard output; nothing where that was not requested. Raises OSError."""
        return _stream_chunks(self._stdout)

    def stderr(self) -> AsyncIterator[bytes]:
        """Yield its standard error; nothing with a terminal, or where that was not requested. Raises OSError."""
        return _stream_chunks(self._stderr)

    async def write(self, data: bytes) -> None:
        """Write to its standard input, waiting while that is full; dropped where it has none."""
        if self._stdin is not None:
            await self._stdin.write(data)

    async def end_input(self) -> None:
        """Close its standard input; a terminal stays open, where a control character ends the input."""
        if self._stdin is not None and self._master is None:
            self._stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal, if there is one. Raises OSError."""
        if self._master is not None:
            streams.resize(self._master, columns, rows)

    async def wait(self) -> int:
        """Wait for its exit; returns the exit status, 128 + N where signal N ended it."""
        return processes.exit_code(await asyncio.shield(self.process.exited))

    async def close(self) -> None:
        """Kill its process group, and close the streams."""
        self.process.signal_group(signal.SIGKILL)
        await asyncio.wait([self.process.exited], timeout=REAPED_WITHIN_S)
        for stream in (self._stdin, self._stdout, self._stderr):
            if stream is not None:
                stream.close()
        if self._master is not None:
            os.close(self._master)
            self._master = None

    def _finish_outputs(self, _: "asyncio.Future[int]") -> None:
        """End the output streams after what is in them: the process has exited."""
        for stream in (self._stdout, self._stderr):
            if stream is not None:
                stream.finish()


async def start(spec: ProcessSpec, threads: ThreadPool, options: SessionStreams) -> ExecSession:
    """Start the command `spec` with the streams that the client requested. Raises SessionFailure."""
    opening = streams.open_streams(
        tty=options.tty, stdin=options.stdin or options.tty, stdout=options.stdout, stderr=options.stderr
    )
    try:
        with opening as (ends, child_streams):
            return ExecSession(await processes.start(spec, threads, child_streams), ends)
    except OSError as error:
        raise SessionFailure(f"failed to create streams: {error.strerror}") from error
    except StartFailure as failure:
        raise SessionFailure(str(failure)) from failure


async def _stream_chunks(reader: DescriptorReader | None) -> AsyncIterator[bytes]:
    """Yield the output of one stream; nothing for a stream that was not requested (None)."""
    if reader is not None:
        async for chunk in reader.chunks():
            yield chunk
