"""Logs of containers: the stored form, bounded files, and reading them back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from patience import WITHIN_S
from podscaler.base.clock import NANOSECONDS, SystemClock
from podscaler.base.errors import StatusError
from podscaler.controlplane.kubelet.logs import log_format, log_reader, rotated_files
from podscaler.controlplane.kubelet.logs.container_log import ContainerLog, ContainerLogManager
from podscaler.controlplane.kubelet.logs.log_format import LineSplitter, LogLine
from podscaler.controlplane.kubelet.logs.log_reader import NodeLogs
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.paths import NodePaths
from podscaler.controlplane.registry.providers import LogOptions

S = NANOSECONDS
T1 = b"1970-01-01T00:00:01.000000000Z"
T2 = b"1970-01-01T00:00:02.500000000Z"


def test_lines_are_stored_with_their_time() -> None:
    """Complete lines at once, the rest when its end comes, an unfinished end as a part."""
    splitter = LineSplitter("stdout")
    assert splitter.feed(b"one\ntwo\nth", 1 * S) == T1 + b" stdout F one\n" + T1 + b" stdout F two\n"
    assert splitter.feed(b"ree\n\n", 2 * S + S // 2) == T2 + b" stdout F three\n" + T2 + b" stdout F \n"
    assert splitter.feed(b"end", 1 * S) == b""
    assert splitter.finish(1 * S) == T1 + b" stdout P end\n"
    assert splitter.finish(1 * S) == b""


@pytest.mark.parametrize("size", [16_383, 16_384, 16_385, 32_768, 32_769, 50_000])
@pytest.mark.parametrize("step", [7_000, 60_000])
def test_long_lines_are_cut_and_joined_again(size: int, step: int) -> None:
    """No stored line is longer than 16 KiB, and what is shown is what was printed."""
    text = (b"0123456789abcdef" * 4000)[:size] + b"\nnext\n"
    splitter = LineSplitter("stderr")
    stored = b"".join(splitter.feed(text[at : at + step], 1 * S) for at in range(0, len(text), step))
    lines = [log_format.parse(entry) for entry in stored.split(b"\n")[:-1]]
    assert all(line is not None and len(line.text) <= 16_384 for line in lines)
    assert b"".join(log_format.kubectl_output(line, timestamps=False, at_start=True) for line in lines if line) == text


@pytest.mark.parametrize("text", [b"", b"nonsense", b"a b X c", b"a b F"])
def test_foreign_lines_are_skipped(text: bytes) -> None:
    """What nobody of ours wrote is no line."""
    assert log_format.parse(text) is None


def test_stamps_are_shown_once_for_each_line() -> None:
    """With timestamps, a continued line has no second stamp."""
    lines = [LogLine(T1, b"a", False), LogLine(T2, b"b", True), LogLine(T2, b"c", True)]
    renderer = log_reader.Renderer(LogOptions("c", timestamps=True))
    stored = [line.stamp + b" stdout " + (b"F" if line.is_complete else b"P") + b" " + line.text for line in lines]
    assert renderer.render(stored) == T1 + b" ab\n" + T2 + b" c\n"


def test_a_reader_stops_at_its_time() -> None:
    """Without following, what is printed later is not shown, however fast it comes."""
    renderer = log_reader.Renderer(LogOptions("c"), until_ns=2 * S)
    shown = renderer.render([T1 + b" stdout F early", T2 + b" stdout F late"])
    assert (shown, renderer.is_done) == (b"early\n", True)


@pytest.mark.parametrize(
    ("is_followed", "shown", "is_done"), [(False, b"early\n", True), (True, b"early\nlate\n", False)]
)
def test_lines_behind_the_tail(is_followed: bool, shown: bytes, is_done: bool) -> None:
    """What is printed after the tail was found is shown to those who follow alone."""
    renderer = log_reader.Renderer(LogOptions("c", tail_lines=1, follow=is_followed))
    lines = renderer.render([T1 + b" stdout F early", T1 + b" stdout F late"])
    assert (lines, renderer.is_done) == (shown, is_done)


def pod(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"containerStatuses": [{"name": "c", "restartCount": 0, **status}]},
    }


RUNNING = {"state": {"running": {}}}
ENDED = {"terminated": {"exitCode": 1}}
BACKOFF = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ENDED}


@pytest.mark.parametrize(
    ("status", "previous", "expected"),
    [
        (RUNNING, False, 0),
        ({**RUNNING, "restartCount": 3, "lastState": ENDED}, False, 3),
        ({**RUNNING, "restartCount": 3, "lastState": ENDED}, True, 2),
        ({**BACKOFF, "restartCount": 2}, False, 2),
        ({**BACKOFF, "restartCount": 2}, True, 2),
        ({"state": ENDED, "restartCount": 1}, False, 1),
    ],
)
def test_which_start_is_meant(status: dict[str, Any], previous: bool, expected: int) -> None:
    """The start that runs, or ran last; with `previous` the one before it."""
    assert log_reader.start_number(pod(**status), LogOptions("c", previous=previous)) == expected


@pytest.mark.parametrize(
    ("status", "options", "message"),
    [
        (RUNNING, LogOptions("x"), "container x is not valid for pod web"),
        (
            {"state": {"waiting": {"reason": "ContainerCreating"}}},
            LogOptions("c"),
            'container "c" in pod "web" is waiting to start: ContainerCreating',
        ),
        (RUNNING, LogOptions("c", previous=True), 'previous terminated container "c" in pod "web" not found'),
    ],
)
def test_logs_that_are_not_there(status: dict[str, Any], options: LogOptions, message: str) -> None:
    """400 with the API server's sentence."""
    with pytest.raises(StatusError) as caught:
        log_reader.start_number(pod(**status), options)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)


