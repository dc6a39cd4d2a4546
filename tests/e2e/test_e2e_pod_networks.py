"""The network of pods with `--pod-network=namespaces` and `--pod-network=loopback`, by a real `up` and kubectl."""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import KUBECTL, QUICK, Up, eventually, forwarding, require_pod_networks

import prerequisites

pytestmark = [pytest.mark.e2e, prerequisites.KUBECTL.mark(is_there=KUBECTL is not None)]

PODS = "/api/v1/namespaces/default/pods"
SERVER = """
import http.server as h, os, socket
class Handler(h.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(socket.gethostname().encode())
h.ThreadingHTTPServer((os.environ['HOST'] or os.environ['POD_IP'], int(os.environ['AT'])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def namespaces_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An `up` whose pods have network namespaces."""
    require_pod_networks()
    instance = Up(tmp_path_factory.mktemp("namespaces") / "data", (*QUICK, "--pod-network=namespaces")).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


@pytest.fixture(scope="module")
def loopback_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An `up` whose pods share the machine's network."""
    instance = Up(tmp_path_factory.mktemp("loopback") / "data", (*QUICK, "--pod-network=loopback")).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


@pytest.fixture(params=["namespaces_up", "loopback_up"])
def either_up(request: pytest.FixtureRequest) -> Up:
    """An `up` with each of the two networks."""
    found: Up = request.getfixturevalue(request.param)
    return found


def test_namespaces_that_are_impossible_end_up(tmp_path: Path) -> None:
    """Where the flag demands them, `up` does not start without them: one sentence, and the status of a wrong flag."""
    command = [sys.executable, "-m", "podscaler", "up", "--data-dir", str(tmp_path / "data")]
    hidden = ["unshare", "--user"] if os.geteuid() == 0 else []  # without privileges over the machine's network
    done = subprocess.run(
        [*hidden, *command, "--pod-network=namespaces", *QUICK], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--pod-network=namespaces: " in done.stderr
    assert "Traceback" not in done.stderr


def server(name: str, *, port: int = 8080, host: str = "", **fields: Any) -> dict[str, Any]:
    """A pod that answers with its host name; `host` is what it listens on, empty for POD_IP."""
    env = [{"name": "AT", "value": str(port)}, {"name": "HOST", "value": host}]
    container = {"name": "c", "image": "any", "command": [sys.executable, "-I", "-S", "-u", "-c", SERVER], "env": env}
    probe = {"readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}} if host != "127.0.0.1" else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container | probe | fields]},
    }


def started(up: Up, pod: dict[str, Any]) -> str:
    """The address of a new pod once it is ready."""
    up.create(PODS, pod)

    def find() -> dict[str, Any]:
        status: dict[str, Any] = up.get(f"{PODS}/{pod['metadata']['name']}")["status"]
        return status

    def is_ready(status: dict[str, Any]) -> bool:
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))

    return str(eventually(find, until=is_ready)["podIP"])


def fetched(host: str, port: int) -> str:
    """The body of a response, as this machine gets it."""
    with urllib.request.urlopen(f"http://{host}:{port}/", timeout=10) as response:
        return str(response.read().decode())


def fetched_in(up: Up, pod: str, url: str) -> str:
    """The body of a response, as a program in the pod gets it."""
    code = f"import urllib.request;print(urllib.request.urlopen({url!r},timeout=10).read().decode())"
    return up.kubectl("exec", pod, "--", sys.executable, "-I", "-c", code).strip()


def test_two_pods_and_a_service_on_one_port(either_up: Up) -> None:
    """The machine reaches both pods at one port, and a pod reaches another one by address and by Service."""
    up = either_up
    first, second = started(up, server("first")), started(up, server("second"))
    ports = [{"port": 8081, "targetPort": 8080}]
    service = up.create(
        "/api/v1/namespaces/default/services",
        {"metadata": {"name": "second"}, "spec": {"selector": {"app": "second"}, "ports": ports}},
    )
    assert first != second
    assert fetched(first, 8080)
    assert fetched_in(up, "first", f"http://{second}:8080/") == fetched(second, 8080)
    address = service["spec"]["clusterIP"]
    eventually(lambda: up.run_kubectl("get", "endpoints", "second").stdout, until=lambda text: second in text)
    assert fetched_in(up, "first", f"http://{address}:8081/") == fetched(second, 8080)


