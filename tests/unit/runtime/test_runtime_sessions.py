"""Commands with streams, containers' consoles and descriptors, with real pipes, terminals and short programs."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from patience import WITHIN_S
from podscaler.controlplane.kubelet.containers import exec_session
from podscaler.controlplane.kubelet.containers.exec_session import ExecSession
from podscaler.controlplane.kubelet.launching import container_config
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig
from podscaler.controlplane.kubelet.logs import container_streams
from podscaler.controlplane.kubelet.logs.container_log import ContainerLogManager
from podscaler.controlplane.kubelet.logs.container_streams import ContainerStreams
from podscaler.controlplane.kubelet.processes import process_identity
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.descriptors import DescriptorReader, DescriptorWriter
from podscaler.controlplane.registry.pod_connections import SessionFailure, SessionStreams
from podscaler.testing import VirtualClock

ALL = SessionStreams(stdin=True, stdout=True, stderr=True)
OUT = SessionStreams(stdout=True)


@pytest.fixture
def threads() -> Iterator[ThreadPool]:
    """The node's threads."""
    found = ThreadPool()
    yield found
    found.close()


@asynccontextmanager
async def command(threads: ThreadPool, options: SessionStreams, *argv: str) -> AsyncIterator[ExecSession]:
    """A command as a client runs it."""
    launch = ContainerConfig(argv=("unused",), env={"PATH": "/usr/bin:/bin"}, cwd="/")
    spec = container_config.exec_spec(launch, argv, pid=0, tty=options.tty)
    session = await exec_session.start(spec, threads, options)
    try:
        async with asyncio.timeout(WITHIN_S):
            yield session
    finally:
        await session.close()


async def everything(chunks: AsyncIterator[bytes]) -> bytes:
    """All of a stream."""
    return b"".join([chunk async for chunk in chunks])


async def test_command_with_all_streams(threads: ThreadPool) -> None:
    """Input, output and errors are apart; the exit status is the command's."""
    async with command(threads, ALL, "sh", "-c", "cat; echo oh >&2; exit 3") as session:
        await session.write(b"hello")
        await session.end_input()
        found = await everything(session.stdout()), await everything(session.stderr()), await session.wait()
    assert found == (b"hello", b"oh\n", 3)


async def test_large_input_waits_for_its_reader(threads: ThreadPool) -> None:
    """A command takes as much as it reads, and gives it back as it was."""
    content = os.urandom(1 << 20)
    async with command(threads, ALL, "cat") as session:
        writing = asyncio.ensure_future(session.write(content))
        await asyncio.sleep(0)
        assert not writing.done()
        reading = asyncio.ensure_future(everything(session.stdout()))
        await writing
        await session.end_input()
        assert await reading == content


async def test_command_that_ends_without_reading(threads: ThreadPool) -> None:
    """Input that nobody reads any more is dropped."""
    async with command(threads, ALL, "true") as session:
        await session.wait()
        await session.write(bytes(1 << 20))


async def test_output_left_open_by_a_child(threads: ThreadPool) -> None:
    """The stream ends with the command, even if a process in another session holds it."""
    script = (
        f"{sys.executable} -c 'import os, time; os.setsid(); print(1, flush=True); time.sleep(60)' & read x; exit 0"
    )
    async with command(threads, SessionStreams(stdin=True, stdout=True), "sh", "-c", script) as session:
        output = session.stdout()
        assert await anext(output) == b"1\n"
        await session.end_input()
        assert await anext(output, b"end") == b"end"


async def test_signal_as_exit_status(threads: ThreadPool) -> None:
    """A command that a signal ended has 128 and its number."""
    async with command(threads, OUT, "sh", "-c", "kill -9 $$") as session:
        assert await session.wait() == 137


async def test_close_kills_the_process_group(threads: ThreadPool) -> None:
    """A session that is closed takes all processes of its group along."""
    async with command(threads, OUT, "sh", "-c", "sleep 60 & echo $!; wait") as session:
        child = int(await anext(session.stdout()))
    async with asyncio.timeout(WITHIN_S):
        while process_identity.start_mark(child) is not None:  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.01)


