"""Starts processes, each in a session of its own, and reports when they exit.

`start` is called by `kubelet.containers.container_process`, `exec_session` and `kubelet.probes.exec_check`,
`run_to_end` by `kubelet.launching.capabilities`. Processes are started in a thread, without a shell and without Python
code between fork and exec. The exit is reported by a pidfd on the event loop (Linux) or by a thread that waits (other
systems). Another way to start a process: a case in `_start_process`.

Invariant: a process is reaped here and nowhere else, and its process group is killed before that: the id of a process
group is not reused while its leader is a zombie.

Source: setsid(2), pidfd_open(2), waitid(2).
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

from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.streams import ChildStreams

UMASK: Final = 0o022
"""The umask of containers, as in container runtimes, whatever `up` uses for its own files."""

LAUNCH_TIMEOUT_S: Final = 10.0
"""The seconds that the launcher (`launching/launcher.py`) may take to set up mounts before it is killed."""
SIGNAL_EXIT_CODE: Final = 128
"""The exit code of a process that signal N ended is this plus N, as shells and container runtimes report it."""


class StartFailure(Exception):
    """The process could not be started; the text is the message for the container's status."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """The program of a process, its environment and its user.

    Attributes:
        argv: the program (a path, or a name to look up in PATH of `env`) and its arguments; not empty.
        cwd: an existing directory.
        user, group: numeric ids to change to, both or neither; None keeps those of `up`.
        groups: supplementary groups, used where `user` is set.
        plan: not empty where argv starts the launcher, which gets two more arguments: descriptors of a file with this
            plan, and of a pipe to which it writes an error that occurs before it executes the program. The launcher
            changes user, directory and environment itself.
        adopt_listener: takes (and closes) the listener of the seccomp filter that the launcher installs, with a `plan`
            only: called on the event loop by `start`, in the caller's thread by `run_to_end`. Raises OSError.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    plan: bytes = b""
    adopt_listener: Callable[[int], None] | None = None


@dataclass(slots=True)
class Process:
    """A started process.

    Attributes:
        pid: also the id of its session and process group.
        popen: reaped by this module only.
        exited: completed with its return code when it is reaped; minus N where signal N ended it.
    """

    pid: int
    popen: "subprocess.Popen[bytes]"
    exited: "asyncio.Future[int]"

    def signal_group(self, number: int) -> None:
        """Send a signal to the whole process group; does nothing once the process has exited."""
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def exit_code(return_code: int) -> int:
    """The exit code for a return code of Popen, which is minus N for signal N."""
    return SIGNAL_EXIT_CODE - return_code if return_code < 0 else return_code


async def start(spec: ProcessSpec, threads: ThreadPool, streams: ChildStreams) -> Process:
    """Start `spec` with standard streams, whose descriptors the caller closes. Raises StartFailure."""
    popen, listener = await threads.run(_start_process, spec, streams)
    loop = asyncio.get_running_loop()
    process = Process(popen.pid, popen, loop.create_future())
    try:
        if listener is not None and spec.adopt_listener is not None:
            spec.adopt_listener(listener)
        _watch_exit(process, loop)
    except OSError as error:  # no descriptor left: a process whose exit is not reported must not run
        process.signal_group(signal.SIGKILL)
        await threads.run(popen.wait)
        raise StartFailure(f"its exit cannot be watched: {error.strerror}") from error
    return process


def run_to_end(spec: ProcessSpec) -> int:
    """Start `spec` without input and output and wait; returns its return code. Blocks. Raises StartFailure, OSError."""
    popen, listener = _start_process(spec, ChildStreams())
    if listener is not None and spec.adopt_listener is not None:
        spec.adopt_listener(listener)
    return popen.wait()


_StartedProcess = tuple["subprocess.Popen[bytes]", int | None]
"""A process, and the listener of its seccomp filter, None without one."""


def _start_process(spec: ProcessSpec, stdio: ChildStreams) -> _StartedProcess:
    """Start `spec`, whose `argv` is the launcher if it has a plan. Blocks. Raises StartFailure."""
    if spec.adopt_listener is not None:
        return _start_with_filter(spec, stdio)
    if spec.plan:
        return _start_launcher(spec, stdio), None
    user_and_groups: dict[str, Any] = {}
    if spec.user is not None:
        user_and_groups = {"user": spec.user, "group": spec.group, "extra_groups": spec.groups}
    try:
        popen = _spawn(spec.argv, spec, stdio, **user_and_groups)
    except (OSError, ValueError) as error:
        raise StartFailure(_start_error_message(spec, error)) from error
    return popen, None


