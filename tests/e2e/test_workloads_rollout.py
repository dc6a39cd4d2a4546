"""Rollouts as users drive them, with kubectl and with an autoscaler in between, on a real `up`."""

import http.client
import threading
from typing import Any

import pytest
from up_process import Up, eventually

from patience import WITHIN_S

pytestmark = [pytest.mark.e2e]

APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"


def simulated(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    """A Deployment of pods without processes."""
    labels = {"app": name}
    pod = {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "any:1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"kubernetes.io/change-cause": "first"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def image(up: Up, name: str) -> str:
    """The image that the Deployment asks for."""
    template = up.get(f"{APPS}/deployments/{name}")["spec"]["template"]
    found: str = template["spec"]["containers"][0]["image"]
    return found


def sizes(up: Up, name: str) -> dict[str, int]:
    """Pods that the ReplicaSets of each image should have, without those of none."""
    sets = up.get(f"{APPS}/replicasets?labelSelector=app%3D{name}")["items"]
    found = {one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"] for one in sets}
    return {image: size for image, size in found.items() if size}


def rolled_out(up: Up, name: str) -> str:
    """The last line of `kubectl rollout status`, which must succeed."""
    return up.kubectl("rollout", "status", f"deploy/{name}", "--timeout=120s").splitlines()[-1]


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_rollout(up: Up) -> None:
    """status, history, undo, restart, pause and resume, as an unmodified kubectl does them."""
    up.create(f"{APPS}/deployments", simulated("rollout", 3))
    assert rolled_out(up, "rollout") == 'deployment "rollout" successfully rolled out'
    up.kubectl("set", "image", "deploy/rollout", "app=any:2")
    up.kubectl("annotate", "deploy/rollout", "kubernetes.io/change-cause=second", "--overwrite")
    rolled_out(up, "rollout")
    eventually(lambda: history(up), until=lambda found: found == [("1", "first"), ("2", "second")])
    up.kubectl("rollout", "undo", "deploy/rollout")
    rolled_out(up, "rollout")
    assert image(up, "rollout") == "any:1"
    assert [revision for revision, _ in history(up)] == ["2", "3"]
    up.kubectl("rollout", "pause", "deploy/rollout")
    up.kubectl("set", "image", "deploy/rollout", "app=any:3")
    assert up.run_kubectl("rollout", "status", "deploy/rollout", "--timeout=1s").returncode == 1
    assert sizes(up, "rollout") == {"any:1": 3}
    up.kubectl("rollout", "resume", "deploy/rollout")
    rolled_out(up, "rollout")
    assert sizes(up, "rollout") == {"any:3": 3}
    up.kubectl("rollout", "restart", "deploy/rollout")
    rolled_out(up, "rollout")
    up.kubectl("rollout", "undo", "deploy/rollout", "--to-revision=2")
    rolled_out(up, "rollout")
    assert sizes(up, "rollout") == {"any:2": 3}
    assert "Scaled up replica set rollout-" in up.kubectl("describe", "deploy/rollout")
    up.kubectl("delete", "deploy/rollout", "--cascade=foreground")
    assert up.find(f"{APPS}/deployments/rollout") is None
    assert up.get(f"{CORE}/pods?labelSelector=app%3Drollout")["items"] == []


def history(up: Up) -> list[tuple[str, str]]:
    """Revisions with their causes."""
    lines = up.kubectl("rollout", "history", "deploy/rollout").splitlines()[2:]
    return [(words[0], " ".join(words[1:])) for line in lines if (words := line.split())]


def test_scaling_in_the_middle_of_a_rollout_keeps_the_bounds(up: Up) -> None:
    """The new pods never become ready: replicas + maxSurge pods at most, old ones share what an autoscaler adds."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    up.create(f"{APPS}/deployments", simulated("middle", 6, strategy=rolling))
    eventually(lambda: up.get(f"{APPS}/deployments/middle")["status"].get("availableReplicas") == 6)
    never = {"metadata": {"annotations": {"podscaler.dev/simulated-startup-seconds": "3600"}}}
    containers = [{"name": "app", "image": "any:2"}]
    up.patch(f"{APPS}/deployments/middle", {"spec": {"template": {**never, "spec": {"containers": containers}}}})
    eventually(lambda: sizes(up, "middle"), until=lambda found: found == {"any:1": 5, "any:2": 3})
    up.patch(f"{APPS}/deployments/middle/scale", {"spec": {"replicas": 12}})
    eventually(lambda: sizes(up, "middle"), until=lambda found: found == {"any:1": 9, "any:2": 5})
    up.patch(f"{APPS}/deployments/middle/scale", {"spec": {"replicas": 4}})
    eventually(lambda: sum(sizes(up, "middle").values()), until=lambda total: total <= 6)
    status = eventually(
        lambda: up.get(f"{APPS}/deployments/middle")["status"], until=lambda found: found["replicas"] <= 6
    )
    assert status["availableReplicas"] >= 3
    up.delete(f"{APPS}/deployments/middle")


def test_recreate_runs_one_template_at_a_time(up: Up) -> None:
    """The old process has ended before the new one starts."""
    body = simulated("again", 1, strategy={"type": "Recreate"})
    script = "import time, signal; signal.signal(15, lambda *_: (time.sleep(1), exit())); time.sleep(600)"
    body["spec"]["template"]["spec"] = {
        "containers": [{"name": "app", "image": "any:1", "command": ["python3", "-c", script]}]
    }
    up.create(f"{APPS}/deployments", body)
    eventually(lambda: up.get(f"{APPS}/deployments/again")["status"].get("availableReplicas") == 1)
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "any:2"
    up.patch(f"{APPS}/deployments/again", {"spec": {"template": body["spec"]["template"]}})
    seen: set[frozenset[str]] = set()

    def images() -> frozenset[str]:
        pods = up.get(f"{CORE}/pods?labelSelector=app%3Dagain")["items"]
        # A pod that has ended stays visible for a moment after its process is gone.
        alive = [pod for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
        found = frozenset(pod["spec"]["containers"][0]["image"] for pod in alive)
        seen.add(found)
        return found

    eventually(images, until=lambda found: found == {"any:2"}, every_s=0.02)
    assert frozenset({"any:1", "any:2"}) not in seen
    up.delete(f"{APPS}/deployments/again")


@pytest.mark.slow
def test_kept_connections_survive_a_rolling_update_of_one_pod(up: Up) -> None:
    """Replicas 1, the default strategy: requests on kept and on new connections are all answered, update by update."""
    body = simulated("single", 1)
    body["spec"]["template"]["spec"] = {
        "containers": [
            {
                "name": "web",
                "image": "registry.k8s.io/hpa-example",
                "env": [{"name": "ITERATIONS", "value": "100"}],
                "ports": [{"containerPort": 80, "name": "http"}],
                "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
            }
        ]
    }
    up.create(f"{APPS}/deployments", body)
    spec = {"selector": {"app": "single"}, "ports": [{"port": 8080, "targetPort": "http"}]}
    made = up.create(
        f"{CORE}/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "single"}, "spec": spec}
    )
    eventually(lambda: up.get(f"{APPS}/deployments/single")["status"].get("availableReplicas") == 1)
    address = made["spec"]["clusterIP"]
    eventually(lambda: answered(address))
    stop, outcomes = threading.Event(), []
    askers = [threading.Thread(target=ask, args=(address, stop, outcomes, kept)) for kept in (True, False)]
    for asker in askers:
        asker.start()
    try:
        for revision in ("1", "2", "3"):
            annotations = {"metadata": {"annotations": {"revision": revision}}}
            up.patch(f"{APPS}/deployments/single", {"spec": {"template": annotations}})
            eventually(lambda wanted=revision: only_revision(up, wanted))
    finally:
        stop.set()
        for asker in askers:
            asker.join()
    assert set(outcomes) == {200}
    up.delete(f"{APPS}/deployments/single")


def only_revision(up: Up, revision: str) -> bool:
    """Whether all pods are of this revision, and ready."""
    pods = up.get(f"{CORE}/pods?labelSelector=app%3Dsingle")["items"]
    found = [(pod["metadata"].get("annotations") or {}).get("revision") for pod in pods]
    return found == [revision]


def answered(address: str) -> bool:
    """Whether the Service answers."""
    connection = http.client.HTTPConnection(address, 8080, timeout=WITHIN_S)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def ask(address: str, stop: threading.Event, outcomes: list[object], kept: bool) -> None:
    """Requests until told to stop: on one connection as long as the server keeps it, or on one each."""
    connection = http.client.HTTPConnection(address, 8080, timeout=WITHIN_S)
    while not stop.wait(0.01):
        try:
            connection.request("GET", "/")
            answer = connection.getresponse()
            answer.read()
            outcomes.append(answer.status)
            if not kept:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            outcomes.append(error)
            connection.close()
    connection.close()


@pytest.mark.slow
def test_a_rollout_goes_on_after_a_crash(fresh_up: Up) -> None:
    """kill -9 in the middle: the next `up` finishes it, and the Service keeps its address."""
    fresh_up.start()
    slow = {"metadata": {"annotations": {"podscaler.dev/simulated-startup-seconds": "2"}}}
    fresh_up.create(f"{APPS}/deployments", simulated("crash", 5))
    spec = {"selector": {"app": "crash"}, "ports": [{"port": 8080}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "crash"}, "spec": spec}
    address = fresh_up.create(f"{CORE}/services", body)["spec"]["clusterIP"]
    eventually(lambda: fresh_up.get(f"{APPS}/deployments/crash")["status"].get("availableReplicas") == 5)
    containers = [{"name": "app", "image": "any:2"}]
    fresh_up.patch(f"{APPS}/deployments/crash", {"spec": {"template": {**slow, "spec": {"containers": containers}}}})
    eventually(lambda: "any:2" in sizes(fresh_up, "crash"))
    fresh_up.kill()
    fresh_up.start()
    eventually(lambda: sizes(fresh_up, "crash"), until=lambda found: found == {"any:2": 5})
    assert fresh_up.get(f"{CORE}/services/crash")["spec"]["clusterIP"] == address
