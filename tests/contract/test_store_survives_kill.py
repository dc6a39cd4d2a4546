"""kill -9 at any time: nothing that was acknowledged is lost, and watches resume where they were."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from patience import WITHIN_S
from podscaler.base.clock import SystemClock
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.store import open_store
from podscaler.testing.kinds import KINDS

GADGETS = "gadgets.example.com"
VICTIM = Path(__file__).with_name("store_victim.py")
ROUNDS = 4
LIFE_S = 0.25


def written_until_killed(directory: Path, turn: int) -> list[tuple[str, int, int]]:
    """Name, size and revision of each write that a process acknowledged before it was killed in full swing."""
    victim = subprocess.Popen([sys.executable, str(VICTIM), str(directory), str(turn)], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    os.set_blocking(victim.stdout.fileno(), False)
    text, born_at, first_at = b"", time.monotonic(), 0.0
    while not first_at or time.monotonic() - first_at < LIFE_S:
        assert time.monotonic() - born_at < WITHIN_S, "the victim never wrote"
        assert victim.poll() is None, "the victim died by itself"
        text += victim.stdout.read() or b""
        first_at = first_at or (time.monotonic() if text else 0.0)
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    os.set_blocking(victim.stdout.fileno(), True)
    text += victim.stdout.read()
    victim.stdout.close()
    lines = [line.split() for line in text.decode().splitlines(keepends=True) if line.endswith("\n")]
    return [(name, int(size), int(revision)) for name, size, revision in lines]


async def test_kill_9_loses_no_acknowledged_write(tmp_path: Path) -> None:
    """After each of several kills, every acknowledged version is there, and a watch tells each change exactly once."""
    acknowledged: list[tuple[str, int, int]] = []
    for turn in range(ROUNDS):
        acknowledged += written_until_killed(tmp_path / "data", turn)
        store = await open_store(tmp_path / "data", SystemClock())
        objects = Objects(store, KINDS)
        watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(store.log.compacted_revision)))
        told: dict[int, tuple[str, int]] = {}
        while watch.revision < store.revision:
            for event in (await watch.batch()).events:
                assert event.entry.revision not in told
                told[event.entry.revision] = (event.entry.name, event.entry.decode()["spec"]["size"])
        await store.close()
        assert acknowledged
        expected = {
            revision: (name, size) for name, size, revision in acknowledged if revision > store.log.compacted_revision
        }
        assert {revision: told[revision] for revision in expected} == expected
        newest = {name: size for name, size, _ in acknowledged}
        found = {entry.name: entry.decode()["spec"]["size"] for entry in objects.list(GADGETS).entries}
        assert {name: found[name] >= size for name, size in newest.items()} == dict.fromkeys(newest, True)
        assert sorted(told) == list(told)
