"""A real `up` that is restarted in the middle of a stabilization window goes on with it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually

from patience import COMMAND_WITHIN_S

pytestmark = pytest.mark.e2e

Object = dict[str, Any]

WINDOW_S = 20
BEFORE_RESTART_S = 8
FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=500ms",
    "--metric-resolution=500ms",
    f"--horizontal-pod-autoscaler-downscale-stabilization={WINDOW_S}s",
)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
HISTORIES = "/api/v1/namespaces/kube-system/configmaps?labelSelector=podscaler.dev/history%3Dv1"


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Up]:
    """An `up` that has scaled to seven replicas for an external metric."""
    up = Up(tmp_path / "data", flags=FLAGS).start()
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
    flags = [flag for flag in FLAGS if "metric-resolution" not in flag]
    command = ["explain", "web", "--kubeconfig", str(up.kubeconfig), *flags]
    done = subprocess.run(
        [sys.executable, "-m", "podscaler", *command], capture_output=True, text=True, timeout=COMMAND_WITHIN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


def test_a_restart_does_not_cut_a_window_short(busy: Up) -> None:
    """The scale-down comes when the window has passed since the load went: neither at once, nor with a new window."""
    busy.patch(f"{CONFIG_MAPS}/queue", {"data": {"queue": "{value: 20}"}})
    await_held(busy)
    held_since_s = time.monotonic()
    time.sleep(BEFORE_RESTART_S)
    assert busy.stop() == 0
    busy.start()
    assert busy.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 7
    await_held(busy)
    eventually(lambda: busy.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"], until=lambda found: found == 2)
    held_s = time.monotonic() - held_since_s
    assert WINDOW_S - 2 <= held_s < WINDOW_S + BEFORE_RESTART_S, (
        busy.log.read_text()
    )  # a new window ends later than that


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
    assert "wants 2, stays at 7" in said, said
