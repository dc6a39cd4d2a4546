"""The same commands of kubectl on a real API server and on ours, and what they print, made comparable.

Called by test_e2e_side_by_side. Neither side runs controllers. Both have the objects of the golden manifests in a
namespace of the same name, so that only what servers choose (uids, times, addresses, versions) must be made equal.
"""

import difflib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patience import COMMAND_WITHIN_S
from real_programs import real_program

MANIFESTS = Path(__file__).parent.parent / "conformance" / "golden" / "manifests"
CHOSEN = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000"), "<time>"),
    (re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000"), "<time>"),
    (re.compile(r"resourceVersion: \"\d+\"|\"resourceVersion\": ?\"\d+\""), "<rv>"),
    (re.compile(r"Resource Version:\s+\d+|version to be 1, was \d+"), "<rv>"),
    (re.compile(r"(NodePort:.*|nodePort: |:)3[0-2]\d\d\d\b"), r"\1<port>"),
    (re.compile(r"/tmp/(LIVE|MERGED)-\d+"), r"/tmp/\1"),
    (re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"), "<ip>"),
    (re.compile(r"\b(\d+[dhms])+( ago)?\b"), "<age>"),
    (re.compile(r"https://<ip>:\d+"), "<server>"),
    (re.compile(r"[IWEF]\d{4} .*\n"), ""),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Side:
    """One of the servers.

    Attributes:
        kubeconfig: of a user who may do everything.
        home: an empty directory.
    """

    kubeconfig: Path
    home: Path

    def kubectl(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The command as it ended."""
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C"}
        command = [real_program("kubectl"), f"--kubeconfig={self.kubeconfig}", *args]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=environment, timeout=COMMAND_WITHIN_S
        )

    def prepare(self, namespace: str, *fixtures: str) -> None:
        """Make the namespace, with the objects of the golden manifests in it."""
        self._succeed("create", "namespace", namespace)
        ident = namespace.removeprefix("ns-")
        for name in fixtures:
            text = (MANIFESTS / f"{name}.json").read_text().replace("{ns}", namespace).replace("{id}", ident)
            for obj in json.loads(text)["objects"]:
                self._load(obj)

    def _load(self, obj: dict[str, Any]) -> None:
        obj.pop("x-plural", None)
        self._succeed("create", "-f", "-", stdin=json.dumps(obj))
        if "status" not in obj or obj["kind"] == "Namespace":
            return
        metadata = obj["metadata"]
        place = [f"--namespace={metadata['namespace']}"] if "namespace" in metadata else []
        patch = json.dumps({"status": obj["status"]})
        self._succeed(
            "patch", obj["kind"], metadata["name"], *place, "--subresource=status", "--type=merge", f"--patch={patch}"
        )

    def _succeed(self, *args: str, stdin: str = "") -> None:
        done = self.kubectl(*args, stdin=stdin)
        assert done.returncode == 0, f"{args}: {done.stderr}"

    def transcript(self, *commands: str | tuple[str, str], namespace: str) -> list[str]:
        """What the commands print and how they exit, made comparable; with a text, it is the command's input."""
        lines = []
        for command in commands:
            words, stdin = (command, "") if isinstance(command, str) else command
            done = self.kubectl(f"--namespace={namespace}", *words.split(), stdin=stdin)
            text = f"$ {words}\n{done.stdout}{done.stderr}exit {done.returncode}"
            lines += comparable(text).splitlines()
        return lines


def difference(real: list[str], ours: list[str]) -> str:
    """What ours has otherwise than the real one, empty where they are equal."""
    return "\n".join(difflib.unified_diff(real, ours, "real", "ours", n=3, lineterm=""))


def comparable(text: str) -> str:
    """The text without what each server chooses for itself."""
    for pattern, instead in CHOSEN:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines())
