"""What deploy/ holds, as tests see it: rendered manifests as objects, and RBAC rules taken apart.

A module of its own name, as every folder of tests may have a conftest.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import prerequisites
from patience import COMMAND_WITHIN_S
from real_programs import real_program

Object = dict[str, Any]

DEPLOY = Path(__file__).parent.parent / "deploy"
CHART = DEPLOY / "helm" / "podscaler"
KUSTOMIZE = DEPLOY / "kustomize"
NAMESPACE = "podscaler-system"


@dataclass(frozen=True, order=True)
class Grant:
    """One thing that a rule allows; `name` empty: whatever the object is called."""

    verb: str
    group: str
    resource: str
    name: str = ""

    def covers(self, wanted: "Grant") -> bool:
        """Whether it allows what `wanted` names; resources may be `*` and `*/scale`, groups `*`."""
        return (
            self.verb == wanted.verb
            and self.group in ("*", wanted.group)
            and (self.resource in ("*", wanted.resource) or self._covers_subresource(wanted))
            and self.name in ("", wanted.name)
        )

    def _covers_subresource(self, wanted: "Grant") -> bool:
        resource, _, subresource = wanted.resource.partition("/")
        return bool(resource) and bool(subresource) and self.resource == f"*/{subresource}"


def grants(rules: Iterable[Object]) -> Iterator[Grant]:
    """What PolicyRules allow, one by one."""
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames") or [""]:
                        yield Grant(verb, group, resource, name)


def read(*parts: str) -> list[Object]:
    """The objects of a file below deploy/kustomize."""
    text = KUSTOMIZE.joinpath(*parts).read_text()
    return [obj for obj in yaml.safe_load_all(text) if obj]


def of_kind(objects: Iterable[Object], kind: str) -> Object:
    """The only object of the kind."""
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def container(objects: Iterable[Object]) -> Object:
    """The container of the only Deployment."""
    found: Object = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return found


def helm_template(*settings: str, values: Object | None = None) -> list[Object]:
    """The chart rendered with `--set` settings and a values file; skips the test without helm."""
    done = run_helm("template", "podscaler", str(CHART), *settings, values=values)
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj]


def run_helm(*args: str, values: Object | None = None) -> subprocess.CompletedProcess[str]:
    """helm in the chart's namespace, the values on its standard input; skips the test without helm."""
    more = [] if values is None else ["--values=-"]
    text = None if values is None else yaml.safe_dump(values)
    command = [real_program("helm"), *args, f"--namespace={NAMESPACE}", *more]
    environment = {"HOME": "/nonexistent", "PATH": "/nowhere"}
    return subprocess.run(
        command, input=text, capture_output=True, text=True, env=environment, timeout=COMMAND_WITHIN_S
    )


def kustomized(folder: Path) -> str:
    """What kubectl's kustomize makes of a folder; skips the test without kubectl."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        prerequisites.KUBECTL.skip()
    done = subprocess.run(
        [kubectl, "kustomize", str(folder)],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=COMMAND_WITHIN_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
