"""A recording beside the work: what is written when, what is lost when the disk is slow or fails."""

import asyncio
import gzip
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patience import WITHIN_S
from podscaler.api.typed import recording
from podscaler.cli.commands.replay import read_lines
from podscaler.controller.recording import file_recording
from podscaler.controller.recording.file_recording import FileRecording
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.recording.recording import Recording, SyncsEnd
from podscaler.testing import VirtualClock

HEADER = recording.header_line("1.37.0", {})


class Disk(RecordFile):
    """A file whose disk may be full."""

    is_full_disk = False

    def begin(self) -> None:
        self._fail()
        super().begin()

    def write(self, line: bytes) -> None:
        self._fail()
        super().write(line)

    def _fail(self) -> None:
        if self.is_full_disk:
            raise OSError(28, "No space left on device")


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A file that is begun."""
    made = Disk(tmp_path / "web.jsonl.gz", HEADER, max_bytes=10**6, files=2)
    made.begin()
    return made


def _end(number: int) -> SyncsEnd:
    return SyncsEnd(number, ("shop", f"a{number}"))


def _ends(path: Path) -> list[str]:
    with path.open("rb") as source:
        return [recording.read_line(line).deleted for line in list(read_lines(source))[1:]]


async def _counted(kept: FileRecording, lines: int) -> None:
    """Return once so many lines are written or lost, which a thread of its own sees to."""
    deadline_s = time.monotonic() + WITHIN_S
    while kept.lines_written + kept.lines_lost < lines:
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.01)


async def test_a_second_of_reports_is_written_together(disk: Disk) -> None:
    """Reports wait for a second; what has been written can be read while the recording goes on."""
    clock = VirtualClock()
    kept = FileRecording(disk, clock)
    task = asyncio.ensure_future(kept.run())
    kept.report(_end(1))
    await clock.advance(0.9)
    kept.report(_end(2))
    before = kept.lines_written
    await clock.advance(0.1)
    await _counted(kept, 2)
    task.cancel()
    await kept.close()
    assert (before, kept.lines_lost, _ends(disk.path)) == (0, 0, ["shop/a1", "shop/a2"])


async def test_closing_writes_what_waits(disk: Disk) -> None:
    """Nothing is lost by an orderly end, and the file is complete gzip."""
    kept = FileRecording(disk, VirtualClock())
    kept.report(_end(1))
    await kept.close()
    assert gzip.decompress(disk.path.read_bytes()).count(b"\n") == 2


async def test_reports_never_wait(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """More than the bound are lost, counted, and said once."""
    monkeypatch.setattr(file_recording, "WAITING_MAX", 3)
    kept = FileRecording(disk, VirtualClock())
    for number in range(5):
        kept.report(_end(number))
    await kept.close()
    assert (kept.lines_written, kept.lines_lost, len(_ends(disk.path))) == (3, 2, 3)
    assert caplog.text.count("the disk is too slow") == 1


async def test_a_full_disk_is_tried_again_after_a_minute(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    """Lines are lost meanwhile; a fresh file goes on, and the old one keeps what it had."""
    clock = VirtualClock()
    kept = FileRecording(disk, clock)
    task = asyncio.ensure_future(kept.run())

    async def second(number: int) -> None:
        done = kept.lines_written + kept.lines_lost + 1
        kept.report(_end(number))
        await clock.advance(1)
        await _counted(kept, done)

    await second(1)
    disk.is_full_disk = True
    await second(2)
    disk.is_full_disk = False
    await second(3)
    await clock.advance(60)
    await second(4)
    task.cancel()
    await kept.close()
    with pytest.raises(EOFError):
        _ends(disk.path.with_name("web.1.jsonl.gz"))
    assert (kept.lines_written, kept.lines_lost, _ends(disk.path)) == (2, 2, ["shop/a4"])
    assert ("No space left on device" in caplog.text, caplog.text.count("cannot be written")) == (True, 1)


async def test_nobody_records() -> None:
    """The form without a file keeps nothing and ends at once."""
    nothing = Recording()
    nothing.report(_end(1))
    await nothing.run()
    assert (nothing.is_on, nothing.lines_written, nothing.lines_lost) == (False, 0, 0)


async def test_a_controller_that_ends_takes_no_lines_along(disk: Disk) -> None:
    """What the writer had taken over when it was cancelled, with no thread writing yet, is in the file at last."""
    clock, release = VirtualClock(), threading.Event()
    kept = FileRecording(disk, clock)
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        busy = asyncio.ensure_future(asyncio.to_thread(release.wait))
        writer = asyncio.ensure_future(kept.run())
        kept.report(_end(1))
        await clock.advance(1)
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
        release.set()
        await busy
        await kept.close()
    assert (_ends(disk.path), kept.lines_lost) == (["shop/a1"], 0)
