"""`podscaler tune`: a scenario file in, scores on both parts of its load and a manifest out."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from podscaler.cli.main import cli
from unit.simulation.scenario_texts import AUTOSCALER, DEPLOYMENT, HEAD

LOAD = """\
duration: 2h
workloads:
  web:
    load: {cpu: {steps: {0s: 150m, 20m: 900m, 40m: 150m, 70m: 900m, 90m: 150m}}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Two surges, one in each part."""
    return written(tmp_path, LOAD)


def written(folder: Path, body: str) -> Path:
    """A scenario file."""
    path = folder / "scenario.yaml"
    path.write_text(HEAD + body + DEPLOYMENT + AUTOSCALER)
    return path


def run(*words: str | Path) -> Result:
    """The command's result."""
    return CliRunner().invoke(cli, ["tune", *map(str, words)])


def test_a_recommendation_is_a_manifest_that_kubectl_applies(scenario: Path, tmp_path: Path) -> None:
    """A goal of pod-hours alone: fewer than now on both parts, and the file has the whole autoscaler."""
    patch = tmp_path / "patch.yaml"
    result = run(scenario, "--trials", "60", "--over", "target,down-window", "--out", patch, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["candidate"]["later"]["pod-hours"] < found["present"]["later"]["pod-hours"]
    manifest = yaml.safe_load(patch.read_text())
    assert manifest == found["recommended"]
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("HorizontalPodAutoscaler", "web")


def test_the_table_has_both_parts_and_the_reasons(scenario: Path) -> None:
    """Scores of the present spec and of the candidate, the changes, and one sentence at the end."""
    lines = run(scenario, "--trials", "30", "--over", "target", "--slo", "under-provisioned<5%").output.splitlines()
    assert lines[0] == "default/web: 30 candidates tried on the first part of the load"
    assert [line.split("  ")[0] for line in lines[3:7]] == [
        "present, first part",
        "candidate, first part",
        "present, later part",
        "candidate, later part",
    ]
    assert lines[-1].startswith(("Recommended: ", "No recommendation: "))


def test_a_goal_that_cannot_be_met_is_status_1(scenario: Path) -> None:
    """Nothing is written, and the sentence says why."""
    result = run(scenario, "--trials", "10", "--slo", "pod-hours<0.1h")
    assert result.exit_code == 1
    assert "No recommendation: no candidate keeps pod-hours<0.1h on the first part" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--slo", "under-provisioned"], "is not a limit such as", id="no limit"),
        pytest.param(["--slo", "pod-hours<3%"], "pod-hours is in h, not in %", id="wrong unit"),
        pytest.param(["--slo", "cost<1"], "there is no measure cost", id="no measure"),
        pytest.param(["--over", "windw"], "windw cannot be tuned", id="no dimension"),
        pytest.param(["--latency", "fast"], "--latency fast is not a duration such as 200ms", id="no duration"),
        pytest.param(["--latency", "1s"], "a response time needs a load of requests", id="no requests"),
        pytest.param(["--capacity", "0"], "--capacity 0 is not an amount of CPU such as 500m", id="no capacity"),
    ],
)
def test_wrong_use_is_one_sentence(scenario: Path, words: list[str], message: str) -> None:
    """Exit status 2, as everywhere."""
    result = run(scenario, *words)
    assert result.exit_code == 2
    assert message in result.output


def test_equal_seeds_print_the_same(scenario: Path) -> None:
    """The seed decides, and nothing else."""
    words = (scenario, "--trials", "30", "-o", "json", "--seed", "7")
    assert run(*words).output == run(*words).output


def test_nothing_is_written_without_a_recommendation(scenario: Path, tmp_path: Path) -> None:
    """A file would be applied."""
    out = tmp_path / "better.yaml"
    run(scenario, "--trials", "10", "--slo", "pod-hours<0.1h", "--out", out)
    assert not out.exists()


def test_an_interrupted_search_says_so(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the second batch is suggested."""

    def interrupted(done: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("podscaler.cli.tune.tune._progress_printer", lambda trials: interrupted)
    result = run(scenario, "--trials", "100")
    assert result.output.startswith(
        "default/web: 25 candidates tried on the first part of the load; the search was interr"
    )
    assert result.output.splitlines()[-1].startswith(("Recommended: ", "No recommendation: "))


def test_a_later_part_without_a_change_recommends_nothing(tmp_path: Path) -> None:
    """What follows a load cannot be judged where there is nothing to follow."""
    load = "duration: 2h\nworkloads:\n  web:\n    load: {cpu: {steps: {0s: 150m, 20m: 900m, 40m: 500m}}}\n"
    result = run(written(tmp_path, load), "--trials", "40", "--over", "target", "--minimize", "pod-hours")
    assert result.exit_code == 1, result.output
    assert "the later part of the load always needs the same number of pods" in result.output.splitlines()[-1]
