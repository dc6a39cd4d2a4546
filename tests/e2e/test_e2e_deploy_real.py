"""The shipped manifests on a real kube-apiserver: strictly validated, and permissions that suffice."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks import cluster_plane
from shipped_controller import Object, ShippedController
from up_process import eventually

import prerequisites
from patience import COMMAND_WITHIN_S
from real_programs import real_program
from shipped_manifests import CHART, KUSTOMIZE, NAMESPACE, helm_template, kustomized, run_helm

pytestmark = [pytest.mark.e2e, pytest.mark.real]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster_plane.Plane]:
    """An etcd and a kube-apiserver."""
    programs = cluster_plane.programs()
    if programs is None:
        prerequisites.REAL_PLANE.skip()
    made = cluster_plane.Plane(tmp_path_factory.mktemp("plane"), programs)
    try:
        made.start()
        kubectl(made, "create", "namespace", NAMESPACE)
        yield made
    finally:
        made.stop()


def kubectl(plane: cluster_plane.Plane, *args: str, stdin: str | None = None) -> str:
    """What it prints, with what it warns of; it must succeed."""
    command = [str(real_program("kubectl")), f"--kubeconfig={plane.kubeconfig}", *args]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, env=environment, timeout=COMMAND_WITHIN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def rendered(case: str) -> list[Object]:
    """The objects of a chart's or a kustomization's case, but for the namespace, which is there."""
    if case == "chart":
        objects = [*yaml.safe_load_all(run_helm("show", "crds", str(CHART)).stdout), *helm_template()]
    elif case == "chart with everything":
        values = {"controller": {"shards": 3}, "networkPolicy": {"enabled": True}, "metrics": {"tlsSecret": "tls"}}
        objects = helm_template(values=values)
    else:
        objects = [obj for obj in yaml.safe_load_all(kustomized(KUSTOMIZE / case)) if obj]
    return [obj for obj in objects if obj["kind"] != "Namespace"]


@pytest.mark.parametrize("case", ["chart", "chart with everything", "overlays/high-availability", "overlays/sharded"])
def test_a_real_api_server_accepts_everything_without_a_warning(plane: cluster_plane.Plane, case: str) -> None:
    """A dry run with strict validation, also of the standard for pods that the namespace enforces."""
    objects = rendered(case)
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects})
    said = kubectl(plane, "apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
    assert [line for line in said.splitlines() if not line.endswith(" created (server dry run)")] == []
    assert len(said.splitlines()) == len(objects)


def test_pods_are_let_into_a_restricted_namespace(plane: cluster_plane.Plane) -> None:
    """Made of the Deployment's template, by whom the standard is enforced."""
    deployment = next(obj for obj in rendered("base") if obj["kind"] == "Deployment")
    kubectl(plane, "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    template = deployment["spec"]["template"]
    pod = {"kind": "Pod", "apiVersion": "v1", **template}
    pod["metadata"] = {**template["metadata"], "name": "one", "namespace": NAMESPACE}
    said = kubectl(plane, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    assert said == "pod/one created (server dry run)\n"


class Side:
    """The real server, as a ShippedController needs it."""

    def __init__(self, plane: cluster_plane.Plane) -> None:
        self._plane = plane
        self.kubeconfig = Path(plane.kubeconfig)

    def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        return json.loads(kubectl(self._plane, "get", "--raw", path))

    def create(self, path: str, body: Object) -> Object:
        """The object as created by a POST that must succeed."""
        created: Object = json.loads(kubectl(self._plane, "create", "--raw", path, "-f", "-", stdin=json.dumps(body)))
        return created


def test_permissions_suffice(plane: cluster_plane.Plane, tmp_path: Path) -> None:
    """By the real authorizer: a target below its minimum is scaled, and the status says so; nothing is forbidden."""
    side = Side(plane)
    controller = ShippedController(side, tmp_path)
    controller.install()
    targets = "/apis/apps/v1/namespaces/default/deployments"
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    pods = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    side.create(
        targets,
        {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": pods}},
    )
    for name in ("web", "missing"):
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        spec = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5}
        side.create(autoscalers, {"metadata": {"name": name}, "spec": spec})
    controller.start()
    try:
        eventually(
            lambda: (
                side.get(f"{targets}/web")["spec"]["replicas"],
                side.get(f"{autoscalers}/web")["status"].get("desiredReplicas"),
                {event["reason"] for event in side.get("/api/v1/namespaces/default/events")["items"]},
            ),
            until=lambda found: found[:2] == (3, 3) and {"SuccessfulRescale", "FailedGetScale"} <= found[2],
            every_s=0.5,
        )
        assert controller.stop() == 0
    finally:
        controller.end()
    assert controller.complaints() == []
