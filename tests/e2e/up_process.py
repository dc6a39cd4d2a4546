"""A real `podscaler up` for tests: started as a process, driven through its API alone.

A module of its own name, as every folder of tests may have a conftest.
"""

import base64
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

import prerequisites
from patience import COMMAND_WITHIN_S, WITHIN_S
from podscaler.controlplane.network import addresses
from podscaler.controlplane.network.pod_networks import PodNetworkError, PodNetworks
from real_programs import installed_kubectl

T = TypeVar("T")
Object = dict[str, Any]

QUICK = (
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--metric-resolution=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=15s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=5s",
)
JSON = "application/json"
KUBECTL = installed_kubectl()


def eventually(what: Callable[[], T], *, until: Callable[[T], bool] = bool, every_s: float = 0.1) -> T:
    """The first value of `what()` for which `until` holds; fails the test with the last one when patience ends."""
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        value = what()
        if until(value):
            return value
        if time.monotonic() > deadline_s:
            pytest.fail(f"not within {WITHIN_S} s; the last value was {value!r}")
        time.sleep(every_s)


def process_exists(pid: int) -> bool:
    """Whether a process of that id runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between the two calls
        return False


@dataclass(frozen=True)
class Answer:
    """What the API server answered; `body` is decoded JSON, or text where it is not JSON."""

    status: int
    body: Any


class Up:
    """One `podscaler up` on a data directory; may be killed and started again.

    Args:
        data_dir: where it keeps everything.
        flags: what else it is told.
    """

    def __init__(self, data_dir: Path, flags: tuple[str, ...] = QUICK) -> None:
        self.data_dir = data_dir
        self.flags = flags
        self.process: subprocess.Popen[str] | None = None
        self.log = data_dir.parent / f"{data_dir.name}.log"

    @property
    def kubeconfig(self) -> Path:
        """The file that `up` writes."""
        return self.data_dir / "kubeconfig"

    def start(self, *, python: str = sys.executable, env: dict[str, str] | None = None, **process: Any) -> "Up":
        """Start it (by `python`, with more environment and arguments of Popen) and wait until it says it is ready."""
        command = [python, "-m", "podscaler", "up", "--data-dir", str(self.data_dir), *self.flags]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **(env or {})}, **process
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "podscaler is up" not in line:
            self.kill()
            pytest.fail(f"{line}\n{self.log.read_text()}")
        return self

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end; its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(timeout=WITHIN_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def _access(self) -> tuple[str, int, str, ssl.SSLContext]:
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return host, int(port), user["token"], ssl.create_default_context(cadata=authority)

    def request(
        self, method: str, path: str, body: Any = None, *, content_type: str = JSON, token: str | None = None
    ) -> Answer:
        """One request with the admin's token (or `token`; an empty one sends none)."""
        host, port, admin, context = self._access()
        connection = http.client.HTTPSConnection(host, port, context=context, timeout=WITHIN_S)
        try:
            headers = {"Accept": JSON, "Content-Type": content_type}
            if token is None or token:
                headers["Authorization"] = f"Bearer {token or admin}"
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
            is_json = response.headers.get("Content-Type", "").startswith(JSON) and "watch=" not in path
            return Answer(response.status, json.loads(text) if is_json and text else text)
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        answer = self.request("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def find(self, path: str) -> Any:
        """The body of a GET, None for 404."""
        answer = self.request("GET", path)
        assert answer.status in {200, 404}, answer
        return answer.body if answer.status == 200 else None

    def create(self, path: str, body: Object) -> Object:
        """The object as created by a POST that must succeed."""
        answer = self.request("POST", path, body)
        assert answer.status == 201, answer
        created: Object = answer.body
        return created

    def patch(self, path: str, body: Any, content_type: str = "application/merge-patch+json") -> Object:
        """The object after a PATCH that must succeed."""
        answer = self.request("PATCH", path, body, content_type=content_type)
        assert answer.status == 200, answer
        patched: Object = answer.body
        return patched

    def delete(self, path: str, body: Any = None) -> None:
        """DELETE, which must succeed."""
        answer = self.request("DELETE", path, body)
        assert answer.status in {200, 202}, answer

    def kubectl(self, *args: str, stdin: str | None = None) -> str:
        """What kubectl prints to stdout; it must succeed."""
        done = self.run_kubectl(*args, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout

    def run_kubectl(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """kubectl with this server's kubeconfig."""
        assert KUBECTL is not None
        home = self.data_dir.parent
        env = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC"}
        return subprocess.run(
            [KUBECTL, *args],
            input=stdin,
            capture_output=True,
            text=True,
            env=env,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )

    def watch(self, path: str, *, until: Callable[[list[Object]], bool]) -> list[Object]:
        """The events of a watch (a path with its query) as far as `until` holds for them, or as the server ends it."""
        host, port, token, context = self._access()
        connection = http.client.HTTPSConnection(host, port, context=context, timeout=WITHIN_S)
        events: list[Object] = []
        try:
            connection.request("GET", path, headers={"Accept": JSON, "Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            while not until(events) and (line := response.readline()):
                events.append(json.loads(line))
        finally:
            connection.close()
        return events

    def node(self) -> Object:
        """The one node, once it has registered itself."""
        (found,) = eventually(lambda: self.get("/api/v1/nodes")["items"])
        node: Object = found
        return node

    def pods_have_networks(self) -> bool:
        """Whether each pod has a network namespace of its own."""
        node = eventually(self.node, until=lambda found: "conditions" in found["status"])
        return any((each["type"], each["status"]) == ("PodNetworks", "True") for each in node["status"]["conditions"])

    def events(self, namespace: str = "default") -> list[tuple[str, str, str]]:
        """(object's name, reason, message) of the namespace's events."""
        items = self.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        return [(e["involvedObject"]["name"], e["reason"], e["message"]) for e in items]


@contextmanager
def forwarding(up: Up, target: str, port: int) -> Iterator[int]:
    """A local port, chosen by kubectl, that it forwards to a port of `target`."""
    command = [KUBECTL or "", f"--kubeconfig={up.kubeconfig}", "port-forward", target, f":{port}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        told = re.fullmatch(rf"Forwarding from 127\.0\.0\.1:(\d+) -> {port}\n", process.stdout.readline())
        assert told is not None
        yield int(told[1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def require_pod_networks() -> None:
    """Skip the test where this machine cannot give pods network namespaces; tries it."""
    block = addresses.claim_block()
    networks = PodNetworks(block)
    try:
        networks.open()
        networks.close()
    except PodNetworkError:
        prerequisites.NETWORK_NAMESPACES.skip()
    finally:
        block.close()
