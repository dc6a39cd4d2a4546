"""The Kubernetes walkthrough with this machine's kubectl against a real `up`: load, scale-up, scale-down."""

import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from terminals import KubectlTerminal
from up_process import Up, eventually

import prerequisites
from patience import WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("kubectl_present")]

PHP_APACHE = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: php-apache
spec:
  selector:
    matchLabels:
      run: php-apache
  template:
    metadata:
      labels:
        run: php-apache
    spec:
      containers:
      - name: php-apache
        image: registry.k8s.io/hpa-example
        ports:
        - containerPort: 80
        resources:
          limits:
            cpu: 500m
          requests:
            cpu: 200m
---
apiVersion: v1
kind: Service
metadata:
  name: php-apache
  labels:
    run: php-apache
spec:
  ports:
  - port: 80
  selector:
    run: php-apache
"""


@contextmanager
def load(url: str) -> Iterator[list[str]]:
    """One client that asks again as soon as it is answered; yields the answers so far."""
    stop = threading.Event()
    answers: list[str] = []

    def ask() -> None:
        while not stop.is_set():
            try:
                with urllib.request.urlopen(url, timeout=WITHIN_S) as response:
                    answers.append(response.read().decode())
            except (urllib.error.URLError, OSError) as error:
                answers.append(f"failed: {error}")
                time.sleep(0.1)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()


@contextmanager
def load_generator(up: Up) -> Iterator[None]:
    """The load of the documentation's walkthrough, to the letter, ended as the documentation says: by Ctrl-C."""
    command = "while sleep 0.01; do wget -q -O- http://php-apache; done"
    options = ["--rm", "--image=busybox:1.28", "--restart=Never", "--", "/bin/sh", "-c", command]
    terminal = KubectlTerminal(up, "run", "-i", "--tty", "load-generator", *options)
    try:
        terminal.until("OK!")
        with terminal.shown_meanwhile():
            yield
    finally:
        terminal.type("\x03")
        terminal.end()


def names_lead_to_services(up: Up) -> bool:
    """Whether a pod of this machine finds Services by name, at the ports of their manifests."""
    up.kubectl("run", "looks-around", "--image=busybox", "--restart=Never", "--", "cat", "/etc/resolv.conf")
    log = eventually(lambda: up.run_kubectl("logs", "looks-around").stdout)
    up.kubectl("delete", "pod", "looks-around", "--now")
    return "nameserver 127." in log


def replicas(up: Up) -> int:
    """What the Deployment is asked to have."""
    return int(up.kubectl("get", "deployment", "php-apache", "-o", "jsonpath={.spec.replicas}"))


@pytest.mark.slow
def test_the_walkthrough(up: Up) -> None:
    """Under load the replicas rise above 1, after its end they return to 1; kubectl shows it all."""
    assert "deployment.apps/php-apache created\nservice/php-apache created" in up.kubectl(
        "apply", "-f", "-", stdin=PHP_APACHE
    )
    assert "unchanged" in up.kubectl("apply", "-f", "-", stdin=PHP_APACHE)
    up.kubectl("rollout", "status", "deployment/php-apache", "--timeout=120s")
    autoscaled = up.kubectl("autoscale", "deployment", "php-apache", "--cpu-percent=50", "--min=1", "--max=10")
    assert autoscaled == "horizontalpodautoscaler.autoscaling/php-apache autoscaled\n"
    address = up.kubectl("get", "service", "php-apache", "-o", "jsonpath={.spec.clusterIP}")
    eventually(
        lambda: up.run_kubectl("logs", "deployment/php-apache").stdout, until=lambda text: "listening on" in text
    )

    with load(f"http://{address}/") as answers:
        eventually(lambda: replicas(up), until=lambda n: n > 1, every_s=1)
        table = eventually(lambda: up.kubectl("get", "hpa"), until=lambda text: "%/50%" in text)
        assert table.splitlines()[0].split() == [
            "NAME",
            "REFERENCE",
            "TARGETS",
            "MINPODS",
            "MAXPODS",
            "REPLICAS",
            "AGE",
        ]
        assert "Deployment/php-apache" in table
        top = eventually(lambda: up.run_kubectl("top", "pods"), until=lambda done: done.returncode == 0)
        assert "php-apache-" in top.stdout
        logs = ["logs", "-l", "run=php-apache", "--tail=-1", "--ignore-errors"]  # a pod may not have started yet
        eventually(lambda: up.kubectl(*logs), until=lambda text: '"GET / HTTP/1.1" 200' in text)
        describe = ["describe", "hpa", "php-apache"]
        description = eventually(lambda: up.kubectl(*describe), until=lambda text: "SuccessfulRescale" in text)
        assert "resource cpu on pods  (as a percentage of request)" in description
    assert set(answers) == {"OK!"}

    eventually(lambda: replicas(up), until=lambda n: n == 1, every_s=1)
    assert "cpu resource utilization (percentage of request) above target" in up.kubectl("get", "events")
    up.kubectl("delete", "hpa", "php-apache")
    assert up.kubectl("scale", "deployment", "php-apache", "--replicas=2") == "deployment.apps/php-apache scaled\n"
    up.kubectl("rollout", "status", "deployment/php-apache", "--timeout=120s")
    up.kubectl("delete", "-f", "-", stdin=PHP_APACHE)
    gone = ["get", "pods", "-l", "run=php-apache", "-o", "name"]
    eventually(lambda: up.kubectl(*gone), until=lambda text: text == "")


@pytest.mark.slow
def test_the_documented_load(up: Up) -> None:
    """`kubectl run -i --tty load-generator --rm ...` makes the replicas rise; Ctrl-C ends it and removes the pod."""
    if not names_lead_to_services(up):
        prerequisites.PORT_53.skip()
    up.kubectl("apply", "-f", "-", stdin=PHP_APACHE)
    up.kubectl("rollout", "status", "deployment/php-apache", "--timeout=120s")
    up.kubectl("autoscale", "deployment", "php-apache", "--cpu-percent=50", "--min=1", "--max=10")
    with load_generator(up):
        eventually(lambda: replicas(up), until=lambda n: n > 1, every_s=1)
    eventually(lambda: up.find("/api/v1/namespaces/default/pods/load-generator") is None)
    up.kubectl("delete", "hpa", "php-apache")
    up.kubectl("delete", "-f", "-", stdin=PHP_APACHE)


def test_get_with_watch_follows_changes(up: Up) -> None:
    """`kubectl get hpa -w` prints a line for the object and one for its change."""
    up.kubectl("create", "deployment", "watched", "--image=registry.k8s.io/pause")
    up.kubectl("autoscale", "deployment", "watched", "--min=2", "--max=3")
    try:
        process = subprocess.Popen(
            ["kubectl", f"--kubeconfig={up.kubeconfig}", "get", "hpa", "watched", "-w", "--no-headers"],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert "Deployment/watched" in process.stdout.readline()
            up.kubectl("patch", "hpa", "watched", "-p", '{"spec":{"maxReplicas":7}}')
            lines = iter(process.stdout.readline, "")
            assert any(line.split()[-3] == "7" for line in lines)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    finally:
        up.kubectl("delete", "hpa,deployment", "watched")


def test_up_prints_where_it_is(up: Up) -> None:
    """The kubeconfig that `up` wrote is the owner's alone and leads to the server."""
    assert up.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert "is running at" in up.kubectl("cluster-info")
