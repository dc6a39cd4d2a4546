"""Standard streams of a process: pipes, or a pseudo-terminal for a `tty`.

`container_process` and `exec_session` open them before they start a process; the launcher makes the terminal's slave
side the controlling terminal of the process.

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
TERMINAL_NAME: Final = "xterm"
"""TERM of a process with a terminal."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The file descriptors that a process gets as its standard streams; DEVNULL for a stream that was not requested."""

    stdin: int = subprocess.DEVNULL
    stdout: int = subprocess.DEVNULL
    stderr: int = subprocess.DEVNULL


@dataclass(slots=True)
class StreamEnds:
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
def open_streams(*, tty: bool, stdin: bool, stdout: bool, stderr: bool) -> Iterator[tuple[StreamEnds, Descriptors]]:
    """Open the requested streams. Raises OSError.

    The body starts a process with the `Descriptors`, which are closed on leaving. The caller closes the `StreamEnds`;
    they are closed here if the body raises. A terminal always has an output.
    """
    with ExitStack() as child, ExitStack() as own:

        def keep(descriptor: int, owner: ExitStack) -> int:
            owner.callback(os.close, descriptor)
            return descriptor

        def output() -> tuple[int, int]:
            reader, writer = os.pipe()
            return keep(reader, own), keep(writer, child)

        ends = StreamEnds()
        given_in = given_out = given_err = subprocess.DEVNULL
        if tty:
            master, slave = os.openpty()
            ends.master = keep(master, own)
            given_in = given_out = given_err = keep(slave, child)
            ends.stdout = keep(os.dup(master), own)
            ends.stdin = keep(os.dup(master), own) if stdin else None
        else:
            if stdin:
                reader, writer = os.pipe()
                given_in, ends.stdin = keep(reader, child), keep(writer, own)
            if stdout:
                ends.stdout, given_out = output()
            if stderr:
                ends.stderr, given_err = output()
        yield ends, Descriptors(given_in, given_out, given_err)
        own.pop_all()


def resize(master: int, columns: int, rows: int) -> None:
    """Set the terminal's size, clamped to 0..SIZE_MAX; its foreground process group gets SIGWINCH."""
    size = struct.pack("HHHH", min(max(rows, 0), SIZE_MAX), min(max(columns, 0), SIZE_MAX), 0, 0)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)
