"""Images that `--image` and a ConfigMap map to a program and to a root file system of this machine."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import KUBECTL, QUICK, Up, eventually

import prerequisites

pytestmark = [
    pytest.mark.e2e,
    prerequisites.ROOT.mark(is_there=os.geteuid() == 0),
    prerequisites.KUBECTL.mark(is_there=KUBECTL is not None),
]

PODS = "/api/v1/namespaces/default/pods"


def root_file_system(folder: Path) -> None:
    """Write a root file system with `/bin/sh`, `ls` and `id` of this machine, and a file of its own."""
    for program in ("sh", "ls", "id", "touch"):
        path = Path(shutil.which(program, path="/usr/bin:/bin") or "").resolve()
        libraries = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
        found = [word for line in libraries.splitlines() for word in line.split() if word.startswith("/")]
        for source, target in [(str(path), f"/bin/{program}"), *((each, each) for each in found)]:
            place = folder / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
    (folder / "release").write_text("of the image")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An OCI bundle whose process lists `/`, and runs as user 4321 with that root file system."""
    folder = tmp_path_factory.mktemp("bundle")
    folder.chmod(0o755)
    root_file_system(folder / "rootfs")
    script = (
        "ls /; id -u; touch /written 2>/dev/null || echo not writable; echo $GREETING; read line < /release; echo $line"
    )
    process = {"args": ["/bin/sh", "-c", script], "env": ["GREETING=hello"], "cwd": "/bin", "user": {"uid": 4321}}
    (folder / "config.json").write_text(json.dumps({"process": process, "root": {"path": "rootfs"}}))
    return folder


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Iterator[Up]:
    """An `up` with two images."""
    folder = tmp_path_factory.mktemp("images")
    program = folder / "server"
    program.write_text('#!/bin/sh\necho "server $@"\n')
    program.chmod(0o755)
    flags = (*QUICK, f"--image=example.com/app={bundle}", f"--image=example.com/server={program}")
    instance = Up(folder / "data", flags).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def finished(up: Up, name: str, **container: Any) -> str:
    """The log of a pod that runs to its end."""
    body = {"restartPolicy": "Never", "containers": [{"name": "c", **container}]}
    up.create(PODS, {"metadata": {"name": name}, "spec": body})
    status = eventually(
        lambda: up.get(f"{PODS}/{name}")["status"], until=lambda found: found.get("phase") in ("Succeeded", "Failed")
    )
    assert status["phase"] == "Succeeded", status
    return up.kubectl("logs", name)


def test_a_bundle_runs_in_its_root(up: Up, bundle: Path) -> None:
    """Files, environment and user are the image's; nothing is written to the image."""
    lines = finished(up, "bundle", image="example.com/app:1.0").split("\n")
    folders = {"bin", "dev", "etc", "lib", "lib64", "proc", "release", "sys", "usr", "var"}
    assert set(lines[: lines.index("4321")]) <= folders
    assert lines[lines.index("4321") :] == ["4321", "not writable", "hello", "of the image", ""]
    assert sorted(path.name for path in (bundle / "rootfs").iterdir() if path.name in ("dev", "proc", "written")) == []


def test_a_working_directory_is_made(up: Up, bundle: Path) -> None:
    """One that the root file system lacks is made for the container, as container runtimes do."""
    container = {"command": ["/bin/sh", "-c", "pwd"], "workingDir": "/new/folder"}
    assert finished(up, "elsewhere", image="example.com/app", **container) == "/new/folder\n"
    assert not (bundle / "rootfs" / "new").exists()


def test_volumes_and_exec_in_a_root(up: Up, bundle: Path) -> None:
    """A volume is mounted at a path that the image lacks; what root writes stays in the container."""
    container = {
        "name": "c",
        "image": "example.com/app",
        "command": ["/bin/sh", "-c", "touch /mine /data/shared; while :; do read line < /release; done"],
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": "v", "mountPath": "/data"}],
    }
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    up.create(PODS, {"metadata": {"name": "rooted"}, "spec": spec})
    eventually(
        lambda: up.run_kubectl("exec", "rooted", "--", "/bin/ls", "/data").stdout, until=lambda text: text == "shared\n"
    )
    assert "mine" in up.kubectl("exec", "rooted", "--", "ls", "/").split()
    assert not (bundle / "rootfs" / "mine").exists()
    up.delete(f"{PODS}/rooted")


def test_a_program_runs_for_its_image(up: Up) -> None:
    """Without a command the program runs, and for a command with its name as well."""
    assert finished(up, "program", image="example.com/server:2", args=["a"]) == "server a\n"
    assert finished(up, "command", image="example.com/server", command=["/usr/bin/server", "b"]) == "server b\n"


def test_the_config_map_is_followed(up: Up) -> None:
    """A pod whose image is unknown starts when the ConfigMap names it."""
    body = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "later:1", "args": ["-c", "echo found"]}]}
    up.create(PODS, {"metadata": {"name": "later"}, "spec": body})
    eventually(lambda: [m for name, _, m in up.events() if name == "later" and "--image NAME=PATH" in m])
    data = {"later": "image: later\npath: /bin/sh\n"}
    up.create("/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "podscaler-images"}, "data": data})
    eventually(lambda: up.run_kubectl("logs", "later").stdout, until=lambda text: text == "found\n")


def test_a_wrong_path_ends_up(tmp_path: Path) -> None:
    """`up` names the flag that it cannot use."""
    up = Up(tmp_path / "data", ("--image=a=/nowhere/a",))
    with pytest.raises(pytest.fail.Exception, match="the path of the image a is no folder and no program"):
        up.start()