def _spawn(
    argv: Sequence[str], spec: ProcessSpec, stdio: ChildStreams, **popen_options: Any
) -> "subprocess.Popen[bytes]":
    """Start `argv` in a session of its own. Raises OSError, ValueError.

    Args:
        stdio: the standard streams.
        popen_options: further arguments of Popen.
    """
    return subprocess.Popen(  # noqa: S603  running what the pod says, without a shell, is this module's purpose
        argv,
        env=dict(spec.env),
        cwd=spec.cwd,
        stdin=stdio.stdin,
        stdout=stdio.stdout,
        stderr=stdio.stderr,
        start_new_session=True,
        umask=UMASK,
        **popen_options,
    )


def _start_error_message(spec: ProcessSpec, error: OSError | ValueError) -> str:
    """The message of a process that could not be started, in the words of container runtimes."""
    program = spec.argv[0]
    if isinstance(error, FileNotFoundError) and error.filename == spec.cwd:
        return f'the working directory "{spec.cwd}" does not exist on this machine'
    if isinstance(error, FileNotFoundError):
        reason = "no such file or directory" if "/" in program else "executable file not found in $PATH"
        return f'exec: "{program}": {reason}'
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f'exec: "{program}": {reason[:1].lower()}{reason[1:]}'


def _start_with_filter(spec: ProcessSpec, stdio: ChildStreams) -> _StartedProcess:
    """Start the launcher with a seccomp filter; returns once the filter's listener was received from it.

    Raises StartFailure.
    """
    own_socket, launcher_socket = socket.socketpair()
    with own_socket:
        with launcher_socket:
            popen = _start_launcher(spec, stdio, launcher_socket.fileno())
        try:
            _, listeners, _, _ = socket.recv_fds(own_socket, 1, 1)
        except OSError:
            listeners = []
    for listener in listeners:
        os.set_inheritable(listener, False)
    if not listeners:  # no descriptor left here: without a listener the calls of the program would fail
        popen.kill()
        popen.wait()
        raise StartFailure("the listener of its filter could not be received")
    return popen, listeners[0]


def _start_launcher(spec: ProcessSpec, stdio: ChildStreams, *inherited_descriptors: int) -> "subprocess.Popen[bytes]":
    """Start the launcher and wait until it has executed the program, which closes its end of the pipe.

    Args:
        inherited_descriptors: further descriptors that the launcher inherits and gets as arguments.

    Raises StartFailure, also with the error that the launcher reports.
    """
    reader, writer = os.pipe()
    try:
        try:
            with _plan_file(spec.plan) as plan_file:
                passed_descriptors = (plan_file.fileno(), writer, *inherited_descriptors)
                popen = _spawn((*spec.argv, *map(str, passed_descriptors)), spec, stdio, pass_fds=passed_descriptors)
        except (OSError, ValueError) as error:
            raise StartFailure(_start_error_message(spec, error)) from error
        finally:
            os.close(writer)
        launch_error = _read_launch_error(popen, reader)
    finally:
        os.close(reader)
    if launch_error:
        popen.wait()
        raise StartFailure(launch_error.decode("utf-8", "replace"))
    return popen


def _plan_file(plan: bytes) -> IO[bytes]:
    """An anonymous file that holds `plan`: arguments are limited in size, and other users can read them."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("podscaler-plan"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(plan)
    file.seek(0)
    return file


def _read_launch_error(popen: "subprocess.Popen[bytes]", reader: int) -> bytes:
    """The error that the launcher reports, which is killed if it takes too long; empty if it has executed the program.

    Args:
        reader: the node's end of the pipe REPORT.
    """
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    if not poller.poll(LAUNCH_TIMEOUT_S * 1000):  # in milliseconds; readable at the end of the pipe, too
        popen.kill()
        return b"the launcher took too long to prepare the container's mounts"
    with open(reader, "rb", closefd=False) as report:
        return report.read()


def _watch_exit(process: Process, loop: asyncio.AbstractEventLoop) -> None:
    """Reap the process when it exits. Raises OSError (no descriptor left)."""
    if not hasattr(os, "pidfd_open"):
        threading.Thread(target=_wait_in_thread, args=(process, loop), daemon=True).start()
        return
    pidfd = os.pidfd_open(process.pid)

    def on_exit() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        _reap(process)

    loop.add_reader(pidfd, on_exit)


def _reap(process: Process) -> None:
    """Kill the process group of a process that has exited, then reap the process, and complete `exited`."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.exited.set_result(process.popen.wait())


def _wait_in_thread(process: Process, loop: asyncio.AbstractEventLoop) -> None:
    """Wait for the exit, without reaping where that is possible, then reap on the event loop; runs in a thread."""
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:  # macOS before Python 3.13: the group's id could be reused before the group is killed
        process.popen.wait()
    with contextlib.suppress(RuntimeError):  # the event loop is closed: `up` itself has ended
        loop.call_soon_threadsafe(_reap, process)
