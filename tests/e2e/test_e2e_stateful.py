"""StatefulSets, ReplicationControllers and DaemonSets of a real `up`: scaled, with processes, by kubectl."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import up_process
from up_process import Up, eventually

pytestmark = [pytest.mark.e2e]

APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SIMULATED = {
    "runtimeClassName": "simulated",
    "containers": [{"name": "app", "image": "any:1", "resources": {"requests": {"cpu": "100m"}}}],
}


def stateful_set(name: str, replicas: int, pod: dict[str, Any] = SIMULATED, **spec: Any) -> dict[str, Any]:
    """A StatefulSet of such pods."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": labels},
        "template": template,
        **spec,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def replication_controller(name: str, replicas: int) -> dict[str, Any]:
    """A ReplicationController of simulated pods."""
    labels = {"app": name}
    spec = {"replicas": replicas, "selector": labels, "template": {"metadata": {"labels": labels}, "spec": SIMULATED}}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": name}, "spec": spec}


def autoscaler(target: dict[str, Any]) -> dict[str, Any]:
    """At most five pods, each at 50 % of its CPU."""
    reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": target["metadata"]["name"]}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": target["metadata"]["name"]},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 5, "metrics": [{"type": "Resource", "resource": metric}]},
    }


def ready(up: Up, path: str, replicas: int) -> None:
    """Wait until a workload has exactly so many pods, all ready."""

    def counts() -> tuple[int, int]:
        status = up.get(path)["status"]
        return status.get("replicas", 0), status.get("readyReplicas", 0)

    eventually(counts, until=lambda found: found == (replicas, replicas))


def pods(up: Up, name: str) -> list[str]:
    """The names of a workload's pods, sorted."""
    items = up.get(f"{CORE}/pods?labelSelector=app%3D{name}")["items"]
    return sorted(pod["metadata"]["name"] for pod in items)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["statefulsets", "replicationcontrollers"])
def test_an_autoscaler_scales_it_up_and_down(up: Up, kind: str) -> None:
    """500m over pods of 100m at 50 %: more than the five allowed; with 40m one is enough."""
    is_set = kind == "statefulsets"
    body = stateful_set("scaled-set", 1) if is_set else replication_controller("scaled-rc", 1)
    path = f"{APPS if is_set else CORE}/{kind}/{body['metadata']['name']}"
    body["metadata"]["annotations"] = {"podscaler.dev/simulated-total-cpu": "500m"}
    up.create(path.rpartition("/")[0], body)
    up.create(AUTOSCALERS, autoscaler(body))
    ready(up, path, 5)
    up.patch(path, {"metadata": {"annotations": {"podscaler.dev/simulated-total-cpu": "40m"}}})
    ready(up, path, 1)
    if is_set:
        assert pods(up, "scaled-set") == ["scaled-set-0"]


def test_processes_start_and_stop_in_order(up: Up, tmp_path: Path) -> None:
    """Each pod is started when the one before is ready, and stopped when the one after is gone; its hostname is its
    name."""
    script = (
        "echo I am $HOSTNAME; trap 'sleep 0.5; exit 0' TERM; sleep 1; touch $0/$HOSTNAME; while :; do sleep 0.1; done"
    )
    container = {
        "name": "app",
        "image": "busybox",
        "command": ["/bin/sh", "-c", script, str(tmp_path)],
        "readinessProbe": {"exec": {"command": ["/bin/sh", "-c", f"test -e {tmp_path}/$HOSTNAME"]}, "periodSeconds": 1},
    }
    pod = {"terminationGracePeriodSeconds": 5, "containers": [container]}
    path = f"{APPS}/statefulsets/real"
    since = up.get(f"{CORE}/pods")["metadata"]["resourceVersion"]
    up.create(f"{APPS}/statefulsets", stateful_set("real", 3, pod))
    seen = watched(up, "real", since, until=["real-0", "real-1", "real-2"])
    assert seen == [["real-0"], ["real-0", "real-1"], ["real-0", "real-1", "real-2"]]
    ready(up, path, 3)
    assert up.request("GET", f"{CORE}/pods/real-1/log").body == "I am real-1\n"
    up.patch(f"{path}/scale", {"spec": {"replicas": 0}})
    seen = watched(up, "real", since, until=[])[3:]
    assert seen == [["real-0", "real-1"], ["real-0"], []]
    up.delete(path)


