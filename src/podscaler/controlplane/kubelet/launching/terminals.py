"""Terminals of containers and commands that ask for a `tty`.

`sessions` and `console` open them; the launcher makes the slave side the controlling terminal of the process.
"""

import fcntl
import os
import struct
import termios
from dataclasses import dataclass
from typing import Final

SIZE_MAX: Final = 0xFFFF
NAME: Final = "xterm"
"""TERM of a process with a terminal, as container runtimes set it."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Both sides of a terminal; the caller closes the slave side once the process has it."""

    master: int
    slave: int


def open_terminal() -> Terminal:
    """A new terminal. Raises OSError."""
    master, slave = os.openpty()
    return Terminal(master, slave)


def resize(master: int, columns: int, rows: int) -> None:
    """Give the terminal a size (clamped to what it can hold); the processes of its foreground group hear of it."""
    size = struct.pack("HHHH", min(max(rows, 0), SIZE_MAX), min(max(columns, 0), SIZE_MAX), 0, 0)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)
