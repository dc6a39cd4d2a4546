"""Runs one case of kubectl commands against a server, in a namespace and a folder of its own.

Called by `record_kubectl`, which keeps what was printed, and by test_kubectl_transcripts, which compares. The form of a
case is that of the golden transcripts (tests/conformance/golden/README.md), with `files` of the case, which lie in the
folder where kubectl runs, `env` of a step, and its `shape` (see `kubectl_output`).
"""

import difflib
import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import case_objects
import kubectl_output
from case_times import ServerTimes, instants
from golden_rest import new_ident

MANIFESTS = Path(__file__).parent / "golden" / "manifests"
TIMEOUT_S = 25
"""After which a command that waits for ever is ended, with this exit status: some transcripts hold that."""
TIMED_OUT = 124
PATIENCE_S = 120
"""For a command that ended by itself when it was recorded, and may need longer on a busy machine."""
CLUSTER_WIDE = ("nodes", "widget")
"""Fixtures with objects in no namespace, which are removed afterwards: others would see them."""


@dataclass
class Server:
    """Where the commands go: a URL over HTTPS, and the tokens of an admin and of somebody without rights."""

    url: str
    token: str
    viewer_token: str

    def write_kubeconfig(self, path: Path) -> None:
        """A file with both users; the admin is current."""
        users = {"admin": self.token, "viewer": self.viewer_token}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "admin",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "insecure-skip-tls-verify": True}}],
            "users": [{"name": name, "user": {"token": token}} for name, token in users.items()],
            "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in users],
        }
        path.touch(0o600)
        path.write_text(json.dumps(document))

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the decoded answer to a request of the admin."""
        place = self.url.partition("://")[2]
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        context = ssl._create_unverified_context()
        with closing(http.client.HTTPSConnection(place, timeout=PATIENCE_S, context=context)) as connection:
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if text.startswith("{") else text

    def wait_until_served(self, spec: dict[str, Any]) -> None:
        """Until the objects of a new definition can be listed."""
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        deadline = time.monotonic() + PATIENCE_S
        while self.call("GET", path)[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.02)


@dataclass
class Session:
    """One case.

    Args:
        kubectl: the program.
        home: where the cache of discovery is shared by all cases of a server.
    """

    server: Server
    kubectl: str
    home: Path
    case: dict[str, Any]
    ident: str = field(default_factory=new_ident)

    def answers(self) -> Iterator[dict[str, Any]]:
        """What each step gave: `exit`, and the lines of `stdout` and `stderr`. AssertionError where a fixture fails."""
        folder = self.home / self.ident
        folder.mkdir()
        output = kubectl_output.Output(self.ident, self.server.url, str(folder), ServerTimes(self._given_instants()))
        self._prepare(folder)
        try:
            for step in self.case["steps"]:
                done = self._run(step, folder)
                streams = {"stdout": done.stdout, "stderr": done.stderr}
                lines = {name: output.lines(text, step.get("shape", "")) for name, text in streams.items()}
                yield {"exit": done.returncode, **lines}
        finally:
            self._tidy()

    def _prepare(self, folder: Path) -> None:
        self.server.write_kubeconfig(folder / "config")
        for name, text in self.case.get("files", {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(text))
            path.chmod(0o700)
        self._load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{self.ident}"}})
        for obj in self._fixtures(self.case.get("fixtures", ())):
            self._load(obj)

    def _run(self, step: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": f"{folder}:{os.environ.get('PATH', '')}",
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "config"),
            "KUBECACHEDIR": str(self.home / "cache"),
            "TMPDIR": str(folder),
            "TZ": "UTC",
            "LC_ALL": "C",
            "TERM": "dumb",
            "GOGC": "off",
            "KUBECTL": self.kubectl,
            **self._filled(step.get("env", {})),
        }
        command = [self.kubectl, *self._filled(step["argv"])]
        stdin = self._filled(step.get("stdin", ""))
        limit_s = TIMEOUT_S if step.get("exit", TIMED_OUT) == TIMED_OUT else PATIENCE_S
        try:
            return subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=limit_s, env=env, cwd=folder
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, TIMED_OUT, "", "(ran too long)")

    def _given_instants(self) -> set[tuple[str, ...]]:
        asked = [{key: step.get(key) for key in ("argv", "stdin", "env")} for step in self.case["steps"]]
        return instants([asked, self.case.get("files"), *self._fixtures(self.case.get("fixtures", ()))])

    def _fixtures(self, names: Any) -> Iterator[dict[str, Any]]:
        for name in names:
            yield from self._filled(json.loads((MANIFESTS / f"{name}.json").read_text(encoding="utf-8")))["objects"]

    def _load(self, obj: dict[str, Any]) -> None:
        path = case_objects.path_of(obj, obj.pop("x-plural", ""))
        status, live = self.server.call("POST", path, obj)
        assert status in (201, 409), f"{obj['kind']} {obj['metadata']['name']}: {live}"
        if obj["kind"] == "CustomResourceDefinition":
            self.server.wait_until_served(obj["spec"])
        if "status" in obj and status == 201 and obj["kind"] != "Namespace":
            live["status"] = obj["status"]
            status, answer = self.server.call("PUT", f"{path}/{obj['metadata']['name']}/status", live)
            assert status == 200, f"status of {obj['kind']} {obj['metadata']['name']}: {answer}"

    def _tidy(self) -> None:
        """Remove what is in no namespace, and leave the rest: namespaces do not see each other."""
        wide = [name for name in CLUSTER_WIDE if name in self.case.get("fixtures", ())]
        for obj in self._fixtures(wide):
            if obj["kind"] in ("Node", "CustomResourceDefinition"):
                self.server.call("DELETE", f"{case_objects.path_of(obj)}/{obj['metadata']['name']}")

    def _filled(self, value: Any) -> Any:
        return case_objects.filled(value, self.ident)


def client_version(kubectl: str) -> str:
    """The minor version of a kubectl, such as 1.37."""
    done = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=True)
    info = json.loads(done.stdout)["clientVersion"]
    return f"{info['major']}.{info['minor'].rstrip('+')}"


def difference(case: dict[str, Any], wanted: list[dict[str, Any]], got: list[dict[str, Any]]) -> str:
    """Where the answers to the steps of a case differ, empty where they do not."""
    told = []
    for step, one, other in zip(case["steps"], wanted, got, strict=True):
        for part in ("exit", "stdout", "stderr"):
            found = _part_difference(one[part], other[part], is_part=step.get("compare") == "contains")
            if found:
                told.append(f"{' '.join(step['argv'])}: {part}: {found}")
    return "\n".join(told)


def _part_difference(wanted: Any, got: Any, *, is_part: bool) -> str:
    if wanted == got or not isinstance(wanted, list):
        return "" if wanted == got else f"wanted {wanted}, got {got}"
    if is_part:
        return ", ".join(f"lacks {line}" for line in wanted if line not in got)
    lines = difflib.unified_diff(wanted, got, "wanted", "got", lineterm="", n=1)
    return "\n".join(("", *lines))
