"""`podscaler tune`: the sources that it takes, which are those of `podscaler backtest`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import made_recordings
from podscaler.cli.main import cli
from unit.simulation.scenario_texts import AUTOSCALER, DEPLOYMENT, HEAD

SYNCS = 240
USED_MILLI = [90 if index % 60 < 30 else 190 for index in range(SYNCS)]
"""An hour with a surge in every quarter."""


def run(*words: str | Path, stdin: bytes | None = None) -> Result:
    """The command's result, of a short search."""
    return CliRunner().invoke(cli, ["tune", "--trials", "10", *map(str, words)], input=stdin)


def recording() -> bytes:
    """The recording of an autoscaler."""
    return b"\n".join(made_recordings.steady(USED_MILLI))


def test_a_recording(tmp_path: Path) -> None:
    """What the recording leaves open is told, as by the backtest."""
    path = tmp_path / "web.recording.jsonl"
    path.write_bytes(recording())
    found = json.loads(run(path, "--cpu-limit", "500m", "-o", "json").output)
    assert (found["autoscaler"], found["trials"]) == ("default/web", 10)
    assert any("500m each (the CPU limit)" in remark for remark in found["remarks"])


def test_a_recording_on_standard_input_from_an_instant_on() -> None:
    """Instants choose a part of it."""
    later = run("-", "--from", made_recordings.at(1800), "-o", "json", stdin=recording())
    whole = run("-", "-o", "json", stdin=recording())
    hours = [json.loads(each.output)["present"]["first"]["pod-hours"] for each in (later, whole)]
    assert hours[0] < hours[1]


def test_a_scenario_with_several_autoscalers(tmp_path: Path) -> None:
    """One is chosen, and the others' workloads are left out, which is told."""
    other = (DEPLOYMENT + AUTOSCALER).replace("web", "api")
    body = "duration: 1h\nworkloads: {web: {load: {cpu: 300m}}, api: {load: {cpu: 300m}}}\n"
    path = tmp_path / "scenario.yaml"
    path.write_text(HEAD + body + DEPLOYMENT + AUTOSCALER + other)
    assert "has 2 autoscalers; choose one with --hpa: default/web, default/api" in run(path).output
    found = json.loads(run(path, "--hpa", "default/api", "-o", "json").output)
    assert found["autoscaler"] == "default/api"
    assert "Left out of the simulation: default/web." in found["remarks"]


def test_two_autoscalers_of_one_workload(tmp_path: Path) -> None:
    """Neither decides alone."""
    second = AUTOSCALER.replace("metadata: {name: web}", "metadata: {name: second}")
    path = tmp_path / "scenario.yaml"
    path.write_text(HEAD + "duration: 1h\nworkloads: {web: {load: {cpu: 300m}}}\n" + DEPLOYMENT + AUTOSCALER + second)
    result = run(path, "--hpa", "default/web")
    assert result.exit_code == 2
    assert "default/web and default/second scale the same workload; tune improves one alone" in result.output


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("http://prometheus:9090", "--present FILE is needed for Prometheus", id="Prometheus"),
        pytest.param("load.csv", "load.csv is a trace: write a scenario file with this load", id="trace"),
        pytest.param("nothing.jsonl", "nothing.jsonl", id="no file"),
    ],
)
def test_sources_that_lack_something(source: str, message: str) -> None:
    """The sentences are those of the backtest."""
    result = run(source)
    assert result.exit_code == 2
    assert message in result.output


def test_too_little_load_to_divide(tmp_path: Path) -> None:
    """A load of one sync has no later part."""
    path = tmp_path / "scenario.yaml"
    path.write_text(HEAD + "duration: 10s\nworkloads: {web: {load: {cpu: 300m}}}\n" + DEPLOYMENT + AUTOSCALER)
    result = run(path)
    assert result.exit_code == 2
    assert "a load of 1 syncs cannot be divided at 60%" in result.output
