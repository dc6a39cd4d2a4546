"""Standard streams of a process: pipes, or a pseudo-terminal for a `tty`.

`kubelet.containers.container_process` and `exec_session` open them before they start a process by `processes.start`,
which takes the `ChildStreams`; the launcher makes the terminal's slave side the controlling terminal of the process.

Source: pty(7), ioctl_tty(2); the TERM that container runtimes set.
"""

import fcntl
import os
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

SIZE_MAX: Final = 0xFFFF
"""The most columns or rows: struct winsize has unsigned shorts."""
TERMINAL_NAME: Final = "xterm"
"""TERM of a process with a terminal."""


@dataclass(frozen=True, slots=True)
class ChildStreams:
    """The process's ends: the descriptors of its standard streams; DEVNULL for a stream that was not requested."""

    stdin: int = subprocess.DEVNULL
    stdout: int = subprocess.DEVNULL
    stderr: int = subprocess.DEVNULL


@dataclass(slots=True)
class NodeStreamEnds:
    """The node's ends of the standard streams; None for a stream that was not requested.

    Attributes:
        stdin: where to write input.
        stdout, stderr: where to read output; with a terminal all output comes from `stdout`.
        master: the master side of the terminal, for `resize`; None without a terminal.
    """

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    master: int | None = None


@contextmanager
def open_streams(
    *, tty: bool, stdin: bool, stdout: bool, stderr: bool
) -> Iterator[tuple[NodeStreamEnds, ChildStreams]]:
    """Open the requested streams. Raises OSError.

    The body starts a process with the `ChildStreams`, which are closed on leaving. The caller closes the
    `NodeStreamEnds`; they are closed here if the body raises. With `tty` there is an output, requested or not.
    """
    with ExitStack() as child_ends, ExitStack() as node_ends:

        def close_with(owner: ExitStack, descriptor: int) -> int:
            owner.callback(os.close, descriptor)
            return descriptor

        def open_output() -> tuple[int, int]:
            reader, writer = os.pipe()
            return close_with(node_ends, reader), close_with(child_ends, writer)

        ends = NodeStreamEnds()
        child_stdin = child_stdout = child_stderr = subprocess.DEVNULL
        if tty:
            master, slave = os.openpty()
            ends.master = close_with(node_ends, master)
            child_stdin = child_stdout = child_stderr = close_with(child_ends, slave)
            ends.stdout = close_with(node_ends, os.dup(master))
            ends.stdin = close_with(node_ends, os.dup(master)) if stdin else None
        else:
            if stdin:
                reader, writer = os.pipe()
                child_stdin, ends.stdin = close_with(child_ends, reader), close_with(node_ends, writer)
            if stdout:
                ends.stdout, child_stdout = open_output()
            if stderr:
                ends.stderr, child_stderr = open_output()
        yield ends, ChildStreams(child_stdin, child_stdout, child_stderr)
        node_ends.pop_all()  # from here on the caller closes them


def resize(master: int, columns: int, rows: int) -> None:
    """Set the terminal's size, clamped to 0..SIZE_MAX; its foreground process group gets SIGWINCH. Raises OSError."""
    clamped_rows, clamped_columns = min(max(rows, 0), SIZE_MAX), min(max(columns, 0), SIZE_MAX)
    window_size = struct.pack("HHHH", clamped_rows, clamped_columns, 0, 0)  # struct winsize; the pixels are not used
    fcntl.ioctl(master, termios.TIOCSWINSZ, window_size)
