"""Programs of other projects on `podscaler up`, deployed by their own manifests with another command, for tests.

What is changed is what docs/ecosystem.md tells users to change: the command, the address that programs listen on, and
where it is missing the user.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asset_modules
import yaml
from up_process import KUBECTL, Up, eventually

import prerequisites
from patience import COMMAND_WITHIN_S

Object = dict[str, Any]
NOBODY = 65534


@contextmanager
def shared_programs(*names: str) -> Iterator[dict[str, Path]]:
    """Copies of programs that every user may run; skips the test where one is not built."""
    found = {name: asset_modules.find_program(name) for name in names}
    if not all(found.values()):
        prerequisites.ECOSYSTEM.skip()
    folder = Path(tempfile.mkdtemp(prefix="podscaler-programs-", dir="/var/tmp"))  # pods may cover /tmp
    try:
        folder.chmod(0o755)
        for name, program in found.items():
            assert program is not None
            shutil.copy(program, folder / name)
            (folder / name).chmod(0o755)
        yield {name: folder / name for name in names}
    finally:
        shutil.rmtree(folder)


def manifests(module: str, *parts: str) -> Path:
    """A file or a folder of the manifests of a Go module."""
    folder = asset_modules.find_manifests(module)
    if folder is None:
        prerequisites.ECOSYSTEM.skip()
    return folder.joinpath(*parts)


def read_objects(file: Path) -> list[Object]:
    """The objects of a YAML file."""
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


def kustomized(folder: Path) -> list[Object]:
    """The objects that `kubectl kustomize` prints for a folder."""
    assert KUBECTL is not None
    command = [KUBECTL, "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=COMMAND_WITHIN_S)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def run_program(deployment: Object, program: Path, *arguments: str) -> Object:
    """The Deployment with `program` instead of its image; `arguments` come after its own and may have `$(POD_IP)`."""
    spec = deployment["spec"]["template"]["spec"]
    [container] = spec["containers"]
    container["command"] = [str(program)]
    container["args"] = [*container.get("args", ()), *arguments]
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container["env"] = [*container.get("env", ()), address]
    security = spec.setdefault("securityContext", {})
    if security.get("runAsNonRoot"):
        security.setdefault("runAsUser", NOBODY)
    return deployment


def apply(up: Up, objects: Iterable[Object], *, namespace: str | None = None) -> None:
    """Apply objects with kubectl, as a user does; with `namespace`, none of them names another one."""
    place = [f"--namespace={namespace}"] if namespace else []
    up.kubectl("apply", *place, "--server-side", "-f", "-", stdin=yaml.safe_dump_all(objects))


def await_ready(up: Up, deployment: Object, *, replicas: int = 1) -> None:
    """Wait until the pods of a Deployment are ready."""
    metadata = deployment["metadata"]
    path = f"/apis/apps/v1/namespaces/{metadata['namespace']}/deployments/{metadata['name']}"
    eventually(lambda: up.get(path)["status"].get("readyReplicas"), until=lambda count: count == replicas)


def of_kind(objects: Sequence[Object], kind: str, name: str) -> Object:
    """The object of that kind and name."""
    return next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
