"""`podscaler backtest`: sources, candidates, forms of the output, and what it says about bad input."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

import made_recordings
from podscaler.cli.main import cli

SCENARIO = """\
apiVersion: podscaler.dev/v1alpha1
kind: Scenario
duration: 30m
manifests: [web.yaml]
workloads:
  web:
    load: {requests: {rate: {step: {from: 25, to: 120, at: 5m}}, cpuPerRequest: 20ms, timeout: 5s}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: web, resources: {requests: {cpu: 500m}, limits: {cpu: 1}}}]
---
"""
HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A scenario of half an hour, with its manifests in another file."""
    (tmp_path / "web.yaml").write_text(DEPLOYMENT + HPA)
    (tmp_path / "hpa.yaml").write_text(HPA.replace("60}", "90}"))
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    return path


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["backtest", *map(str, arguments)], input=stdin)


def names(result: Result) -> list[str]:
    """The candidates of the JSON output."""
    assert result.exit_code == 0, result.output
    return [each["candidate"] for each in json.loads(result.output)["candidates"]]


def test_all_candidates_in_the_order_of_the_flags(scenario: Path):
    """Files, one candidate of all assignments, fixed counts, Knative, hindsight."""
    flags = ("--fixed", "4", "--fixed", "6", "--set", "minReplicas=3", "--set", "spec.maxReplicas=9")
    result = run(scenario, "-o", "json", "--with", scenario.parent / "hpa.yaml", *flags)
    assert names(result) == [
        "web (present)",
        "hpa.yaml",
        "minReplicas=3, maxReplicas=9",
        "fixed 4",
        "fixed 6",
        "Knative",
        "hindsight",
    ]


def test_the_present_spec_alone(scenario: Path):
    """Knative and hindsight can be left out."""
    assert names(run(scenario, "-o", "json", "--no-knative", "--no-hindsight")) == ["web (present)"]


def test_the_table(scenario: Path):
    """What a pod carries, the engines, a line for each candidate, and one sentence."""
    text = run(scenario, "--slo", "100ms", "--fixed", "3").output
    assert text.startswith("0.5 hours, 121 syncs. A pod carries 0.8 CPU (the CPU limit at the utilization of 80% that ")
    assert "\nThe batch engine ran web (present).\nThe exact engine ran fixed 3, Knative, hindsight.\n" in text
    assert text.endswith("than the present spec.\n") or "present spec" in text.splitlines()[-1]
    assert len({len(line) for line in text.splitlines()[4:9]}) == 1


def test_csv_has_a_line_for_each_candidate(scenario: Path):
    """An undefined measure is empty."""
    lines = list(csv.DictReader(io.StringIO(run(scenario, "-o", "csv").output)))
    assert [(each["candidate"], each["slo_missed_pct"]) for each in lines] == [
        ("web (present)", ""),
        ("Knative", ""),
        ("hindsight", ""),
    ]


def test_yaml_has_the_data_of_json(scenario: Path):
    """Both are one document."""
    assert yaml.safe_load(run(scenario, "-o", "yaml").output) == json.loads(run(scenario, "-o", "json").output)


def test_a_part_of_a_scenario(scenario: Path):
    """From minute 10 to minute 20 there are 41 syncs."""
    assert json.loads(run(scenario, "--from", "10m", "--to", "20m", "-o", "json").output)["syncs"] == 41


def test_a_recording_from_a_file(tmp_path: Path):
    """Its assumptions are notes."""
    path = tmp_path / "web.recording.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n".join(made_recordings.steady([100] * 20 + [390] * 20))))
    data = json.loads(run(path, "--cpu-limit", "200m", "-o", "json").output)
    assert data["needed_pods"] == {"capacity_cores": 0.2, "basis": "the CPU limit", "slo_ms": None}
    assert data["notes"][0] == "A new pod is ready after 10 s, the median of 2 pods."
    assert "lower bound" in data["notes"][1]


