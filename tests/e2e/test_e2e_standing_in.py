"""Controllers beside each other on a cluster of ours and on a real one: dry runs, comparison, detection, migration."""

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import standing_in_side
from benchmarks import cluster_plane
from controller_manager import HORIZONTAL, controller_manager
from standing_in_side import NAMESPACE, Side
from up_process import eventually

import prerequisites
from podscaler.controller.options import installation

pytestmark = pytest.mark.e2e

AS_THE_OTHER = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=5s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=2s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
)


@pytest.fixture(scope="module", params=["ours", pytest.param("real", marks=pytest.mark.real)])
def side(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The cluster."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "ours":
        with standing_in_side.ours(folder) as made:
            yield made
        return
    programs = cluster_plane.programs()
    if programs is None:
        prerequisites.REAL_PLANE.skip()
    with standing_in_side.real(folder, programs) as made:
        yield made


def generations(side: Side) -> list[tuple[int, int]]:
    """Of the deployments, with their replicas: any write of a scale that changes something shows."""
    return [(each["metadata"]["generation"], each["spec"]["replicas"]) for each in side.get("deployments")]


def test_a_dry_run(side: Side) -> None:
    """It decides again and again, and nothing in the cluster changes: no status, no event, no history, no Lease."""
    before = [each["metadata"]["resourceVersion"] for each in side.get("hpa")]
    with side.controller("--dry-run") as running:
        eventually(
            lambda: running.metric("horizontal_pod_autoscaler_controller_reconciliations_total"),
            until=lambda count: count >= 6,
        )
    assert [each["metadata"]["resourceVersion"] for each in side.get("hpa")] == before
    kept = side.kubectl("get", "configmaps,leases", "-n", "kube-system", "-o", "name").split()
    events = [each for each in side.get("events") if each["involvedObject"]["kind"] == "HorizontalPodAutoscaler"]
    assert (events, [name for name in kept if "podscaler" in name]) == ([], [])


def test_comparison_beside_the_built_in_controller(side: Side, tmp_path: Path) -> None:
    """Beside the real controller decisions are the same, nothing differs, and only the other writes."""
    with controller_manager(side.kubeconfig, *HORIZONTAL, log=tmp_path / "manager.log"):
        eventually(side.managers)
        with side.controller("--compare", *AS_THE_OTHER) as running:
            eventually(
                lambda: running.metric('podscaler_comparisons_total{verdict="same"}'),
                until=lambda count: count >= 8,
            )
            assert running.metric("podscaler_comparison_differences_total") == 0, running.log.read_text()[-3000:]
    assert side.managers() == {"kube-controller-manager"}
    assert "0 different; 0 autoscalers differed" in running.log.read_text()


@pytest.mark.parametrize("side", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
def test_the_built_in_controller_is_noticed(side: Side, tmp_path: Path) -> None:
    """While it writes (as long as metrics move) ours does not, and says why; when it has ended ours goes on."""
    with controller_manager(side.kubeconfig, *HORIZONTAL, log=tmp_path / "manager.log"):
        eventually(side.managers)
        with side.controller() as running:
            status, text = eventually(lambda: running.get("/readyz"), until=lambda answer: "another" in answer[1])
            assert (status, "kube-controller-manager" in text) == (503, True)
            time.sleep(4)
            assert side.managers() == {"kube-controller-manager"}
    with side.controller() as running:
        assert eventually(lambda: running.get("/readyz")[0], until=lambda code: code == 200) == 200
        eventually(side.managers, until=lambda found: installation.of_host(socket.gethostname()) in found)


REFUSED = {
    "maxReplicas must be greater than or equal to `minReplicas`": {"minReplicas": 9, "maxReplicas": 1},
    "must specify at least one Object or External metric": {"minReplicas": 0},
    "scaleTargetRef.apiVersion must specify API group": {"scaleTargetRef": {"kind": "Deployment", "name": "web9"}},
    "must populate information for the given metric source": {"metrics": [{"type": "Pods"}]},
    "must set either a target value for metric or a per-pod target, and not both": {
        "metrics": [
            {
                "type": "External",
                "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": 1, "averageValue": "1"}},
            }
        ]
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_a_definition_refuses(side: Side, message: str) -> None:
    """Either API server judges a PodAutoscaler by its rules as it judges a HorizontalPodAutoscaler."""
    side.define()
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web9"}
    body = {
        "apiVersion": "podscaler.dev/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {"name": "web9", "namespace": NAMESPACE},
        "spec": {"maxReplicas": 3, "scaleTargetRef": target} | REFUSED[message],
    }
    with pytest.raises(AssertionError, match=re.escape(message)):
        side.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))