class Logs:
    """A log book with small files, and the reader over it."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self.threads = ThreadPool()
        self.paths = NodePaths(root)
        self.book = ContainerLogManager(self.threads, SystemClock(), max_bytes=max_bytes)
        self.reader = NodeLogs(self.threads, self.book, self.paths, SystemClock())

    def open(self) -> ContainerLog:
        return self.book.open(self.paths.log("u1", "c", 0))

    async def read(self, **options: Any) -> bytes:
        return b"".join([chunk async for chunk in self.reader.stream(pod(**RUNNING), LogOptions("c", **options))])

    def files(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in sorted(self.paths.logs("u1", "c").iterdir())}


@pytest.fixture
async def logs(tmp_path: Path) -> AsyncIterator[Logs]:
    found = Logs(tmp_path, max_bytes=10_000)
    yield found
    found.threads.close()


async def test_what_was_printed_is_read_back(logs: Logs) -> None:
    """Both streams in order, an unfinished last line as it is; the file is private."""
    log = logs.open()
    log.feed("stdout", b"one\ntwo\n")
    log.feed("stderr", b"oops\n")
    log.feed("stdout", b"end")
    await logs.book.close(log)
    assert await logs.read() == b"one\ntwo\noops\nend"
    assert logs.paths.log("u1", "c", 0).stat().st_mode & 0o777 == 0o600


async def test_a_log_is_bounded(logs: Logs) -> None:
    """Two files of the limit at most, with the newest lines; a reader sees both in order."""
    log = logs.open()
    for number in range(1000):
        log.feed("stdout", f"line {number}\n".encode())
        if number % 50 == 0:
            await log.wait_for_change(log.version)
    await logs.book.close(log)
    sizes = logs.files()
    assert set(sizes) == {"0.log", "0.log.1"}
    assert max(sizes.values()) <= 10_000
    shown = (await logs.read()).decode().splitlines()
    assert shown == [f"line {number}" for number in range(1000 - len(shown), 1000)]
    assert len(shown) > 200


@pytest.mark.parametrize("lines", [0, 1, 2, 3, 150, 299, 300, 301, 1000])
async def test_the_tail(logs: Logs, lines: int) -> None:
    """The last lines, also where they lie in two files."""
    log = logs.open()
    for number in range(300):
        log.feed("stdout", f"line {number}\n".encode())
        if number == 200:
            await log.wait_for_change(log.version)
    await logs.book.close(log)
    assert len(logs.files()) == 2
    shown = (await logs.read(tail_lines=lines)).decode().splitlines()
    assert shown == [f"line {number}" for number in range(300)][-lines or 300 :]


async def test_limits_and_times(logs: Logs) -> None:
    """limitBytes cuts, sinceTime leaves out what is older."""
    log = logs.open()
    log.feed("stdout", b"old\n")
    await log.wait_for_change(0)
    since_ns = SystemClock().now_ns()
    log.feed("stdout", b"new\n")
    await logs.book.close(log)
    assert await logs.read(limit_bytes=6) == b"old\nne"
    assert await logs.read(since_ns=since_ns) == b"new\n"
    assert len(await logs.read(timestamps=True)) == len(b"old\nnew\n") + 2 * 31


async def test_following(logs: Logs) -> None:
    """A follower gets what comes, across rotations, until the container has ended."""
    log = logs.open()
    log.feed("stdout", b"first\n")
    seen = bytearray()

    async def follow() -> None:
        async for chunk in logs.reader.stream(pod(**RUNNING), LogOptions("c", follow=True)):
            seen.extend(chunk)

    task = asyncio.create_task(follow())
    expected = ["first"]
    for number in range(2000):
        log.feed("stdout", f"line {number}\n".encode())
        expected.append(f"line {number}")
        if number % 100 == 0:
            await log.wait_for_change(log.version)
            await asyncio.sleep(0.005)
    await logs.book.close(log)
    async with asyncio.timeout(WITHIN_S):
        await task
    assert seen.decode().splitlines() == expected


async def test_no_log_yet_reads_as_empty(logs: Logs) -> None:
    """A container that printed nothing has an empty log."""
    assert await logs.read() == b""


async def test_a_full_log_tells_its_reader(logs: Logs) -> None:
    """More than a mebibyte that waits for the disk is enough; room is told when it was written."""
    log, rooms = logs.open(), []
    log.on_room = lambda: rooms.append(True)
    log.feed("stdout", b"x" * 1023 + b"\n")
    assert not log.is_full
    log.feed("stdout", (b"x" * 1023 + b"\n") * 1100)
    assert log.is_full
    await log.wait_for_change(log.version)
    assert rooms
    assert not log.is_full
    await logs.book.close(log)


async def test_a_disk_that_refuses_costs_the_log_alone(logs: Logs, caplog: pytest.LogCaptureFixture) -> None:
    """The write fails, it is reported once, and the container goes on."""
    logs.paths.root.joinpath("pods").write_text("in the way")
    log = logs.open()
    for _ in range(3):
        log.feed("stdout", b"lost\n")
        await log.wait_for_change(log.version)
    await logs.book.close(log)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_only_the_last_start_is_kept_beside_the_present_one(tmp_path: Path) -> None:
    """Of a container that crashes for ever, two logs stay (each with its rotated part)."""
    for name in ("0.log", "1.log", "1.log.1", "2.log", "10.log", "notes"):
        (tmp_path / name).write_text("")
    rotated_files.remove_older(tmp_path / "3.log")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10.log", "2.log", "notes"]
