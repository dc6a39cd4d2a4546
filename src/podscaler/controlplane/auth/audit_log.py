"""The audit log: one line of JSON for each stage of each request, written in order and off the event loop.

`apiserver.audit` adds events; the wiring of `up` makes, runs and closes the log. Who adds an event waits while the disk
does not keep up: requests become slower, no event is lost. If the disk fails, that is logged with the number of events
that could not be written, and the next ones are tried again.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from podscaler.api.text import json_text
from podscaler.base.errors import UsageError
from podscaler.controlplane.storage.entries import Object

WAITING_MAX = 4096
BATCH_MAX = 512

_log = logging.getLogger(__name__)


class AuditLog:
    """See the module.

    Args:
        write: puts whole lines where they belong; blocks, and is called in a thread.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(WAITING_MAX)

    async def add(self, event: Object) -> None:
        """Write an event in its turn; returns when it is its turn to wait for the disk."""
        await self._lines.put(json_text.encode(event) + b"\n")

    async def run(self) -> None:
        """Write until cancelled; what is left then, `close` writes."""
        while True:
            await self._write_batch([await self._lines.get()])

    async def close(self) -> None:
        """Write what was added. Call it when nobody adds any more."""
        while not self._lines.empty():
            await self._write_batch([])

    async def _write_batch(self, lines: list[bytes]) -> None:
        while len(lines) < BATCH_MAX and not self._lines.empty():
            lines.append(self._lines.get_nowait())
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, b"".join(lines)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the lines are taken: they are written before anything else happens
            await asyncio.wait([writing])
            _tell(writing, len(lines))
            raise
        except OSError as error:
            _log.error("%d audit events could not be written: %s", len(lines), error)


def _tell(writing: "asyncio.Future[None]", count: int) -> None:
    if (error := writing.exception()) is not None:
        _log.error("%d audit events could not be written: %s", count, error)


def open_log(path: Path) -> AuditLog:
    """The log in a file (0600, appended to), or with `-` on standard output. Blocks.

    Raises:
        UsageError: the file cannot be written.
    """
    if str(path) == "-":
        return AuditLog(_write_out)
    try:
        os.close(_opened(path))
    except OSError as error:
        raise UsageError(f"the audit log {path} cannot be written: {error.strerror or error}") from error

    def append(lines: bytes) -> None:
        with open(_opened(path), "ab") as file:
            file.write(lines)

    return AuditLog(append)


def _opened(path: Path) -> int:
    """A descriptor; the file may have been moved away since the last time, to keep it small."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _write_out(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()
