"""A real `up` that is restarted in the middle of a stabilization window goes on with it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually

from patience import COMMAND_WITHIN_S

pytestmark = pytest.mark.e2e

Object = dict[str, Any]

WINDOW_S = 12
BEFORE_RESTART_S = 3
A_SEVENTH_OF_20 = "2858m"
SYNC = "--horizontal-pod-autoscaler-sync-period=500ms"
WINDOW = f"--horizontal-pod-autoscaler-downscale-stabilization={WINDOW_S}s"
LONG_WINDOW = "--horizontal-pod-autoscaler-downscale-stabilization=1h"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
HISTORIES = "/api/v1/namespaces/kube-system/configmaps?labelSelector=podscaler.dev/history%3Dv1"


@pytest.fixture
def busy(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Up]:
    """An `up`, with the flag that is its parameter, which has seven replicas for an external metric, and records."""
    recording = f"--record={tmp_path / 'web.recording.jsonl.gz'}"
    up = Up(tmp_path / "data", flags=(SYNC, "--metric-resolution=500ms", request.param, recording)).start()
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "none"}]},
    }
    spec: Object = {"replicas": 7, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    up.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    labels = {"podscaler.dev/metrics": "external"}
    up.create(CONFIG_MAPS, {"metadata": {"name": "queue", "labels": labels}, "data": {"queue": "{value: 70}"}})
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "External", "external": metric}],
    }
    up.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": spec})
    eventually(lambda: up.get(f"{AUTOSCALERS}/web").get("status", {}), until=lambda found: found.get("currentMetrics"))
    yield up
    up.stop()


def await_held(up: Up) -> None:
    """Wait until a scale-down is wanted and held back."""
    eventually(
        lambda: {each["reason"] for each in up.get(f"{AUTOSCALERS}/web")["status"]["conditions"]},
        until=lambda reasons: "ScaleDownStabilized" in reasons,
    )


def explained(up: Up) -> str:
    """What `podscaler explain` says about the autoscaler first."""
    return podscaler("explain", "web", "--kubeconfig", str(up.kubeconfig), SYNC, LONG_WINDOW)[0]


def podscaler(*command: str) -> list[str]:
    """The lines that a command prints, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "podscaler", *command], capture_output=True, text=True, timeout=COMMAND_WITHIN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def decided(recording: Path) -> list[tuple[float, str, int | None]]:
    """Of each sync the instant in seconds, the average value that it saw, and the replicas if it changed them."""
    lines = [json.loads(line) for line in podscaler("replay", str(recording))]
    return [
        (
            datetime.fromisoformat(line["time"]).timestamp(),
            line["status"]["currentMetrics"][0]["external"]["current"]["averageValue"],
            line.get("replicas"),
        )
        for line in lines
        if line["status"].get("currentMetrics")
    ]


def has_scaled_down(status: Object) -> bool:
    """Whether a sync found two replicas and nothing to do."""
    return status["currentReplicas"] == 2 and "ReadyForNewScale" in {each["reason"] for each in status["conditions"]}


@pytest.mark.slow
@pytest.mark.parametrize("busy", [WINDOW], indirect=True, ids=["seconds"])
def test_a_restart_does_not_cut_a_window_short(busy: Up, tmp_path: Path) -> None:
    """The scale-down comes when the window has passed since the load went: neither at once, nor with a new window."""
    busy.patch(f"{CONFIG_MAPS}/queue", {"data": {"queue": "{value: 20}"}})
    await_held(busy)
    time.sleep(BEFORE_RESTART_S)
    assert busy.stop() == 0
    busy.start()
    # a sync after the one that scaled tells so: that one is over, and recorded
    eventually(lambda: busy.get(f"{AUTOSCALERS}/web")["status"], until=has_scaled_down)
    assert busy.stop() == 0
    syncs = [*decided(tmp_path / "web.1.recording.jsonl.gz"), *decided(tmp_path / "web.recording.jsonl.gz")]
    (scaled_at_s,) = [at_s for at_s, _, replicas in syncs if replicas == 2]
    before = [(at_s, value) for at_s, value, _ in syncs if at_s < scaled_at_s]
    ends_at_s = max(at_s for at_s, value in before if value != A_SEVENTH_OF_20) + WINDOW_S
    held_s = [at_s - ends_at_s for at_s, _ in before]
    assert max(held_s) <= 0 < scaled_at_s - ends_at_s


@pytest.mark.parametrize("busy", [LONG_WINDOW], indirect=True, ids=["an hour"])
def test_what_is_kept_can_be_read(busy: Up) -> None:
    """Histories are ConfigMaps with our label; explain knows from them what holds a scale-down back."""
    busy.patch(f"{CONFIG_MAPS}/queue", {"data": {"queue": "{value: 20}"}})
    await_held(busy)
    assert busy.stop() == 0
    busy.start()
    kept = {name: text for each in busy.get(HISTORIES)["items"] for name, text in each.get("data", {}).items()}
    record = json.loads(kept["default.web"])
    assert [each["replicas"] for each in record["history"]["recommendations"]] == [7, 2]
    said = explained(busy)
    assert "stays at 7: its metrics ask for 2" in said, said
