"""`up` as a user without privileges: low ports are moved, and everything else works."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from up_process import Up, eventually

import prerequisites

pytestmark = pytest.mark.e2e

NOBODY = 65534
SOURCES = Path(__file__).parents[2] / "src"
CORE = "/api/v1/namespaces/default"


def usable_python() -> str | None:
    """A Python of our version that everyone may run; None where there is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            done = subprocess.run([candidate, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


@pytest.fixture
def ordinary_up() -> Iterator[Up]:
    """An `up` whose processes have no privileges."""
    if os.geteuid() != 0:
        folder = Path(tempfile.mkdtemp(prefix="podscaler-user-"))
        instance = Up(folder / "data").start()
    else:
        python = usable_python()
        if python is None:
            prerequisites.PYTHON_OF_ALL.skip()
        folder = Path(tempfile.mkdtemp(prefix="podscaler-user-"))
        os.chown(folder, NOBODY, NOBODY)
        env = {
            "HOME": str(folder),
            "PYTHONPATH": f"{sysconfig.get_paths()['purelib']}{os.pathsep}{SOURCES}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        instance = Up(folder / "data").start(python=python, env=env, user=NOBODY, group=NOBODY, extra_groups=[])
    try:
        yield instance
        assert instance.stop() == 0, instance.log.read_text()
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_low_port_is_served_higher_up(ordinary_up: Up) -> None:
    """The web server takes a high port where 80 needs privileges, the Service maps it, and an event says where."""
    container = {
        "name": "web",
        "image": "registry.k8s.io/hpa-example",
        "env": [{"name": "ITERATIONS", "value": "100"}],
        "ports": [{"containerPort": 80}],
        "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [container]},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    ordinary_up.create(f"{CORE}/pods", pod)
    address = ordinary_up.create(f"{CORE}/services", service)["spec"]["clusterIP"]
    eventually(
        lambda: ordinary_up.get(f"{CORE}/pods/web")["status"].get("containerStatuses", [{}])[0].get("ready", False)
    )
    lowest = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    port = 20080 if lowest > 80 else 80

    def answer() -> str:
        try:
            with urllib.request.urlopen(f"http://{address}:{port}/", timeout=5) as response:
                return str(response.read().decode())
        except OSError:
            return ""

    assert eventually(answer) == "OK!"
    if port != 80:
        eventually(
            lambda: [what for *which, what in ordinary_up.events() if which == ["web", "PortMoved"] and "20080" in what]
        )


def test_commands_and_names_without_privileges(ordinary_up: Up, kubectl_present: None) -> None:
    """A command enters the container's mounts, and finds the Services that were there at the container's start."""
    up = ordinary_up
    up.create(f"{CORE}/services", {"metadata": {"name": "early"}, "spec": {"ports": [{"port": 8080}]}})
    sleeper = {"name": "c", "image": "busybox", "command": ["sleep", "1000"], "tty": True, "stdin": True}
    up.create(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [sleeper]}})
    eventually(lambda: up.get(f"{CORE}/pods/p")["status"].get("phase"), until=lambda phase: phase == "Running")
    done = up.run_kubectl("exec", "-i", "p", "--", "sh", "-c", "cat; id -u; exit 3", stdin="hello\n")
    assert (done.stdout, done.returncode) == (f"hello\n{os.geteuid() or NOBODY}\n", 3)
    (node,) = up.get("/api/v1/nodes")["items"]
    if any(one["type"] == "PrivateMounts" and one["status"] == "False" for one in node["status"]["conditions"]):
        prerequisites.PRIVATE_MOUNTS.skip()
    address = up.get(f"{CORE}/services/early")["spec"]["clusterIP"]
    assert up.kubectl("exec", "p", "--", "getent", "ahostsv4", "early").startswith(address)
