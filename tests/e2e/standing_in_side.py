"""A cluster with deployments and HorizontalPodAutoscalers that nobody looks after: on ours and on a real control plane.

Called by test_e2e_standing_in, which starts controllers. On the real side pods and
metrics are played (the objects of the benchmark); on ours pods are simulated.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import cluster_objects, cluster_plane
from benchmarks.cluster_metrics import GROUPS, scripted_metrics
from up_process import KUBECTL, QUICK, Up, eventually

from patience import COMMAND_WITHIN_S, WITHIN_S
from podscaler.base.clock import SystemClock
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport

Object = dict[str, Any]
DEFINITION = Path(__file__).parents[2] / "deploy" / "crd" / "podautoscalers.yaml"
LAYOUT = cluster_objects.Layout(2)
NAMESPACE = "apps-0"
PERIOD = "--horizontal-pod-autoscaler-sync-period=1s"
SERVING = re.compile(r"serving /metrics, /healthz and /readyz on (\S+)")


class Controller:
    """A `podscaler controller` that runs.

    Args:
        process: the process.
        log: where it says things.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.log = log

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of its own server."""
        try:
            with urllib.request.urlopen(f"http://{self._address()}{path}", timeout=WITHIN_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """The sum of the samples whose line begins so."""
        lines = [line for line in self.get("/metrics")[1].splitlines() if line.startswith(name)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def _address(self) -> str:
        found = eventually(lambda: SERVING.search(self.log.read_text()))
        assert found is not None
        return found[1]


class Side:
    """One cluster.

    Args:
        folder: for logs.
        kubeconfig: of a user who may do everything.
    """

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.kubeconfig = kubeconfig
        self._started = 0

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """What it prints; it must succeed."""
        command = [str(KUBECTL), f"--kubeconfig={self.kubeconfig}", *args]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False, env=environment
        )
        assert done.returncode == 0, f"{args}: {done.stderr}"
        return done.stdout

    def get(self, resource: str, name: str = "") -> Any:
        """An object of the namespace, or the items of all; None where it is not there."""
        which = [resource, name] if name else [resource]
        text = self.kubectl("get", *which, "-n", NAMESPACE, "--ignore-not-found", "-ojson", "--show-managed-fields")
        found = json.loads(text) if text.strip() else None
        return found if name else (found or {"items": []})["items"]

    def managers(self, name: str = "web0") -> set[str]:
        """Who wrote the status of an autoscaler."""
        entries = self.get("hpa", name)["metadata"].get("managedFields", [])
        return {each["manager"] for each in entries if each.get("subresource") == "status"}

    def define(self) -> None:
        """Have PodAutoscalers."""
        self.kubectl("apply", "-f", str(DEFINITION))
        self.kubectl("wait", "crd/podautoscalers.podscaler.dev", "--for=condition=Established", "--timeout=120s")

    def podscaler(self, *args: str) -> "subprocess.CompletedProcess[str]":
        """A command against the cluster, as it ended."""
        command = [sys.executable, "-m", "podscaler", *args, f"--kubeconfig={self.kubeconfig}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_WITHIN_S, check=False)

    @contextmanager
    def controller(self, *flags: str) -> Iterator[Controller]:
        """`podscaler controller` until the block ends; it must end well then."""
        self._started += 1
        log = self.folder / f"controller-{self._started}.log"
        command = [sys.executable, "-m", "podscaler", "controller", f"--kubeconfig={self.kubeconfig}", PERIOD]
        command += ["--metrics-bind-address=127.0.0.1:0", "--leader-elect=false", *flags]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield Controller(process, log)
            assert process.poll() is None, log.read_text()[-2000:]
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(WITHIN_S)
        assert status == 0, log.read_text()[-2000:]


@contextmanager
def ours(folder: Path) -> Iterator[Side]:
    """`podscaler up --without-autoscaler`, with simulated pods."""
    up = Up(folder / "data", (*QUICK, "--without-autoscaler"))
    up.start()
    try:
        side = Side(folder, up.kubeconfig)
        side.kubectl("create", "namespace", NAMESPACE)
        for index in range(LAYOUT.count):
            side.kubectl("apply", "-f", "-", stdin=json.dumps(_list(cluster_objects.name_of(index))))
        eventually(lambda: len(side.get("pods.metrics.k8s.io")), until=lambda count: count == 6)
        yield side
    finally:
        up.stop()


def _list(name: str) -> Object:
    template = {
        "metadata": {"labels": {"app": name}, "annotations": {"podscaler.dev/simulated-cpu": "500m"}},
        "spec": {
            "runtimeClassName": "simulated",
            "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template},
    }
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec = {"minReplicas": 1, "maxReplicas": 20, "scaleTargetRef": target}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": "a"}},
        "spec": spec | {"metrics": [{"type": "Resource", "resource": cpu}]},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [deployment, autoscaler]}


@contextmanager
def real(folder: Path, programs: dict[str, Path]) -> Iterator[Side]:
    """etcd and kube-apiserver, with metrics that move a little all the time."""
    plane = cluster_plane.Plane(folder, programs)
    try:
        plane.start()
        pair = plane.authority.issue("metrics.bench.svc", is_server=True)
        with scripted_metrics(LAYOUT, pair, plane.front_authority.path) as metrics:
            asyncio.run(_populate(plane, metrics.port))
            yield Side(folder, plane.kubeconfig)
    finally:
        plane.stop()


async def _populate(plane: cluster_plane.Plane, port: int) -> None:
    config = await asyncio.to_thread(locate.find_config, str(plane.kubeconfig))
    client = Client(await http_transport.connect(config, user_agent="test"), SystemClock())
    try:
        groups = {group: version for group, (version, _) in GROUPS.items()}
        await cluster_objects.register(client, port, plane.authority.pem, groups)
        await cluster_objects.populate(client, LAYOUT)
    finally:
        await client.close()
