"""Every mistake in a scenario file is one sentence that names file, line and field."""

from pathlib import Path

import pytest

from podscaler.api.kinds.autoscaling import conversion
from podscaler.base.errors import UsageError
from podscaler.simulation.files import scenario_file
from unit.simulation.scenario_texts import AUTOSCALER, CPU, DEPLOYMENT, HEAD, read, with_load

BODIES = {
    "no duration": ("seed: 1\n", "1: `duration` is needed, such as 30m"),
    "a duration without unit": (
        "duration: 900\n",
        "3: duration: 900 is not a duration with a unit, such as 90s, 1h30m or 7d",
    ),
    "a misspelt field": (CPU + "sead: 1\n", "5: sead: unknown field; seed is the nearest known one"),
    "a field that is like none": (
        CPU + "cluster: {zzz: 1}\n",
        "5: cluster.zzz: unknown field; known are nodes, maxNodes, cpu, memory, provisioning, idle",
    ),
    "an unknown workload": (
        "duration: 1m\nworkloads: {api: {}}\n",
        "4: workloads.api: the manifests have no workload api; they have default/web",
    ),
    "no load of a metric": (
        "duration: 1m\n",
        "16: HorizontalPodAutoscaler web: default/web has no cpu load; state `load.cpu` or `load.requests` under "
        "`workloads.web` (0 for none)",
    ),
    "a negative load": (with_load("-1"), "4: workloads.web.load.cpu: -1 is negative"),
    "a load in a unit that does not exist": (
        with_load("3 cores"),
        "4: workloads.web.load.cpu: '3 cores' is not a quantity such as 250m, 0.25 or 64Mi",
    ),
    "two kinds of load": (
        with_load("{steps: {0s: 1}, csv: a.csv}"),
        "4: workloads.web.load.cpu: steps and csv stand together; one of steps, csv, parquet, prometheus, step, ramp, "
        "diurnal, spike, noise is needed, and a list of loads is their sum",
    ),
    "steps without a start": (
        with_load("{steps: {15s: 1}}"),
        "4: workloads.web.load.cpu.steps: a step at 0s is needed: the value at the start",
    ),
    "a ramp without its end": (
        with_load("{ramp: {from: 1}}"),
        "4: workloads.web.load.cpu.ramp: a ramp needs `to`, its value at its end",
    ),
    "noise alone": (
        with_load("{noise: {deviation: 10%}}"),
        "4: workloads.web.load.cpu: a load is needed that is not noise, such as a constant, `steps`, or a `csv` file",
    ),
    "a CSV without column": (
        with_load("{csv: a.csv, time: t}"),
        "4: workloads.web.load.cpu: `value` is needed: the column of values",
    ),
    "requests and CPU": (
        "duration: 1m\nworkloads: {web: {load: {cpu: 1, requests: {rate: 1, cpuPerRequest: 1ms}}}}\n",
        "4: workloads.web.load.cpu: requests are a demand for CPU already; state `cpu` or `requests`",
    ),
    "requests without CPU time": (
        "duration: 1m\nworkloads: {web: {load: {requests: {rate: 1, cpuPerRequest: 0us}}}}\n",
        "4: workloads.web.load.requests.cpuPerRequest: the duration 0us is too short; 1 ms or more are needed",
    ),
    "shares that are no whole": (
        "duration: 1m\nworkloads: {web: {load: {cpu: 1}, containers: {app: {load: 0.5}}}}\n",
        "4: workloads.web.containers: the shares `load` of the containers sum up to 0.5, not to 1",
    ),
    "an unknown flag": (
        CPU + "flags: {horizontal-pod-autoscaler-tolerence: 0.2}\n",
        "5: flags.horizontal-pod-autoscaler-tolerence: unknown field; horizontal-pod-autoscaler-tolerance is "
        "the nearest known one",
    ),
    "a flag's value": (
        CPU + "flags: {horizontal-pod-autoscaler-downscale-stabilization: soon}\n",
        '5: flags: flag horizontal-pod-autoscaler-downscale-stabilization: time: invalid duration "soon"',
    ),
    "an unknown version": (CPU + "version: '1.2'\n", "5: version: Kubernetes 1.2 is not one of 1.37, 1.38"),
    "bounds in the wrong order": (
        CPU + "workloads: {web: {startup: {uniform: [9s, 1s]}}}\n",
        '1: document 1: yaml: unmarshal errors: line 5: key "workloads" already set in map',
    ),
    "an upper bound below the lower one": (
        "duration: 1m\nworkloads: {web: {load: {cpu: 1}, startup: {uniform: [9s, 1s]}}}\n",
        "4: workloads.web.startup: the upper bound of a duration must not be below the lower one",
    ),
    "an event without meaning": (
        CPU + "events: [{at: 1m, scale: web}]\n",
        "5: events[0]: an event is {at, scale, replicas}, {at, rollout}, or {at, edit}",
    ),
    "an edit of something else": (
        CPU + "events:\n- at: 1m\n  edit: {apiVersion: v1, kind: Secret, metadata: {name: a}}\n",
        "7: events[0].edit: an edit is the manifest of one autoscaler of the scenario, which has default/web",
    ),
    "an outage that ends before it begins": (
        CPU + "outages: [{from: 2m, to: 1m}]\n",
        "5: outages[0].to: `to` is not after `from`",
    ),
    "an outage of a metric that nobody reads": (
        CPU + "outages: [{from: 1m, to: 2m, metric: cpus}]\n",
        "5: outages[0].metric: 'cpus' is not one of cpu",
    ),
    "an event after the end": (
        CPU + "events: [{at: 1h, rollout: web}]\n",
        "5: events[0].at: the event is after the end of the scenario",
    ),
    "an edit that needs another load": (
        CPU + "events:\n- at: 1m\n  edit:\n    apiVersion: autoscaling/v2\n    kind: HorizontalPodAutoscaler\n"
        "    metadata: {name: web}\n"
        "    spec:\n      scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n      "
        "maxReplicas: 3\n      metrics:\n"
        "      - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}\n",
        "5: events: the edited autoscaler web: default/web has no memory load; state `load.memory` or "
        "`load.requests` under "
        "`workloads.web` (0 for none)",
    ),
    "an expectation of nothing": (
        CPU + "expect: [{workload: web}]\n",
        "5: expect[0]: nothing is expected; state one of replicas, ready, wanted, latency, lost",
    ),
    "an expectation after the end": (
        CPU + "expect: [{workload: web, replicas: 1, to: 11m}]\n",
        "5: expect[0]: the span is not within the scenario: 0s, `from`, `to`, `duration` must be in this order",
    ),
    "a metric twice": (
        CPU + "metrics: [{name: a, values: 1}, {name: a, values: 2}]\n",
        "5: metrics[1]: the metric a has values twice",
    ),
    "Prometheus without the command": (
        with_load("{prometheus: {url: 'http://p', query: up, start: 2026-01-01T00:00:00Z}}"),
        "4: workloads.web.load.cpu.prometheus: Prometheus is read by the command line only",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_mistake_in_the_scenario_is_a_sentence_with_its_place(name: str, tmp_path: Path) -> None:
    body, sentence = BODIES[name]
    with pytest.raises(UsageError) as error:
        read(tmp_path, body)
    assert str(error.value) == f"{tmp_path}/scenario.yaml:{sentence}"


EXTERNAL = AUTOSCALER.replace("autoscaling/v1", "autoscaling/v2").replace(
    "  targetCPUUtilizationPercentage: 50\n",
    "  metrics: [{type: External, external: {metric: {name: queue}, target: {type: Value, value: 5}}}]\n",
)
MANIFESTS = {
    "no autoscaler": (DEPLOYMENT, "1: the manifests have no HorizontalPodAutoscaler; at least one is needed"),
    "no workload": (
        AUTOSCALER,
        "4: workloads.web: the manifests have no workload web; they have none",
    ),
    "a target of another kind": (
        DEPLOYMENT + AUTOSCALER.replace("kind: Deployment", "kind: StatefulSet"),
        "21: spec.scaleTargetRef: the manifests have no StatefulSet web; they have Deployment default/web",
    ),
    "a container without request": (
        DEPLOYMENT.replace("requests: {cpu: 200m}, limits: {cpu: 500m}", "") + AUTOSCALER,
        "17: HorizontalPodAutoscaler web: container app of default/web has no cpu request, which "
        "averageUtilization needs",
    ),
    "an invalid autoscaler": (
        DEPLOYMENT + AUTOSCALER.replace("maxReplicas: 10", "maxReplicas: 0"),
        "22: spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
    ),
    "an unknown field of a manifest": (
        DEPLOYMENT + AUTOSCALER.replace("maxReplicas", "maxReplica"),
        '17: unknown field "spec.maxReplica"',
    ),
    "an unknown version of autoscaling": (
        DEPLOYMENT + AUTOSCALER.replace("autoscaling/v1", "autoscaling/v3"),
        "17: unknown version autoscaling/v3 of HorizontalPodAutoscaler; known versions: "
        + ", ".join(conversion.VERSIONS),
    ),
    "a metric without values": (
        DEPLOYMENT + EXTERNAL,
        "1: default/web: the scenario has no values of the metric queue; state them under `metrics`",
    ),
    "a workload twice": (DEPLOYMENT + DEPLOYMENT + AUTOSCALER, "17: there is another workload default/web"),
    "something else": (
        "---\nname: web\n",
        "6: this is neither a scenario nor a Kubernetes object: kind and apiVersion are needed",
    ),
    "no YAML": ("---\na: [\n", "5: document 2: yaml: line 1: did not find expected node content"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_mistake_in_a_manifest_is_a_sentence_with_its_place(name: str, tmp_path: Path) -> None:
    manifests, sentence = MANIFESTS[name]
    with pytest.raises(UsageError) as error:
        read(tmp_path, manifests=manifests)
    assert str(error.value) == f"{tmp_path}/scenario.yaml:{sentence}"


def test_a_file_without_a_scenario_says_what_one_is(tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(DEPLOYMENT)
    with pytest.raises(UsageError) as error:
        scenario_file.read(path)
    assert str(error.value) == f"{path} has no documents of kind Scenario (podscaler.dev/v1alpha1); one is needed"


def test_another_version_of_the_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(HEAD.replace("v1alpha1", "v2"))
    with pytest.raises(UsageError) as error:
        scenario_file.read(path)
    assert str(error.value) == f"{path}:1: apiVersion of a Scenario is 'podscaler.dev/v2', not podscaler.dev/v1alpha1"


ROWS = {
    "an earlier instant": (
        "0,1\n60,1\n30,1\n",
        "value: v",
        "line 4: the instant is earlier than that of line 3; sort the rows by time",
    ),
    "an instant twice": (
        "0,1\n60,1\n60,2\n",
        "value: v",
        "line 4: the instant is the same as that of line 3; one row each is needed",
    ),
    "a negative value": ("0,1\n60,-3\n", "value: v", "line 3: column v: -3 is negative; 0 or more is needed"),
    "an infinite value": ("0,1\n60,inf\n", "value: v", "line 3: column v: 'inf' is infinite"),
    "a missing value": (
        "0,1\n60,\n",
        "value: v",
        "line 3: the value is missing; state `gaps: hold` (the last value) or `gaps: zero`, or add the rows",
    ),
    "NaN": (
        "0,NaN\n60,1\n",
        "value: v",
        "line 2: the value is missing; state `gaps: hold` (the last value) or `gaps: zero`, or add the rows",
    ),
    "nothing to hold": (
        "0,\n60,1\n",
        "value: v, gaps: hold",
        "line 3: the values before this one are missing, and there is none to hold",
    ),
    "mixed units": (
        "0,100m\n60,0.2\n",
        "value: v",
        "line 3: column v: '0.2' has no unit, and the rows before it have the unit m; use one unit",
    ),
    "a word": ("0,much\n60,1\n", "value: v", "line 2: column v: 'much' is not a number"),
    "an instant that is none": (
        "now,1\n",
        "value: v",
        "line 2: column t: 'now' is not an instant: seconds as a number, or ISO 8601 such as 2026-01-31 18:00:00",
    ),
    "a row that is too short": ("0,1\n60\n", "value: v", "line 3: 1 columns, but the first line names 2"),
    "a gap": (
        "0,1\n60,1\n120,1\n300,1\n",
        "value: v",
        "line 5: a gap of 3:00 since line 4, usual is 1:00; state `gaps: hold` (the last value) or `gaps: "
        "zero`, or add the rows",
    ),
    "an early end": (
        "0,1\n60,1\n120,1\n",
        "value: v",
        "line 4: the rows end 2:00 after the start, and the scenario lasts 10:00; shorten `duration`, or state "
        "`gaps: zero` or `gaps: hold`",
    ),
    "requests that end early": (
        "0,1\n60,1\n",
        "unit: requests",
        "line 3: the rows end 1:00 after the start, and the scenario lasts 10:00; shorten `duration`, or state "
        "`gaps: zero`",
    ),
    "no rows": ("", "value: v", "has no rows"),
    "milliseconds": (
        "1700000000000,1\n1700000060000,2\n",
        "value: v",
        "line 2: column t: 1700000000000 is too large for seconds; divide milliseconds by 1000",
    ),
    "a section after the file": (
        "0,1\n60,1\n",
        "value: v, from: 600",
        "has no rows after the start of the section: `from` is after the last row",
    ),
    "a section before the file": (
        "600,1\n660,1\n",
        "value: v, from: 0",
        "line 2: the first row is after the start of the section; choose a later `from`",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_bad_row_is_a_sentence_with_its_line(name: str, tmp_path: Path) -> None:
    rows, fields, sentence = ROWS[name]
    (tmp_path / "load.csv").write_text("t,v\n" + rows)
    with pytest.raises(UsageError) as error:
        read(tmp_path, with_load(f"{{csv: load.csv, time: t, {fields}}}"))
    between = " " if sentence.startswith("has") else ": "
    assert str(error.value) == f"{tmp_path}/load.csv{between}{sentence}"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(None, "cannot read {}: No such file or directory", id="no file"),
        pytest.param(b"", "{} is empty; a line with the names of columns is needed", id="an empty file"),
        pytest.param(b"a,b\n1,2\n", "{} has no column t; it has a, b", id="other columns"),
        pytest.param(b"t,t,v\n1,2,3\n", "{} has 2 columns t; one is needed", id="a column twice"),
        pytest.param(b"t,v\n\xff,1\n", "{} is not a CSV file in UTF-8", id="no text"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        read(tmp_path, with_load("{csv: load.csv, time: t, value: v}"))
    assert str(error.value) == sentence.format(path)
