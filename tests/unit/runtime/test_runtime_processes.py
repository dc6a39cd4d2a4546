"""Real processes: starting, ending, running commands, private mounts, and what is left over."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import prerequisites
from patience import WITHIN_S
from podscaler.controlplane.kubelet.launching import capabilities, container_config
from podscaler.controlplane.kubelet.launching.container_config import ContainerConfig, ContainerUser, Mount
from podscaler.controlplane.kubelet.probes import exec_check
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome
from podscaler.controlplane.kubelet.processes import process_identity, processes
from podscaler.controlplane.kubelet.processes.background import ThreadPool
from podscaler.controlplane.kubelet.processes.processes import ProcessSpec, StartFailure
from podscaler.controlplane.kubelet.processes.streams import ChildStreams

SHELL = ("/bin/sh", "-c")
ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
async def threads() -> AsyncIterator[ThreadPool]:
    found = ThreadPool()
    yield found
    found.close()


async def run(spec: ProcessSpec, threads: ThreadPool) -> tuple[int, str]:
    """Return code and output."""
    reader, writer = os.pipe()
    try:
        try:
            process = await processes.start(spec, threads, ChildStreams(stdout=writer, stderr=writer))
        finally:
            os.close(writer)
        async with asyncio.timeout(WITHIN_S):
            code = await process.exited
        return code, os.read(reader, 1 << 16).decode()
    finally:
        os.close(reader)


def shell(text: str, **fields: Any) -> ProcessSpec:
    return ProcessSpec(argv=(*SHELL, text), env={**ENV, **fields.pop("env", {})}, cwd=fields.pop("cwd", "/"), **fields)


async def test_a_process_in_a_session_of_its_own(threads: ThreadPool) -> None:
    """Environment and folder are the given ones alone; pid, group and session are one number."""
    found = await run(shell("pwd; env | sort; ps -o pid=,pgid=,sid= -p $$", env={"A": "1"}, cwd="/usr"), threads)
    lines = found[1].splitlines()
    assert (found[0], lines[0]) == (0, "/usr")
    assert {"A=1", "PATH=/usr/bin:/bin"} <= set(lines)
    assert not any(line.startswith(("HOME=", "PYTEST")) for line in lines)
    assert len(set(lines[-1].split())) == 1


async def test_the_umask_is_the_usual_one(threads: ThreadPool) -> None:
    """Files that a container makes can be read by others, even if those of `up` cannot."""
    former = os.umask(0o077)
    try:
        assert await run(shell("umask"), threads) == (0, "0022\n")
    finally:
        os.umask(former)


@pytest.mark.parametrize(("text", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -15 $$", -15)])
async def test_return_codes(threads: ThreadPool, text: str, code: int) -> None:
    """Exit status, or minus the signal."""
    assert (await run(shell(text), threads))[0] == code


async def test_ends_are_seen_without_pidfds(threads: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine has no pidfd (macOS), a waiting thread sees the end; without waitid too."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert (await run(shell("sleep 1000 & exit 7"), threads))[0] == 7
    monkeypatch.delattr(os, "waitid", raising=False)
    assert (await run(shell("sleep 1000 & kill -9 $$"), threads))[0] == -9


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ProcessSpec(("no-such-program",), ENV, "/"), 'exec: "no-such-program": executable file not found in $PATH'),
        (ProcessSpec(("/podscaler-test/none",), ENV, "/"), 'exec: "/podscaler-test/none": no such file or directory'),
        (ProcessSpec(("/etc/passwd",), ENV, "/"), 'exec: "/etc/passwd": permission denied'),
        (
            ProcessSpec(("true",), ENV, "/podscaler-test/nowhere"),
            'the working directory "/podscaler-test/nowhere" does not exist on this machine',
        ),
        (ProcessSpec(("a\0b",), ENV, "/"), 'exec: "a\0b": embedded null byte'),
    ],
    ids=["not in PATH", "no such file", "not executable", "no such folder", "NUL"],
)
async def test_processes_that_cannot_start(threads: ThreadPool, spec: ProcessSpec, message: str) -> None:
    """A sentence for the status; nothing is left running."""
    with pytest.raises(StartFailure) as caught:
        await run(spec, threads)
    assert str(caught.value) == message


async def test_the_group_dies_with_its_leader(threads: ThreadPool) -> None:
    """As in a container, nothing survives the main process."""
    code, output = await run(shell("sleep 1000 & echo $!"), threads)
    assert code == 0
    assert await gone(int(output))


async def gone(pid: int) -> bool:
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        if process_identity.start_mark(pid) is None:
            return True
        await asyncio.sleep(0.02)
    return False


async def test_a_signal_for_the_group(threads: ThreadPool) -> None:
    """signal_group reaches children too, and a process that has ended is left alone."""
    reader, writer = os.pipe()
    process = await processes.start(
        shell("sleep 1000 & echo $!; wait"), threads, ChildStreams(stdout=writer, stderr=writer)
    )
    os.close(writer)
    child = int(await threads.run(os.read, reader, 100))
    process.signal_group(signal.SIGTERM)
    assert await process.exited == -signal.SIGTERM
    process.signal_group(signal.SIGTERM)
    assert await gone(child)
    os.close(reader)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo out; echo err >&2", HandlerOutcome(True, "out\nerr")),
        ("echo no; exit 3", HandlerOutcome(False, "no")),
        ("exit 3", HandlerOutcome(False, "the command ended with exit status 3")),
        ("true", HandlerOutcome(True)),
    ],
)
async def test_commands_in_a_container(threads: ThreadPool, text: str, expected: HandlerOutcome) -> None:
    """Exit status 0 is a success; what was printed is the explanation."""
    assert await exec_check.run(shell(text), threads, timeout_s=WITHIN_S) == expected


async def test_a_command_that_takes_too_long(threads: ThreadPool, tmp_path: Path) -> None:
    """It is killed with its children when its time is over."""
    spec = shell("sleep 1000 & echo $! > pid; wait", cwd=str(tmp_path))
    found, timeout_s, text = HandlerOutcome(True), 0.5, ""
    while not text:  # a slow machine may need more time than that until there is a child
        found, timeout_s = await exec_check.run(spec, threads, timeout_s=timeout_s), timeout_s * 2
        text = (tmp_path / "pid").read_text() if (tmp_path / "pid").exists() else ""
    assert found == HandlerOutcome(False, f"command timed out after {timeout_s / 2:g} s")
    assert await gone(int(text))


async def test_a_command_that_prints_without_end(threads: ThreadPool) -> None:
    """Its first 10 KiB are kept."""
    found = await exec_check.run(shell("yes | head -c 1000000"), threads, timeout_s=WITHIN_S)
    assert (found.ok, len(found.text)) == (True, 10 * 1024 - 1)


async def test_a_command_that_cannot_start(threads: ThreadPool) -> None:
    """The reason is the outcome."""
    found = await exec_check.run(ProcessSpec(("no-such",), ENV, "/"), threads, timeout_s=1)
    assert found == HandlerOutcome(False, 'exec: "no-such": executable file not found in $PATH')


def mounting() -> str:
    """Why mounts cannot be tested here, empty where they can."""
    folder = Path("/tmp")
    return capabilities.detect(folder).mount_error


needs_mounts = prerequisites.PRIVATE_MOUNTS.mark(is_there=not mounting())


def launch(text: str, *mounts: Mount, tmp_path: Path, **fields: Any) -> ContainerConfig:
    scratch = tmp_path / "root"
    scratch.mkdir(exist_ok=True)
    return ContainerConfig(argv=(*SHELL, text), env=ENV, cwd="/", mounts=mounts, scratch=str(scratch), **fields)


@needs_mounts
async def test_private_mounts(threads: ThreadPool, tmp_path: Path) -> None:
    """Volumes appear where the pod wants them, in folders that the machine has not, and the machine does not change."""
    volume, file = tmp_path / "volume", tmp_path / "file"
    volume.mkdir()
    file.write_text("content\n")
    wanted = launch(
        "cat /new-at-root/x /etc/podscaler/deep/file; echo hi > /new-at-root/written; ls -d /etc/passwd /usr/bin; env",
        Mount(str(volume), "/new-at-root", False),
        Mount(str(file), "/etc/podscaler/deep/file", True),
        tmp_path=tmp_path,
    )
    (volume / "x").write_text("inside\n")
    code, output = await run(container_config.process_spec(wanted), threads)
    assert code == 0, output
    shown = output.splitlines()
    assert shown[:4] == ["inside", "content", "/etc/passwd", "/usr/bin"]
    assert set(shown[4:]) <= {"PATH=/usr/bin:/bin", "PWD=/", "OLDPWD=/", "SHLVL=1", "_=/usr/bin/env"}
    assert (volume / "written").read_text() == "hi\n"
    assert not os.path.exists("/new-at-root")
    assert not os.path.exists("/etc/podscaler")


@needs_mounts
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGUSR1])
async def test_signals_are_as_a_program_expects_them(
    threads: ThreadPool, tmp_path: Path, number: signal.Signals
) -> None:
    """Python ignores SIGPIPE, nohup SIGHUP, a shell SIGINT in the background; a program of a container must not."""
    (tmp_path / "v").mkdir()
    wanted = launch(
        "grep SigIgn /proc/self/status", Mount(str(tmp_path / "v"), "/new-at-root", False), tmp_path=tmp_path
    )
    former = signal.signal(number, signal.SIG_IGN)
    try:
        _, output = await run(container_config.process_spec(wanted), threads)
    finally:
        signal.signal(number, former)
    ignored = int(output.split()[1], 16) & 0x7FFF_FFFF  # signals from 32 on are the C library's own business
    assert ignored == 0


@needs_mounts
async def test_read_only_and_covering_mounts(threads: ThreadPool, tmp_path: Path) -> None:
    """A read-only volume cannot be written; a folder that exists is covered; a mount may lie in a volume."""
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    outer.mkdir()
    inner.mkdir()
    (inner / "deep").write_text("deep\n")
    wanted = launch(
        "ls /usr/share; cat /usr/share/sub/deep; touch /usr/share/sub/new || echo refused",
        Mount(str(outer), "/usr/share", False),
        Mount(str(inner), "/usr/share/sub", True),
        tmp_path=tmp_path,
    )
    code, output = await run(container_config.process_spec(wanted), threads)
    assert code == 0, output
    lines = output.splitlines()
    assert (lines[:2], lines[-1]) == (["sub", "deep"], "refused")
    assert (outer / "sub").is_dir()


@needs_mounts
async def test_a_command_beside_a_container_with_mounts(threads: ThreadPool, tmp_path: Path) -> None:
    """exec sees the container's mounts and its root."""
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "x").write_text("inside")
    wanted = launch("sleep 1000", Mount(str(volume), "/new-at-root", False), tmp_path=tmp_path)
    process = await processes.start(
        container_config.process_spec(wanted),
        threads,
        ChildStreams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    )
    try:
        spec = container_config.exec_spec(wanted, ("cat", "/new-at-root/x"), pid=process.pid)
        assert await exec_check.run(spec, threads, timeout_s=WITHIN_S) == HandlerOutcome(True, "inside")
    finally:
        process.signal_group(signal.SIGKILL)
        await process.exited


