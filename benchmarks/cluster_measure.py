"""One case with one controller: start it, let it settle, count for a while, and step some loads to see it react.

`benchmarks.cluster` calls `measure` for each case and controller in turn, on the same objects.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import msgspec
from benchmarks import cluster_objects as objects
from benchmarks import cluster_subjects as subjects
from benchmarks.cluster_metrics import Metrics
from benchmarks.cluster_objects import Layout
from benchmarks.cluster_plane import Plane
from benchmarks.cluster_subjects import Running, Series, Subject

from podscaler.base.clock import SystemClock
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client

SETTLE_LIMIT_S = 120.0
CLOCK = SystemClock()
HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/deployments"
STEPPED_MILLI = 1000


@dataclass(frozen=True)
class Case:
    """One situation.

    Attributes:
        name: for the table.
        layout: of the objects.
        subjects: the controllers, in turn.
        period_s: asked for.
        window_s: how long is counted.
        is_live: whether every sync finds other values.
        delay_s: how long the metrics APIs take to answer.
        stepped: how many autoscalers' loads are stepped afterwards.
        warm_up_s: how long nothing is counted yet once every autoscaler has been synced.
    """

    name: str
    layout: Layout
    subjects: tuple[Subject, ...]
    period_s: float = 15.0
    window_s: float = 30.0
    is_live: bool = True
    delay_s: float = 0.0
    stepped: int = 0
    warm_up_s: float = 2.0


@dataclass
class Writes:
    """When each autoscaler's status was written, as a watch tells."""

    gaps_s: list[float] = field(default_factory=list)
    _last_s: dict[tuple[str, str], float] = field(default_factory=dict)

    def saw(self, key: tuple[str, str]) -> None:
        """A write."""
        now_s = CLOCK.monotonic_s()
        if key in self._last_s:
            self.gaps_s.append(now_s - self._last_s[key])
        self._last_s[key] = now_s


