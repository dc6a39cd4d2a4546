"""An API server under a mixed load that is killed by SIGKILL every few seconds and started again on the same data.

Ten seconds of it in `make test-all`; `make e2e` has sixty (PODSCALER_CHURN_S). Writers write, 200 watchers resume from
what they saw last, and afterwards every acknowledged write must be found in what every watcher was told, once and in
order.
"""

import asyncio
import os
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import aiohttp
import pytest
from churn_watchers import History, Watcher
from churn_writers import Access, Ledger, Writer, path_of
from up_process import Up

from patience import WITHIN_S

CHURN_S = float(os.environ.get("PODSCALER_CHURN_S", "10"))
NAMESPACES = ("churn-a", "churn-b", "churn-c", "churn-d")
WRITERS = 8
WATCHERS = 200
EVERYWHERE = 40
LIFE_MIN_S, LIFE_MAX_S = 1.0, 4.0


@dataclass
class Churn:
    """What is at work, and what came of it.

    Attributes:
        access: how to reach the server; the same after every start.
        restarts_s: from each kill until the server was ready again.
    """

    up: Up
    access: Access
    ledger: Ledger = field(default_factory=Ledger)
    history: History = field(default_factory=dict)
    watchers: list[Watcher] = field(default_factory=list)
    restarts_s: list[float] = field(default_factory=list)

    def faults(self) -> list[str]:
        """All that must not be."""
        return [*self.ledger.faults, *(fault for watcher in self.watchers for fault in watcher.faults)]


async def kill_and_restart(churn: Churn) -> None:
    """Kill the server every few seconds until the time is up; it is running afterwards."""
    random = Random(5)
    ends_s = time.monotonic() + CHURN_S
    while time.monotonic() < ends_s:
        await asyncio.sleep(random.uniform(LIFE_MIN_S, LIFE_MAX_S))
        begun_s = time.monotonic()
        await asyncio.to_thread(churn.up.kill)
        await asyncio.to_thread(churn.up.start)
        churn.restarts_s.append(time.monotonic() - begun_s)


@contextmanager
def writing(churn: Churn) -> Iterator[None]:
    """Have writers write meanwhile; raises what a writer raised."""
    stop = threading.Event()
    writers = [Writer(churn.access, NAMESPACES[i % len(NAMESPACES)], i, churn.ledger) for i in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(writer.run, stop) for writer in writers]
        try:
            yield
        finally:
            stop.set()
    for each in running:
        each.result()


async def told_to_the_end(churn: Churn) -> None:
    """Return when every watcher has seen the last change in its namespace."""
    ends = {}
    for name in NAMESPACES:
        made = await asyncio.to_thread(churn.up.create, path_of(name), {"metadata": {"name": "end"}})
        ends[name] = ends[""] = int(made["metadata"]["resourceVersion"])
    async with asyncio.timeout(WITHIN_S):
        while any(watcher.last < ends[watcher.namespace] for watcher in churn.watchers):  # noqa: ASYNC110 - a poll with a deadline
            await asyncio.sleep(0.05)


async def run(churn: Churn) -> None:
    """The whole load, until everything has been told."""
    limits = aiohttp.ClientTimeout(total=None, sock_connect=WITHIN_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=limits) as session:
        following = [asyncio.create_task(watcher.run(session, churn.access)) for watcher in churn.watchers]
        try:
            with writing(churn):
                await kill_and_restart(churn)
            await told_to_the_end(churn)
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


def begin(up: Up) -> Churn:
    """The namespaces, and the watchers from now on."""
    churn = Churn(up, up._access())
    revisions = [
        int(up.create("/api/v1/namespaces", {"metadata": {"name": name}})["metadata"]["resourceVersion"])
        for name in NAMESPACES
    ]
    for index in range(WATCHERS):
        namespace = "" if index < EVERYWHERE else NAMESPACES[index % len(NAMESPACES)]
        churn.watchers.append(Watcher(namespace, revisions[-1], churn.history))
    return churn


def revisions(history: History, namespace: str) -> list[int]:
    """What a watcher of a namespace (empty: all) must have been told, in order."""
    return sorted(revision for revision, seen in history.items() if namespace in ("", seen.namespace))


def lost_writes(churn: Churn) -> list[str]:
    """Acknowledged writes that nobody was told of as they were acknowledged."""
    deleted = {seen.uid for seen in churn.history.values() if seen.type == "DELETED"}
    lost = []
    for write in churn.ledger.acknowledged:
        known = write.known
        if write.verb == "delete":
            is_there = known.uid in deleted
        else:
            seen = churn.history.get(known.revision)
            is_there = seen is not None and (seen.key, seen.uid, seen.serial) == (write.key, known.uid, known.serial)
        if not is_there:
            lost.append(str(write))
    return lost


def replayed(churn: Churn) -> dict[str, tuple[str, int]]:
    """Serial and revision of each ConfigMap as the history ends."""
    state: dict[str, tuple[str, int]] = {}
    for revision, seen in sorted(churn.history.items()):
        if seen.type == "DELETED":
            del state[seen.key]
        else:
            state[seen.key] = (seen.serial, revision)
    return state


def stored(up: Up) -> dict[str, tuple[str, int]]:
    """The same, as the server lists it."""
    found = {}
    for item in up.get("/api/v1/configmaps")["items"]:
        metadata = item["metadata"]
        if metadata["namespace"] in NAMESPACES:
            serial = item.get("data", {}).get("serial", "")
            found[f"{metadata['namespace']}/{metadata['name']}"] = (serial, int(metadata["resourceVersion"]))
    return found


def report(churn: Churn) -> str:
    """The figures."""
    ledger = churn.ledger
    restarts = f"{statistics.median(churn.restarts_s):.1f} s, at most {max(churn.restarts_s):.1f} s"
    return (
        f"\nchurn of {CHURN_S:.0f} s: {len(churn.restarts_s)} kills, {len(ledger.acknowledged)} writes acknowledged "
        f"{ledger.counts()}, {len(ledger.unanswered)} never answered ({sum(ledger.unanswered)} of them happened), "
        f"{len(churn.history)} events told {sum(len(each.told) for each in churn.watchers)} times to {WATCHERS} "
        f"watchers, {sum(each.watches - 1 for each in churn.watchers)} resumes; ready again after {restarts}"
    )


@pytest.mark.slow
async def test_kills_under_load_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No acknowledged write is lost by kill -9, and each watcher is told every change exactly once, in order."""
    up = Up(tmp_path / "data", ("--api-only",))
    await asyncio.to_thread(up.start)
    try:
        churn = await asyncio.to_thread(begin, up)
        await run(churn)
        with capsys.disabled():
            print(report(churn))
        assert churn.faults() == []
        assert lost_writes(churn) == []
        for watcher in churn.watchers:
            assert watcher.told == revisions(churn.history, watcher.namespace)
        assert replayed(churn) == stored(up)
        assert churn.ledger.acknowledged
        assert churn.restarts_s
    finally:
        assert await asyncio.to_thread(up.stop) == 0, up.log.read_text()
