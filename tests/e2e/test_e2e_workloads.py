"""Deployments, Services and the garbage collector of a real `up`, with real and simulated pods."""

import http.client
import threading
from typing import Any

import pytest
from up_process import Up, eventually

from patience import WITHIN_S

pytestmark = [pytest.mark.e2e]

APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"


def web(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    """A Deployment of the built-in web server, with little work for each request."""
    container = {
        "name": "web",
        "image": "registry.k8s.io/hpa-example",
        "env": [{"name": "ITERATIONS", "value": "100"}],
        "ports": [{"containerPort": 80, "name": "http"}],
        "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
    }
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def simulated(name: str, replicas: int) -> dict[str, Any]:
    """A Deployment of pods without processes."""
    body = web(name, replicas)
    body["spec"]["template"]["spec"] = {
        "runtimeClassName": "simulated",
        "containers": [{"name": "app", "image": "any", "resources": {"requests": {"cpu": "100m"}}}],
    }
    return body


def service(name: str) -> dict[str, Any]:
    """A Service for the Deployment of the same name."""
    spec = {"selector": {"app": name}, "ports": [{"port": 8080, "targetPort": "http"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def status(up: Up, name: str) -> dict[str, Any]:
    """The Deployment's status."""
    found: dict[str, Any] = up.get(f"{APPS}/deployments/{name}").get("status", {})
    return found


def available(up: Up, name: str, replicas: int) -> None:
    """Wait until the Deployment has exactly so many available pods, all of its newest template."""
    wanted = {"replicas": replicas, "availableReplicas": replicas, "updatedReplicas": replicas}

    def is_there(found: dict[str, Any]) -> bool:
        generation = up.get(f"{APPS}/deployments/{name}")["metadata"]["generation"]
        return wanted.items() <= found.items() and found["observedGeneration"] == generation

    eventually(lambda: status(up, name), until=is_there)


def get(address: str, port: int = 8080) -> int:
    """The status of one request on a connection of its own."""
    connection = http.client.HTTPConnection(address, port, timeout=WITHIN_S)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_rolling_update_under_load_fails_no_request(up: Up) -> None:
    """Every request is answered while every pod is replaced."""
    up.create(f"{APPS}/deployments", web("rolling", 3))
    address = up.create(f"{CORE}/services", service("rolling"))["spec"]["clusterIP"]
    available(up, "rolling", 3)
    before = {pod["metadata"]["name"] for pod in up.get(f"{CORE}/pods?labelSelector=app%3Drolling")["items"]}
    eventually(lambda: len(endpoints(up, "rolling")) == 3)
    stop = threading.Event()
    outcomes: list[object] = []

    def ask() -> None:
        while not stop.wait(0.01):
            try:
                outcomes.append(get(address))
            except OSError as error:
                outcomes.append(error)

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    try:
        patch = {"spec": {"template": {"metadata": {"annotations": {"revision": "2"}}}}}
        up.patch(f"{APPS}/deployments/rolling", patch)
        available(up, "rolling", 3)
        remaining = f"{CORE}/pods?labelSelector=app%3Drolling"
        eventually(lambda: not before & {pod["metadata"]["name"] for pod in up.get(remaining)["items"]})
        eventually(lambda: len(outcomes) > 20)
    finally:
        stop.set()
        for asker in askers:
            asker.join()
    assert set(outcomes) == {200}
    up.delete(f"{APPS}/deployments/rolling")


def endpoints(up: Up, name: str) -> list[str]:
    """The addresses of the Service's ready endpoints."""
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    slices = up.get(f"{path}?labelSelector=kubernetes.io%2Fservice-name%3D{name}")["items"]
    return [e["addresses"][0] for s in slices for e in s.get("endpoints") or [] if e["conditions"]["ready"]]


def test_a_service_spreads_over_ready_pods(up: Up) -> None:
    """Connections reach every pod, and pods learn the Service's address from their environment."""
    up.create(f"{APPS}/deployments", web("spread", 2))
    address = up.create(f"{CORE}/services", service("spread"))["spec"]["clusterIP"]
    available(up, "spread", 2)
    eventually(lambda: len(endpoints(up, "spread")) == 2)
    assert {get(address) for _ in range(10)} == {200}
    for pod in up.get(f"{CORE}/pods?labelSelector=app%3Dspread")["items"]:
        log = up.request("GET", f"{CORE}/pods/{pod['metadata']['name']}/log").body
        assert '"GET / HTTP/1.1" 200' in log
    peek = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "peek"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "a",
                    "image": "busybox",
                    "command": ["/bin/sh", "-c", "echo $SPREAD_SERVICE_HOST:$SPREAD_SERVICE_PORT"],
                }
            ],
        },
    }
    up.create(f"{CORE}/pods", peek)
    eventually(lambda: up.get(f"{CORE}/pods/peek")["status"].get("phase") == "Succeeded")
    assert up.request("GET", f"{CORE}/pods/peek/log").body == f"{address}:8080\n"
    up.delete(f"{APPS}/deployments/spread")


