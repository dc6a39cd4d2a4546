"""Records what the real metrics-server answers about scripted kubelets, for test_metrics_server_captures.py.

    PYTHONPATH=tools python tests/conformance/metrics_server/record.py

Needs `make assets`. It starts `podscaler up --api-only` with the nodes and pods of `scripted_kubelets.py`, one HTTPS
server that plays all kubelets, and metrics-server; after each round of scrapes it requests all paths, and writes
captures.json.
"""

import base64
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asset_modules
import scripted_kubelets as scenario
import yaml

CAPTURES = Path(__file__).with_name("captures.json")
ROUND_S = 10
DEADLINE_S = 60.0


class Kubelets(http.server.ThreadingHTTPServer):
    """Answers the scrapes of a round alike; `round` is set by the recorder."""

    daemon_threads = True

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), KubeletHandler)
        self.round = 0
        self.scraped: set[int] = set()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)


class KubeletHandler(http.server.BaseHTTPRequestHandler):
    """One scrape."""

    server: Kubelets

    def do_GET(self) -> None:
        """Answer with the text of the round."""
        text = scenario.ROUNDS[self.server.round]
        self.send_response(200 if text else 500)
        self.end_headers()
        self.wfile.write(text.encode())
        self.server.scraped.add(self.server.round)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Cluster:
    """The API server, by its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self.server = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]
        authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=authority)

    def send(self, method: str, path: str, body: Any) -> None:
        """A write that must succeed."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if method == "PATCH":
            headers["Content-Type"] = "application/merge-patch+json"
        request = urllib.request.Request(self.server + path, json.dumps(body).encode(), headers, method=method)
        urllib.request.urlopen(request, context=self.context).close()


def fetch(url: str, token: str) -> dict[str, Any]:
    """Status and body of a GET, whatever the status."""
    context = ssl._create_unverified_context()  # metrics-server makes its own certificate
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, context=context) as response:
            return {"status": response.status, "body": json.load(response)}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": json.load(error)}


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended with the context."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ})
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def wait_for(what: Any, text: str) -> None:
    """Return once `what()` holds."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not what():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"not within {DEADLINE_S:g} s: {text}")
        time.sleep(0.05)


def populate(cluster: Cluster, port: int) -> None:
    """Create the nodes and pods of the scenario."""
    for name in scenario.NODES:
        cluster.send("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"node": name}}})
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
        status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        cluster.send("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})
    for name, labels in scenario.PODS.items():
        spec = {"containers": [{"name": "main", "image": "none"}]}
        metadata = {"name": name, "labels": labels}
        cluster.send("POST", "/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
        status = {"phase": scenario.phase(name)}
        cluster.send("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})


def record(folder: Path) -> list[dict[str, Any]]:
    """The captures."""
    data, kubeconfig = folder / "data", folder / "data" / "kubeconfig"
    up = [sys.executable, "-m", "podscaler", "up", "--api-only", "--without-metrics-api", "--data-dir", str(data)]
    program = asset_modules.find_program("metrics-server")
    if program is None:
        raise SystemExit("no metrics-server: make assets")
    with running(up, folder / "up.log"):
        wait_for(kubeconfig.exists, "the API server")
        time.sleep(1)
        kubelets = Kubelets(data / "certificates" / "server.pem")
        threading.Thread(target=kubelets.serve_forever, daemon=True).start()
        cluster = Cluster(kubeconfig)
        populate(cluster, kubelets.server_address[1])
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        flags = [
            *(f"--{name}kubeconfig={kubeconfig}" for name in ("", "authentication-", "authorization-")),
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={folder / 'ms'}",
            f"--metric-resolution={ROUND_S}s",
            "--kubelet-request-timeout=5s",
            "--kubelet-use-node-status-port",
            "--kubelet-preferred-address-types=InternalIP",
            "--kubelet-insecure-tls",
        ]
        with running([str(program), *flags], folder / "metrics-server.log"):
            return [rounds(kubelets, number, f"https://127.0.0.1:{port}", cluster.token) for number in scenario.INDEXES]


def rounds(kubelets: Kubelets, number: int, server: str, token: str) -> dict[str, Any]:
    """One round: its number, and the responses after it."""
    kubelets.round = number
    wait_for(lambda: number in kubelets.scraped, f"scrape {number}")
    time.sleep(3)  # the scrapes of all nodes are spread over two seconds at most
    return {"round": number, "responses": {path: fetch(server + path, token) for path in scenario.PATHS}}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        captures = record(Path(place))
    CAPTURES.write_text("".join(f"{json.dumps(each)}\n" for each in captures))
    print(f"{len(captures)} rounds of {len(scenario.PATHS)} requests: {CAPTURES}")
