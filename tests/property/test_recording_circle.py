"""What a controller records under churn and faults gives, decided again, the decisions that it took."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

import sampling
from podscaler.api.typed import recording as format_
from podscaler.base.clock import NANOSECONDS
from podscaler.cli.commands import replay as replay_command
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.file_recording import FileRecording
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.recording.recording import SyncRecord, SyncsEnd
from podscaler.core import replay
from podscaler.core.decision import Decision
from podscaler.testing import VirtualClock
from podscaler.testing.autoscaling import AutoscalerWorld, spec
from podscaler.testing.cluster import APPS, HPAS, PODS, RESOURCE_METRICS, conflict, refusal
from podscaler.testing.transport import TransportFailure

NAMES = ("a", "b", "c", "d")
FLAGS: dict[str, Any] = {"downscale_stabilization_ns": 60 * NANOSECONDS, "tolerance": 0.05}
OTHER_RULES: tuple[dict[str, Any], ...] = (
    {"algorithm": "v1.1", "downscale_delay_ns": 45 * NANOSECONDS, "upscale_delay_ns": 20 * NANOSECONDS},
    {"upscale_delay_ns": 40 * NANOSECONDS},
    {"emulate": "1.38"},
    {"history_namespace": "kube-system"},
)
BEHAVIOR = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}]},
    "scaleDown": {
        "stabilizationWindowSeconds": 40,
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 45}],
    },
}
EXTERNAL = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}}
Row = tuple[int | None, Any, list[tuple[str, str, str]], str, Any]


class Witness(FileRecording):
    """A recording that remembers the decisions which it was told of."""

    def __init__(self, file: RecordFile, clock: VirtualClock) -> None:
        super().__init__(file, clock)
        self.decisions: list[Decision] = []

    def report(self, what: SyncRecord | SyncsEnd) -> None:
        if isinstance(what, SyncRecord):
            self.decisions.append(what.decision)
        super().report(what)


def _meddle(world: AutoscalerWorld, rng: random.Random) -> None:
    """One thing that happens to a cluster."""
    name, kind = rng.choice(NAMES), rng.randrange(12)
    objects = world.cluster.collections[HPAS].objects
    match kind:
        case 0 | 1:
            behavior = {"behavior": BEHAVIOR} if rng.random() < 0.5 else {}
            metrics = {"metrics": [*spec()["metrics"], EXTERNAL]} if rng.random() < 0.2 else {}
            least = rng.randrange(1, 3)
            target = rng.choice([name, name, name, "nobody"])
            world.cluster.put_autoscaler(name, spec(target, least, 9, **behavior, **metrics))
        case 2 if ("shop", name) in objects:
            world.cluster.delete(HPAS, name)
        case 3 if ("shop", name) in objects:
            world.cluster.delete(HPAS, name)
            world.cluster.put_autoscaler(name, spec(name), uid=f"u{rng.randrange(1000)}")
        case 4:
            selector = rng.choice(["", f"app={name}", "app=a", "app in (", f"app={name},x"])
            world.cluster.put_deployment(name, rng.randrange(0, 12), selector=selector)
        case 5:
            world.cluster.interfere("PUT", f"{APPS}shop/deployments/{name}/scale", *[conflict("d", name)] * 3)
        case 6:
            status = f"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/{name}/status"
            world.cluster.interfere("PUT", status, rng.choice([conflict("h", name), TransportFailure("EOF")]))
        case 7:
            down = rng.choice([TransportFailure("EOF"), refusal(503, "ServiceUnavailable", "down")])
            world.cluster.interfere("GET", f"{RESOURCE_METRICS}shop/pods", down)
        case 8:
            refused = rng.choice([[conflict("d", name)] * 5, [refusal(403, "Forbidden", "quota")]])
            world.cluster.interfere("PUT", f"{APPS}shop/deployments/{name}/scale", *refused)
        case _:
            _load(world, rng, name)


def _load(world: AutoscalerWorld, rng: random.Random, name: str) -> None:
    """Pods of a target come and go, and use more or less."""
    cpu = rng.choice(["0", "123456789n", "300m", "500m", "800m", "2"])
    for number in range(rng.randrange(1, 5)):
        world.cluster.put_pod(f"{name}-{number}", name, cpu, request=rng.choice(["1", "500m"]))
    gone = ("shop", f"{name}-{rng.randrange(4)}")
    if gone in world.cluster.collections[PODS].objects:
        world.cluster.delete(PODS, gone[1])


async def _record(file: RecordFile, seed: int, steps: int = 100, **flags: Any) -> list[Decision]:
    """What a controller decided in a cluster that is meddled with, while it recorded to `file`."""
    rng = random.Random(seed)
    world = AutoscalerWorld(**FLAGS, **flags)
    await asyncio.to_thread(file.begin)
    witness = world.recording = Witness(file, world.clock)
    for name in NAMES:
        world.cluster.put_deployment(name, 2)
        world.cluster.put_pod(f"{name}-0", name, "500m")
        world.cluster.put_autoscaler(name, spec(name))
    for _ in range(3):  # the second and the third controller begin without a memory
        world.controller = world.make_controller()
        await world.start()
        for _ in range(steps):
            _meddle(world, rng)
            await world.advance(rng.uniform(0, 10))
        world.controller.stop()
        await world.advance(1)
        await world.close()
    await witness.close()
    assert witness.lines_lost == 0
    return witness.decisions


def _replayed(path: Path) -> list[Row]:
    with path.open("rb") as source:
        lines = replay_command.read_lines(source)
        return [_row(line, line.trace) for line in replay.decisions(lines, with_trace=True)]


def _row(decision: Any, trace: Any) -> Row:
    events = [(event.type, event.reason, event.message) for event in decision.events]
    return decision.replicas, decision.status, events, decision.error, trace


def _file(folder: Path, max_bytes: int = 10**9, **flags: Any) -> RecordFile:
    settings = ControllerSettings(**FLAGS, **flags)
    header = format_.header_line(f"{settings.emulate}.0", settings.flags)
    return RecordFile(folder / "all.recording.jsonl.gz", header, max_bytes=max_bytes, files=1000)


@pytest.mark.parametrize("seed", sampling.one_in(3, range(6)))
async def test_a_recording_replays_exactly(seed: int, tmp_path: Path) -> None:
    """Replicas, status, events, error and the whole trace of every sync, with all that may go wrong in a cluster."""
    file = _file(tmp_path)
    taken = await _record(file, seed)
    assert len(taken) > 300
    assert _replayed(file.path) == [_row(decision, decision.trace) for decision in taken]


@pytest.mark.parametrize("flags", sampling.one_in(2, OTHER_RULES), ids=["v1.1", "a cooldown", "1.38", "kept histories"])
async def test_other_rules_are_recorded(flags: dict[str, Any], tmp_path: Path) -> None:
    """The header says which algorithm, which cooldowns and which version decided."""
    file = _file(tmp_path, **flags)
    taken = await _record(file, seed=3, **flags)
    assert _replayed(file.path) == [_row(decision, decision.trace) for decision in taken]


async def test_each_file_of_a_rotated_recording_stands_alone(tmp_path: Path) -> None:
    """Fresh files begin in the middle of everything; one after the other they give all decisions."""
    taken = await _record(_file(tmp_path, max_bytes=4096), seed=7, steps=200)
    newest, *numbered = sorted(tmp_path.iterdir(), key=_number)
    oldest_first = [*reversed(numbered), newest]
    assert len(oldest_first) > 5
    replayed = [row for path in oldest_first for row in _replayed(path)]
    assert replayed == [_row(decision, decision.trace) for decision in taken]


def _number(path: Path) -> int:
    part = path.name.split(".")[1]
    return int(part) if part.isdigit() else 0
