"""A recording of a real `up`: replayed, it tells what the API showed; a kill costs the last moments only."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually

from patience import COMMAND_WITHIN_S

pytestmark = pytest.mark.e2e

Object = dict[str, Any]

FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=500ms",
    "--metric-resolution=500ms",
    "--horizontal-pod-autoscaler-downscale-stabilization=3s",
)
CONFIG_MAP = "/api/v1/namespaces/default/configmaps"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALER = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
EVENTS = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind%3DHorizontalPodAutoscaler"
SETTLED = {"ReadyForNewScale", "ValidMetricFound", "DesiredWithinRange", "NotScaledToZero"}


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Up]:
    """An `up` that records to `web.recording.jsonl.gz` beside its data."""
    instance = Up(tmp_path / "data", flags=(*FLAGS, f"--record={tmp_path / 'web.recording.jsonl.gz'}"))
    yield instance
    if instance.process is not None:
        instance.stop()


def deploy(up: Up) -> None:
    """Simulated pods, and an autoscaler over an external metric that a ConfigMap states."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "none"}]},
    }
    spec: Object = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    up.create(DEPLOYMENT, {"metadata": {"name": "web"}, "spec": spec})
    state(up, 20)
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "External", "external": metric}],
    }
    up.create(AUTOSCALER, {"metadata": {"name": "web"}, "spec": spec})


def state(up: Up, value: int) -> None:
    """Let the queue have that length."""
    labels = {"podscaler.dev/metrics": "external"}
    body = {"metadata": {"name": "queue", "labels": labels}, "data": {"queue": f"{{value: {value}}}"}}
    if up.find(f"{CONFIG_MAP}/queue"):
        up.patch(f"{CONFIG_MAP}/queue", {"data": body["data"]})
    else:
        up.create(CONFIG_MAP, body)


def await_replicas(up: Up, wanted: int) -> None:
    """Wait until the Deployment is asked for so many."""
    eventually(lambda: up.get(f"{DEPLOYMENT}/web")["spec"]["replicas"], until=lambda found: found == wanted)


def await_settled(up: Up, wanted: int) -> None:
    """Wait until it is asked for so many, an event has told of it, and the status will not change any more."""
    await_replicas(up, wanted)
    eventually(lambda: any(message.startswith(f"New size: {wanted};") for _, message in shown(up)[1]))

    def has_settled(status: Object) -> bool:
        reasons = {each["reason"] for each in status["conditions"]}
        counts = status.get("currentReplicas"), status.get("desiredReplicas")
        return counts == (wanted, wanted) and reasons == SETTLED

    eventually(lambda: shown(up)[0], until=has_settled)


def shown(up: Up) -> tuple[Object, set[tuple[str, str]]]:
    """The autoscaler's status, and what its events say."""
    events = {(each["reason"], each["message"]) for each in up.get(EVENTS)["items"]}
    return up.get(f"{AUTOSCALER}/web")["status"], events


def replayed(path: Path) -> tuple[int, str, list[Object]]:
    """What `podscaler replay` ends with and says, and the decisions that it writes."""
    command = [sys.executable, "-m", "podscaler", "replay", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S)
    return done.returncode, done.stderr.strip(), [json.loads(line) for line in done.stdout.splitlines()]


def told(decisions: list[Object]) -> set[tuple[str, str]]:
    """What the events of decisions say."""
    return {(event["reason"], event["message"]) for each in decisions for event in each["events"]}


def last_of(decisions: list[Object]) -> tuple[Object | None, set[tuple[str, str]]]:
    """The status that they end with, and what their events say."""
    return (decisions[-1]["status"] if decisions else None), told(decisions)


@pytest.mark.slow
def test_a_recording_tells_what_happened(recorded: Up, tmp_path: Path) -> None:
    """Up and down again, a kill, a second run: both files replay to the events and the status that the API showed."""
    recorded.start()
    deploy(recorded)
    await_replicas(recorded, 2)
    state(recorded, 70)
    await_replicas(recorded, 7)
    state(recorded, 30)
    await_settled(recorded, 3)
    status, events = shown(recorded)
    first = tmp_path / "web.recording.jsonl.gz"
    wanted = (status, events)
    eventually(lambda: last_of(replayed(first)[2]), until=lambda found: found == wanted, every_s=1)
    recorded.kill()
    assert first.stat().st_mode & 0o777 == 0o600
    code, said, decisions = replayed(first)
    assert (code, said.endswith("the gzip data ends too early")) == (2, True), said
    assert last_of(decisions) == wanted

    recorded.start()
    state(recorded, 50)
    await_settled(recorded, 5)
    status, events = shown(recorded)
    assert recorded.stop() == 0
    code, said, decisions = replayed(first)
    assert (code, said, decisions[-1]["status"]) == (0, "", status)
    again = replayed(tmp_path / "web.1.recording.jsonl.gz")[2]
    assert told(again) | told(decisions) == events


def test_what_cannot_be_recorded_to_is_a_sentence(tmp_path: Path) -> None:
    """A file of the user's is left alone, a folder that is not there is named."""
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    said = []
    for path in (precious, tmp_path / "none" / "web.gz"):
        command = [sys.executable, "-m", "podscaler", "up", "--data-dir", str(tmp_path / "data"), "--record", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S)
        said.append((done.returncode, done.stderr.strip()))
    assert said == [
        (2, f"podscaler: --record: {precious} exists and is not a recording; it is left alone"),
        (2, f"podscaler: --record: cannot write {tmp_path}/none/web.gz: No such file or directory"),
    ]
    assert precious.read_text() == "mine"
