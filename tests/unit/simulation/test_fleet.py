"""A fleet: rows of candidates, recordings divided by autoscaler in little memory, files of results, the summary."""

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import made_recordings as recordings
from podscaler.base.errors import UsageError
from podscaler.simulation.evaluation import comparison
from podscaler.simulation.evaluation.recording_scenario import RecordedSelection
from podscaler.simulation.fleet import candidate_rows, recorded_partitions, result_files, splitting, summary, synthetic
from podscaler.simulation.fleet.autoscalers import FleetAutoscaler, FleetRow, UnusableAutoscaler
from podscaler.simulation.fleet.trials import FleetTrials

TARGET = "metrics[0].target.averageUtilization"
TRIALS = FleetTrials(changes=(f"{TARGET}=40", f"{TARGET}=90"), fixed=(5,), has_knative=True, has_hindsight=True)


@pytest.fixture(scope="module")
def autoscaler() -> FleetAutoscaler:
    """The first of a made fleet, for two hours."""
    return next(synthetic.partitions(1, minutes=120)[0].autoscalers())


def test_rows_are_those_of_a_backtest(autoscaler: FleetAutoscaler):
    """The batch engine's sums give the measures that timelines give."""
    trial = TRIALS(autoscaler)
    compared = comparison.compare(autoscaler.scenario, trial.candidates, trial.needs).results
    found = candidate_rows.rows(autoscaler, TRIALS)
    assert [row.candidate for row in found] == [each.name for each in compared]
    for row, each in zip(found, compared, strict=True):
        metrics = each.elasticity
        assert (row.pod_hours, row.scale_changes, row.lost_pct) == (each.pod_hours, each.scale_changes, each.lost_pct)
        assert (row.under_timeshare_pct, row.over_timeshare_pct) == pytest.approx(
            (metrics.under_timeshare_pct, metrics.over_timeshare_pct)
        )
        assert (row.under_accuracy_pct, row.over_accuracy_pct) == pytest.approx(
            (metrics.under_accuracy_pct, metrics.over_accuracy_pct)
        )
        assert (row.instability_pct, row.jitter) == pytest.approx((metrics.instability_pct, metrics.jitter))
        assert row.speedup == pytest.approx(each.speedup)


def test_needed_pod_hours(autoscaler: FleetAutoscaler):
    """The needed pods at each sync, times the period: the same for all candidates."""
    trial = TRIALS(autoscaler)
    needed = comparison.compare(autoscaler.scenario, trial.candidates[:1], trial.needs).needed
    assert {row.needed_pod_hours for row in candidate_rows.rows(autoscaler, TRIALS)} == {sum(needed) * 15 / 3600}


@pytest.mark.parametrize(
    ("trials", "sentence"),
    [
        pytest.param(FleetTrials(changes=("nothing=1",)), "nothing", id="a field that is not there"),
        pytest.param(FleetTrials(changes=("tolerance=0.2",)), "not flags of the controller", id="a flag"),
        pytest.param(FleetTrials(slo_ms=100), "a response time needs a load of requests", id="an SLO for CPU"),
        pytest.param(FleetTrials(capacity_milli=0), "must be above 0", id="no capacity"),
    ],
)
def test_an_autoscaler_that_cannot_be_judged(autoscaler: FleetAutoscaler, trials: FleetTrials, sentence: str):
    """One row with the error: the others of the fleet go on."""
    (row,) = candidate_rows.rows(autoscaler, trials)
    assert (row.candidate, row.pod_hours) == ("", None)
    assert sentence in row.error


def test_a_made_fleet_does_not_depend_on_its_partitions():
    """An autoscaler depends on the seed and its index alone."""
    small, large = (synthetic.partitions(6, minutes=10, size=size, seed=3) for size in (2, 4))
    assert [len(small), len(large)] == [3, 2]
    assert [each for part in small for each in part.autoscalers()] == [
        each for part in large for each in part.autoscalers()
    ]


def recorded_lines(names: list[str], syncs: int) -> list[bytes]:
    """A recording of autoscalers whose syncs alternate; each uses another amount of CPU."""
    pods = [recordings.pod("web-0", limit="400m"), recordings.pod("web-1", limit="400m")]
    return recordings.lines(
        recordings.sync(
            index * 15,
            pods,
            recordings.usage(index * 15 - 5, {"web-0": 100 + place, "web-1": 100}),
            autoscaler=recordings.hpa(name),
        )
        for index in range(syncs)
        for place, name in enumerate(names)
    )