def test_migration_without_a_controller(side: Side) -> None:
    """Where nobody looks after PodAutoscalers, nothing is deleted, and a sentence says what to do."""
    side.define()
    done = side.podscaler("migrate", "hpa", "web1", "-n", NAMESPACE, "--timeout=2s")
    assert (done.returncode, done.stderr) == (
        2,
        f"podscaler: no controller manages podautoscaler {NAMESPACE}/web1, so the horizontalpodautoscaler stays: "
        "start one with --autoscaler-kinds=podautoscaler and repeat this, or delete the podautoscaler\n",
    )
    assert side.get("hpa", "web1") is not None
    side.kubectl("delete", "podautoscaler", "web1", "-n", NAMESPACE)


def test_migration_there_and_back(side: Side, tmp_path: Path) -> None:
    """A PodAutoscaler takes over while the built-in controller runs, and gives back; the replicas never change."""
    side.define()
    side.kubectl("annotate", "hpa", "web0", "-n", NAMESPACE, "note=kept", "--overwrite")
    before = generations(side)
    with (
        controller_manager(side.kubeconfig, *HORIZONTAL, log=tmp_path / "manager.log"),
        side.controller("--autoscaler-kinds=podautoscaler"),
    ):
        eventually(lambda: side.get("hpa", "web0")["status"].get("conditions"))
        there = side.podscaler("migrate", "hpa", "web0", "-n", NAMESPACE)
        assert (there.returncode, there.stdout) == (
            0,
            f"horizontalpodautoscaler {NAMESPACE}/web0 is a PodAutoscaler now\n",
        ), there.stderr
        made = side.get("podautoscaler", "web0")
        assert (side.get("hpa", "web0"), made["metadata"]["annotations"]["note"]) == (None, "kept")
        assert made["status"]["desiredReplicas"] == 3
        again = side.podscaler("migrate", "hpa", "web0", "-n", NAMESPACE)
        assert again.stdout == f"horizontalpodautoscaler {NAMESPACE}/web0 is a PodAutoscaler already\n"
        eventually(
            lambda: side.get("podautoscaler", "web0")["status"].get("conditions") and _reasons(side),
            until=lambda reasons: reasons.get("ScalingActive") == "ValidMetricFound",
        )
        back = side.podscaler("migrate", "podautoscaler", "web0", "-n", NAMESPACE)
        assert (back.returncode, back.stdout) == (
            0,
            f"podautoscaler {NAMESPACE}/web0 is a HorizontalPodAutoscaler now\n",
        ), back.stderr
        restored = side.get("hpa", "web0")
        assert (side.get("podautoscaler", "web0"), restored["metadata"]["annotations"]["note"]) == (None, "kept")
        time.sleep(5)
        assert _reasons(side, "hpa")["ScalingActive"] == "ValidMetricFound"
    assert generations(side) == before


def test_migration_of_all_as_a_dry_run(side: Side) -> None:
    """Every autoscaler is told, and nothing is changed."""
    side.define()
    before = [each["metadata"]["resourceVersion"] for each in side.get("hpa")]
    done = side.podscaler("migrate", "hpa", "--all", "-n", NAMESPACE, "--dry-run")
    assert done.stdout.splitlines() == [
        f"horizontalpodautoscaler {NAMESPACE}/{name} would become a PodAutoscaler" for name in ("web0", "web1")
    ]
    assert ([each["metadata"]["resourceVersion"] for each in side.get("hpa")], side.get("podautoscaler")) == (
        before,
        [],
    )


def _reasons(side: Side, resource: str = "podautoscaler") -> dict[str, str]:
    conditions = side.get(resource, "web0")["status"].get("conditions", [])
    return {each["type"]: each["reason"] for each in conditions}
