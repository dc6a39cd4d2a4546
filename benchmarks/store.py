"""What the store costs: durable writes, lists, memory and watch fan-out, as a table.

    .venv/bin/python -m benchmarks.store

Pods are those of a plain Deployment, defaulted and validated as over HTTP. The disk is that of the temporary directory:
a write cannot be faster than its sync, so the row `sync of the disk` says what to compare with.
"""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

from podscaler.api.kinds import catalog
from podscaler.base.clock import SystemClock
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.options import ListOptions, UpdateOptions
from podscaler.controlplane.storage.store import Store, open_store
from podscaler.controlplane.storage.watching import EntryEvent, Subscription

Row = tuple[str, str]
STATUS = UpdateOptions(subresource="status")


def pod(name: str) -> dict[str, Any]:
    """A pod as a ReplicaSet makes it."""
    container = {
        "name": "php-apache",
        "image": "registry.k8s.io/hpa-example",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "200m"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "php-apache-5d4f", "uid": "u-1", "controller": True}
    labels = {"run": "php-apache", "pod-template-hash": "5d4f"}
    metadata = {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": "node"}}


def running(old: dict[str, Any], turn: int) -> dict[str, Any]:
    """A status as the node writes it."""
    since = f"2026-01-01T00:00:{turn:02}Z"
    names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": name, "status": "True", "lastTransitionTime": since} for name in names]
    container = {
        "name": "php-apache",
        "image": "registry.k8s.io/hpa-example",
        "containerID": "process://0123456789",
        "ready": True,
        "started": True,
        "restartCount": turn,
        "state": {"running": {"startedAt": since}},
    }
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": [container], "podIP": "127.1.0.9"}
    return {**old, "status": {**old["status"], **status}}


async def opened(directory: Path) -> tuple[Store, Objects]:
    """A new store of real kinds, with the namespace default."""
    store = await open_store(directory, SystemClock())
    objects = Objects(store, catalog.RESOURCES)
    await Registry(objects).create("namespaces", {"metadata": {"name": "default"}})
    return store, objects


async def timed(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Wall and processor seconds of some work."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - wall, time.process_time() - cpu


def sync_ms(directory: Path) -> float:
    """What one small synced write costs on this disk, median of 100."""
    handle = os.open(directory / "probe", os.O_RDWR | os.O_CREAT, 0o600)
    spans = []
    for _ in range(100):
        begun = time.perf_counter()
        os.write(handle, b"x" * 4096)
        os.fsync(handle)
        spans.append(time.perf_counter() - begun)
    os.close(handle)
    return sorted(spans)[50] * 1000


async def writes(directory: Path, writers: int, each: int) -> Row:
    """Creates of pods by some writers at once."""
    store, objects = await opened(directory)
    registry = Registry(objects)

    async def write(writer: int) -> None:
        for index in range(each):
            await registry.create("pods", pod(f"p{writer}-{index}"))

    wall_s, cpu_s = await timed(lambda: asyncio.gather(*(write(writer) for writer in range(writers))))
    await store.close()
    count = writers * each
    text = f"{count / wall_s:,.0f}/s, {wall_s / each * 1000:.2f} ms each, {cpu_s / count * 1e6:.0f} us of CPU"
    return f"durable creates, {writers} writer(s)", text


def rss_mib() -> float:
    """What this process holds."""
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 2**20


async def many_pods(directory: Path) -> list[Row]:
    """10,000 pods: memory, after updates too, lists, and a restart."""
    store, objects = await opened(directory)
    registry = Registry(objects)
    before_mib = rss_mib()
    for first in range(0, 10_000, 500):
        await asyncio.gather(*(registry.create("pods", pod(f"p{index}")) for index in range(first, first + 500)))
    created_mib = rss_mib() - before_mib

    async def update(index: int, turn: int) -> None:
        await objects.update("pods", "default", f"p{index}", lambda old: running(old, turn), options=STATUS)

    for turn in range(3):
        for first in range(0, 10_000, 500):
            await asyncio.gather(*(update(index, turn) for index in range(first, first + 500)))
    updated_mib = rss_mib() - before_mib
    size_bytes = len(objects.get("pods", "default", "p0").body)
    rows = [
        ("one running pod as JSON", f"{size_bytes:,} bytes"),
        ("memory of 10,000 pods", f"{created_mib:.0f} MiB created, {updated_mib:.0f} MiB after 3 status updates each"),
        *lists(objects),
    ]
    await store.close()
    wall_s, _ = await timed(lambda: open_store(directory, SystemClock()))
    return [*rows, ("restart with 10,000 pods", f"{wall_s * 1000:.0f} ms")]


def lists(objects: Objects) -> list[Row]:
    """Lists of 1,000 out of 10,000 pods."""

    def page() -> bytes:
        entries = objects.list("pods", options=ListOptions(limit=1000)).entries
        return b",".join(entry.body for entry in entries)

    def decoded() -> list[dict[str, Any]]:
        return [entry.decode() for entry in objects.list("pods", options=ListOptions(limit=1000)).entries]

    rows = []
    for what, work in (("bytes ready to be sent", page), ("decoded", decoded)):
        begun = time.perf_counter()
        for _ in range(10):
            work()
        rows.append((f"list of 1,000 pods, {what}", f"{(time.perf_counter() - begun) * 100:.2f} ms"))
    return rows


async def fan_out(directory: Path, watchers: int, changes: int) -> Row:
    """Changes told to many watchers, each of which asks for the encoded frame."""
    store, objects = await opened(directory)
    await Registry(objects).create("pods", pod("p"))
    encoded = 0

    def encode(event: EntryEvent) -> bytes:
        nonlocal encoded
        encoded += 1
        return b'{"type":"' + event.type.encode() + b'","object":' + event.entry.body + b"}\n"

    async def follow(watch: Subscription) -> None:
        told = 0
        while told <= changes:
            batch = await watch.batch()
            told += len(batch.events)
            for event in batch.events:
                if event.type == "MODIFIED":
                    event.encoded("v1", encode)

    followers = [asyncio.ensure_future(follow(objects.watch("pods"))) for _ in range(watchers)]
    await asyncio.sleep(0.1)

    async def change_all() -> None:
        for turn in range(changes):
            await objects.update("pods", "default", "p", lambda old, turn=turn: running(old, turn), options=STATUS)
        await asyncio.gather(*followers)

    wall_s, cpu_s = await timed(change_all)
    await store.close()
    count = watchers * changes
    text = f"{count / wall_s:,.0f} events/s, {cpu_s / count * 1e6:.1f} us of CPU each, {encoded} encodings"
    return f"{changes} changes to {watchers:,} watchers", text


async def rows_of(directory: Path) -> list[Row]:
    """All rows of the table."""
    return [
        ("sync of the disk", f"{sync_ms(directory):.2f} ms"),
        await writes(directory / "one", 1, 500),
        await writes(directory / "fifty", 50, 60),
        await fan_out(directory / "watch", 1000, 50),
        *await many_pods(directory / "many"),
    ]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        rows = asyncio.run(rows_of(Path(directory)))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
