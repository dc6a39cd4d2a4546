"""Writes the audit log: one line of JSON for each stage of each request, in order, in a thread.

`apiserver.audit` adds events (audit.k8s.io/v1 Event); `podscaler up` creates, runs and closes the log. While the disk
is slower than the requests, `add` waits: requests become slower, no event is lost. After a write error the number of
lost events is logged, and later events are written again. Another destination: a `write` function in `open_log`.
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

QUEUED_EVENTS_MAX = 4096
BATCH_EVENTS_MAX = 512
"""How many events one call of the thread writes."""

_log = logging.getLogger(__name__)


class AuditLog:
    """A queue of audit events and its writer.

    Args:
        write: appends whole lines to the log; blocks, and is called in a thread.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(QUEUED_EVENTS_MAX)

    async def add(self, event: Object) -> None:
        """Queue an event; waits while `QUEUED_EVENTS_MAX` events are queued."""
        await self._lines.put(json_text.encode(event) + b"\n")

    async def run(self) -> None:
        """Write queued events until cancelled; `close` writes the rest."""
        while True:
            await self._write_batch([await self._lines.get()])

    async def close(self) -> None:
        """Write the queued events; the caller has ended `run`, and calls `add` no more."""
        while not self._lines.empty():
            await self._write_batch([])

    async def _write_batch(self, lines: list[bytes]) -> None:
        """Write `lines` and queued ones, BATCH_EVENTS_MAX in all; log an OSError. When cancelled, write first."""
        while len(lines) < BATCH_EVENTS_MAX and not self._lines.empty():
            lines.append(self._lines.get_nowait())
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, b"".join(lines)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the lines have left the queue: finish writing them first
            await asyncio.wait([writing])
            if (failure := writing.exception()) is not None:
                _log.error("%d audit events could not be written: %s", len(lines), failure)
            raise
        except OSError as error:
            _log.error("%d audit events could not be written: %s", len(lines), error)


def open_log(path: Path) -> AuditLog:
    """The log in a file (mode 0600, appended to), or on standard output for `-`. Blocks.

    Raises UsageError if the file cannot be written.
    """
    if str(path) == "-":
        return AuditLog(_write_to_stdout)
    try:
        os.close(_open_descriptor(path))
    except OSError as error:
        raise UsageError(f"the audit log {path} cannot be written: {error.strerror or error}") from error

    def append(lines: bytes) -> None:
        with open(_open_descriptor(path), "ab") as file:
            file.write(lines)

    return AuditLog(append)


def _open_descriptor(path: Path) -> int:
    """A descriptor; opened for each write, as log rotation may have renamed the file."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _write_to_stdout(lines: bytes) -> None:
    """The `write` of a log on standard output."""
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()
