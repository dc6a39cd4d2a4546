"""A command that a client runs in a container, with its streams: what `kubectl exec` is on the node.

`node_connections` starts one for each client. The command is in a session and process group of its own, has the
container's environment, user, folder, mounts and cgroup, and dies with the container, whose mark it carries.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from podscaler.controlplane.kubelet.launching import terminals
from podscaler.controlplane.kubelet.processes import processes
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorReader, DescriptorWriter
from podscaler.controlplane.kubelet.processes.processes import Descriptors, Process, ProcessSpec, StartFailure
from podscaler.controlplane.kubelet.processes.threads import Threads
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams

REAPED_WITHIN_S: Final = 2.0


@dataclass(slots=True)
class _Ours:
    """Our ends of the command's streams; None for what nobody asked for."""

    stdin: DescriptorWriter | None = None
    stdout: DescriptorReader | None = None
    stderr: DescriptorReader | None = None
    master: int | None = None


class ExecSession:
    """See the module; made by `start`. Implements `pod_connections.Session`."""

    def __init__(self, process: Process, ours: _Ours) -> None:
        self._process = process
        self._ours = ours
        process.exited.add_done_callback(self._exited)

    @property
    def process(self) -> Process:
        """The command."""
        return self._process

    def stdout(self) -> AsyncIterator[bytes]:
        """What it prints."""
        return _chunks(self._ours.stdout)

    def stderr(self) -> AsyncIterator[bytes]:
        """What it prints to standard error."""
        return _chunks(self._ours.stderr)

    async def write(self, data: bytes) -> None:
        """Give it input."""
        if self._ours.stdin is not None:
            await self._ours.stdin.write(data)

    async def end_input(self) -> None:
        """It reads the end of its input; a terminal stays open, as its user ends input by a key."""
        if self._ours.stdin is not None and self._ours.master is None:
            self._ours.stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        """Tell the terminal, if there is one."""
        if self._ours.master is not None:
            terminals.resize(self._ours.master, columns, rows)

    async def wait(self) -> int:
        """Its exit status; 128 + N where signal N ended it."""
        code = await asyncio.shield(self._process.exited)
        return 128 - code if code < 0 else code

    async def close(self) -> None:
        """Kill what is left of its process group, and close the streams."""
        self._process.signal_group(signal.SIGKILL)
        await asyncio.wait([self._process.exited], timeout=REAPED_WITHIN_S)
        for stream in (self._ours.stdin, self._ours.stdout, self._ours.stderr):
            if stream is not None:
                stream.close()
        if self._ours.master is not None:
            os.close(self._ours.master)
            self._ours.master = None

    def _exited(self, _: "asyncio.Future[int]") -> None:
        for stream in (self._ours.stdout, self._ours.stderr):
            if stream is not None:
                stream.finish()


async def start(spec: ProcessSpec, threads: Threads, options: SessionStreams) -> ExecSession:
    """Start the command. Raises SessionFailure."""
    with ExitStack() as theirs, ExitStack() as undo:
        try:
            ours, given = _terminal(theirs, undo) if options.tty else _pipes(options, theirs, undo)
            process = await processes.start(spec, threads, stdin=given.stdin, stdout=given.stdout, stderr=given.stderr)
        except OSError as error:
            raise SessionFailure(f"failed to create streams: {error.strerror}") from error
        except StartFailure as failure:
            raise SessionFailure(str(failure)) from failure
        undo.pop_all()
        return ExecSession(process, ours)


def _terminal(theirs: ExitStack, undo: ExitStack) -> tuple[_Ours, Descriptors]:
    terminal = terminals.open_terminal()
    theirs.callback(os.close, terminal.slave)
    undo.callback(os.close, terminal.master)
    reader, writer = DescriptorReader(os.dup(terminal.master)), DescriptorWriter(os.dup(terminal.master))
    undo.callback(reader.close)
    undo.callback(writer.close)
    given = Descriptors(terminal.slave, terminal.slave, terminal.slave)
    return _Ours(stdin=writer, stdout=reader, master=terminal.master), given


def _pipes(options: SessionStreams, theirs: ExitStack, undo: ExitStack) -> tuple[_Ours, Descriptors]:
    ours, nothing = _Ours(), subprocess.DEVNULL
    stdin = stdout = stderr = nothing
    if options.stdin:
        stdin, own = os.pipe()
        theirs.callback(os.close, stdin)
        ours.stdin = DescriptorWriter(own)
        undo.callback(ours.stdin.close)
    if options.stdout:
        ours.stdout, stdout = _output(theirs, undo)
    if options.stderr:
        ours.stderr, stderr = _output(theirs, undo)
    return ours, Descriptors(stdin, stdout, stderr)


def _output(theirs: ExitStack, undo: ExitStack) -> tuple[DescriptorReader, int]:
    own, given = os.pipe()
    theirs.callback(os.close, given)
    reader = DescriptorReader(own)
    undo.callback(reader.close)
    return reader, given


async def _chunks(reader: DescriptorReader | None) -> AsyncIterator[bytes]:
    if reader is not None:
        async for chunk in reader.chunks():
            yield chunk
