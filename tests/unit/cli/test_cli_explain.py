"""`podscaler explain`: which sync is meant, from which source, in which form, and what it says where it cannot tell."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from podscaler.cli.main import cli

Json = dict[str, Any]
HEADER: Json = {"recording": 1, "kubernetes": "1.37.0", "flags": {}}


def sync(
    second: int, value: int, *, replicas: int = 5, name: str = "web", namespace: str = "shop", **more: Any
) -> Json:
    """A sync line of an autoscaler whose only metric wants `value` replicas."""
    target = {"type": "AverageValue", "averageValue": "1"}
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}],
    }
    status = {"replicas": replicas, "selector": f"app={name}"}
    return {
        "time": f"2026-03-03T10:{second // 60:02}:{second % 60:02}.5Z",
        "hpa": {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {}},
        "scale": {"kind": "Scale", "spec": {"replicas": replicas}, "status": status},
        "pods": [],
        "metrics": [{"kind": "ExternalMetricValueList", "items": [{"metricName": "queue", "value": str(value)}]}],
    } | more


def text(*lines: object) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["explain", *map(str, arguments)], input=stdin)


def sentence(*arguments: str | Path, stdin: bytes | None = None) -> str:
    """The first line of an explanation."""
    result = run(*arguments, stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.partition("\n")[0]


def refusal(*arguments: str | Path, stdin: bytes | None = None) -> str:
    """The sentence of a refusal: exit status 2, nothing on standard output."""
    result = run(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr.strip()


UP, HELD = sync(0, 8), sync(15, 3, replicas=8)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A recording of one autoscaler: a scale-up, then a scale-down that is held back."""
    path = tmp_path / "web.recording.jsonl.gz"
    path.write_bytes(gzip.compress(text(HEADER, UP, HELD)))
    return path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A recording of three autoscalers, two of them with the same name."""
    path = tmp_path / "many.recording.jsonl"
    others = [sync(1, 5, name="api"), sync(2, 5, namespace="test")]
    path.write_bytes(text(HEADER, UP, *others, {"time": "2026-03-03T10:10:00Z", "deleted": "test/web"}))
    return path


STAYS = (
    "shop/web stays at 8: its metrics ask for 3, but "
    "a recommendation of 8 from 15 s ago holds back scaling down for 5 min; earliest "
    "change in 4 min 45 s, to 3."
)
RISES = "shop/web goes from 5 to 8: external metric queue is 8 in total, target 1 a pod."


def test_the_last_sync_is_meant(web: Path) -> None:
    """Without a time, and without a name where there is one autoscaler only; history is carried from line to line."""
    assert sentence("--recording", web) == STAYS


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-03T10:00:14Z", RISES),
        ("2026-03-03T10:00:15Z", STAYS),
        ("2026-03-03T10:00:15.4Z", RISES),
        ("2026-03-03T10:00:15.500Z", STAYS),
        ("2026-03-03T11:00:00+01:00", RISES),
        ("2026-03-03 10:00", STAYS),
        ("2026-03-03T10:00:20", STAYS),
    ],
)
def test_the_last_sync_until_a_time(web: Path, at: str, expected: str) -> None:
    """A whole second means until its end, a minute too; without a zone it is UTC."""
    assert sentence("--recording", web, "--at", at) == expected


@pytest.mark.parametrize("arguments", [["api"], ["shop/api"], ["api", "-n", "shop"]])
def test_names(many: Path, arguments: list[str]) -> None:
    """An autoscaler by name, where others are recorded too."""
    assert sentence("--recording", many, *arguments).startswith("shop/api stays at 5: ")


BOTH = [sync(0, 8), sync(1, 5, name="podautoscaler/web")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["hpa/web"], "shop/web goes from 5 to 8: "),
        (["shop/hpa/web"], "shop/web goes from 5 to 8: "),
        (["podautoscaler/web"], "shop/podautoscaler/web stays at 5: "),
        (["shop/podautoscaler/web"], "shop/podautoscaler/web stays at 5: "),
        (["pa/web", "-n", "shop"], "shop/podautoscaler/web stays at 5: "),
    ],
)
def test_names_of_two_kinds(tmp_path: Path, arguments: list[str], expected: str) -> None:
    """A PodAutoscaler and a HorizontalPodAutoscaler of one name are told apart by their kinds."""
    path = tmp_path / "both.recording.jsonl"
    path.write_bytes(text(HEADER, *BOTH))
    assert sentence("--recording", path, *arguments).startswith(expected)


def test_a_name_that_two_kinds_have(tmp_path: Path) -> None:
    """The refusal names them so that either can be asked for; a name that only one has needs no kind."""
    path = tmp_path / "both.recording.jsonl"
    path.write_bytes(text(HEADER, *BOTH, sync(2, 5, name="podautoscaler/api")))
    assert refusal("--recording", path, "web") == (
        f"podscaler: {path} has 2 autoscalers that may be meant, name one: shop/hpa/web, shop/podautoscaler/web"
    )
    assert sentence("--recording", path, "api").startswith("shop/podautoscaler/api stays at 5: ")


@pytest.mark.parametrize("name", ["a/b/c", "shop/", "/web", "a/b/hpa/web", ""])
def test_names_that_make_no_sense(web: Path, name: str) -> None:
    """One sentence with the forms that there are."""
    assert refusal("--recording", web, name) == (
        f'podscaler: "{name}" is none of NAME, NAMESPACE/NAME, KIND/NAME and NAMESPACE/KIND/NAME'
    )


def test_standard_input(web: Path) -> None:
    """A recording, plain or gzip, a line of it, decisions with a trace, or JSON that this command wrote."""
    lines = gzip.decompress(web.read_bytes())
    replayed = CliRunner().invoke(cli, ["replay", str(web), "--trace"]).stdout_bytes
    written = run("--recording", web, "-o", "json").stdout_bytes
    trace = json.dumps(json.loads(written)["trace"]).encode()
    for stdin in (lines, web.read_bytes(), replayed, written, trace):
        assert sentence("-", stdin=stdin) == STAYS
    assert sentence("--recording", "-", "shop/web", stdin=lines) == STAYS
    assert sentence("-", stdin=text(UP)) == RISES


def test_decisions_keep_what_was_said(web: Path) -> None:
    """A decision line brings its conditions and events."""
    replayed = CliRunner().invoke(cli, ["replay", str(web), "--trace"]).stdout_bytes
    assert run("-", "--at", "2026-03-03T10:00:10Z", stdin=replayed).stdout == (
        run("--recording", web, "--at", "2026-03-03T10:00:10Z").stdout
    )


def test_json_and_yaml(web: Path) -> None:
    """The same data in both forms, the trace with it."""
    as_json = json.loads(run("--recording", web, "-o", "json").stdout)
    assert yaml.safe_load(run("--recording", web, "-o", "yaml").stdout) == as_json
    assert {name: as_json[name] for name in ("autoscaler", "source", "summary", "verdict", "nextChange", "advice")} == {
        "autoscaler": "shop/web",
        "source": "Recording",
        "summary": STAYS,
        "verdict": {"ending": "Stabilized", "wanted": 3, "current": 8, "desired": 8},
        "nextChange": {"at": as_json["at"] + 285_000_000_001, "replicas": 3},
        "advice": [],
    }
    assert as_json["trace"]["stabilization"]["result"] == 8
    assert list(as_json) == [
        *("autoscaler", "at", "source", "summary", "verdict", "nextChange", "advice", "steps", "conditions", "events"),
        "trace",
    ]


def test_what_if(web: Path) -> None:
    """The difference first, both sentences, the table; the history is the one that there was."""
    lines = run("--recording", web, "--what-if", "minReplicas=4,downscale-stabilization=10s").stdout.splitlines()
    assert lines[:5] == [
        "With minReplicas=4,downscale-stabilization=10s shop/web goes from 8 to 4 instead of staying at 8.",
        f"As it is: {STAYS}",
        "What if: shop/web goes from 8 to 4: its metrics ask for 3, but minReplicas is 4.",
        "",
        "                       as it is            what if",
    ]


def test_what_if_as_data(web: Path) -> None:
    """The comparison stands beside the explanation."""
    value = json.loads(run("--recording", web, "--what-if", "minReplicas=8", "-o", "json").stdout)
    assert value["summary"] == STAYS
    assert value["whatIf"]["assignments"] == "minReplicas=8"
    assert value["whatIf"]["rows"][-3] == {"label": "result", "asItIs": "8 -> 8", "whatIf": "8 -> 8"}
    assert value["whatIf"]["explanation"]["source"] == "WhatIf"


def test_what_if_needs_what_was_read(tmp_path: Path) -> None:
    """A sync that did not look at metrics cannot be decided again with a spec that would."""
    path = tmp_path / "clamped.jsonl"
    path.write_bytes(text(HEADER, sync(0, 5, replicas=12, metrics=[None])))
    assert refusal("--recording", path, "--what-if", "maxReplicas=20") == (
        "podscaler: what-if: this spec needs a metric that was not read then: metrics[0]: an answer is needed"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["api"], "has no autoscaler api; it has shop/web"),
        (["-n", "test"], "has no autoscaler in namespace test; it has shop/web"),
        (
            ["--at", "2026-03-03T09:59:59Z"],
            ": the first sync of shop/web is at 2026-03-03T10:00:00Z, after the time of --at",
        ),
    ],
)
def test_nothing_to_explain(web: Path, arguments: list[str], said: str) -> None:
    """What there is instead."""
    assert refusal("--recording", web, *arguments) == f"podscaler: {web}{'' if said[0] == ':' else ' '}{said}"


def test_names_that_are_not_enough(many: Path) -> None:
    """Several autoscalers may be meant: all of them are named, the deleted one too."""
    assert refusal("web", "--recording", many) == (
        f"podscaler: {many} has 2 autoscalers that may be meant, name one: shop/web, test/web"
    )
    assert refusal("--recording", many).endswith(
        "has 3 autoscalers that may be meant, name one: shop/api, shop/web, test/web"
    )


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"", " has no syncs"),
        (b"nonsense\n", ": line 1: JSON is malformed: invalid character (byte 4)"),
        (b"[]\n", ": line 1: not the header of a recording: Expected `object`, got `array`"),
        (b'{"a": 1}\n', ": line 1: neither the header of a recording, nor a sync, nor a decision with a trace"),
        (text(HEADER | {"recording": 2}), ": line 1: recording version 2 is not supported, only version 1"),
        (
            text({"time": "x", "hpa": "shop/web", "replicas": None}),
            ": line 1: the decision has no trace: `podscaler replay --trace` writes them with one",
        ),
        (text(HEADER, UP) + b"\n{\n", ": line 4: Input data was truncated"),
        (gzip.compress(text(HEADER, UP), mtime=0)[:40], ": the gzip data ends too early"),
        (
            text({"trace": {"now": 1}}),
            ": line 1: not a decision with a trace: Object missing required field `autoscaler`",
        ),
    ],
    ids=lambda value: value.strip(": ") if isinstance(value, str) else "",
)
def test_bad_input(stdin: bytes, said: str) -> None:
    """The line and what is wrong with it."""
    assert refusal("-", stdin=stdin) == f"podscaler: standard input{said}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["web", "--at", "2026-03-03T10:00:00Z"], "--at needs --recording: a cluster only shows the present"),
        (["a/web", "-n", "b", "--recording", "-"], "a/web is not in the namespace b"),
        (["--recording", "-", "--at", "noon"], '--at "noon" is not a time such as 2026-01-31T12:00:00Z'),
        (
            ["--recording", "-", "--horizontal-pod-autoscaler-tolerance=0.2"],
            "--horizontal-pod-autoscaler-tolerance has no meaning for a recording, which has its own; --what-if "
            "changes flags",
        ),
        (["--recording", "/no/such/file"], "cannot read /no/such/file: No such file or directory"),
        (["--recording", "-", "--what-if", "x"], 'what-if "x" is not an assignment such as minReplicas=3'),
        (["web", "--kubeconfig", "/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_use(arguments: list[str], said: str) -> None:
    """One sentence that says what is wrong."""
    assert said in refusal(*arguments, stdin=text(HEADER, UP))


def test_traces_cannot_be_decided_again(web: Path) -> None:
    """A decision line has no facts."""
    replayed = CliRunner().invoke(cli, ["replay", str(web), "--trace"]).stdout_bytes
    assert refusal("-", "--what-if", "minReplicas=3", stdin=replayed) == (
        "podscaler: standard input: line 1: a trace holds no facts to decide again about: what-if needs the recording"
    )
