"""`podscaler simulate`: a scenario file in, a timeline, rows or an explanation out."""

import csv
import io
import json
from pathlib import Path

import polars
import pytest
from click.testing import CliRunner, Result

from podscaler.cli.main import cli
from podscaler.cli.simulate.sync_output import ParquetWriter
from podscaler.simulation import engine
from podscaler.simulation.files import scenario_file
from unit.simulation.scenario_texts import AUTOSCALER, DEPLOYMENT, HEAD

STEP = "duration: 3m\nworkloads: {web: {load: {cpu: {steps: {0s: 100m, 1m: 400m}}}}}\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, body: str = STEP) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(HEAD + body + DEPLOYMENT + AUTOSCALER)
    return path


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["simulate", *map(str, words)])


TIMELINE = """\
    0:00    0.100 cores   cpu 50 %/50 %   pods  1  #
    1:30    0.400 cores   cpu 200 %/50 %   pods  1  #
    1:30   => 4 pods: cpu resource utilization (percentage of request) above target
    1:45    0.400 cores   cpu 200 %/50 %   pods  4  ####

default/web, 3:00 in all
  replicas    1 to 4, mean 2.50; 1 scale change
  pods        0.11 pod-hours; 0:00 at maxReplicas
  lost        0.00% of the load
"""


def test_the_timeline_has_a_line_for_each_change(scenario: Path) -> None:
    result = run(scenario)
    assert (result.exit_code, result.output) == (0, TIMELINE)


def test_errors_begin_and_end_in_the_timeline(tmp_path: Path) -> None:
    path = written(tmp_path, STEP.replace("400m", "100m") + "outages: [{from: 1m, to: 2m, metric: cpu}]\n")
    begin, end = (line for line in run(path).output.splitlines() if "=>" in line)
    assert begin.startswith("    1:00   => failed to compute desired number of replicas based on listed metrics")
    assert begin.endswith("the metrics API does not respond (an outage of the scenario)")
    assert end == "    2:00   => metrics can be read again"


def test_every_sync_may_have_a_line(scenario: Path) -> None:
    lines = run(scenario, "--every-sync").output.split("\n\n")[0].splitlines()
    assert len([line for line in lines if "=>" not in line]) == 13


def test_a_failed_expectation_is_a_sentence_and_status_1(tmp_path: Path) -> None:
    path = written(
        tmp_path, STEP + "expect: [{workload: web, replicas: {max: 3}, from: 2m}, {workload: web, ready: 1}]\n"
    )
    result = run(path)
    assert (result.exit_code, result.stdout) == (1, TIMELINE)
    assert result.stderr == (
        "web: 4 replicas at 2:00, expected at most 3 between 2:00 and 3:00; the same at 4 later syncs\n"
        "web: 4 ready pods at 1:45, expected 1 between 0:00 and 3:00; the same at 5 later syncs\n"
    )


def test_json_has_every_sync_and_the_summary(scenario: Path) -> None:
    found = json.loads(run(scenario, "-o", "json").output)
    assert sorted(found) == ["failures", "summaries", "syncs"]
    assert [each["replicas"] for each in found["syncs"]] == [1] * 7 + [4] * 6
    assert found["syncs"][6]["reason"] == "cpu resource utilization (percentage of request) above target"
    assert found["summaries"][0]["scale_changes"] == 1


def test_csv_has_a_row_for_each_sync(scenario: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(scenario, "-o", "csv").output)))
    assert [row["ready"] for row in rows] == ["1"] * 7 + ["4"] * 6
    assert json.loads(rows[-1]["metrics"])[0]["target"] == 50


def test_parquet_is_a_file_with_a_row_for_each_sync(scenario: Path) -> None:
    out = scenario.parent / "syncs.parquet"
    assert run(scenario, "-o", "parquet", "--out", out).exit_code == 0
    assert polars.read_parquet(out)["replicas"].to_list() == [1] * 7 + [4] * 6


