"""exec, attach, cp, port-forward and `run -i --tty` with this machine's kubectl, and the official Python client."""

import os
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import up_process
from terminals import KubectlTerminal
from up_process import Up, eventually, forwarding

import prerequisites
from patience import WITHIN_S
from real_programs import real_program

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kubectl_present")]

FILE_BYTES = 5 << 20
PYTHON_CLIENT = Path(__file__).with_name("python_client_streams.py")


@pytest.fixture(autouse=True, params=["installed", "newest"])
def kubectl(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with this machine's kubectl, and with that of `make assets`."""
    if request.param == "newest":
        monkeypatch.setattr(up_process, "KUBECTL", str(real_program("kubectl")))


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod that is not started again."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": list(containers), "terminationGracePeriodSeconds": 1, **spec},
    }


def container(script: str, name: str = "c", **more: Any) -> dict[str, Any]:
    """A container that runs a shell script."""
    return {"name": name, "image": "busybox", "command": ["/bin/sh", "-c", script], **more}


def run(up: Up, manifest: dict[str, Any]) -> str:
    """Create a pod, in place of one that is there, and wait until it runs; its name."""
    name: str = manifest["metadata"]["name"]
    path = f"/api/v1/namespaces/default/pods/{name}"
    up.request("DELETE", f"{path}?gracePeriodSeconds=0")
    eventually(lambda: up.find(path) is None)
    up.create("/api/v1/namespaces/default/pods", manifest)
    eventually(lambda: up.get(path)["status"].get("phase"), until=lambda phase: phase == "Running")
    return name


def run_web(up: Up, name: str) -> str:
    """Create a pod with the web server of the walkthrough and wait until that listens; its name."""
    run(up, pod(name, {"name": "web", "image": "registry.k8s.io/hpa-example"}))
    eventually(lambda: up.kubectl("logs", name), until=lambda text: "listening on" in text)
    return name


@pytest.fixture(scope="module")
def sleeper(up: Up) -> str:
    """A pod with one container that does nothing."""
    return run(up, pod("sleeper", container("sleep 1000")))


