"""Runs a server program (Redis, Prometheus) for the demo: one process on a free loopback port, with its own folder.

Called by `podscaler.cli.demo.queue_scenario` and `podscaler.cli.demo.requests_scenario`. To add a server, write a
scenario that defines its ServerProgram, its arguments and its `is_ready`.
"""

import asyncio
import shutil
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from podscaler.base.errors import UsageError

START_ATTEMPTS = 3
START_TIMEOUT_S = 20.0
END_TIMEOUT_S = 5.0
POLL_PERIOD_S = 0.1
HOST = "127.0.0.1"
LOG_END_CHARACTERS = 2000
"""How much of the end of its log is in the error of a program that did not start."""


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program that must be installed.

    Attributes:
        name: the name of the executable, which is looked up in PATH.
        package: the Debian package that has it, for the error message.
    """

    name: str
    package: str

    def path(self) -> str:
        """The path of the executable. Raises UsageError if it is not installed."""
        path = shutil.which(self.name)
        if path is None:
            raise UsageError(f"{self.name} is not installed: apt-get install {self.package}")
        return path


MakeArguments = Callable[[int, Path], Sequence[str]]
"""A function of the port and the folder that returns the program's arguments."""


class LocalServer:
    """The process of a server.

    Attributes:
        port: the TCP port on HOST.
    """

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.returncode is None

    async def end(self) -> None:
        """Terminate the process; kill it if it runs on for END_TIMEOUT_S."""
        if self.is_running:
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), END_TIMEOUT_S)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def start(
    program: ServerProgram, folder: Path, make_arguments: MakeArguments, *, is_ready: Callable[[int], Awaitable[bool]]
) -> LocalServer:
    """Start a server, and return it when it is ready.

    Args:
        folder: the folder for its files and its log, which must not exist.
        make_arguments: returns the program's arguments; called for each attempt.
        is_ready: whether the server on that port responds; OSError means no.

    Raises UsageError if the program is not installed, or does not start.
    """
    path = program.path()
    await asyncio.to_thread(folder.mkdir, mode=0o700)
    log = folder / "server.log"
    for _ in range(START_ATTEMPTS):  # another process may take the free port first, or the machine be busy
        port = _free_port()
        server = await _launch([path, *make_arguments(port, folder)], port, log)
        try:
            if await _wait_until_ready(server, is_ready):
                return server
        except BaseException:
            await server.end()
            raise
        await server.end()
    reason = log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_END_CHARACTERS:]
    raise UsageError(f"{program.name} did not start: {reason or 'it wrote nothing'}")


async def _launch(command: Sequence[str], port: int, log: Path) -> LocalServer:
    """Start a process on that port, whose output goes to the file `log`."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT
        )
    return LocalServer(process, port)


async def _wait_until_ready(server: LocalServer, is_ready: Callable[[int], Awaitable[bool]]) -> bool:
    """Wait for the server; returns whether it became ready: False if it ended, or START_TIMEOUT_S passed."""
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while server.is_running:
                if await _responds(server.port, is_ready):
                    return True
                await asyncio.sleep(POLL_PERIOD_S)
    except TimeoutError:
        pass
    return False


async def _responds(port: int, is_ready: Callable[[int], Awaitable[bool]]) -> bool:
    """Whether the server is ready; False also while it does not listen."""
    try:
        return await is_ready(port)
    except OSError:
        return False


def _free_port() -> int:
    """A TCP port of HOST that no process listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
