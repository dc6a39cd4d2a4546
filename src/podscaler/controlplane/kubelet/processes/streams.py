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
        if tty:
            yield _open_terminal(child_ends, node_ends, has_input=stdin)
        else:
            yield _open_pipes(child_ends, node_ends, stdin=stdin, stdout=stdout, stderr=stderr)
        node_ends.pop_all()  # from here on the caller closes them


def _open_terminal(
    child_ends: ExitStack, node_ends: ExitStack, *, has_input: bool
) -> tuple[NodeStreamEnds, ChildStreams]:
    """The ends of a new pseudo-terminal, whose slave side is all three streams of the process. Raises OSError.

    Args:
        child_ends, node_ends: close the descriptors of the process, and those of the node.
        has_input: whether the node gets an end for input.
    """
    master, slave = os.openpty()
    _close_with(node_ends, master)
    _close_with(child_ends, slave)
    stdin = _close_with(node_ends, os.dup(master)) if has_input else None
    stdout = _close_with(node_ends, os.dup(master))
    return NodeStreamEnds(stdin=stdin, stdout=stdout, master=master), ChildStreams(slave, slave, slave)


def _open_pipes(
    child_ends: ExitStack, node_ends: ExitStack, *, stdin: bool, stdout: bool, stderr: bool
) -> tuple[NodeStreamEnds, ChildStreams]:
    """A new pipe for each requested stream; the stacks are as for `_open_terminal`. Raises OSError."""
    no_pipe = subprocess.DEVNULL
    child_stdin, node_stdin = _open_pipe(child_ends, node_ends) if stdin else (no_pipe, None)
    node_stdout, child_stdout = _open_pipe(node_ends, child_ends) if stdout else (None, no_pipe)
    node_stderr, child_stderr = _open_pipe(node_ends, child_ends) if stderr else (None, no_pipe)
    ends = NodeStreamEnds(stdin=node_stdin, stdout=node_stdout, stderr=node_stderr)
    return ends, ChildStreams(child_stdin, child_stdout, child_stderr)


def _open_pipe(reader_owner: ExitStack, writer_owner: ExitStack) -> tuple[int, int]:
    """The ends of a new pipe for reading and for writing, each closed by its owner. Raises OSError."""
    reader, writer = os.pipe()
    return _close_with(reader_owner, reader), _close_with(writer_owner, writer)


def _close_with(owner: ExitStack, descriptor: int) -> int:
    """Let `owner` close the descriptor; returns the descriptor."""
    owner.callback(os.close, descriptor)
    return descriptor


def resize(master: int, columns: int, rows: int) -> None:
    """Set the terminal's size, clamped to 0..SIZE_MAX; its foreground process group gets SIGWINCH. Raises OSError."""
    clamped_rows, clamped_columns = min(max(rows, 0), SIZE_MAX), min(max(columns, 0), SIZE_MAX)
    window_size = struct.pack("HHHH", clamped_rows, clamped_columns, 0, 0)  # struct winsize; the pixels are not used
    fcntl.ioctl(master, termios.TIOCSWINSZ, window_size)