def test_exit_codes_and_streams(up: Up, sleeper: str) -> None:
    """Standard output and error are apart, and kubectl ends with the command's exit status."""
    done = up.run_kubectl("exec", sleeper, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\ncommand terminated with exit code 3\n", 3)
    assert up.kubectl("exec", sleeper, "--", "true") == ""


def test_exec_sees_what_the_container_sees(up: Up) -> None:
    """A command has the container's environment, folder and mounts."""
    manifest = pod(
        "surrounded",
        container(
            "sleep 1000",
            env=[{"name": "GREETING", "value": "hello"}],
            volumeMounts=[{"name": "v", "mountPath": "/only-here"}],
            workingDir="/only-here",
        ),
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    name = run(up, manifest)
    assert (
        up.kubectl("exec", name, "--", "sh", "-c", "echo $GREETING $HOSTNAME; pwd") == "hello surrounded\n/only-here\n"
    )
    assert not Path("/only-here").exists()


def test_failures_of_exec(up: Up, sleeper: str) -> None:
    """What cannot be run is told in kubectl's usual words."""
    done = up.run_kubectl("exec", sleeper, "--", "no-such-program")
    assert done.stderr == (
        "error: Internal error occurred: Internal error occurred: error executing command in container: "
        'exec: "no-such-program": executable file not found in $PATH\n'
    )
    run(up, pod("waiting", container("sleep 1000"), container("exit 0", name="done")))
    path = "/api/v1/namespaces/default/pods/waiting"
    eventually(
        lambda: [list(one["state"]) for one in up.get(path)["status"]["containerStatuses"]],
        until=lambda states: ["terminated"] in states,
    )
    done = up.run_kubectl("exec", "waiting", "-c", "done", "--", "true")
    assert 'unable to upgrade connection: container not found ("done")' in done.stderr


def test_large_input_comes_back(up: Up, sleeper: str, tmp_path: Path) -> None:
    """5 MiB through a command and back are the same byte for byte."""
    content = os.urandom(FILE_BYTES)
    command = [up_process.KUBECTL or "", f"--kubeconfig={up.kubeconfig}", "exec", "-i", sleeper, "--", "cat"]
    done = subprocess.run(command, input=content, capture_output=True, timeout=WITHIN_S, check=True)
    assert done.stdout == content


def test_cp_both_ways(up: Up, sleeper: str, tmp_path: Path) -> None:
    """`kubectl cp` brings a file into a pod and back."""
    content = os.urandom(FILE_BYTES)
    (tmp_path / "sent").write_bytes(content)
    there = tmp_path / "there"
    up.kubectl("cp", str(tmp_path / "sent"), f"{sleeper}:{there}")
    up.kubectl("cp", f"{sleeper}:{there}", str(tmp_path / "back"))
    assert (there.read_bytes(), (tmp_path / "back").read_bytes()) == (content, content)


def test_exec_on_a_terminal(up: Up, sleeper: str) -> None:
    """`exec -it` gives the command a terminal of the client's size; Ctrl-C reaches the command, not kubectl."""
    terminal = KubectlTerminal(up, "exec", "-it", sleeper, "--", "sh", columns=77, rows=33)
    terminal.type("until stty size | grep '33 77'; do sleep 0.1; done; tty; echo TERM=$TERM\n")
    shown = terminal.until("TERM=xterm")
    assert "33 77" in shown  # kubectl tells the size beside the command, and may be late
    assert "/dev/pts/" in shown
    # the command itself says that it has begun: a shell between its own echo and the next command may lose a signal
    terminal.type("sh -c \"echo beg''un; exec sleep 1000\"; echo inter''rupted\n")
    terminal.until("begun")
    terminal.type("\x03")
    terminal.type("echo wh''ole\n")
    assert "interrupted" not in terminal.until("whole")
    terminal.type("exit 5\n")
    assert terminal.end() == 5


def test_command_dies_with_its_client(up: Up, sleeper: str) -> None:
    """When the client is killed the command's whole process group is."""
    mark = str(100_000 + os.getpid())  # others may run the same test on this machine
    command = [
        up_process.KUBECTL or "",
        f"--kubeconfig={up.kubeconfig}",
        "exec",
        sleeper,
        "--",
        "sh",
        "-c",
        f"sleep {mark} & wait",
    ]
    process = subprocess.Popen(command)
    count = ["exec", sleeper, "--", "sh", "-c", f"pgrep -fc '^sleep {mark}$' || true"]
    eventually(lambda: up.kubectl(*count).strip(), until=lambda text: text == "1")
    process.send_signal(signal.SIGKILL)
    process.wait()
    eventually(lambda: up.kubectl(*count).strip(), until=lambda text: text == "0")


def test_attach_reads_and_writes(up: Up) -> None:
    """An attached client sees what the container prints and gives it input; the log has it too."""
    name = run(up, pod("reader", container("while read x; do echo got $x; done", stdin=True)))
    command = [up_process.KUBECTL or "", f"--kubeconfig={up.kubeconfig}", "attach", "-i", name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("one\n")
    process.stdin.flush()
    assert process.stdout.readline() == "got one\n"
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    eventually(lambda: up.kubectl("logs", name), until=lambda text: text == "got one\n")
    assert up.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"] == "Running"


def test_run_with_input(up: Up) -> None:
    """`kubectl run -i --rm` gives a container its input, whose end it sees, and shows what it printed."""
    done = up.run_kubectl("run", "-i", "--rm", "cat", "--image=busybox", "--restart=Never", "--", "cat", stdin="text\n")
    assert done.returncode == 0, done
    assert done.stdout.startswith("text\n")
    eventually(lambda: up.find("/api/v1/namespaces/default/pods/cat") is None)


def test_run_on_a_terminal(up: Up) -> None:
    """`kubectl run -i --tty --rm` is a shell on a terminal whose exit status is kubectl's; the pod is gone then."""
    options = ["--rm", "--image=busybox", "--restart=Never", "--", "/bin/sh"]
    terminal = KubectlTerminal(up, "run", "-i", "--tty", "shell", *options)
    terminal.until("try pressing enter")
    terminal.type("echo he''llo; exit 4\n")
    terminal.until("hello")
    assert terminal.end() == 4
    assert 'pod "shell" deleted' in terminal.shown.decode()
    eventually(lambda: up.find("/api/v1/namespaces/default/pods/shell") is None)


def test_port_forward_in_parallel(up: Up) -> None:
    """50 connections at once through one `kubectl port-forward` are all answered."""
    name = run_web(up, "web")
    with forwarding(up, f"pod/{name}", 80) as port:

        def ask(_: int) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=WITHIN_S) as answer:
                text: str = answer.read().decode()
                return text

        with ThreadPoolExecutor(50) as pool:
            assert list(pool.map(ask, range(50))) == ["OK!"] * 50


def test_names_inside_pods(up: Up) -> None:
    """A Service's name, short and long, and a pod's of a headless Service lead to their addresses."""
    if not conditions(up).get("PrivateMounts"):
        prerequisites.PRIVATE_MOUNTS.skip()
    selector = {"selector": {"app": "named"}, "ports": [{"port": 8080, "name": "http"}]}
    services = "/api/v1/namespaces/default/services"
    up.create(services, {"metadata": {"name": "named"}, "spec": selector})
    up.create(services, {"metadata": {"name": "headless"}, "spec": {**selector, "clusterIP": "None"}})
    name = run(up, pod("named", container("sleep 1000"), hostname="web-0", subdomain="headless"))
    address = up.get(f"{services}/named")["spec"]["clusterIP"]
    if "nameserver 127." not in up.kubectl("exec", name, "--", "cat", "/etc/resolv.conf"):
        prerequisites.PORT_53.skip()

    def found(host: str) -> str:
        return up.run_kubectl("exec", name, "--", "getent", "ahostsv4", host).stdout.partition(" ")[0]

    eventually(lambda: found("named"), until=lambda text: text == address)
    assert found("named.default") == found("named.default.svc.cluster.local") == address
    pod_ip = up.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["podIP"]
    eventually(lambda: found("web-0.headless"), until=lambda text: text == pod_ip)
    assert found("no-such-service") == ""
    for service in ("named", "headless"):
        up.delete(f"{services}/{service}")


def conditions(up: Up) -> dict[str, bool]:
    """The node's conditions."""
    return {one["type"]: one["status"] == "True" for one in up.node()["status"]["conditions"]}


def test_commands_count_as_usage(up: Up) -> None:
    """What a command burns is the container's usage."""
    name = run(up, pod("burning", container("sleep 1000")))
    burn = ["exec", name, "--", "timeout", "600", "sh", "-c", "while :; do :; done"]
    process = subprocess.Popen([up_process.KUBECTL or "", f"--kubeconfig={up.kubeconfig}", *burn])
    try:
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/{name}"

        def cpu_milli() -> int:
            found = up.find(path)
            return int(found["containers"][0]["usage"]["cpu"].removesuffix("n")) // 1_000_000 if found else 0

        eventually(cpu_milli, until=lambda used: used > 100)
    finally:
        process.kill()
        process.wait()


def test_python_client(up: Up, sleeper: str) -> None:
    """The official Python client runs commands with input and output, and forwards a port."""
    command = [sys.executable, str(PYTHON_CLIENT), str(up.kubeconfig), sleeper, run_web(up, "py-web")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.stdout == "['got this\\n', 'oh\\n', 3]\n[b'OK!', None]\n", done.stderr
