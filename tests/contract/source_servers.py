"""Real servers of the systems that external metrics are read from, each with a temporary folder and a free port.

A test takes one as a fixture of its module. A server is ended by its process; a machine that lacks one skips the test.
"""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from own_ports import own_place
from patience import WITHIN_S
from podscaler.sources.protocol import ExternalSource, Number, SourceConfig, TLSSettings
from podscaler.testing import VirtualClock

PASSWORD = "sen/tin el@1%"


@dataclass(frozen=True)
class Place:
    """Where a server listens."""

    host: str
    port: int
    folder: Path = field(default_factory=Path)

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"


def find_program(name: str, *folders: str) -> str | None:
    """The path of a program, also of one that is not on PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *folders]))


@contextmanager
def running(
    command: list[str], place: Place, *, is_up: Callable[[], bool] | None = None, **options: Any
) -> Iterator[None]:
    """The server while it runs; it is up when it accepts connections, or when `is_up` says so."""
    with (place.folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, **options)
    try:
        deadline_s = time.monotonic() + WITHIN_S
        while not (is_up() if is_up is not None else accepts(place)):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise AssertionError(f"{command[0]} does not serve: {(place.folder / 'log.txt').read_text()}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def accepts(place: Place) -> bool:
    """Whether something accepts connections there."""
    import socket

    try:
        with socket.create_connection((place.host, place.port), timeout=1):
            return True
    except OSError:
        return False


def own_port(folder: Path) -> Place:
    """A free port for a server with that folder."""
    host, port = own_place()
    return Place(host, port, folder)


def config(
    settings: dict[str, Any], *, timeout_s: float = WITHIN_S, tls: TLSSettings | None = None, **credentials: str
) -> SourceConfig:
    """What a factory gets."""
    return SourceConfig(settings, VirtualClock(), credentials, tls, timeout_s=timeout_s)


def read(source: ExternalSource, times: int = 1) -> Number:
    """The last of several reads of a source, which is closed then. Raises what the read raises."""

    async def run() -> Number:
        try:
            for _ in range(times - 1):
                await source.read()
            return await source.read()
        finally:
            await source.close()

    return asyncio.run(run())


def failure(source: ExternalSource) -> Exception:
    """What a read raises. Fails where it raises nothing."""
    try:
        number = read(source)
    except Exception as error:
        return error
    raise AssertionError(f"the read returned {number}")