def test_the_api_server_answers_in_pods(either_up: Up) -> None:
    """A pod reaches the API server at KUBERNETES_SERVICE_HOST."""
    started(either_up, server("asking"))
    code = (
        "import os,ssl,urllib.request;c=ssl.create_default_context(cafile='/var/run/secrets/kubernetes.io/"
        "serviceaccount/ca.crt');h=os.environ['KUBERNETES_SERVICE_HOST'];p=os.environ['KUBERNETES_SERVICE_PORT'];"
        "t=open('/var/run/secrets/kubernetes.io/serviceaccount/token').read();"
        "r=urllib.request.Request(f'https://{h}:{p}/version',headers={'Authorization':'Bearer '+t});"
        "print(urllib.request.urlopen(r,context=c,timeout=10).status)"
    )
    assert either_up.kubectl("exec", "asking", "--", sys.executable, "-I", "-c", code) == "200\n"


def test_a_forwarded_port_reaches_the_pod(either_up: Up) -> None:
    """`kubectl port-forward` reaches a program that listens on the pod's address alone."""
    started(either_up, server("forwarded"))
    with forwarding(either_up, "pod/forwarded", 8080) as port:
        assert fetched("127.0.0.1", port)


def test_programs_listen_on_all_addresses(namespaces_up: Up) -> None:
    """Two pods listen on 0.0.0.0:80, and each has its own localhost and host name."""
    one = started(namespaces_up, server("web-one", port=80, host="0.0.0.0"))
    two = started(namespaces_up, server("web-two", port=80, host="0.0.0.0"))
    assert (fetched(one, 80), fetched(two, 80)) == ("web-one", "web-two")
    assert fetched_in(namespaces_up, "web-one", "http://localhost/") == "web-one"
    assert namespaces_up.kubectl("exec", "web-two", "--", "hostname") == "web-two\n"


def test_every_user_may_bind_low_ports(namespaces_up: Up) -> None:
    """A program of another user binds port 80 of its namespace."""
    code = "import os,socket;os.setuid(4321);socket.socket().bind(('0.0.0.0',80));print('bound')"
    container = {"name": "c", "image": "any", "command": [sys.executable, "-I", "-S", "-u", "-c", code]}
    body = {"containers": [container], "restartPolicy": "Never"}
    namespaces_up.create(PODS, {"metadata": {"name": "low"}, "spec": body})
    eventually(lambda: namespaces_up.run_kubectl("logs", "low").stdout, until=lambda text: text == "bound\n")


def test_a_forwarded_port_reaches_localhost_of_the_pod(namespaces_up: Up) -> None:
    """`kubectl port-forward` reaches a program that listens on the pod's 127.0.0.1 alone."""
    code = "import socket; socket.create_connection(('127.0.0.1', 8080), 5)"
    probe = {"exec": {"command": [sys.executable, "-I", "-S", "-c", code]}, "periodSeconds": 1, "timeoutSeconds": 10}
    started(namespaces_up, server("local", host="127.0.0.1", readinessProbe=probe))
    with forwarding(namespaces_up, "pod/local", 8080) as port:
        assert fetched("127.0.0.1", port) == "local"


def test_a_pod_of_the_hosts_network(namespaces_up: Up) -> None:
    """`hostNetwork: true`: the machine's network and host name."""
    body = {"hostNetwork": True, "restartPolicy": "Never"}
    container = {"name": "c", "image": "any", "command": ["hostname"]}
    namespaces_up.create(PODS, {"metadata": {"name": "host"}, "spec": {**body, "containers": [container]}})
    seen = eventually(lambda: namespaces_up.run_kubectl("logs", "host").stdout)
    assert seen == f"{socket.gethostname()}\n"


