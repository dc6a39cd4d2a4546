"""What a scenario acts on: a control plane, a played node, played metrics, and our controller behind a gate."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import controller_manager
from benchmarks.gate import Gate
from plane_api import PlaneApi
from planes import ControlPlane
from played_metrics import PlayedMetrics
from played_node import NODE, PlayedNode
from up_process import Object, eventually

from patience import WITHIN_S
from real_programs import real_program

FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=0s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
)
OUR_FLAGS = (
    "--other-controller=warn",  # tests write statuses too
    "--leader-elect-lease-duration=60s",  # no machine stands still so long that a controller loses its lease
    "--leader-elect-renew-deadline=40s",  # with what it did not write down yet
    "--leader-elect-retry-period=500ms",
)
OURS = (sys.executable, "-m", "podscaler", "controller", *OUR_FLAGS)
HPAS = "horizontalpodautoscalers"


def built_in() -> tuple[str, ...]:
    """The controller that ours stands in for, as a command; skips where `make assets` was not run."""
    program = str(real_program("kube-controller-manager"))
    only = f"--controllers={controller_manager.HORIZONTAL[0]}"
    return program, only, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=500"


@dataclass
class Stage:
    """See the module.

    Attributes:
        plane: where everything is.
        folder: for logs.
        api: of the plane, past the gate.
        gate: before the API server, as the controller sees it.
        node: runs the pods.
        metrics: what they use.
        kubeconfig: of the gate.
        is_built_in: whether the controllers are upstream's.
        controller: the one that runs now.
        spawned: how many controllers there were.
    """

    plane: ControlPlane
    folder: Path
    api: PlaneApi
    gate: Gate
    node: PlayedNode
    metrics: PlayedMetrics
    kubeconfig: Path
    is_built_in: bool = False
    controller: "subprocess.Popen[bytes] | None" = None
    spawned: int = 0

    @property
    def log(self) -> Path:
        """What the newest controller says."""
        return self.folder / f"controller-{self.spawned}.log"

    def spawn(
        self, *flags: str, kubeconfig: Path | None = None, program: tuple[str, ...] = ()
    ) -> "subprocess.Popen[bytes]":
        """Start one more controller, of another program than the stage's if given; the caller ends it."""
        program = program or (built_in() if self.is_built_in else OURS)
        command = [*program, f"--kubeconfig={kubeconfig or self.kubeconfig}", *FLAGS, *flags]
        environment = os.environ | {"HOME": str(self.folder)}
        self.spawned += 1
        with self.log.open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def replace_controller(self, kubeconfig: Path | None = None) -> None:
        """End the controller, and start one that knows of nothing yet; `kubeconfig` may be another than the gate's."""
        assert self.controller is not None
        end(self.controller)
        self.controller = self.spawn(kubeconfig=kubeconfig)

    def namespace(self, name: str) -> "Scene":
        """A scene in a namespace of its own."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        return Scene(self, name)


@contextmanager
def staged(plane: ControlPlane, folder: Path, *, is_built_in: bool = False) -> Iterator[Stage]:
    """A stage on a plane, with one controller, ours or upstream's, until the block ends."""
    api = PlaneApi(plane.kubeconfig)
    node = PlayedNode(api)
    metrics = PlayedMetrics(node.running)
    node.start()
    plane.serve_metrics(metrics)
    gate = Gate(plane.kubeconfig, None if plane.aggregates else metrics.answer)
    kubeconfig = gate.write_kubeconfig(folder / "gate-kubeconfig")
    stage = Stage(plane, folder, api, gate, node, metrics, kubeconfig, is_built_in)
    stage.controller = stage.spawn()
    try:
        yield stage
        assert stage.controller.poll() is None, f"it ended by itself: {stage.log.read_text()[-2000:]}"
    finally:
        end(stage.controller)
        gate.stop()
        node.stop()
        api.close()