@needs_mounts
async def test_a_sub_path_is_looked_up_once(threads: ThreadPool, tmp_path: Path) -> None:
    """The launcher mounts what is in the volume; a link that was put there meanwhile leads nowhere."""
    volume = tmp_path / "volume"
    (volume / "sub").mkdir(parents=True)
    (volume / "sub" / "x").write_text("inside\n")
    wanted = launch("cat /new-at-root/x", Mount(str(volume), "/new-at-root", True, "sub"), tmp_path=tmp_path)
    assert await run(container_config.process_spec(wanted), threads) == (0, "inside\n")
    (volume / "sub").rename(volume / "former")
    (volume / "sub").symlink_to("/etc")
    with pytest.raises(StartFailure, match='the subPath "sub" cannot be opened within its volume'):
        await run(container_config.process_spec(wanted), threads)


@needs_mounts
async def test_a_target_in_a_volume_stays_there(threads: ThreadPool, tmp_path: Path) -> None:
    """A link of a volume that leads elsewhere does not make the launcher create anything there."""
    outer, inner, outside = (tmp_path / name for name in ("outer", "inner", "outside"))
    for folder in (outer, inner, outside):
        folder.mkdir()
    (outer / "link").symlink_to(outside)
    wanted = launch(
        "ls /new-at-root",
        Mount(str(outer), "/new-at-root", False),
        Mount(str(inner), "/new-at-root/link/deep", False),
        tmp_path=tmp_path,
    )
    await run(container_config.process_spec(wanted), threads)
    assert list(outside.iterdir()) == []


