"""`up` as a user without privileges: low ports are moved, and everything else works."""

import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from ordinary_user import NOBODY, usable_python
from up_process import Up, eventually

import prerequisites

pytestmark = pytest.mark.e2e

CORE = "/api/v1/namespaces/default"


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


def has_condition(up: Up, kind: str) -> bool:
    """Whether the node says that this machine allows it."""
    conditions = eventually(lambda: up.node()["status"].get("conditions"))
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def web(name: str, **container: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pod with the web server and a Service at port 80 for it."""
    labels = {"app": name}
    image = {"name": "web", "image": "registry.k8s.io/hpa-example", "env": [{"name": "ITERATIONS", "value": "100"}]}
    pod = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [image | container]}}
    return pod, {"metadata": {"name": name}, "spec": {"selector": labels, "ports": [{"port": 80}]}}


def said(up: Up, pod: str) -> str:
    """The end of what a pod printed, nothing as long as it has not started."""
    answer = up.request("GET", f"{CORE}/pods/{pod}/log")
    return str(answer.body) if answer.status == 200 else ""


def asks(up: Up, name: str, *command: str) -> str:
    """What a pod that runs `command` until it succeeds has printed then."""
    again = 'until "$@"; do sleep 0.1; done; echo done'
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", again, "sh", *command]}
    pod = {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    up.create(f"{CORE}/pods", pod)
    return eventually(lambda: said(up, name), until=lambda text: text.endswith("done\n"))


def test_services_answer_on_their_own_port_inside_pods(ordinary_up: Up) -> None:
    """`wget http://NAME` works in a pod though nobody may bind port 80, and so does the pod's own port 80."""
    up = ordinary_up
    if not has_condition(up, "LowPorts"):
        prerequisites.PORT_TRANSLATION.skip()
    asks_itself = {"exec": {"command": ["sh", "-c", "wget -q -O /dev/null -T 5 http://$POD_IP/"]}, "periodSeconds": 1}
    pod, service = web("inside", readinessProbe=asks_itself)
    up.create(f"{CORE}/pods", pod)
    address = up.create(f"{CORE}/services", service)["spec"]["clusterIP"]
    assert "OK!" in asks(up, "asks-service", "wget", "-q", "-O-", "-T", "5", f"http://{address}/")
    pod_ip = up.get(f"{CORE}/pods/inside")["status"]["podIP"]
    assert "OK!" in asks(up, "asks-pod", "wget", "-q", "-O-", "-T", "5", f"http://{pod_ip}/")


STATIC_CLIENT = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
static const struct sockaddr_in *kept;
int main(int argc, char **argv) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    kept = &to;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)kept, sizeof to) != 0) { perror("connect"); return 1; }
    puts("connected");
    return 0;
}
"""


def test_a_static_program_reaches_services(ordinary_up: Up, tmp_path: Path) -> None:
    """A program without a dynamic linker connects to port 80 of a Service."""
    up = ordinary_up
    compiler = shutil.which("cc")
    if compiler is None:
        prerequisites.C_COMPILER.skip()
    if not has_condition(up, "LowPorts"):
        prerequisites.PORT_TRANSLATION.skip()
    program = up.data_dir.parent / "static-client"
    built = subprocess.run(
        [compiler, "-static", "-x", "c", "-o", str(program), "-"], input=STATIC_CLIENT, text=True, check=False
    )
    if built.returncode != 0:
        prerequisites.STATIC_C.skip()
    pod, service = web("for-static")
    up.create(f"{CORE}/pods", pod)
    address = up.create(f"{CORE}/services", service)["spec"]["clusterIP"]
    assert "connected" in asks(up, "static", str(program), address, "80")


def test_any_program_may_listen_on_a_low_port(ordinary_up: Up) -> None:
    """A program that binds port 81 of all addresses gets it on its pod's, undeclared; the pod's note says where."""
    up = ordinary_up
    if not has_condition(up, "LowPorts"):
        prerequisites.PORT_TRANSLATION.skip()
    probe = {"tcpSocket": {"port": 81}, "periodSeconds": 1}
    pod, service = web(
        "anywhere", command=[usable_python() or sys.executable, "-m", "http.server", "81"], readinessProbe=probe
    )
    service["spec"]["ports"][0]["targetPort"] = 81
    up.create(f"{CORE}/pods", pod)
    address = up.create(f"{CORE}/services", service)["spec"]["clusterIP"]
    assert "Directory listing" in asks(up, "asks-anywhere", "wget", "-q", "-O-", "-T", "5", f"http://{address}/")
    notes = up.get(f"{CORE}/pods/anywhere")["metadata"]["annotations"]
    assert notes["podscaler.dev/port-map"] == '{"81": 20081}'
