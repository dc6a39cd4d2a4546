"""Writes the recording of syncs into a file, in the background.

The command line makes a FileRecording; syncs report to it. Once a second the reports are encoded, compressed and
flushed to the file in a thread. So a kill loses the last second or two, and the rest of the file can be read. Rules:

1. At most WAITING_MAX reports wait. When the disk is slower than that, or fails, lines are lost; they are counted and
   logged, and the autoscaling goes on.
2. After a failure of the disk a new file is tried once a minute.

Source: docs/recordings.md.
"""

import asyncio
import logging
import threading

from podscaler.base.clock import Clock
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.recording.record_lines import RecordLines
from podscaler.controller.recording.recording import Recording, SyncRecord, SyncsEnd

log = logging.getLogger(__name__)

FLUSH_PERIOD_S = 1.0
RETRY_PERIOD_S = 60.0
WAITING_MAX = 4096
CHUNK_BYTES = 256 * 1024


class FileRecording(Recording):
    """Writes a recording into a file in the background; `close` ends the file.

    Args:
        file: the file, begun already.
    """

    is_on = True

    def __init__(self, file: RecordFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._waiting: list[SyncRecord | SyncsEnd] = []
        self._has_waiting = asyncio.Event()
        self._file_lock = threading.Lock()
        self._write_task: asyncio.Task[None] | None = None
        self._lines = RecordLines()
        self._failed_at_s: float | None = None
        self.lines_written = 0
        self.lines_lost = 0

    def report(self, record: SyncRecord | SyncsEnd) -> None:
        """Have a report written; never waits."""
        if len(self._waiting) >= WAITING_MAX:
            if not self.lines_lost:
                log.warning("the recording %s: the disk is too slow; lines are lost", self._file.path)
            self.lines_lost += 1
            return
        self._waiting.append(record)
        self._has_waiting.set()

    async def run(self) -> None:
        """Write once a second until cancelled."""
        while True:
            await self._has_waiting.wait()
            await self._clock.sleep(FLUSH_PERIOD_S)
            await self._write_waiting()

    async def close(self) -> None:
        """Write what waits, and end the file."""
        await self._write_waiting()
        await asyncio.to_thread(self._close_file)

    async def _write_waiting(self) -> None:
        """Begin to write the reports that wait, and wait for it."""
        batch, self._waiting = self._waiting, []
        self._has_waiting.clear()
        self._write_task = asyncio.create_task(self._write_after(self._write_task, batch))
        await asyncio.shield(self._write_task)  # a cancellation here loses no lines: `close` waits for them

    async def _write_after(self, earlier: asyncio.Task[None] | None, batch: list[SyncRecord | SyncsEnd]) -> None:
        """Write a batch in a thread once the earlier write has ended (None: there is none), to keep the order."""
        if earlier is not None:
            await earlier
        if batch:
            await asyncio.to_thread(self._write, batch)

    def _write(self, batch: list[SyncRecord | SyncsEnd]) -> None:
        """Write the lines of a batch, in a thread; where the file cannot be written, they are counted as lost."""
        with self._file_lock:
            try:
                if self._failed_at_s is not None and not self._try_new_file():
                    self.lines_lost += len(batch)
                    return
                self._write_chunks(batch)
                self._file.flush()
                self.lines_written += len(batch)
            except OSError as error:
                self._note_failure(error, len(batch))

    def _write_chunks(self, batch: list[SyncRecord | SyncsEnd]) -> None:
        """Write in large pieces: compressing releases the GIL, and to have it again may take milliseconds."""
        chunk: list[bytes] = []
        size_bytes = 0
        for record in batch:
            if not chunk and self._file.is_full:
                self._begin_file()
            line = self._lines.encode(record)
            chunk.append(line)
            size_bytes += len(line)
            if size_bytes >= CHUNK_BYTES:
                self._file.write(b"".join(chunk))
                chunk, size_bytes = [], 0
        self._file.write(b"".join(chunk))

    def _begin_file(self) -> None:
        self._file.begin()
        self._lines.restart()

    def _try_new_file(self) -> bool:
        """Begin a new file if the retry is due, and return whether it was. Raises OSError if it cannot be begun."""
        if self._failed_at_s is not None and self._clock.monotonic_s() - self._failed_at_s < RETRY_PERIOD_S:
            return False
        self._begin_file()
        log.info("the recording %s goes on in a fresh file; %d lines are lost", self._file.path, self.lines_lost)
        self._failed_at_s = None
        return True

    def _note_failure(self, error: OSError, lines: int) -> None:
        """Take note that the file failed and that so many lines are lost; logs the first failure."""
        if self._failed_at_s is None:
            log.warning("the recording %s cannot be written: %s; lines are lost", self._file.path, error.strerror)
        self._failed_at_s = self._clock.monotonic_s()
        self._file.abandon()
        self.lines_lost += lines

    def _close_file(self) -> None:
        """End the file, in a thread; a failure is logged."""
        with self._file_lock:
            try:
                self._file.close()
            except OSError as error:
                log.warning("the recording %s cannot be ended: %s", self._file.path, error.strerror)