def plain(path: Path) -> Iterator[bytes]:
    """The lines of a plain file."""
    with path.open("rb") as file:
        yield from file


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Five autoscalers, ten syncs each."""
    path = tmp_path / "fleet.jsonl"
    path.write_bytes(b"\n".join(recorded_lines([f"web-{index}" for index in range(5)], 10)))
    return path


def test_each_autoscaler_has_its_lines_in_one_file(recording: Path, tmp_path: Path):
    """In their order, and every line once."""
    manifest = splitting.split([recording], tmp_path, plain, partitions=3)
    assert sorted(key for part in manifest.parts for key in part.keys) == [f"default/web-{n}" for n in range(5)]
    written = {part.name: gzip.decompress(file(tmp_path, part.name).read_bytes()) for part in manifest.parts}
    assert sorted(b"".join(written.values()).split()) == sorted(b"".join(list(plain(recording))[1:]).split())
    for part in manifest.parts:
        rows = [json.loads(line) for line in written[part.name].splitlines()]
        assert {f"default/{row['hpa']['metadata']['name']}" for row in rows} == set(part.keys)
        assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)


def file(folder: Path, name: str) -> Path:
    """The file of lines of a partition."""
    return folder / splitting.FOLDER / f"{name}.jsonl.gz"


def test_a_divided_recording_is_kept(recording: Path, tmp_path: Path):
    """The recording is not read again, until it changes."""

    def unread(path: Path) -> Iterator[bytes]:
        raise AssertionError(path)

    first = splitting.split([recording], tmp_path, plain, partitions=3)
    assert splitting.split([recording], tmp_path, unread, partitions=3) == first
    with recording.open("ab") as appended:
        appended.write(b"\n" + recorded_lines(["late"], 1)[1])
    second = splitting.split([recording], tmp_path, plain, partitions=3)
    assert {key for part in second.parts for key in part.keys} - {key for part in first.parts for key in part.keys} == {
        "default/late"
    }


def test_a_division_that_was_interrupted_is_made_anew(recording: Path, tmp_path: Path):
    """There is no manifest, and what was written is not appended to."""
    expected = splitting.split([recording], tmp_path / "whole", plain, partitions=3)

    def broken(path: Path) -> Iterator[bytes]:
        yield from list(plain(path))[:20]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        splitting.split([recording], tmp_path, broken, partitions=3)
    assert splitting.split([recording], tmp_path, plain, partitions=3) == expected


def test_a_partition_is_read_an_autoscaler_at_a_time(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also where the lines of fewer autoscalers than it has may be open at once."""
    monkeypatch.setattr(recorded_partitions, "OPEN_FILES_MAX", 2)
    manifest = splitting.split([recording], tmp_path, plain, partitions=1)
    (partition,) = recorded_partitions.of_manifest(manifest, tmp_path, RecordedSelection())
    found = [each for each in partition.autoscalers() if isinstance(each, FleetAutoscaler)]
    assert [each.key for each in found] == [f"default/web-{index}" for index in range(5)]
    demands = [each.scenario.workloads[0].demands[0].total.values for each in found]
    assert demands == [(200_000 + 1000 * index,) for index in range(5)]


def test_an_autoscaler_without_cpu_is_named(tmp_path: Path):
    """The others of the partition are read."""
    path = tmp_path / "fleet.jsonl"
    lines = recorded_lines(["good"], 3)
    lines.append(json.dumps(recordings.sync(0, [], None, autoscaler=recordings.hpa("bad"))).encode())
    path.write_bytes(b"\n".join(lines))
    manifest = splitting.split([path], tmp_path, plain, partitions=1)
    (partition,) = recorded_partitions.of_manifest(manifest, tmp_path, RecordedSelection())
    bad, good = partition.autoscalers()
    assert isinstance(bad, UnusableAutoscaler)
    assert isinstance(good, FleetAutoscaler)
    assert "no CPU usage of the pods of default/bad" in bad.reason


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "line 1: the recording is empty", id="empty"),
        pytest.param(b"{", "line 1: ", id="no header"),
        pytest.param(b'{"recording":1}\n\n{"time":"x"}\n', "line 3: it has neither `hpa` nor `deleted`", id="no key"),
        pytest.param(b'{"recording":1}\n[', "line 2: ", id="no JSON"),
    ],
)
def test_a_bad_recording(content: bytes, sentence: str, tmp_path: Path):
    """The file and the line."""
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=f"bad.jsonl: {sentence}"):
        splitting.split([path], tmp_path, plain)


