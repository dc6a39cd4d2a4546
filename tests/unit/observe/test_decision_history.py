"""The history of decisions: what is kept of each sync, its limits, and recordings that are read into it."""

import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from observed_world import ObservedWorld
from podscaler.api.typed.recording import RecordingError
from podscaler.cli.main import cli
from podscaler.observe import what_if
from podscaler.observe.decision_history import DecisionHistory
from podscaler.observe.views import MarkKind
from podscaler.testing.clock import VirtualClock

WEB = ("shop", "web")
EVER = (0, 2**60)


async def _scaled_world(span_s: float = 60, **limits: float) -> ObservedWorld:
    """A target that is scaled from 2 to 4 in the first sync, and whose pods then use what is wanted."""
    world = ObservedWorld(limits=dict(limits))
    world.add_web(cpu="1000m", replicas=2)
    await world.start()
    for number in range(4):
        world.cluster.put_pod(f"web-{number}", "web", "500m")
    await world.advance(span_s)
    await world.close()
    return world


async def test_numbers_of_each_sync() -> None:
    """Each sync is a point, with the replicas before it, what the metrics want, and the metric against its target."""
    world = await _scaled_world(45)
    timeline = world.live.timeline(WEB, *EVER)
    start = timeline.at[0]
    assert [at - start for at in timeline.at] == [0, 15_000, 30_000, 45_000]
    assert (timeline.replicas, timeline.desired, timeline.limited) == ((2, 4, 4, 4), (4, 4, 4, 4), (4, 4, 4, 4))
    assert (timeline.min, timeline.max, timeline.ready) == ((1,) * 4, (10,) * 4, (2, 4, 4, 4))
    metric = timeline.metrics[0]
    assert (metric.name, metric.unit, metric.current, metric.target) == ("cpu", "percent", (100, 50, 50, 50), (50,) * 4)
    assert (metric.tolerance_down, metric.tolerance_up) == (0.1, 0.1)


async def test_marks_of_changes_and_samples() -> None:
    """A sync is kept where its outcome is new, and else once a minute."""
    world = await _scaled_world(135)
    marks = world.live.marks(WEB, *EVER)
    start = marks[0].at
    assert [(mark.at - start, mark.kind, mark.from_, mark.to, mark.carried_out) for mark in marks] == [
        (0, MarkKind.UP, 2, 4, True),
        (15_000, MarkKind.SAME, 4, 4, True),
        (75_000, MarkKind.SAME, 4, 4, True),
        (135_000, MarkKind.SAME, 4, 4, True),
    ]
    assert marks[0].summary == "shop/web goes from 2 to 4: cpu is at 100 % of requests, target 50 %."


@pytest.mark.parametrize("index", [0, 1, 2], ids=["changed", "new outcome", "sample"])
async def test_explanations_are_those_of_the_command(index: int, tmp_path: Path) -> None:
    """`podscaler explain --recording` of a kept line prints the same text and the same JSON."""
    world = await _scaled_world(90)
    await world.history.kept.pack_waiting()
    kept = world.history.kept.of_range(WEB, *EVER)[index]
    file = tmp_path / "line.jsonl"
    file.write_bytes(kept.header + kept.line())
    shown = CliRunner().invoke(cli, ["explain", "--recording", str(file)])
    data = CliRunner().invoke(cli, ["explain", "--recording", str(file), "-o", "json"])
    view = what_if.explain(kept)
    assert (view.text + "\n", view.explanation) == (shown.output, json.loads(data.output))
    assert view.explanation["summary"] == kept.mark.summary


async def test_age_is_bounded() -> None:
    """Points and kept syncs older than the limit are dropped."""
    world = ObservedWorld(limits={"max_age_s": 300.0})
    world.add_web(cpu="500m", replicas=2)
    await world.start()
    await world.advance(900)
    world.history.tidy()  # the one of the second before may still wait for a thread
    await world.close()
    oldest = world.now_ms - 300_000
    at = world.live.timeline(WEB, *EVER).at
    marks = world.live.marks(WEB, *EVER)
    assert (at[0] >= oldest - 75_000, marks[0].at >= oldest, len(at) > 15) == (True, True, True)
    assert world.history.since(WEB) == (at[0], "decisions are kept for 5 min")


async def test_bytes_are_bounded() -> None:
    """The limit drops samples first, then changes, then points, and says so."""
    world = ObservedWorld(limits={"max_bytes": 2000})
    world.add_web(cpu="500m", replicas=2)
    await world.start()
    for _ in range(60):
        await world.advance(15)
        await world.history.kept.pack_waiting()
        world.history.tidy()
    await world.close()
    assert world.history.size_bytes <= 2000
    assert world.history.since(WEB)[1] == "older decisions were dropped, because the limit of memory was reached"


async def test_points_are_thinned() -> None:
    """Points older than an hour that change nothing stay once a minute."""
    world = ObservedWorld()
    world.add_web(cpu="500m", replicas=2)
    await world.start()
    await world.advance(3 * 3600)
    await world.close()
    at = world.live.timeline(WEB, 0, world.now_ms).at
    spans = [after - before for before, after in itertools.pairwise(at)]
    assert (spans[0], spans[-1], max(spans)) == (60_000, 15_000, 60_000)


async def test_read_back() -> None:
    """Lines of one history, read into another one, give the same points, marks and explanations."""
    world = await _scaled_world(135)
    kept = world.history.kept.of_range(WEB, *EVER)
    again = DecisionHistory(world.history.header, world.clock)
    taken = again.load([world.history.header, *(each.line() for each in kept)])
    loaded = again.kept.of_range(WEB, *EVER)
    assert (taken, [each.mark for each in loaded]) == (len(kept), [each.mark for each in kept])
    assert [what_if.explain(each) for each in loaded] == [what_if.explain(each) for each in kept]
    assert again.since(WEB) == (kept[0].mark.at, "the recording that was read begins here")


async def test_what_is_too_old_is_not_read() -> None:
    """Syncs older than the limit of age are skipped."""
    world = await _scaled_world(60)
    lines = [world.history.header, *(each.line() for each in world.history.kept.of_range(WEB, *EVER))]
    await world.clock.advance(86_350)
    assert DecisionHistory(world.history.header, world.clock).load(lines) == 1


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([], "the recording is empty"),
        ([b"nonsense\n"], "not the header of a recording"),
        ([b'{"recording":1}\n', b"{\n"], "line 2: "),
    ],
    ids=["empty", "no header", "a line that is cut"],
)
def test_recordings_that_cannot_be_read(lines: list[bytes], error: str) -> None:
    """The error names the line."""
    with pytest.raises(RecordingError, match=error):
        DecisionHistory(b"", VirtualClock()).load(lines)


async def test_a_report_never_waits() -> None:
    """Syncs that wait to be compressed can be explained at once."""
    world = await _scaled_world(0)
    kept = world.history.kept.of_range(WEB, *EVER)
    assert (len(kept), what_if.explain(kept[0]).text.splitlines()[0]) == (1, kept[0].mark.summary)