async def test_terminal(threads: ThreadPool) -> None:
    """With a terminal everything is one stream, which has a size and is the command's controlling terminal."""
    options = SessionStreams(stdin=True, stdout=True, tty=True)
    script = "read x; stty size; echo $TERM; echo oh >&2; : < /dev/tty && echo mine"
    async with command(threads, options, "sh", "-c", script) as session:
        session.resize(91, 17)
        await session.write(b"go\n")
        output = await everything(session.stdout())
        assert await session.wait() == 0
    assert output == b"go\r\n17 91\r\nxterm\r\noh\r\nmine\r\n"


async def test_program_that_is_not_there(threads: ThreadPool) -> None:
    """What cannot be started is a failure with the reason; nothing stays open."""
    before = os.listdir("/proc/self/fd")
    for options in (ALL, SessionStreams(stdin=True, stdout=True, tty=True)):
        with pytest.raises(SessionFailure, match="executable file not found"):
            async with command(threads, options, "no-such-program"):
                pass
    assert len(os.listdir("/proc/self/fd")) <= len(before) + 1


async def test_argument_that_no_program_can_have(threads: ThreadPool) -> None:
    """A zero byte in an argument is a failure, with a terminal and without."""
    for options in (OUT, SessionStreams(stdout=True, tty=True)):
        with pytest.raises(SessionFailure, match="embedded null byte"):
            async with command(threads, options, "echo", "a\0b"):
                pass


async def test_closing_wakes_readers_and_writers() -> None:
    """Who waits for a descriptor that is closed is told the end."""
    reading, writing = os.pipe()
    reader, writer = DescriptorReader(reading), DescriptorWriter(writing)
    read = asyncio.ensure_future(everything(reader.chunks()))
    await asyncio.sleep(0)
    reader.close()
    assert await read == b""
    await writer.write(b"x")
    assert writer.is_closed


@pytest.fixture
async def attached(tmp_path: Path, threads: ThreadPool) -> AsyncIterator[tuple[ContainerStreams, DescriptorReader]]:
    """A console with an input, and the container's end of that."""
    book = ContainerLogManager(threads, VirtualClock(), max_bytes=1 << 20)
    theirs, ours = os.pipe()
    reader = DescriptorReader(theirs)
    made = ContainerStreams(book.open(tmp_path / "0.log"), stdin=DescriptorWriter(ours))
    yield made, reader
    made.close()
    reader.close()


async def test_everyone_who_is_attached(attached: tuple[ContainerStreams, DescriptorReader]) -> None:
    """Two clients see what is printed from then on; one that asks for errors alone sees those."""
    made, _ = attached
    first = made.attach(ALL, stdin_once=False)
    made.feed("stdout", b"1")
    second = made.attach(SessionStreams(stderr=True), stdin_once=False)
    made.feed("stdout", b"2")
    made.feed("stderr", b"3")
    made.close()
    found = [await everything(chunks) for chunks in (first.stdout(), first.stderr(), second.stdout(), second.stderr())]
    assert found == [b"12", b"3", b"", b"3"]
    assert await first.wait() == 0


async def test_client_that_is_behind(attached: tuple[ContainerStreams, DescriptorReader]) -> None:
    """A client that does not read makes the container wait, until it reads or leaves."""
    made, _ = attached
    rooms: list[bool] = []
    made.on_room = lambda: rooms.append(made.is_full)
    session = made.attach(OUT, stdin_once=False)
    made.feed("stdout", bytes(container_streams.PENDING_MAX_BYTES))
    assert made.is_full
    await session.close()
    assert (made.is_full, rooms) == (False, [False])


async def test_input_that_ends_once(attached: tuple[ContainerStreams, DescriptorReader]) -> None:
    """With `stdinOnce` the container's input ends with the first client that leaves."""
    made, container = attached
    session = made.attach(ALL, stdin_once=True)
    await session.write(b"hello")
    await session.close()
    assert await everything(container.chunks()) == b"hello"


async def test_input_that_goes_on(attached: tuple[ContainerStreams, DescriptorReader]) -> None:
    """Without, a client whose input ends is let go of, and the next one goes on."""
    made, container = attached
    first = made.attach(ALL, stdin_once=False)
    await first.write(b"one ")
    await first.end_input()
    assert await first.wait() == 0
    await first.close()
    second = made.attach(ALL, stdin_once=False)
    await second.write(b"two")
    made.close()
    assert await everything(container.chunks()) == b"one two"
