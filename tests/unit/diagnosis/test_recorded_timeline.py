"""`podscaler timeline --recording`: stretches of equal outcomes, files and folders, the plot, what cannot be read."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podscaler.cli.diagnosis import recorded_timeline
from podscaler.cli.diagnosis.recorded_timeline import ReplicaPoint
from podscaler.cli.main import cli

Json = dict[str, Any]
HEADER: Json = {"recording": 1, "kubernetes": "1.37.0", "flags": {}}


def sync(second: int, value: int, *, replicas: int = 5, name: str = "web") -> Json:
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
        "time": f"2026-03-03T10:{second // 60:02}:{second % 60:02}Z",
        "hpa": {"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": {}},
        "scale": {"kind": "Scale", "spec": {"replicas": replicas}, "status": status},
        "pods": [],
        "metrics": [{"kind": "ExternalMetricValueList", "items": [{"metricName": "queue", "value": str(value)}]}],
    }


def text(*lines: Json) -> bytes:
    """A recording of these lines."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in (HEADER, *lines))


UP, AFTER, HELD = sync(0, 8), sync(15, 8, replicas=8), sync(30, 3, replicas=8)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A scale-up, then steady, then a scale-down that is held back twice."""
    path = tmp_path / "web.recording.jsonl"
    path.write_bytes(text(UP, AFTER, HELD, sync(45, 3, replicas=8)))
    return path


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["timeline", *map(str, arguments)], input=stdin)


RISES = "shop/web goes from 5 to 8: external metric queue is 8 in total, target 1 a pod."
STAYS = "shop/web stays at 8: external metric queue is 8 in total, target 1 a pod, which is within tolerance."
IS_HELD = (
    "shop/web stays at 8: its metrics ask for 3, but a recommendation of 8 from 15 s ago holds back scaling down for "
    "5 min; earliest change in 4 min 45 s, to 3."
)


def test_stretches_of_syncs(web: Path) -> None:
    """One entry for each outcome, with how long it lasted; the plot is above."""
    result = run("--recording", web)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *_, one, two, three = result.stdout.splitlines()
    assert first == "shop/web, 2026-03-03T09:00:45Z to 2026-03-03T10:00:45Z"
    assert [one, two, three] == [
        f"2026-03-03T10:00:00Z   for 15 s   decision   {RISES}",
        f"2026-03-03T10:00:15Z   for 15 s   decision   {STAYS}",
        f"2026-03-03T10:00:30Z   for 15 s   decision   {IS_HELD}",
    ]


def test_json(web: Path) -> None:
    """Instants in ns, points for each sync, within the time that is asked for."""
    data = json.loads(run("--recording", web, "--since", "15s", "-o", "json").stdout)
    assert [each["text"] for each in data["entries"]] == [STAYS, IS_HELD]
    assert data["entries"][1]["times"] == 2
    assert data["points"] == [[each * 10**9, 8, 3] for each in (1772532030, 1772532045)]


def test_a_folder_is_one_timeline(tmp_path: Path, web: Path) -> None:
    """In the order of the syncs, not of the names; other files do not matter."""
    (tmp_path / "web.1.recording.jsonl.gz").write_bytes(gzip.compress(text(sync(0, 5))))
    web.write_bytes(text(AFTER, HELD))
    (tmp_path / "notes.txt").write_text("x")
    assert run("--recording", tmp_path).stdout.splitlines()[-2:] == [
        f"2026-03-03T10:00:15Z   for 15 s   decision   {STAYS}",
        "2026-03-03T10:00:30Z              decision   shop/web stays at 8: its metrics ask for 3, but a recommendation "
        "of 8 from 15 s ago holds back scaling down for 5 min; earliest change in 4 min 45 s, to 3.",
    ]


def test_a_file_that_is_still_written(tmp_path: Path) -> None:
    """What was flushed counts."""
    path = tmp_path / "open.recording.jsonl.gz"
    path.write_bytes(gzip.compress(text(UP))[:-8])
    assert run("--recording", path).stdout.endswith(f"decision   {RISES}\n")


def test_standard_input() -> None:
    """`-` is a recording, too."""
    assert run("--recording", "-", stdin=text(UP)).stdout.endswith(f"decision   {RISES}\n")


@pytest.mark.parametrize(
    ("lines", "arguments", "said"),
    [
        ([], [], "- has no syncs"),
        ([UP], ["api"], "- has no autoscaler api; it has shop/web"),
        (
            [UP, sync(1, 5, name="api")],
            [],
            "- has 2 autoscalers that may be meant, name one: shop/api, shop/web",
        ),
        ([HELD, UP], [], "-: line 3: time goes backwards for shop/web: lines of one autoscaler must be in time order"),
        ([UP], ["--follow"], "--recording goes with no --follow, --kubeconfig, --context: it reads no cluster"),
    ],
    ids=["empty", "another name", "two", "not in order", "follow"],
)
def test_what_cannot_be_shown(lines: list[Json], arguments: list[str], said: str) -> None:
    """One sentence, exit status 2."""
    result = run(*arguments, "--recording", "-", stdin=text(*lines))
    assert (result.exit_code, result.stderr) == (2, f"podscaler: {said}\n")


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    """It is named."""
    result = run("--recording", tmp_path)
    assert result.stderr == f"podscaler: the folder {tmp_path} has no file *.jsonl or *.jsonl.gz\n"


def test_the_plot() -> None:
    """The latest values of each slice of time: replicas as columns, what was wanted as marks."""
    second = 10**9
    points = [ReplicaPoint(index * second, 2 if index < 30 else 4, 4 if index < 45 else 1) for index in range(60)]
    assert list(recorded_timeline.plot(points)) == [
        "Replicas (#) and what the metrics wanted (o)",
        "  4 |" + "o" * 45 + "#" * 15,
        "    |" + " " * 30 + "#" * 30,
        "    |" + "#" * 60,
        "  1 |" + "#" * 45 + "o" * 15,
        "    00:00:00Z                                           00:00:59Z",
    ]


@pytest.mark.parametrize("points", [[], [ReplicaPoint(1, 2, 2)], [ReplicaPoint(1, None, None)] * 3])
def test_nothing_to_plot(points: list[ReplicaPoint]) -> None:
    """Fewer than two known counts."""
    assert list(recorded_timeline.plot(points)) == []
