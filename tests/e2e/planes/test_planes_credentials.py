"""The controller with credentials that a plugin hands out and that expire soon, on both control planes."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from stage import Scene, Stage
from up_process import eventually

pytestmark = pytest.mark.e2e

PLUGIN = Path(__file__).parent / "credential_plugin.py"
NO_WINDOW = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def exec_kubeconfig(stage: Stage, folder: Path) -> Path:
    """One whose user is the plugin's; of the gate where only the gate has metrics."""
    kubeconfig = stage.plane.kubeconfig
    document = yaml.safe_load((kubeconfig if stage.plane.aggregates else stage.kubeconfig).read_text())
    document["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(PLUGIN), str(kubeconfig), str(folder / "notes")],
            "interactiveMode": "Never",
        }
    }
    made = folder / "exec-kubeconfig"
    made.touch(0o600)
    made.write_text(json.dumps(document))
    return made


@contextmanager
def controller_with(scene: Scene, kubeconfig: Path) -> Iterator[None]:
    """The stage's controller is replaced by one with that kubeconfig until the block ends."""
    scene.stage.replace_controller(kubeconfig)
    try:
        yield
    finally:
        scene.stage.replace_controller()


@pytest.mark.usefixtures("ours")
def test_a_credential_plugin_is_asked_again(scene: Scene, tmp_path: Path) -> None:
    """The controller works with its credentials, and asks anew when they are about to expire."""
    scene.deploy()
    scene.use(300)
    with controller_with(scene, exec_kubeconfig(scene.stage, tmp_path)):
        scene.autoscale(behavior=NO_WINDOW)
        scene.await_replicas(3)
        notes = tmp_path / "notes"
        eventually(lambda: notes.read_text().count("asked"), until=lambda times: times >= 3)
        scene.use(500)
        scene.await_replicas(5)
