"""Programs on a terminal, as a person uses them."""

import os
import pty
import select
import struct
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fcntl import ioctl

import up_process
from up_process import Up

from patience import WITHIN_S


class Terminal:
    """A program on a terminal that the test types on.

    Args:
        env: variables beside those of the test.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *, columns: int, rows: int) -> None:
        self.shown = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(argv[0], argv, {**os.environ, **env})

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self._master, text.encode())

    def until(self, text: str) -> str:
        """What is shown once `text` is."""
        deadline_s = time.monotonic() + WITHIN_S
        while text.encode() not in self.shown:
            assert time.monotonic() < deadline_s, self.shown
            assert self._read(), self.shown
        return self.shown.decode("utf-8", "replace")

    @contextmanager
    def shown_meanwhile(self) -> Iterator[None]:
        """Keep reading what is shown while the test does something else: nobody else empties the terminal."""
        is_over = threading.Event()

        def read() -> None:
            while not is_over.is_set() and self._read():
                continue

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield
        finally:
            is_over.set()
            reader.join()

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 1)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.shown += data
        return bool(data)

    def end(self) -> int:
        """Its exit status, once it has ended."""
        while self._read():
            continue
        _, status = os.waitpid(self.pid, 0)
        os.close(self._master)
        return os.waitstatus_to_exitcode(status)


class KubectlTerminal(Terminal):
    """kubectl on a terminal."""

    def __init__(self, up: Up, *args: str, columns: int = 100, rows: int = 40) -> None:
        kubectl = up_process.KUBECTL
        assert kubectl is not None
        super().__init__([kubectl, *args], {"KUBECONFIG": str(up.kubeconfig)}, columns=columns, rows=rows)