def test_a_part_of_a_recording_from_standard_input():
    """From its sixth sync to its eighth: from 20 s before on."""
    text = b"\n".join(made_recordings.steady([100] * 20))
    flags = ("--from", made_recordings.at(75), "--to", made_recordings.at(105), "-o", "json")
    assert json.loads(run("-", *flags, stdin=text).output)["syncs"] == 4


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(["--set", "minReplica=3"], "did you mean minReplicas?", id="unknown-field"),
        pytest.param(["--set", "minReplicas=30"], "--set minReplicas=30 would be refused", id="invalid-spec"),
        pytest.param(["--set", "tolerance=0.2"], "flags of the controller are the same", id="flag"),
        pytest.param(["--set", "metrics"], "is not an assignment such as minReplicas=3", id="no-assignment"),
        pytest.param(["--with", "no.yaml"], "cannot read no.yaml", id="no-file"),
        pytest.param(["--slo", "20ms"], "no number of pods meets 20 ms: a request alone takes 20 ms", id="short-slo"),
        pytest.param(["--slo", "fast"], "--slo fast is not a duration such as 200ms", id="no-duration"),
        pytest.param(["--capacity", "64Mi"], "--capacity 64Mi is not an amount of CPU", id="memory"),
        pytest.param(["--capacity", "-1"], "--capacity -1 is not an amount of CPU", id="no-capacity"),
        pytest.param(["--cpu-limit", "x"], "--cpu-limit x is not an amount of CPU", id="no-limit"),
        pytest.param(["--from", "noon"], "--from noon is not a duration since the start", id="no-time"),
        pytest.param(["--from", "2h"], "no sync is in the time that counts", id="after-the-end"),
        pytest.param(["--hpa", "default/api"], "has no autoscaler default/api; it has default/web", id="no-autoscaler"),
    ],
)
def test_bad_flags(scenario: Path, flags: list[str], sentence: str):
    """One sentence, and the exit status 2."""
    result = run(scenario, *flags)
    assert (result.exit_code, sentence in result.output, result.output.count("\n")) == (2, True, 1), result.output


def test_knative_with_a_target_for_requests(scenario: Path):
    """It is compared beside Knative by CPU; a load without requests has no concurrency."""
    assert names(run(scenario, "--knative-concurrency", "2", "--no-hindsight", "-o", "json")) == [
        "web (present)",
        "Knative",
        "Knative (2 at once)",
    ]
    scenario.write_text(SCENARIO.partition("    load:")[0] + "    load: {cpu: 2}\n")
    result = run(scenario, "--knative-concurrency", "2")
    assert (result.exit_code, result.output) == (
        2,
        "podscaler: --knative-concurrency needs a load of requests; this load is CPU alone\n",
    )


def test_a_load_for_too_many_pods(scenario: Path):
    """A capacity of a thousandth of a core and 100 CPU seconds a second: the unit is probably wrong."""
    scenario.write_text(SCENARIO.replace("cpuPerRequest: 20ms", "cpuPerRequest: 1s"))
    result = run(scenario, "--capacity", "1m")
    assert "the load needs up to 120,000 pods of 0.001 CPU; state their --capacity" in result.output


def test_another_target(scenario: Path, tmp_path: Path):
    """A candidate for another workload has another load."""
    path = tmp_path / "other.yaml"
    path.write_text(HPA.replace("kind: Deployment, name: web", "kind: Deployment, name: api"))
    assert (
        "it scales Deployment/default/api, but the load is that of Deployment/default/web"
        in run(scenario, "--with", path).output
    )


def test_no_autoscaler_in_a_file(scenario: Path, tmp_path: Path):
    """The sentence names the file."""
    path = tmp_path / "deployment.yaml"
    path.write_text(DEPLOYMENT)
    assert f"{path} has no HorizontalPodAutoscaler" in run(scenario, "--with", path).output


def test_a_bare_trace(tmp_path: Path):
    """A trace alone has no autoscaler; the sentence says what is needed."""
    assert "write a scenario file with this load" in run(tmp_path / "load.csv").output


def test_a_broken_recording(tmp_path: Path):
    """File and line."""
    path = tmp_path / "web.recording.jsonl"
    path.write_bytes(b"\n".join([*made_recordings.steady([100]), b"{"]))
    result = run(path)
    assert (result.exit_code, f"{path}: line 3: " in result.output) == (2, True)
    assert "--from soon is not an instant" in run(path, "--from", "soon").output
