"""The real control plane, which other suites compare us with, runs here; and the same client works on both."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_control_plane import real_control_plane
from up_process import eventually

from patience import COMMAND_WITHIN_S
from real_programs import real_program

pytestmark = [pytest.mark.e2e, pytest.mark.real]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file by which the real control plane is reached."""
    with real_control_plane(tmp_path_factory.mktemp("real")) as plane:
        yield plane.kubeconfig


def kubectl(kubeconfig: Path, *args: str) -> str:
    """What the kubectl of the same release prints; it must succeed."""
    command = [real_program("kubectl"), f"--kubeconfig={kubeconfig}", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_says_which_release_it_is(kubeconfig: Path) -> None:
    """Client and server are stamped."""
    assert kubectl(kubeconfig, "version").splitlines() == [
        "Client Version: v1.37.0",
        "Kustomize Version: v5.8.1",
        "Server Version: v1.37.0",
    ]


def test_its_controllers_work(kubeconfig: Path) -> None:
    """A Deployment gets its ReplicaSet and its pods, which no node runs; deleting it removes them."""
    kubectl(kubeconfig, "create", "deployment", "web", "--image=example.org/web", "--replicas=2")
    pods = ("get", "pods", "--selector=app=web", "--output=jsonpath={.items[*].status.phase}")
    eventually(lambda: kubectl(kubeconfig, *pods), until=lambda phases: phases == "Pending Pending")
    kubectl(kubeconfig, "delete", "deployment", "web")
    eventually(lambda: kubectl(kubeconfig, *pods), until=lambda phases: phases == "")


def test_no_autoscaler_is_at_work(kubeconfig: Path) -> None:
    """The place of the HorizontalPodAutoscaler controller is free: nobody writes a status."""
    kubectl(kubeconfig, "create", "deployment", "scaled", "--image=example.org/web")
    kubectl(kubeconfig, "autoscale", "deployment", "scaled", "--min=2", "--max=3")
    pods = ("get", "pods", "--selector=app=scaled", "--output=name")
    eventually(lambda: kubectl(kubeconfig, *pods).splitlines(), until=lambda names: len(names) == 1)
    assert kubectl(kubeconfig, "get", "hpa", "scaled", "--output=jsonpath={.status.conditions}") == ""