def end(process: "subprocess.Popen[bytes]") -> int:
    """Ask it to end; its exit status."""
    process.terminate()
    try:
        return process.wait(WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@dataclass(frozen=True)
class Scene:
    """A namespace of the stage.

    Attributes:
        stage: the stage.
        name: of the namespace.
    """

    stage: Stage
    name: str

    @property
    def api(self) -> PlaneApi:
        """Of the plane."""
        return self.stage.api

    def path(self, resource: str, name: str = "") -> str:
        """Of an object, or of all."""
        group = {HPAS: "/apis/autoscaling/v2", "deployments": "/apis/apps/v1"}.get(resource, "/api/v1")
        group = "/apis/apps/v1" if resource in {"statefulsets", "replicasets"} else group
        return f"{group}/namespaces/{self.name}/{resource}" + (f"/{name}" if name else "")

    def deploy(self, name: str = "web", *, replicas: int = 1, resource: str = "deployments") -> None:
        """Make a workload of pods that the played node runs, and wait until they do."""
        self.api.create(self.path(resource), workload(name, replicas, is_old=resource == "replicationcontrollers"))
        self.await_running(replicas, name)

    def await_running(self, count: int, name: str = "web") -> None:
        """Returns when that many pods of a workload run."""
        eventually(lambda: len(self.stage.node.running(self.name, name)), until=lambda found: found == count)

    def use(self, milli: int, *, app: str = "web", container: str = "app") -> None:
        """Set the CPU that the containers of that name use, all of the app's together."""
        self.stage.metrics.usage[self.name, app, container] = milli

    def value(self, metric: str, milli: int, *, shared_by: str = "") -> None:
        """Set a custom or external metric; the running pods of an app may share it."""
        if shared_by:
            self.stage.metrics.sharing[self.name, metric] = shared_by
        self.stage.metrics.values[self.name, metric] = milli

    def autoscale(self, *metrics: Object, name: str = "web", target: Object | None = None, **spec: Any) -> Object:
        """Make an autoscaler of 1 to 10 pods with the metrics (half of the requested CPU otherwise)."""
        return self.api.create(self.path(HPAS), autoscaler(*metrics, name=name, target=target, **spec))

    def hpa(self, name: str = "web") -> Any:
        """The autoscaler."""
        return self.api.get(self.path(HPAS, name))

    def replicas(self, name: str = "web", resource: str = "deployments") -> int:
        """What the workload is asked for."""
        asked: int = self.api.get(self.path(resource, name))["spec"]["replicas"]
        return asked

    def await_replicas(self, wanted: int, name: str = "web", *, resource: str = "deployments") -> None:
        """Returns when the workload is asked for that many."""
        eventually(lambda: self.replicas(name, resource), until=lambda found: found == wanted, every_s=0.2)

    def await_condition(self, type_: str, *wanted: str, name: str = "web") -> None:
        """Returns when a condition of the autoscaler has that status and reason."""
        eventually(lambda: self.condition(type_, name), until=lambda found: found == wanted, every_s=0.2)

    def condition(self, type_: str, name: str = "web") -> tuple[str, str]:
        """Status and reason of a condition; empty where it is not there."""
        found = self.status(name).get("conditions", [])
        return next(((each["status"], each["reason"]) for each in found if each["type"] == type_), ("", ""))

    def await_settled(self, count: int, name: str = "web") -> None:
        """Returns when a Deployment is asked for that many pods, all run, and a sync that began later was content."""

        def has_settled() -> bool:
            if not self._is_at(count, name):
                return False
            self.sync_times(2)
            return self._is_at(count, name)

        eventually(has_settled)

    def _is_at(self, count: int, name: str) -> bool:
        found = self.api.get(self.path("deployments", name))
        has = found.get("status", {}).get("replicas", 0), len(self.stage.node.running(self.name, name))
        return (found["spec"]["replicas"], *has) == (count, count, count)

    def sync_times(self, count: int) -> None:
        """Returns when the autoscalers of the scene were looked at `count` times from now on, to the end.

        The metrics that are asked for tell: a sync is over when the next one asks.
        """
        asked = self.stage.metrics.asked
        wanted = asked[self.name] + count + 1
        eventually(lambda: asked[self.name] >= wanted)

    def status(self, name: str = "web") -> Any:
        """The autoscaler's; empty before the first one is written. Counts of zero are not there."""
        return self.hpa(name).get("status", {})

    def counts(self, name: str = "web") -> tuple[int, int]:
        """The current and the desired replicas that the autoscaler's status tells."""
        found = self.status(name)
        return found.get("currentReplicas", 0), found.get("desiredReplicas", 0)

    def events(self, name: str = "web") -> list[tuple[str, str]]:
        """Reason and message of the autoscaler's events."""
        items = self.api.get(self.path("events"))["items"]
        found = [each for each in items if each["involvedObject"]["name"] == name]
        return [
            (each["reason"], each["message"])
            for each in found
            if each["involvedObject"]["kind"] == "HorizontalPodAutoscaler"
        ]


CPU_HALF = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
"""100m for each pod, of 200m that its two containers request."""


def autoscaler(*metrics: Object, name: str, target: Object | None = None, **spec: Any) -> Object:
    """An autoscaler of 1 to 10 pods, of the Deployment of its name unless told otherwise."""
    target = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    whole = {"scaleTargetRef": target, "maxReplicas": 10, "metrics": list(metrics) or [CPU_HALF], **spec}
    return {"metadata": {"name": name}, "spec": whole}


def workload(name: str, replicas: int, *, is_old: bool = False) -> Object:
    """A workload whose pods are bound to the played node."""
    requests = {"resources": {"requests": {"cpu": "100m"}}}
    containers = [{"name": each, "image": "none", **requests} for each in ("app", "sidecar")]
    spec = {"nodeName": NODE, "terminationGracePeriodSeconds": 1, "containers": containers}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"app": name} if is_old else {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": selector, "template": template}}
