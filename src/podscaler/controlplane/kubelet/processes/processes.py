"""Starting a process in a session of its own, and seeing it end.

`container_process`, `exec_process` and `exec_session` use it. Processes are started in a thread without a shell and
without code between fork and exec. Ends are seen by a pidfd on the event loop (Linux) or by a waiting thread
(elsewhere).

Invariant: a process is reaped here and nowhere else, and its process group is killed before that: as long as the
leader is a zombie, nobody else can be given its group's id.
"""

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from podscaler.controlplane.kubelet.processes.threads import Threads

UMASK: Final = 0o022
"""What containers begin with everywhere, whatever `up` has for its own files."""

LAUNCH_REPORT_S: Final = 10.0
"""How long the launcher (`launcher.py`) may take to set up mounts before it is given up."""


class StartFailure(Exception):
    """The process could not be started; the text is a sentence for the container's status."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to start.

    Attributes:
        argv: the program (a path, or a name to look up in PATH of `env`) and its arguments; not empty.
        cwd: an existing directory.
        user, group: numeric ids to change to; None keeps those of `up`.
        groups: supplementary groups, used where `user` is set.
        plan: not empty where argv starts the launcher, which is given two more arguments: descriptors of a file with
            this plan, and of a pipe on which it says what went wrong before it became the program. It changes user,
            directory and environment itself.
        adopt: takes (and closes) the listener of the filter that the launcher installs, with a `plan` only: called on
            the event loop by `start`, in the caller's thread by `run_to_end`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    plan: bytes = b""
    adopt: Callable[[int], None] | None = None


@dataclass(slots=True)
class Process:
    """A started process.

    Attributes:
        pid: also the id of its session and process group.
        exited: its return code (minus the signal's number where a signal ended it), once it has ended.
    """

    pid: int
    popen: "subprocess.Popen[bytes]"
    exited: "asyncio.Future[int]"

    def signal_group(self, number: int) -> None:
        """Send a signal to the whole process group; nothing happens once it has ended."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What a process gets as its standard streams."""

    stdin: int
    stdout: int
    stderr: int


async def start(
    spec: ProcessSpec, threads: Threads, *, stdout: int, stderr: int, stdin: int = subprocess.DEVNULL
) -> Process:
    """Start `spec` with the descriptors given (which stay the caller's to close). Raises StartFailure."""
    popen, listener = await threads.run(_popen, spec, Descriptors(stdin, stdout, stderr))
    loop = asyncio.get_running_loop()
    process = Process(popen.pid, popen, loop.create_future())
    try:
        if listener is not None and spec.adopt is not None:
            spec.adopt(listener)
        _watch(process, loop)
    except OSError as error:  # no descriptor left: a process whose end nobody would see must not run
        process.signal_group(signal.SIGKILL)
        await threads.run(popen.wait)
        raise StartFailure(f"its end cannot be watched: {error.strerror}") from error
    return process


def run_to_end(spec: ProcessSpec) -> int:
    """Start `spec` with its output thrown away, and wait; returns its return code. Blocks. Raises StartFailure."""
    nothing = Descriptors(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
    popen, listener = _popen(spec, nothing)
    if listener is not None and spec.adopt is not None:
        spec.adopt(listener)
    return popen.wait()


_Started = tuple["subprocess.Popen[bytes]", int | None]
"""A process, and the listener of its filter if it has one."""


def _popen(spec: ProcessSpec, given: Descriptors) -> _Started:
    if spec.adopt is not None:
        return _popen_trapped(spec, given)
    if spec.plan:
        return _popen_reporting(spec, given), None
    identity: dict[str, Any] = {}
    if spec.user is not None:
        identity = {"user": spec.user, "group": spec.group, "extra_groups": spec.groups}
    try:
        popen = _spawn(spec.argv, spec, given, **identity)
    except (OSError, ValueError) as error:
        raise StartFailure(_explanation(spec, error)) from error
    return popen, None


def _spawn(argv: Sequence[str], spec: ProcessSpec, given: Descriptors, **more: Any) -> "subprocess.Popen[bytes]":
    """Start `argv` in a session of its own; `more` goes to Popen. Raises OSError, ValueError."""
    return subprocess.Popen(  # noqa: S603  running what the pod says, without a shell, is this module's purpose
        argv,
        env=dict(spec.env),
        cwd=spec.cwd,
        stdin=given.stdin,
        stdout=given.stdout,
        stderr=given.stderr,
        start_new_session=True,
        umask=UMASK,
        **more,
    )


def _explanation(spec: ProcessSpec, error: OSError | ValueError) -> str:
    program = spec.argv[0]
    if isinstance(error, FileNotFoundError) and error.filename == spec.cwd:
        return f'the working directory "{spec.cwd}" does not exist on this machine'
    if isinstance(error, FileNotFoundError):
        where = "no such file or directory" if "/" in program else "executable file not found in $PATH"
        return f'exec: "{program}": {where}'
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f'exec: "{program}": {reason[:1].lower()}{reason[1:]}'


def _popen_trapped(spec: ProcessSpec, given: Descriptors) -> _Started:
    """Start the launcher with a filter; the filter's listener has come through the socket when this returns."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            popen = _popen_reporting(spec, given, theirs.fileno())
        try:
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        except OSError:
            descriptors = []
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if not descriptors:  # no descriptor left here: without a listener the calls of the program would fail
        popen.kill()
        popen.wait()
        raise StartFailure("the listener of its filter could not be received")
    return popen, descriptors[0]


def _popen_reporting(spec: ProcessSpec, given: Descriptors, *more: int) -> "subprocess.Popen[bytes]":
    """Start the launcher and wait until it has become the program: its end of the pipe closes by itself then.

    `more` are further descriptors that it is given, as arguments too.
    """
    reader, writer = os.pipe()
    try:
        try:
            with _plan_file(spec.plan) as plan:
                passed = (plan.fileno(), writer, *more)
                popen = _spawn((*spec.argv, *map(str, passed)), spec, given, pass_fds=passed)
        except (OSError, ValueError) as error:
            raise StartFailure(_explanation(spec, error)) from error
        finally:
            os.close(writer)
        fault = _report(popen, reader)
    finally:
        os.close(reader)
    if fault:
        popen.wait()
        raise StartFailure(fault.decode("utf-8", "replace"))
    return popen


def _plan_file(plan: bytes) -> IO[bytes]:
    """A nameless file that holds `plan`, as others can read a process' arguments, whose size is limited, too."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("podscaler-plan"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(plan)
    file.seek(0)
    return file


def _report(popen: "subprocess.Popen[bytes]", reader: int) -> bytes:
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    if not poller.poll(LAUNCH_REPORT_S * 1000):
        popen.kill()
        return b"the launcher took too long to prepare the container's mounts"
    with open(reader, "rb", closefd=False) as report:
        return report.read()


def _watch(process: Process, loop: asyncio.AbstractEventLoop) -> None:
    if not hasattr(os, "pidfd_open"):
        threading.Thread(target=_wait_in_thread, args=(process, loop), daemon=True).start()
        return
    pidfd = os.pidfd_open(process.pid)

    def ended() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        _reap(process)

    loop.add_reader(pidfd, ended)


def _reap(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.exited.set_result(process.popen.wait())


def _wait_in_thread(process: Process, loop: asyncio.AbstractEventLoop) -> None:
    """Wait for the end, without reaping where that is possible, then reap on the loop."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:  # macOS before Python 3.13: for a moment somebody else could be given the group's id
        process.popen.wait()
    with contextlib.suppress(RuntimeError):  # the loop is closed: `up` itself has ended
        loop.call_soon_threadsafe(_reap, process)