def _interfaces(address: str) -> list[str]:
    """This machine's interfaces of the pods in the block of this address."""
    return [name for _, name in socket.if_nameindex() if name.startswith(f"ps{address.split('.')[1]}-")]


def test_interfaces_go_with_their_pods(namespaces_up: Up) -> None:
    """A deleted pod leaves no interface; its address refuses connections at once."""
    address = started(namespaces_up, server("passing"))
    own = f"ps{address.split('.')[1]}-{socket.inet_aton(address)[2:].hex()}"
    assert own in _interfaces(address)
    namespaces_up.delete(f"{PODS}/passing")
    eventually(lambda: _interfaces(address), until=lambda names: own not in names)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, 8080), timeout=10)


def test_nothing_is_left_of_a_killed_up(namespaces_up: Up, tmp_path_factory: pytest.TempPathFactory) -> None:
    """After SIGKILL the next `up` on the data directory runs its pods anew, and leaves nothing when it ends."""
    up = Up(tmp_path_factory.mktemp("killed") / "data", (*QUICK, "--pod-network=namespaces")).start()
    address = started(up, server("kept", port=80, host="0.0.0.0"))
    up.kill()
    up.start()
    restarts = eventually(
        lambda: up.get(f"{PODS}/kept")["status"]["containerStatuses"][0]["restartCount"], until=lambda count: count > 0
    )
    assert restarts == 1
    assert eventually(lambda: _refused_or_fetched(address)) == "kept"
    assert up.stop() == 0, up.log.read_text()
    assert _interfaces(address) == []


def test_another_up_removes_the_bridge_of_a_killed_one(
    namespaces_up: Up, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Also if the data directory of the killed one is never used again; bridges of running ones stay."""
    killed = Up(tmp_path_factory.mktemp("gone") / "data", (*QUICK, "--pod-network=namespaces")).start()
    address = started(killed, server("lost"))
    assert _interfaces(address) != []
    running = started(namespaces_up, server("stays"))
    killed.kill()
    other = Up(tmp_path_factory.mktemp("other") / "data", (*QUICK, "--pod-network=loopback")).start()
    eventually(lambda: _interfaces(address), until=lambda names: names == [])
    assert other.stop() == 0, other.log.read_text()
    assert fetched(running, 8080) == "stays"


def _refused_or_fetched(address: str) -> str:
    try:
        return fetched(address, 80)
    except OSError:
        return ""


def test_an_address_in_use_is_explained(loopback_up: Up) -> None:
    """A container that cannot bind gets an event that names POD_IP."""
    code = "import socket,os;s=socket.socket();s.bind(('127.0.0.1',int(os.environ['TAKEN'])))"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        env = [{"name": "TAKEN", "value": str(taken.getsockname()[1])}]
        command = [sys.executable, "-I", "-S", "-u", "-c", code]
        container = {"name": "c", "image": "any", "command": command, "env": env}
        loopback_up.create(PODS, {"metadata": {"name": "clash"}, "spec": {"containers": [container]}})
        eventually(lambda: [m for name, _, m in loopback_up.events() if name == "clash" and "POD_IP" in m])


def test_a_limitation_is_a_condition(either_up: Up) -> None:
    """The Node says whether pods have network namespaces, and why not."""
    conditions = either_up.get("/api/v1/nodes")["items"][0]["status"]["conditions"]
    found = {c["type"]: (c["status"], c["message"]) for c in conditions}["PodNetworks"]
    expected = {
        "--pod-network=namespaces": ("True", "this machine allows it"),
        "--pod-network=loopback": ("False", "pods share the machine's network, as --pod-network=loopback says"),
    }
    assert found == expected[either_up.flags[-1]]