@dataclass(frozen=True)
class Snapshot:
    """All counters at one instant; CPU in seconds: of the controller, API server with etcd, and the whole machine."""

    at_s: float
    controller: Series
    requests: float
    controller_cpu_s: float
    plane_cpu_s: float
    machine_cpu_s: float


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Object(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Object


_EVENT = msgspec.json.Decoder(_Event)


async def measure(case: Case, subject: Subject, plane: Plane, client: Client, metrics: Metrics) -> tuple[str, ...]:
    """One row of the table."""
    metrics.tell(is_live=case.is_live, delay_s=case.delay_s, steps={})
    running = subjects.start(subject, plane.kubeconfig, case.period_s, plane.programs)
    writes = Writes()
    try:
        await _settled(running, case.layout.count)
        await asyncio.sleep(case.warm_up_s)
        with _watching(client, writes, counted=case.is_live):
            before = await _snapshot(running, plane, client, metrics)
            await asyncio.sleep(case.window_s)
            after = await _snapshot(running, plane, client, metrics)
        reactions = await _reactions(case, client, metrics)
        return _row(case, subject, before, after, (writes.gaps_s, subjects.rss_mib(running.process.pid), reactions))
    finally:
        running.stop()
        metrics.tell(steps={})


async def _settled(running: Running, count: int) -> None:
    """Return once every autoscaler has been synced."""
    deadline_s = CLOCK.monotonic_s() + SETTLE_LIMIT_S
    while subjects.total(await asyncio.to_thread(running.series), subjects.SYNCS) < count:
        if running.process.poll() is not None:
            raise SystemExit("the controller ended by itself; its log is beside the kubeconfig")
        if CLOCK.monotonic_s() > deadline_s:
            return
        await asyncio.sleep(0.5)


async def _snapshot(running: Running, plane: Plane, client: Client, metrics: Metrics) -> Snapshot:
    text = (await client.get("/metrics", subject="metrics")).decode()
    served = subjects.parse(text, ("apiserver_request_total",))
    asked = subjects.total(served, "apiserver_request_total", 'verb="GET"', 'subresource="scale"')
    written = subjects.total(served, "apiserver_request_total", 'verb="PUT"')
    pids = [plane.processes[name].pid for name in ("kube-apiserver", "etcd")]
    return Snapshot(
        at_s=CLOCK.monotonic_s(),
        controller=await asyncio.to_thread(running.series),
        requests=asked + written + metrics.tell(),  # the API server does not count what it passes on
        controller_cpu_s=subjects.cpu_s(running.process.pid),
        plane_cpu_s=sum(map(subjects.cpu_s, pids)),
        machine_cpu_s=subjects.machine_busy_s(),
    )


@contextmanager
def _watching(client: Client, writes: Writes, *, counted: bool) -> Iterator[None]:
    """Count status writes meanwhile, if there are any to expect."""
    task = asyncio.ensure_future(_follow(client, HPAS, lambda obj: writes.saw(_key(obj)))) if counted else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()


async def _follow(client: Client, path: str, saw) -> None:  # type: ignore[no-untyped-def]  # any function of an object
    first = msgspec.json.decode(await client.get(path, subject=path, query=[("limit", "1")]))
    query = [("resourceVersion", first["metadata"]["resourceVersion"])]
    async with client.watch(path, subject=path, query=query) as stream:
        async for lines in stream.batches():
            for line in lines:
                saw(_EVENT.decode(line).object)


def _key(obj: _Object) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


async def _reactions(case: Case, client: Client, metrics: Metrics) -> list[float]:
    """Seconds from each step of a load, at random moments of a period, to the write of the scale."""
    if not case.stepped:
        return []
    rng = random.Random(case.layout.count)
    chosen = rng.sample(range(case.layout.count), min(case.stepped, case.layout.count))
    index_of = {(case.layout.namespace(index), objects.name_of(index)): index for index in chosen}
    stepped: dict[int, float] = {}
    seen: dict[int, float] = {}
    all_seen = asyncio.Event()

    def saw(obj: _Object) -> None:
        index = index_of.get(_key(obj))
        if index in stepped and index not in seen and obj.spec.replicas != objects.PODS_EACH:
            seen[index] = CLOCK.monotonic_s()
            if len(seen) == len(chosen):
                all_seen.set()

    watch = asyncio.ensure_future(_follow(client, DEPLOYMENTS, saw))
    await asyncio.sleep(1)
    moments = sorted((rng.uniform(0, case.period_s), index) for index in chosen)
    began_s = CLOCK.monotonic_s()
    for moment_s, index in moments:
        await asyncio.sleep(max(began_s + moment_s - CLOCK.monotonic_s(), 0))
        stepped[index] = CLOCK.monotonic_s()
        metrics.tell(steps=dict.fromkeys(stepped, STEPPED_MILLI))
    with suppress(TimeoutError):
        await asyncio.wait_for(all_seen.wait(), 2 * case.period_s)
    watch.cancel()
    metrics.tell(steps={})
    await _reset(client, case.layout, chosen)
    return [seen[index] - stepped[index] for index in seen]


async def _reset(client: Client, layout: Layout, chosen: list[int]) -> None:
    """Give the stepped deployments their replicas back; a controller may scale one in between."""
    for index in chosen:
        try:
            await objects.reset_scale(client, layout, index)
        except StatusError as error:
            print(f"   {objects.name_of(index)}: {error}")


def _row(
    case: Case, subject: Subject, before: Snapshot, after: Snapshot, rest: tuple[list[float], float, list[float]]
) -> tuple[str, ...]:
    gaps_s, rss_mib, reactions_s = rest
    syncs = subjects.total(after.controller, subjects.SYNCS) - subjects.total(before.controller, subjects.SYNCS)
    elapsed_s, each = after.at_s - before.at_s, max(syncs, 1.0)
    controller_s = after.controller_cpu_s - before.controller_cpu_s
    plane_s = after.plane_cpu_s - before.plane_cpu_s
    busy = (after.machine_cpu_s - before.machine_cpu_s) / elapsed_s
    return (
        case.name,
        subject.name,
        f"{syncs / elapsed_s:,.0f}",
        _pair(gaps_s, (0.5, 0.99), 2),
        " / ".join(subjects.quantile_of_buckets(before.controller, after.controller, which) for which in (0.5, 0.99)),
        f"{(after.requests - before.requests) / each:.2f}",
        f"{controller_s / each * 1000:.2f}",
        f"{(controller_s + plane_s) / each * 1000:.2f}",
        f"{rss_mib:.0f}",
        _pair(reactions_s, (0.5, 0.95), 1),
        f"{busy:.1f}",
    )


def _pair(values: list[float], which: tuple[float, float], digits: int) -> str:
    return " / ".join(f"{subjects.quantile(values, each):.{digits}f}" for each in which) if values else "-"
