"""What `podscaler` says to wrong use: one sentence, exit status 2, nothing damaged."""

import contextlib
import functools
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from up_process import Up, eventually, process_exists

from patience import COMMAND_WITHIN_S, WITHIN_S

pytestmark = [pytest.mark.e2e]


def podscaler(*args: str) -> tuple[int, str]:
    """Exit status and last line on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "podscaler", *args], capture_output=True, text=True, timeout=COMMAND_WITHIN_S
    )
    return done.returncode, done.stderr.strip().rpartition("\n")[2]


def test_unknown_flags_are_named() -> None:
    """A flag that does not exist."""
    assert podscaler("up", "--no-such-flag") == (2, "Error: No such option '--no-such-flag'.")


@pytest.mark.slow
def test_bad_values_are_named(tmp_path: Path) -> None:
    """A duration that is none."""
    status, said = podscaler("up", "--data-dir", str(tmp_path), "--horizontal-pod-autoscaler-sync-period=soon")
    assert status == 2
    assert "horizontal-pod-autoscaler-sync-period" in said
    assert "soon" in said


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    """Somebody else listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, said = podscaler("up", "--data-dir", str(tmp_path / "data"), "--port", str(port))
    assert status == 2
    assert str(port) in said


def test_a_data_dir_in_use_is_named(fresh_up: Up) -> None:
    """A second `up` on the same directory refuses, and the first goes on."""
    fresh_up.start()
    status, said = podscaler("up", "--data-dir", str(fresh_up.data_dir))
    assert status == 2
    assert str(fresh_up.data_dir) in said
    assert fresh_up.get("/readyz") == "ok"


@pytest.mark.slow
def test_a_newer_data_dir_is_left_alone(fresh_up: Up) -> None:
    """A database of a later version is refused and not touched."""
    fresh_up.start()
    assert fresh_up.stop() == 0
    path = fresh_up.data_dir / "objects.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    status, said = podscaler("up", "--data-dir", str(fresh_up.data_dir))
    assert status == 2
    assert "newer" in said
    assert path.read_bytes() == before


@pytest.mark.slow
def test_an_unreadable_kubeconfig_is_named(tmp_path: Path) -> None:
    """`controller` needs a kubeconfig that can be read."""
    status, said = podscaler("controller", "--kubeconfig", str(tmp_path / "missing"))
    assert status == 2
    assert str(tmp_path / "missing") in said


def address_block(up: Up) -> str:
    """The loopback addresses that this `up` has claimed, once its node says so."""
    return str(up.node()["spec"]["podCIDR"])


@pytest.mark.slow
def test_two_at_once_do_not_meet(tmp_path: Path) -> None:
    """Two `up`s on directories of their own have ports and address blocks of their own."""
    first, second = Up(tmp_path / "one"), Up(tmp_path / "two")
    try:
        blocks = {address_block(instance.start()) for instance in (first, second)}
        assert len(blocks) == 2
    finally:
        for instance in (first, second):
            if instance.process is not None:
                instance.stop()


@pytest.mark.slow
def test_a_damaged_data_dir_is_named(fresh_up: Up) -> None:
    """A database whose header is well but whose tables are not: a sentence with its path, and it is left as it is."""
    fresh_up.start()
    assert fresh_up.stop() == 0
    path = fresh_up.data_dir / "objects.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    before = path.read_bytes()
    status, said = podscaler("up", "--data-dir", str(fresh_up.data_dir))
    assert (status, said.partition(": ")[2].partition(":")[0]) == (2, f"{path} cannot be read as a store of objects")
    assert path.read_bytes() == before


def test_a_lost_database_is_named_and_replaced_on_demand(fresh_up: Up) -> None:
    """`up` begins no empty cluster by itself where there was one; with --new-cluster it does, with the same token."""
    fresh_up.start()
    assert fresh_up.stop() == 0
    path, token = fresh_up.data_dir / "objects.sqlite", (fresh_up.data_dir / "token").read_bytes()
    path.unlink()
    status, said = podscaler("up", "--data-dir", str(fresh_up.data_dir))
    assert (status, said.partition(" (")[0]) == (
        2,
        f"podscaler: {path} is missing or empty, but this data directory had a cluster",
    )
    fresh_up.flags = (*fresh_up.flags, "--new-cluster")
    fresh_up.start()
    assert fresh_up.get("/readyz") == "ok"
    assert (fresh_up.data_dir / "token").read_bytes() == token