@needs_mounts
async def test_the_environment_is_for_the_program_alone(threads: ThreadPool, tmp_path: Path) -> None:
    """The launcher, which has the rights of `up`, is not started with it; the program gets it to the byte."""
    (tmp_path / "v").mkdir()
    env = ENV | {"LD_PRELOAD": "/no-such.so", "PYTHONPATH": "/tmp", "BYTES": "\udcff", "PODSCALER_INSTANCE": "i"}
    mount = Mount(str(tmp_path / "v"), "/new-at-root", False)
    wanted = replace(launch('echo "$BYTES $PYTHONPATH" | od -An -c', mount, tmp_path=tmp_path), env=env)
    spec = container_config.process_spec(wanted)
    assert (spec.env, "no-such" in " ".join(spec.argv)) == ({"PATH": "/usr/bin:/bin", "PODSCALER_INSTANCE": "i"}, False)
    reader, writer = os.pipe()
    process = await processes.start(spec, threads, ChildStreams(stdout=writer, stderr=subprocess.DEVNULL))
    os.close(writer)
    assert await process.exited == 0
    assert os.read(reader, 1000).split() == [b"377", *b"/ t m p".split(), b"\\n"]
    os.close(reader)


@needs_mounts
@pytest.mark.parametrize(
    ("argv", "cwd", "message"),
    [
        (("no-such",), "/", 'exec: "no-such": executable file not found in $PATH'),
        (("/etc/passwd",), "/", 'exec: "/etc/passwd": permission denied'),
        (
            ("true",),
            "/podscaler-test/nowhere",
            'the working directory "/podscaler-test/nowhere" does not exist on this machine',
        ),
    ],
)
async def test_launches_that_fail(
    threads: ThreadPool, tmp_path: Path, argv: tuple[str, ...], cwd: str, message: str
) -> None:
    """What goes wrong after the mounts were made is told as if there were none."""
    (tmp_path / "v").mkdir()
    (tmp_path / "root").mkdir()
    mount = Mount(str(tmp_path / "v"), "/new-at-root", False)
    wanted = ContainerConfig(argv=argv, env=ENV, cwd=cwd, mounts=(mount,), scratch=str(tmp_path / "root"))
    with pytest.raises(StartFailure) as caught:
        await run(container_config.process_spec(wanted), threads)
    assert str(caught.value) == message


