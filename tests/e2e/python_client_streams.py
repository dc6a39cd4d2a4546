"""What the official Python client does with streams, as a program of its own: `KUBECONFIG_FILE POD WEB_POD`.

`test_e2e_streams` runs it. The client leaves sockets for the garbage collector, which the tests' warnings forbid.
"""

import sys
from typing import Any

import kubernetes.client
import kubernetes.config
import kubernetes.stream


def execute(api: Any, pod: str) -> None:
    """Run a command with input; print its output, its errors and its exit status."""
    session = kubernetes.stream.stream(
        api.connect_get_namespaced_pod_exec,
        pod,
        "default",
        command=["sh", "-c", "read x; echo got $x; echo oh >&2; exit 3"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    session.write_stdin("this\n")
    session.run_forever(timeout=120)
    print([session.read_stdout(), session.read_stderr(), session.returncode])


def forward(api: Any, pod: str) -> None:
    """Ask a web server through a forwarded port; print the last line of its answer."""
    ports = kubernetes.stream.portforward(api.connect_get_namespaced_pod_portforward, pod, "default", ports="80")
    line = ports.socket(80)
    line.setblocking(True)
    line.sendall(b"GET / HTTP/1.0\r\n\r\n")
    answer = b""
    while chunk := line.recv(4096):
        answer += chunk
    line.close()
    print([answer.splitlines()[-1], ports.error(80)])


if __name__ == "__main__":
    kubernetes.config.load_kube_config(sys.argv[1])
    core = kubernetes.client.CoreV1Api()
    execute(core, sys.argv[2])
    forward(core, sys.argv[3])
