"""KEDA, by its own manifests: a Redis list scales a Deployment of `podscaler up` from 0 and back, and starts Jobs."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import ecosystem_programs
import pytest
from ecosystem_programs import Object
from up_process import Up, eventually

import prerequisites
from patience import WITHIN_S

pytestmark = [pytest.mark.e2e, pytest.mark.real, pytest.mark.usefixtures("kubectl_present")]

CORE = "/api/v1/namespaces/default"
REDIS_PORT = 6379
WORKERS = "/apis/apps/v1/namespaces/default/deployments/workers"
LISTENING = ("--metrics-bind-address=$(POD_IP):8080", "--health-probe-bind-address=$(POD_IP):8081")
ARGUMENTS = {  # the program, and where pods share one network the addresses that it listens on
    "keda-operator": ("keda-operator", *LISTENING, "--metrics-service-bind-address=$(POD_IP):9666"),
    "keda-metrics-apiserver": ("keda-adapter", "--bind-address=$(POD_IP)", "--port=0"),
    "keda-admission": ("keda-webhooks", *LISTENING),
}
DEPLOYMENT: Object = {
    "metadata": {"name": "workers"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "workers"}},
        "template": {
            "metadata": {"labels": {"app": "workers"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": "none", "command": ["sleep", "1000000"]}],
            },
        },
    },
}


@pytest.fixture(scope="module")
def keda(up: Up) -> Iterator[None]:
    """KEDA's three programs, ready."""
    with ecosystem_programs.shared_programs("keda-operator", "keda-adapter", "keda-webhooks") as programs:
        deploy_keda(up, programs)
        yield


@pytest.fixture(scope="module")
def redis_host(up: Up) -> str:
    """The address of a pod that runs Redis."""
    program = shutil.which("redis-server")
    if program is None:
        prerequisites.REDIS.skip()
    arguments = ["--bind", "$(POD_IP)", "--port", str(REDIS_PORT), "--protected-mode", "no", "--save", ""]
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {"name": "main", "image": "redis", "command": [program], "args": arguments, "env": [address]}
    labels = {"app": "redis"}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    up.create(f"{CORE}/pods", {"metadata": {"name": "redis", "labels": labels}, "spec": spec})
    service = {"selector": labels, "ports": [{"port": REDIS_PORT}]}
    up.create(f"{CORE}/services", {"metadata": {"name": "redis"}, "spec": service})
    host: str = eventually(lambda: up.get(f"{CORE}/pods/redis").get("status", {}).get("podIP"))
    eventually(lambda: redis(host, "PING"), until=lambda reply: reply == "+PONG")
    return host


def redis(host: str, *words: str) -> str:
    """The first line of the reply to a command; empty where the server does not respond yet."""
    try:
        with socket.create_connection((host, REDIS_PORT), timeout=WITHIN_S) as connection:
            connection.sendall((" ".join(words) + "\r\n").encode())
            return connection.makefile().readline().strip()
    except OSError:
        return ""


@pytest.mark.usefixtures("keda")
def test_a_list_scales_from_zero_and_back(up: Up, redis_host: str) -> None:
    """Twelve entries, five for each replica, want three replicas; an empty list wants none."""
    up.create("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    ecosystem_programs.apply(up, [scaled_object()])
    eventually(lambda: up.find("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/keda-hpa-workers"))
    assert up.get(WORKERS)["spec"]["replicas"] == 0
    redis(redis_host, "RPUSH", "jobs", *map(str, range(12)))
    eventually(lambda: up.get(WORKERS)["spec"]["replicas"], until=lambda count: count == 3)
    redis(redis_host, "DEL", "jobs")
    eventually(lambda: up.get(WORKERS)["spec"]["replicas"], until=lambda count: count == 0)


@pytest.mark.usefixtures("keda")
def test_a_list_starts_jobs(up: Up, redis_host: str) -> None:
    """A ScaledJob starts Jobs until they have taken all entries."""
    redis(redis_host, "RPUSH", "tasks", "a", "b", "c")
    ecosystem_programs.apply(up, [scaled_job()])
    eventually(lambda: redis(redis_host, "LLEN", "tasks"), until=lambda reply: reply == ":0")
    path = "/apis/batch/v1/namespaces/default/jobs?labelSelector=scaledjob.keda.sh%2Fname%3Dtakers"
    eventually(
        lambda: sum(each["status"].get("succeeded", 0) for each in up.get(path)["items"]), until=lambda n: n >= 3
    )


def deploy_keda(up: Up, programs: dict[str, Path]) -> None:
    """Apply KEDA's own manifests, and wait until its three programs are ready."""
    objects = ecosystem_programs.kustomized(ecosystem_programs.manifests("keda", "default"))
    has_networks = up.pods_have_networks()
    deployments = [ecosystem_programs.of_kind(objects, "Deployment", name) for name in ARGUMENTS]
    for deployment in deployments:
        program, *arguments = ARGUMENTS[deployment["metadata"]["name"]]
        ecosystem_programs.run_program(deployment, programs[program], *(() if has_networks else arguments))
    first = ("Namespace", "CustomResourceDefinition")
    ecosystem_programs.apply(up, [each for each in objects if each["kind"] in first])
    ecosystem_programs.apply(up, objects)
    for deployment in deployments:
        ecosystem_programs.await_ready(up, deployment)


def scaled_object() -> Object:
    """Five entries of the list `jobs` for each replica, 0 to 10 replicas."""
    address = f"redis.default.svc.cluster.local:{REDIS_PORT}"
    metadata = {"address": address, "listName": "jobs", "listLength": "5", "activationListLength": "0"}
    window = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "workers", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"name": "workers"},
            "pollingInterval": 1,
            "cooldownPeriod": 2,
            "minReplicaCount": 0,
            "maxReplicaCount": 10,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": window}},
            "triggers": [{"type": "redis", "metadata": metadata}],
        },
    }


def scaled_job() -> Object:
    """A Job for each entry of the list `tasks`, two at a time; each takes one."""
    address = f"redis.default.svc.cluster.local:{REDIS_PORT}"
    take = {"name": "main", "image": "redis", "command": ["redis-cli", "-h", "redis", "lpop", "tasks"]}
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledJob",
        "metadata": {"name": "takers", "namespace": "default"},
        "spec": {
            "jobTargetRef": {"template": {"spec": {"restartPolicy": "Never", "containers": [take]}}},
            "pollingInterval": 1,
            "maxReplicaCount": 2,
            "triggers": [{"type": "redis", "metadata": {"address": address, "listName": "tasks", "listLength": "1"}}],
        },
    }