def test_scaling_keeps_to_what_is_asked(up: Up) -> None:
    """Twenty pods without processes are there, and gone again, as the scale says."""
    up.create(f"{APPS}/deployments", simulated("many", 20))
    available(up, "many", 20)
    up.patch(f"{APPS}/deployments/many/scale", {"spec": {"replicas": 3}})
    available(up, "many", 3)
    eventually(lambda: len(up.get(f"{CORE}/pods?labelSelector=app%3Dmany")["items"]), until=lambda count: count == 3)


def test_deleting_a_deployment_takes_its_pods_along(up: Up) -> None:
    """ReplicaSets and pods are collected once their Deployment is gone."""
    up.create(f"{APPS}/deployments", simulated("collected", 2))
    available(up, "collected", 2)
    up.delete(f"{APPS}/deployments/collected", {"propagationPolicy": "Background"})
    eventually(lambda: up.get(f"{CORE}/pods?labelSelector=app%3Dcollected")["items"] == [])
    eventually(lambda: up.get(f"{APPS}/replicasets?labelSelector=app%3Dcollected")["items"] == [])


def test_orphans_stay_when_asked_for(up: Up) -> None:
    """With propagationPolicy Orphan the ReplicaSet lives on without an owner."""
    up.create(f"{APPS}/deployments", simulated("orphaned", 1))
    available(up, "orphaned", 1)
    up.delete(f"{APPS}/deployments/orphaned", {"propagationPolicy": "Orphan"})
    eventually(lambda: up.find(f"{APPS}/deployments/orphaned") is None)
    sets = up.get(f"{APPS}/replicasets?labelSelector=app%3Dorphaned")["items"]
    assert [item["metadata"].get("ownerReferences") for item in sets] == [None]
    up.delete(f"{APPS}/replicasets/{sets[0]['metadata']['name']}")


def test_a_deleted_namespace_takes_everything_along(up: Up) -> None:
    """Deleting a namespace deletes what is in it, and then itself."""
    up.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "doomed"}})
    up.create("/apis/apps/v1/namespaces/doomed/deployments", simulated("inside", 2))
    eventually(lambda: len(up.get("/api/v1/namespaces/doomed/pods")["items"]) == 2)
    up.delete("/api/v1/namespaces/doomed")
    eventually(lambda: up.find("/api/v1/namespaces/doomed") is None)


@pytest.mark.slow
def test_an_autoscaler_scales_simulated_pods(up: Up) -> None:
    """700m over pods that ask for 100m each at 50 %: fourteen pods wanted, ten allowed; with 40m one is enough."""
    body = simulated("shared", 1)
    body["metadata"]["annotations"] = {"podscaler.dev/simulated-total-cpu": "700m"}
    up.create(f"{APPS}/deployments", body)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shared"}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "shared"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 10, "metrics": [{"type": "Resource", "resource": metric}]},
    }
    up.create("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", autoscaler)
    available(up, "shared", 10)
    up.patch(f"{APPS}/deployments/shared", {"metadata": {"annotations": {"podscaler.dev/simulated-total-cpu": "40m"}}})
    available(up, "shared", 1)
    rescaled = ("shared", "SuccessfulRescale", "New size: 1; reason: All metrics below target")
    eventually(lambda: rescaled in up.events())
