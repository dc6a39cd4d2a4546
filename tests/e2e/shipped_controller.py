"""The controller as the chart ships it: installed by Helm on a running server, at work with its account's token.

Its pods need an image that nobody has built here, so the Deployment has none: the process is started with the
arguments of the Deployment's container, and whatever the server allows the ServiceAccount.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import yaml

import shipped_manifests as shipped
from patience import COMMAND_WITHIN_S, WITHIN_S
from podscaler.controller.leaderelection import election
from real_programs import real_program
from shipped_manifests import NAMESPACE, Grant, grants

Object = dict[str, Any]


class Server(Protocol):
    """What a ShippedController needs of the server: `up`, or a real one."""

    @property
    def kubeconfig(self) -> Path:
        """Of a user who may do everything."""
        ...

    def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        ...

    def create(self, path: str, body: Object) -> Object:
        """The object as created by a POST that must succeed."""
        ...


ACCOUNT = f"system:serviceaccount:{NAMESPACE}:podscaler"
QUICK_FLAGS = {
    "horizontal-pod-autoscaler-sync-period": "500ms",
    "horizontal-pod-autoscaler-downscale-stabilization": "5s",
    "leader-elect-lease-duration": "4s",
    "leader-elect-renew-deadline": "3s",
    "leader-elect-retry-period": "500ms",
}


class ShippedController:
    """One process of the installed chart.

    Args:
        up: where it is installed.
        folder: for its files.
    """

    def __init__(self, up: Server, folder: Path) -> None:
        self._up = up
        self._folder = folder
        self.log = folder / "controller.log"
        self._process: subprocess.Popen[bytes] | None = None

    def install(self, **controller: Any) -> str:
        """Install the chart, or change what is installed; what helm prints.

        Args:
            controller: values of that name.
        """
        values = {"replicas": 0, "controller": {"flags": QUICK_FLAGS, "extraArgs": ["-v"]} | controller}
        command = [real_program("helm"), "upgrade", "--install", "podscaler", str(shipped.CHART), "--create-namespace"]
        command += [f"--namespace={NAMESPACE}", "--values=-", f"--kubeconfig={self._up.kubeconfig}"]
        done = subprocess.run(
            command,
            input=yaml.safe_dump(values),
            capture_output=True,
            text=True,
            env={"HOME": str(self._folder), "PATH": "/nowhere"},
            timeout=COMMAND_WITHIN_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Run the container's command."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "podscaler", *self._arguments(), f"--kubeconfig={self._kubeconfig()}"],
                stderr=log,
                env={**os.environ, "HOME": str(self._folder)},
            )

    def stop(self) -> int:
        """Ask it to end, as a kubelet does; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=WITHIN_S)

    def end(self) -> None:
        """End it however it is."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(timeout=WITHIN_S)

    def log_lines(self) -> list[Object]:
        """What it has logged, each line decoded."""
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def complaints(self) -> list[str]:
        """What it has logged about permissions that are missing."""
        said = [line["msg"] for line in self.log_lines()]
        return [each for each in said if "forbidden" in each.lower() or "does not allow the user" in each]

    def rules(self) -> set[Grant]:
        """What the installed roles allow, one by one."""
        path = "/apis/rbac.authorization.k8s.io/v1"
        wide = self._up.get(f"{path}/clusterroles/podscaler")
        narrow = self._up.get(f"{path}/namespaces/{election.NAMESPACE}/roles/podscaler")
        return set(grants([*wide["rules"], *narrow["rules"]]))

    def _arguments(self) -> Iterator[str]:
        deployment = self._up.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/podscaler")
        for argument in deployment["spec"]["template"]["spec"]["containers"][0]["args"]:
            yield "--metrics-bind-address=127.0.0.1:0" if "metrics-bind" in argument else argument

    def _kubeconfig(self) -> Path:
        """A file with the ServiceAccount's token and nothing else of the admin's."""
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/podscaler/token"
        granted = self._up.create(path, {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}})
        config = yaml.safe_load(self._up.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": granted["status"]["token"]}
        file = self._folder / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(config))
        return file


def audited(path: Path) -> list[Object]:
    """The events of the audit log about the ServiceAccount's requests."""
    lines = path.read_text().splitlines(keepends=True)
    events = (json.loads(line) for line in lines if line.endswith("\n"))  # the last one may be on its way
    return [event for event in events if event["user"].get("username") == ACCOUNT]


def asked(events: Iterable[Object]) -> set[Grant]:
    """What the requests needed: resources only."""
    found = set()
    for event in events:
        ref = event.get("objectRef")
        if ref is not None:
            resource = f"{ref['resource']}/{ref['subresource']}" if "subresource" in ref else ref["resource"]
            found.add(Grant(event["verb"], ref.get("apiGroup", ""), resource, ref.get("name", "")))
    return found