@needs_mounts
async def test_a_file_cannot_cover_a_folder(threads: ThreadPool, tmp_path: Path) -> None:
    """The refusal names the path."""
    (tmp_path / "file").write_text("")
    wanted = launch("true", Mount(str(tmp_path / "file"), "/usr", False), tmp_path=tmp_path)
    with pytest.raises(StartFailure, match="mounting /usr: it is a directory on this machine"):
        await run(container_config.process_spec(wanted), threads)


@prerequisites.ROOT.mark(is_there=os.geteuid() == 0)
@pytest.mark.parametrize("mounts", [False, pytest.param(True, marks=needs_mounts)])
async def test_another_user(threads: ThreadPool, tmp_path: Path, mounts: bool) -> None:
    """User, group and supplementary groups are changed, with and without the launcher."""
    (tmp_path / "v").mkdir()
    wanted = launch(
        "id -u; id -g; id -G",
        *([Mount(str(tmp_path / "v"), "/new-at-root", False)] if mounts else []),
        tmp_path=tmp_path,
        user=ContainerUser(4321, 4322, (4323,)),
    )
    code, output = await run(container_config.process_spec(wanted), threads)
    assert (code, output.split()) == (0, ["4321", "4322", "4322", "4323"])


def test_a_capability_is_found_out() -> None:
    """Who we are and which ports we may bind; never an exception."""
    found = capabilities.detect(Path("/tmp"))
    assert (found.user, found.may_change_user) == (os.geteuid(), os.geteuid() == 0)
    assert found.lowest_port(None) in (1, found.unprivileged_port_start)