def test_a_data_dir_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """What fails after the database was opened is a sentence too."""
    (tmp_path / "address-block").mkdir()
    status, said = podscaler("up", "--data-dir", str(tmp_path))
    assert (status, said) == (2, f"podscaler: the data directory {tmp_path} cannot be used: Is a directory")


def test_the_data_dir_is_for_its_owner_alone(fresh_up: Up) -> None:
    """Every file that is kept is 0600, every folder and program 0700, whatever the umask."""
    fresh_up.start(umask=0)
    eventually((fresh_up.data_dir / "node" / "node").exists)

    # the node's first look around uses a folder that goes again
    eventually(lambda: too_open(fresh_up.data_dir), until=lambda found: found == {})


def too_open(folder: Path) -> dict[str, str]:
    """Paths and modes of what is open to more than its owner, except links and what goes meanwhile."""
    found = {}
    for place, _, names in os.walk(folder):
        for path in (Path(place), *(Path(place, name) for name in names)):
            with contextlib.suppress(FileNotFoundError):
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):  # to a program of the machine
                    continue
                runs = stat.S_ISDIR(mode) or path.parent.name == "programs"
                if stat.S_IMODE(mode) != (0o700 if runs else 0o600):
                    found[str(path)] = oct(mode)
    return found


@pytest.mark.slow
def test_closed_standard_input_does_no_harm(fresh_up: Up) -> None:
    """Started without descriptor 0, as some supervisors do: it runs, and ends as ever."""
    fresh_up.start(preexec_fn=functools.partial(os.close, 0))
    assert fresh_up.get("/readyz") == "ok"
    assert fresh_up.stop() == 0


def test_what_up_prints_can_be_pasted(tmp_path: Path) -> None:
    """A data directory with a space in its name is quoted in the line that sets KUBECONFIG."""
    up = Up(tmp_path / "my data")
    try:
        up.start()
        assert up.process is not None
        assert up.process.stdout is not None
        assert up.process.stdout.readline() == f"export KUBECONFIG='{tmp_path}/my data/kubeconfig'\n"
    finally:
        assert up.stop() == 0


def test_a_closed_terminal_ends_everything(fresh_up: Up) -> None:
    """SIGHUP is as good as SIGTERM: no pod outlives the terminal in which `up` was started."""
    fresh_up.start()
    command = ["/bin/sh", "-c", "trap '' HUP; while :; do sleep 1; done"]
    container = {"name": "c", "image": "any", "command": command}
    pods = "/api/v1/namespaces/default/pods"
    fresh_up.create(pods, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    eventually(lambda: fresh_up.get(f"{pods}/p")["status"].get("phase"), until="Running".__eq__)
    [record] = eventually(lambda: [p for p in (fresh_up.data_dir / "node" / "processes").iterdir() if p.read_text()])
    pid = json.loads(record.read_text())["pid"]
    assert fresh_up.process is not None
    fresh_up.process.send_signal(signal.SIGHUP)
    assert fresh_up.process.wait(timeout=WITHIN_S) == 0
    assert not process_exists(pid)


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow), pytest.param(signal.SIGHUP, id="SIGHUP")],
)
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """Its control plane, its pods and its folder go with it."""
    command = [sys.executable, "-m", "podscaler", "demo"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as demo:
        assert demo.stdout is not None
        assert "podscaler is up" in demo.stdout.readline()
        started = psutil.Process(demo.pid).children(recursive=True)
        demo.send_signal(number)
        assert demo.wait(timeout=WITHIN_S) == 1
    assert list(tmp_path.glob("podscaler-demo-*")) == []
    assert started
    assert [process for process in started if process_exists(process.pid)] == []