def watched(up: Up, name: str, since: str, *, until: list[str]) -> list[list[str]]:
    """The names of a workload's pods each time that they have changed since a version, until they are `until`."""

    def states(events: list[Any]) -> list[list[str]]:
        names: set[str] = set()
        seen = []
        for event in events:
            if event["type"] != "MODIFIED":
                names ^= {event["object"]["metadata"]["name"]}
                seen.append(sorted(names))
        return seen

    path = f"{CORE}/pods?watch=1&labelSelector=app%3D{name}&resourceVersion={since}"
    return states(up.watch(path, until=lambda events: states(events)[-1:] == [until]))


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_rolls_a_stateful_set_out_and_back(up: Up) -> None:
    """status, history and undo, as an unmodified kubectl does them."""
    up.create(f"{APPS}/statefulsets", stateful_set("undone", 2))
    up.kubectl("rollout", "status", "sts/undone", "--timeout=120s")
    up.kubectl("set", "image", "sts/undone", "app=any:2")
    last = up.kubectl("rollout", "status", "sts/undone", "--timeout=120s").splitlines()[-1]
    assert last == "partitioned roll out complete: 2 new pods have been updated..."
    assert history(up, "sts/undone") == ["1", "2"]
    up.kubectl("rollout", "undo", "sts/undone")
    up.kubectl("rollout", "status", "sts/undone", "--timeout=120s")
    images = {
        pod["spec"]["containers"][0]["image"] for pod in up.get(f"{CORE}/pods?labelSelector=app%3Dundone")["items"]
    }
    assert images == {"any:1"}
    assert history(up, "sts/undone") == ["2", "3"]
    up.kubectl("rollout", "restart", "sts/undone")
    up.kubectl("rollout", "status", "sts/undone", "--timeout=120s")
    assert history(up, "sts/undone") == ["2", "3", "4"]


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_rolls_a_daemon_set_out_and_back(up: Up) -> None:
    """The one node gets the new pod, and then the old one again."""
    body = {**stateful_set("agent", 1), "kind": "DaemonSet"}
    body["spec"] = {key: body["spec"][key] for key in ("selector", "template")}
    up.create(f"{APPS}/daemonsets", body)
    up.kubectl("rollout", "status", "ds/agent", "--timeout=120s")
    up.kubectl("set", "image", "ds/agent", "app=any:2")
    last = up.kubectl("rollout", "status", "ds/agent", "--timeout=120s").splitlines()[-1]
    assert last == 'daemon set "agent" successfully rolled out'
    up.kubectl("rollout", "undo", "ds/agent")
    up.kubectl("rollout", "status", "ds/agent", "--timeout=120s")
    (pod,) = up.get(f"{CORE}/pods?labelSelector=app%3Dagent")["items"]
    assert pod["spec"]["containers"][0]["image"] == "any:1"
    assert history(up, "ds/agent") == ["2", "3"]
    up.delete(f"{APPS}/daemonsets/agent", {"propagationPolicy": "Foreground"})
    eventually(
        lambda: (up.find(f"{APPS}/daemonsets/agent"), pods(up, "agent")), until=lambda found: found == (None, [])
    )


@pytest.mark.slow
@pytest.mark.usefixtures("kubectl_present")
def test_draining_keeps_to_the_budget(up: Up) -> None:
    """Of two pods one goes; the other has to wait until the first is back, for which there is no node."""
    labels = {"app": "guarded"}
    budget = {"metadata": {"name": "guarded"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}}
    up.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    up.create(f"{APPS}/statefulsets", stateful_set("guarded", 2))
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/guarded"
    eventually(lambda: up.get(path)["status"]["disruptionsAllowed"], until=lambda allowed: allowed == 1)
    node = up.node()["metadata"]["name"]
    drain = ("drain", node, "--ignore-daemonsets", "--pod-selector=app=guarded")
    try:
        with begun(up, *drain) as said:
            eventually(said, until=lambda text: VIOLATED in text)
            eventually(lambda: phases(up, "guarded"), until=lambda found: found == ["Pending", "Running"])
        assert up.run_kubectl(*drain, "--timeout=1s").returncode == 1
        assert phases(up, "guarded") == ["Pending", "Running"]
    finally:
        up.kubectl("uncordon", node)
    ready(up, f"{APPS}/statefulsets/guarded", 2)
    up.delete(f"{APPS}/statefulsets/guarded")
    up.delete(path)


VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def phases(up: Up, name: str) -> list[str]:
    """Those of a workload's pods, sorted."""
    items = up.get(f"{CORE}/pods?labelSelector=app%3D{name}")["items"]
    return sorted(pod["status"]["phase"] for pod in items)


@contextmanager
def begun(up: Up, *args: str) -> Iterator[Callable[[], str]]:
    """kubectl at work until the block ends; yields what it says, so far."""
    log = up.data_dir.parent / "kubectl.log"
    with log.open("wb") as output:
        command = [str(up_process.KUBECTL), f"--kubeconfig={up.kubeconfig}", *args]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield log.read_text
    finally:
        process.kill()
        process.wait()


def history(up: Up, what: str) -> list[str]:
    """The numbers of the revisions that `kubectl rollout history` lists."""
    lines = up.kubectl("rollout", "history", what).splitlines()[2:]
    return [line.split()[0] for line in lines if line.strip()]