def test_parquet_is_written_in_groups_of_rows(scenario: Path) -> None:
    """Three rows are held at most; the file has all 13 in order, and nothing else is left."""
    out, held = scenario.parent / "groups" / "syncs.parquet", []
    out.parent.mkdir()
    with ParquetWriter(out, group_rows=4) as writer:
        for sync in engine.simulate(scenario_file.read(scenario).scenario):
            writer.add(sync)
            held.append(writer.rows_held)
        writer.finish([], [])
    assert held == [1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert polars.read_parquet(out)["at_s"].to_list() == [15.0 * index for index in range(13)]
    assert list(out.parent.iterdir()) == [out]


def test_the_columns_of_parquet_do_not_depend_on_the_rows(scenario: Path) -> None:
    """A scenario without requests has no latency, and one without a sync has no row."""
    full, empty = scenario.parent / "full.parquet", scenario.parent / "empty.parquet"
    run(scenario, "-o", "parquet", "--out", full)
    with ParquetWriter(empty) as writer:
        writer.finish([], [])
    assert polars.read_parquet_schema(full) == polars.read_parquet_schema(empty)
    assert polars.read_parquet(full)["latency_ms"].to_list() == [None] * 13


def test_parquet_needs_a_file(scenario: Path) -> None:
    result = run(scenario, "-o", "parquet")
    assert (result.exit_code, result.output) == (
        2,
        "podscaler: Parquet is not a text: name its file, as in --out syncs.parquet\n",
    )


def test_the_table_may_be_a_file(scenario: Path) -> None:
    out = scenario.parent / "table.txt"
    assert run(scenario, "--out", out).output == ""
    assert out.read_text() == TIMELINE


@pytest.mark.parametrize("at", ["1:30", "0:01:44", "1m30s", "90"])
def test_a_sync_is_explained(at: str, scenario: Path) -> None:
    result = run(scenario, "--explain", at)
    first = "At 1:30: default/web goes from 1 to 4: cpu is at 200 % of requests, target 50 %."
    assert (result.exit_code, result.output.splitlines()[0]) == (0, first)
    assert "  ratio     200 % / 50 % = 4, outside tolerance (0.9 to 1.1)" in result.output


def test_an_explanation_goes_with_a_report(scenario: Path) -> None:
    report = scenario.parent / "report.json"
    result = run(scenario, "--explain", "1:30", "--report", report)
    assert (result.exit_code, result.output) == (0, run(scenario, "--explain", "1:30").output)
    assert json.loads(report.read_text())["title"] == "scenario.yaml"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(
            ["--explain", "noon"], "--explain noon is not an instant such as 12:15, 12m15s or 735 (seconds)", id="word"
        ),
        pytest.param(["--explain", "9h"], "--explain 9h is after the end of the scenario, 3:00", id="after the end"),
        pytest.param(
            ["--report", "/nowhere/x.html"], "cannot write /nowhere/x.html: there is no folder /nowhere", id="no report"
        ),
        pytest.param(["--out", "/nowhere/x"], "cannot write /nowhere/x: No such file or directory", id="no folder"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(words: list[str], sentence: str, scenario: Path) -> None:
    result = run(scenario, *words)
    assert (result.exit_code, result.output) == (2, f"podscaler: {sentence}\n")


def test_a_mistake_in_the_file_is_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, "duration: soon\n")
    result = run(path)
    sentence = f"podscaler: {path}:3: duration: 'soon' is not a duration with a unit, such as 90s, 1h30m or 7d\n"
    assert (result.exit_code, result.output) == (2, sentence)


def test_a_contradiction_is_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, STEP + "cluster: {nodes: 1, cpu: 100m, memory: 1Gi}\n")
    result = run(path)
    sentence = f"podscaler: {path}: pod web-0 requests more than a whole node has\n"
    assert (result.exit_code, result.output) == (2, sentence)


NOISY = "duration: 3m\nworkloads: {web: {load: {cpu: [400m, {noise: {deviation: 30%}}]}}}\n"


def test_a_seed_replaces_that_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, NOISY)
    outputs = [run(path, "-o", "csv", "--seed", seed).output for seed in ("1", "1", "2")]
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


def test_lines_name_their_autoscaler_where_there_are_two(tmp_path: Path) -> None:
    path = written(tmp_path)
    other = (DEPLOYMENT + AUTOSCALER).replace("web", "api")
    path.write_text(path.read_text().replace("{web: {load", "{api: {load: {cpu: 0}}, web: {load") + other)
    lines = run(path).output.splitlines()
    assert lines[:2] == [
        "    0:00   default/web    0.100 cores   cpu 50 %/50 %   pods  1  #",
        "    0:00   default/api    0.000 cores   cpu 0 %/50 %   pods  1  #",
    ]
