"""Replays golden transcripts of kubectl: the same commands against our server, compared line by line.

Called by test_golden_kubectl. Source of the form: tests/conformance/golden/README.md.
"""

import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import case_objects
import case_times
from golden_matching import Difference, Matcher
from golden_rest import new_ident
from golden_server import ADMIN_TOKEN

MANIFESTS = Path(__file__).parent / "golden" / "manifests"
CAPTURED_AT = datetime(2026, 11, 21, 22, tzinfo=UTC)
"""The middle of the day in which events that began on 2024-03-01 at 10:00 have the captured age, 2y265d."""
LOG_LINE = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d")
TIMEOUT_S = 120


class Metrics:
    """PodMetrics or NodeMetrics that the cases bring along."""

    def __init__(self) -> None:
        self._objects: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, obj: dict[str, Any]) -> None:
        """One more."""
        with self._lock:
            self._objects.append(obj)

    def list(self, namespace: str) -> list[dict[str, Any]]:
        """Those of a namespace, or all."""
        with self._lock:
            return [each for each in self._objects if namespace in ("", each["metadata"].get("namespace"))]

    def get(self, namespace: str, name: str) -> dict[str, Any] | None:
        """One of them."""
        return next((each for each in self.list(namespace) if each["metadata"]["name"] == name), None)


@dataclass
class Target:
    """Where the commands go.

    Attributes:
        home: an empty home directory with a kubeconfig in it.
        metrics: by kind, where their objects are put.
    """

    port: int
    tls: ssl.SSLContext
    kubectl: str
    home: Path
    metrics: dict[str, Metrics]


@dataclass
class Transcript:
    """One case, in a namespace of its own."""

    target: Target
    case: dict[str, Any]
    ident: str = field(default_factory=new_ident)
    matcher: Matcher = field(default_factory=Matcher)

    def run(self) -> str:
        """What the first difference is, empty where there is none."""
        try:
            self._load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"ns-{self.ident}"}})
            for name in self.case["fixtures"]:
                for obj in self._filled(json.loads((MANIFESTS / f"{name}.json").read_text()))["objects"]:
                    self._load(_as_old_as_captured(obj))
            for step in self.case["steps"]:
                self._run_step(step)
        except Difference as difference:
            return str(difference)
        finally:
            self._tidy()
        return ""

    def _run_step(self, step: dict[str, Any]) -> None:
        done = self._kubectl(self._filled(step["argv"]), self._filled(step.get("stdin") or ""))
        command = " ".join(step["argv"])
        if done.returncode != step["exit"]:
            raise Difference(f"{command}: wanted exit {step['exit']}, got {done.returncode}: {done.stderr[:300]}")
        for stream, got in (("stdout", done.stdout), ("stderr", done.stderr)):
            wanted = _squeezed(self._filled(step[stream]).replace("{server}", f"https://127.0.0.1:{self.target.port}"))
            lines = _squeezed(got)
            if step.get("compare") == "contains":
                wanted, lines = [line for line in wanted if line not in lines], []
            self.matcher.match(wanted, lines, f"{command}: {stream}")

    def _kubectl(self, argv: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
        home = self.target.home
        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "KUBECONFIG": str(home / "config"),
            "KUBECACHEDIR": str(home / "cache"),
            "TZ": "UTC",
            "LC_ALL": "C",
        }
        command = [self.target.kubectl, *argv]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, env=env, cwd=home
        )

    def _load(self, obj: dict[str, Any]) -> None:
        plural = obj.pop("x-plural", "")
        kept = self.target.metrics.get(obj["kind"])
        if kept is not None:
            kept.add({name: value for name, value in obj.items() if name not in ("apiVersion", "kind")})
            return
        path = case_objects.path_of(obj, plural)
        status, live = self._call("POST", path, obj)
        if status not in (201, 409):
            raise Difference(f"cannot load {obj['kind']} {obj['metadata']['name']}: {live}")
        if obj["kind"] == "CustomResourceDefinition":
            self._wait_until_served(obj["spec"])
        if "status" in obj and status == 201 and obj["kind"] != "Namespace":
            live["status"] = obj["status"]
            status, answer = self._call("PUT", f"{path}/{obj['metadata']['name']}/status", live)
            if status != 200:
                raise Difference(f"cannot write the status of {obj['kind']} {obj['metadata']['name']}: {answer}")

    def _wait_until_served(self, spec: dict[str, Any]) -> None:
        """Until the objects of a new definition can be listed."""
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        deadline = time.monotonic() + TIMEOUT_S
        while self._call("GET", path, None)[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.02)

    def _tidy(self) -> None:
        """Remove the nodes that the case made: they are in no namespace and would show in others' answers."""
        if "nodes" in self.case["fixtures"]:
            for obj in self._filled(json.loads((MANIFESTS / "nodes.json").read_text()))["objects"]:
                if obj["kind"] == "Node":
                    self._call("DELETE", f"/api/v1/nodes/{obj['metadata']['name']}", None)

    def _call(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.target.port, context=self.target.tls, timeout=TIMEOUT_S
        )
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
        connection.request(method, path, body=json.dumps(body), headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()

    def _filled(self, value: Any) -> Any:
        return case_objects.filled(value, self.ident)


def _as_old_as_captured(obj: dict[str, Any]) -> dict[str, Any]:
    """An event with the age that it had for the captured kubectl, which prints it; other ages are placeholders."""
    return case_times.moved(obj, datetime.now(UTC) - CAPTURED_AT) if obj["kind"] == "Event" else obj


def _squeezed(text: str) -> list[str]:
    """The lines of an output, with runs of blanks as one, without log lines of the client library."""
    lines = [line for line in text.strip("\n").split("\n") if not LOG_LINE.match(line)]
    return [re.sub(r"[ \t]+", " ", line).rstrip() for line in lines] or [""]