def test_recordings_of_two_controllers(recording: Path, tmp_path: Path):
    """Their flags differ, so the syncs of both cannot be one load."""
    other = tmp_path / "other.jsonl"
    other.write_bytes(b'{"recording":1,"flags":{"horizontal-pod-autoscaler-tolerance":0.2}}\n')
    with pytest.raises(UsageError, match="has another header than"):
        splitting.split([recording, other], tmp_path, plain)


@pytest.mark.slow
def test_a_long_recording_is_divided_in_little_memory(tmp_path: Path):
    """100 MB of lines in 32 files: the memory is that of the buffers."""
    header, *lines = recorded_lines([f"web-{index}" for index in range(64)], 4)
    repeats = 100_000_000 // sum(map(len, lines))

    def endless(_: Path) -> Iterator[bytes]:
        yield header
        for _index in range(repeats):
            yield from lines

    path = tmp_path / "long.jsonl"
    path.touch()
    tracemalloc.start()
    try:
        splitting.split([path], tmp_path, endless, partitions=32)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2 * 64 * 1024 + 4_000_000


def row(autoscaler: str, candidate: str, hours: float, under: float) -> FleetRow:
    """A row with these measures."""
    return FleetRow(
        autoscaler=autoscaler,
        candidate=candidate,
        pod_hours=hours,
        needed_pod_hours=1.0,
        under_timeshare_pct=under,
        under_accuracy_pct=under,
        over_accuracy_pct=0.0,
        scale_changes=2,
    )


def test_results_know_what_they_were_computed_from(tmp_path: Path):
    """Another input, a broken file and no file are all computed."""
    result_files.write(tmp_path, "part-1", "abc", [row("a/b", "present", 1.0, 0.0)])
    assert result_files.is_present(tmp_path, "part-1", "abc")
    assert not result_files.is_present(tmp_path, "part-1", "abd")
    assert not result_files.is_present(tmp_path, "part-2", "abc")
    result_files.path_of(tmp_path, "part-1").write_bytes(b"PAR1 half a file")
    assert not result_files.is_present(tmp_path, "part-1", "abc")
    assert list(tmp_path.glob("**/*.partial")) == []


def test_the_summary(tmp_path: Path):
    """Sums and means for each candidate, who is better and worse, and why autoscalers failed."""
    some = [row("a/1", "present", 10.0, 1.0), row("a/1", "less", 8.0, 1.0), row("a/1", "more", 12.0, 2.0)]
    others = [row("a/2", "present", 10.0, 1.0), row("a/2", "less", 8.0, 3.0), row("a/2", "more", 12.0, 1.0)]
    failed = FleetRow(autoscaler="a/3", candidate="", error="no load")
    result_files.write(tmp_path, "part-1", "", some)
    result_files.write(tmp_path, "part-2", "", [*others, failed])
    found = summary.summarize(tmp_path, ["part-1", "part-2"], "present")
    shown = [(each.candidate, each.autoscalers, each.pod_hours, each.better, each.worse) for each in found.candidates]
    assert shown == [("present", 2, 20.0, 0, 0), ("less", 2, 16.0, 1, 0), ("more", 2, 24.0, 0, 1)]
    assert [each.under_accuracy_pct for each in found.candidates] == [1.0, 2.0, 1.5]
    assert (found.errors, found.failed) == ((("no load", 1),), 1)


def test_a_summary_of_failures_alone(tmp_path: Path):
    """No candidate has a row."""
    result_files.write(tmp_path, "part-1", "", [FleetRow(autoscaler="a/3", candidate="", error="no load")])
    assert summary.summarize(tmp_path, ["part-1"], "present") == summary.FleetSummary(
        candidates=(), errors=(("no load", 1),), failed=1
    )


def test_every_field_of_a_row_is_a_column(tmp_path: Path):
    """With its type."""
    assert list(result_files.SCHEMA) == [field.name for field in msgspec.structs.fields(FleetRow)]
