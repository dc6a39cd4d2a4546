"""Loads of scenario files become series of whole numbers."""

import gzip
from pathlib import Path

import polars
import pytest

from podscaler.base.errors import UsageError
from podscaler.simulation.files import scenario_file
from podscaler.simulation.files.loads import RangeRequest
from podscaler.simulation.model.step_series import StepSeries
from unit.simulation.scenario_texts import AUTOSCALER, DEPLOYMENT, HEAD, read, with_load

LOADS = {
    "a constant": ("250m", ((0, 250),)),
    "steps": ("{steps: {0s: 250m, 1m: 0.7}}", ((0, 250), (60_000, 700))),
    "a step": ("{step: {from: 100m, to: 300m, at: 2m}}", ((0, 100), (120_000, 300))),
    "a ramp": (
        "{ramp: {from: 0, to: 400m, at: 1m, over: 40s, every: 20s}}",
        ((0, 0), (60_000, 100), (80_000, 300), (100_000, 400)),
    ),
    "a spike": (
        "{spike: {height: 800m, at: 1m, rise: 30s, hold: 1m, fall: 15s}}",
        ((0, 0), (60_000, 200), (75_000, 600), (90_000, 800), (150_000, 400), (165_000, 0)),
    ),
    "a spike without slopes": ("{spike: {height: 1, at: 1m}}", ((0, 0), (60_000, 1000), (120_000, 0))),
    "a sum": (
        "[100m, {step: {to: 300m, at: 2m}}, {spike: {height: 1, at: 90s, hold: 1m}}]",
        ((0, 100), (90_000, 1100), (120_000, 1400), (150_000, 400)),
    ),
    "a day of four hours": (
        "{diurnal: {low: 100m, high: 300m, period: 4m, every: 1m}}",
        ((0, 129), (60_000, 271), (180_000, 129), (300_000, 271), (420_000, 129), (540_000, 271)),
    ),
}


def cpu_milli(series: StepSeries) -> tuple[tuple[int, int], ...]:
    return tuple((at_ms, round(value / 1000)) for at_ms, value in zip(series.at_ms, series.values, strict=True))


def load_of(folder: Path, load: str, **more: int) -> StepSeries:
    """The CPU load in millionths of a core."""
    return read(folder, with_load(load), **more).scenario.workloads[0].demands[0].total


@pytest.mark.parametrize("name", LOADS)
def test_a_load_is_a_series_of_steps(name: str, tmp_path: Path) -> None:
    load, steps = LOADS[name]
    assert cpu_milli(load_of(tmp_path, load)) == steps


def test_noise_is_of_the_seed_alone(tmp_path: Path) -> None:
    load = "[500m, {noise: {deviation: 10%, every: 30s}}]"
    first, again, other = (load_of(tmp_path, load, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first.at_ms == tuple(range(0, 600_000, 30_000))
    assert 300_000 < min(first.values) < 500_000 < max(first.values) < 700_000


def test_noise_does_not_make_a_load_negative(tmp_path: Path) -> None:
    assert min(load_of(tmp_path, "[1m, {noise: {deviation: 1}}]").values) == 0


ROWS = "t,v\n" + "".join(f"2026-01-31 18:{minute:02}:00,{minute + 1}\n" for minute in range(12))
FILES = {
    "values": ("t,v\n0,1\n200,2\n400,3\n600,4\n", "value: v", ((0, 1000), (200_000, 2000), (400_000, 3000))),
    "values in thousandths": ("t,v\n0,100m\n300,200m\n", "value: v", ((0, 100), (300_000, 200))),
    "values with a factor": ("t,v\n0,50\n300,60\n", "value: v, scale: 10m", ((0, 500), (300_000, 600))),
    "counts in an interval": (
        "t,v\n0,300\n300,600\n",
        "value: v, unit: count",
        ((0, 1000), (300_000, 2000)),
    ),
    "a section": (
        ROWS,
        "value: v, from: '2026-01-31T19:08:30+01:00', gaps: hold",
        ((0, 9000), (30_000, 10_000), (90_000, 11_000), (150_000, 12_000)),
    ),
    "a time zone": (
        ROWS,
        "value: v, from: '2026-01-31T17:08:00Z', timezone: Europe/Berlin, gaps: zero",
        ((0, 9000), (60_000, 10_000), (120_000, 11_000), (180_000, 12_000), (240_000, 0)),
    ),
    "a gap that is held": (
        "t,v\n0,1\n60,2\n120,3\n540,4\n",
        "value: v, gaps: hold",
        ((0, 1000), (60_000, 2000), (120_000, 3000), (540_000, 4000)),
    ),
    "a gap without load": (
        "t,v\n0,1\n60,2\n120,\n540,4\n",
        "value: v, every: 1m, gaps: zero",
        ((0, 1000), (60_000, 2000), (120_000, 0), (540_000, 4000)),
    ),
    "a row for each request": (
        "t\n" + "".join(f"{at}\n" for at in (0, 1, 2, 200, 400, 401)),
        "unit: requests, every: 200s",
        ((0, 15), (200_000, 5), (400_000, 10)),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_a_series_from_its_first_row_on(name: str, tmp_path: Path) -> None:
    content, fields, steps = FILES[name]
    (tmp_path / "load.csv").write_text(content)
    assert cpu_milli(load_of(tmp_path, f"{{csv: load.csv, time: t, {fields}}}")) == steps


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "load.csv.gz").write_bytes(gzip.compress(b"t,v\n0,1\n300,2\n"))
    series = load_of(tmp_path, "{csv: load.csv.gz, time: t, value: v}")
    assert cpu_milli(series) == ((0, 1000), (300_000, 2000))


def test_a_parquet_file_is_a_series(tmp_path: Path) -> None:
    frame = polars.DataFrame({"t": [0, 300], "v": [0.5, 0.25]}).with_columns(polars.from_epoch("t"))
    frame.write_parquet(tmp_path / "load.parquet")
    series = load_of(tmp_path, "{parquet: load.parquet, time: t, value: v}")
    assert cpu_milli(series) == ((0, 500), (300_000, 250))


def test_only_the_rows_of_the_scenario_are_read(tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text("t,v\n0,1\n300,2\n600,3\n900,never read\n")
    with pytest.raises(UsageError, match="never read"):
        read(tmp_path, with_load("{csv: load.csv, time: t, value: v}", "1h"))
    (tmp_path / "rows.csv").write_text("t,v\n" + "".join(f"{at},1\n" for at in range(0, 1_200_000, 300)) + "x,y\n")
    assert cpu_milli(load_of(tmp_path, "{csv: rows.csv, time: t, value: v}")) == ((0, 1000),)


def test_a_range_query_is_a_series(tmp_path: Path) -> None:
    asked: list[RangeRequest] = []

    def respond(request: RangeRequest) -> list[tuple[float, str]]:
        asked.append(request)
        return [(1_767_225_600.0 + 60 * step, str(step / 10)) for step in range(11)]

    load = "{prometheus: {url: 'http://prometheus', query: sum(cpu), start: 2026-01-01T00:00:00Z, step: 1m, scale: 2}}"
    (tmp_path / "s.yaml").write_text(HEAD + with_load(load) + DEPLOYMENT + AUTOSCALER)
    found = scenario_file.read(tmp_path / "s.yaml", range_query=respond)
    assert cpu_milli(found.scenario.workloads[0].demands[0].total) == tuple(
        (60_000 * step, 200 * step) for step in range(10)
    )
    assert asked == [
        RangeRequest(url="http://prometheus", query="sum(cpu)", start_s=1_767_225_600, end_s=1_767_226_200, step_s=60)
    ]
