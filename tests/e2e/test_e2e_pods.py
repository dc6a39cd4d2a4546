"""Pods of a real `up`: containers that are real processes, driven and seen through the API alone."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually, process_exists

pytestmark = [pytest.mark.e2e]

PODS = "/api/v1/namespaces/default/pods"
SERVE = "import http.server as h,os;h.HTTPServer((os.environ['POD_IP'],8080),h.BaseHTTPRequestHandler).serve_forever()"
UNHEALTHY = "Unhealthy"
FOREVER = ["/bin/sh", "-c", "while true; do sleep 1; done"]


def container(name: str = "app", **fields: Any) -> dict[str, Any]:
    """A container that runs for ever, unless `fields` say something else."""
    return {"name": name, "image": "any", "command": FOREVER, **fields}


def python(code: str, **fields: Any) -> dict[str, Any]:
    """A container that runs Python."""
    return container(command=[sys.executable, "-I", "-S", "-u", "-c", code], **fields)


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A Pod that ends quickly when it is told to."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 2, "containers": list(containers) or [container()], **spec},
    }


def started(up: Up, body: dict[str, Any]) -> dict[str, Any]:
    """The pod, created and running."""
    up.create(PODS, body)
    return in_phase(up, body["metadata"]["name"], "Running")


def in_phase(up: Up, name: str, phase: str) -> dict[str, Any]:
    """The pod once it has this phase."""
    return eventually(lambda: up.get(f"{PODS}/{name}"), until=lambda found: found["status"].get("phase") == phase)


def is_ready(found: dict[str, Any]) -> bool:
    """Whether the pod's Ready condition is True."""
    conditions = found["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def logs(up: Up, name: str, query: str = "") -> str:
    """The container's log."""
    answer = up.request("GET", f"{PODS}/{name}/log?{query}")
    assert answer.status == 200, answer
    return answer.body if isinstance(answer.body, str) else json.dumps(answer.body)


def status_of(found: dict[str, Any], name: str = "app", kind: str = "containerStatuses") -> dict[str, Any]:
    """One container's status; empty where there is none yet."""
    return next((s for s in found["status"].get(kind, []) if s["name"] == name), {})


def test_environment_arguments_and_working_directory(up: Up) -> None:
    """env from values, fields, config maps, secrets; $(VAR) in args; workingDir; POD_IP; nothing of ours leaks in."""
    maps = "/api/v1/namespaces/default"
    up.create(
        f"{maps}/configmaps",
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "env"}, "data": {"k": "cm"}},
    )
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "env"}, "stringData": {"k": "hidden"}}
    up.create(f"{maps}/secrets", secret)
    env = [
        {"name": "PLAIN", "value": "p"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CM", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}},
    ]
    code = "import json,os,sys;print(json.dumps([sys.argv[1:],os.getcwd(),dict(os.environ)]))"
    body = pod(
        "env", python(code, args=["$(PLAIN)-$(NAME)", "$$(PLAIN)"], env=env, workingDir="/"), restartPolicy="Never"
    )
    up.create(PODS, body)
    found = in_phase(up, "env", "Succeeded")
    args, directory, seen = json.loads(logs(up, "env"))
    ip = found["status"]["podIP"]
    assert (args, directory) == (["p-env", "$(PLAIN)"], "/")
    assert {key: seen[key] for key in ("NAME", "IP", "CM", "SECRET", "POD_IP")} == {
        "NAME": "env",
        "IP": ip,
        "CM": "cm",
        "SECRET": "hidden",
        "POD_IP": ip,
    }
    assert seen["HOSTNAME"] == "env"
    assert "PYTEST_CURRENT_TEST" not in seen


def test_every_pod_has_an_address_of_its_own(up: Up) -> None:
    """Two pods listen on the same port of their own loopback addresses."""
    addresses = set()
    for name in ("one", "two"):
        ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
        started(up, pod(name, python(SERVE, readinessProbe=ready)))
        found = eventually(lambda name=name: up.get(f"{PODS}/{name}"), until=is_ready)
        addresses.add(found["status"]["podIP"])
    assert len(addresses) == 2
    assert all(address.startswith("127.") for address in addresses)


def told(up: Up, name: str, reason: str) -> list[str]:
    """The messages of a pod's events with that reason."""
    return [message for pod, why, message in up.events() if (pod, why) == (name, reason)]


def test_a_readiness_probe_decides_who_is_ready(up: Up, tmp_path: Path) -> None:
    """An exec probe fails until its file is there; the container is not restarted for it."""
    mark = tmp_path / "ready"
    probe = {"exec": {"command": ["/usr/bin/test", "-e", str(mark)]}, "periodSeconds": 1}
    started(up, pod("ready-exec", container(readinessProbe=probe)))
    eventually(lambda: told(up, "ready-exec", "Unhealthy"))
    assert not is_ready(up.get(f"{PODS}/ready-exec"))
    mark.touch()
    found = eventually(lambda: up.get(f"{PODS}/ready-exec"), until=is_ready)
    assert status_of(found)["restartCount"] == 0


def test_a_failing_liveness_probe_restarts_the_container(up: Up) -> None:
    """httpGet on a port where nobody listens: the container is killed and started again."""
    probe = {"httpGet": {"port": 9999, "path": "/"}, "periodSeconds": 1, "failureThreshold": 1}
    up.create(PODS, pod("unlive", container(livenessProbe=probe)))
    eventually(lambda: status_of(up.get(f"{PODS}/unlive")).get("restartCount", 0))
    eventually(lambda: told(up, "unlive", "Unhealthy") and told(up, "unlive", "Killing"))


def test_a_startup_probe_holds_back_the_others(up: Up) -> None:
    """As long as the startup probe fails, liveness is not asked."""
    liveness = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1, "failureThreshold": 1}
    startup = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1, "failureThreshold": 3600}
    started(up, pod("starting", container(livenessProbe=liveness, startupProbe=startup)))
    eventually(lambda: times_unhealthy(up, "starting"), until=lambda times: times >= 3)
    status = status_of(up.get(f"{PODS}/starting"))
    assert (status["restartCount"], status["started"]) == (0, False)
    assert {message.partition(":")[0] for message in told(up, "starting", "Unhealthy")} == {"Startup probe failed"}


def times_unhealthy(up: Up, name: str) -> int:
    """How often events say that a probe failed."""
    items = up.get("/api/v1/namespaces/default/events")["items"]
    return sum(each["count"] for each in items if (each["involvedObject"]["name"], each["reason"]) == (name, UNHEALTHY))


def test_init_containers_run_in_order_and_sidecars_stay(up: Up, tmp_path: Path) -> None:
    """Init containers end before the next begins; a sidecar runs on beside the main container and ends after it."""
    said = tmp_path / "said"  # without a probe nothing says that a sidecar has begun to work
    sidecar = container(
        "sidecar", command=["/bin/sh", "-c", f"echo sidecar; touch {said}; exec sleep 1000"], restartPolicy="Always"
    )
    first = container("first", command=["/bin/sh", "-c", "echo first"])
    main = container(command=["/bin/sh", "-c", f"until [ -e {said} ]; do sleep 0.1; done; echo main"])
    up.create(PODS, pod("ordered", main, initContainers=[first, sidecar], restartPolicy="Never"))
    found = in_phase(up, "ordered", "Succeeded")
    ended = status_of(found, "first", "initContainerStatuses")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert logs(up, "ordered", "container=sidecar") == "sidecar\n"
    assert "terminated" in status_of(found, "sidecar", "initContainerStatuses")["state"]


def test_a_crashing_container_backs_off(up: Up) -> None:
    """After a crash or two the container waits in CrashLoopBackOff, with its last exit code told."""
    up.create(PODS, pod("crashing", container(command=["/bin/sh", "-c", "echo dying; exit 3"])))

    def waiting_reason() -> str:
        return str(status_of(up.get(f"{PODS}/crashing")).get("state", {}).get("waiting", {}).get("reason", ""))

    eventually(waiting_reason, until=lambda reason: reason == "CrashLoopBackOff")
    last = status_of(up.get(f"{PODS}/crashing"))["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (3, "Error")
    assert logs(up, "crashing", "previous=true") == "dying\n"


@pytest.mark.parametrize(("policy", "code", "phase"), [("Never", 4, "Failed"), ("OnFailure", 0, "Succeeded")])
def test_restart_policies_end_pods(up: Up, policy: str, code: int, phase: str) -> None:
    """Never restarts nothing; OnFailure is content with exit code 0."""
    name = f"policy-{policy.lower()}"
    up.create(PODS, pod(name, container(command=["/bin/sh", "-c", f"exit {code}"]), restartPolicy=policy))
    assert status_of(in_phase(up, name, phase))["state"]["terminated"]["exitCode"] == code


def test_graceful_termination(up: Up) -> None:
    """SIGTERM first: a container that ends in time is not killed, and the pod is gone then."""
    code = "import signal,sys,time;signal.signal(15,lambda *_:(print('bye'),sys.exit(0)));print('up');time.sleep(1000)"
    started(up, pod("polite", python(code), terminationGracePeriodSeconds=600))  # which patience would not outlast
    eventually(lambda: logs(up, "polite"), until=lambda text: text == "up\n")
    since = up.get(PODS)["metadata"]["resourceVersion"]
    up.delete(f"{PODS}/polite")
    events = up.watch(
        f"{PODS}?watch=1&resourceVersion={since}&fieldSelector=metadata.name%3Dpolite",
        until=lambda found: bool(found) and found[-1]["type"] == "DELETED",
    )
    assert [each for each in events if "deletionTimestamp" not in each["object"]["metadata"]] == []
    assert status_of(events[-1]["object"])["state"]["terminated"]["exitCode"] == 0


def test_forced_termination_takes_the_whole_group(up: Up) -> None:
    """A container that ignores SIGTERM is killed after its grace period, children included."""
    child_code = "import signal,time;signal.signal(15,signal.SIG_IGN);time.sleep(1000)"
    code = (
        "import signal,subprocess,sys,time;signal.signal(15,signal.SIG_IGN);"
        f"p=subprocess.Popen([sys.executable,'-c','{child_code}']);"
        "print(p.pid);time.sleep(1000)"
    )
    started(up, pod("stubborn", python(code), terminationGracePeriodSeconds=1))
    child = int(eventually(lambda: logs(up, "stubborn")))
    assert process_exists(child)
    up.delete(f"{PODS}/stubborn")
    eventually(lambda: up.find(f"{PODS}/stubborn"), until=lambda found: found is None)
    eventually(lambda: not process_exists(child))


def test_an_unknown_image_without_a_command_waits_with_a_reason(up: Up) -> None:
    """The pod stays Pending; its status and an event say why."""
    body = pod("unknown", {"name": "app", "image": "example.com/nobody/knows:1"})
    up.create(PODS, body)
    waiting = eventually(
        lambda: status_of(up.get(f"{PODS}/unknown")).get("state", {}).get("waiting", {}),
        until=lambda found: found.get("reason") == "ImageNotKnown",
    )
    assert "example.com/nobody/knows:1" in waiting["message"]
    eventually(lambda: [m for name, _, m in up.events() if name == "unknown" and "example.com/nobody/knows:1" in m])


def test_logs_follow_and_tail(up: Up) -> None:
    """tailLines, timestamps, and follow until the container ends."""
    script = "for i in 1 2 3; do echo line $i; done; sleep 2; echo last"
    up.create(PODS, pod("talking", container(command=["/bin/sh", "-c", script]), restartPolicy="Never"))
    eventually(lambda: up.request("GET", f"{PODS}/talking/log").status, until=lambda status: status == 200)
    assert logs(up, "talking", "follow=true").splitlines() == ["line 1", "line 2", "line 3", "last"]
    assert logs(up, "talking", "tailLines=1") == "last\n"
    assert logs(up, "talking", "tailLines=1&timestamps=true").split()[1] == "last"


def test_logs_are_bounded(up: Up) -> None:
    """A container that writes 30 MB leaves no more than its two log files of 10 MiB."""
    script = "yes 0123456789012345678901234567890123456789 | head -c 30000000; echo; echo the end"
    up.create(PODS, pod("verbose", container(command=["/bin/sh", "-c", script]), restartPolicy="Never"))
    uid = in_phase(up, "verbose", "Succeeded")["metadata"]["uid"]
    assert logs(up, "verbose", "tailLines=1") == "the end\n"
    files = [path for path in up.data_dir.rglob("*") if path.is_file() and uid in str(path)]
    assert files
    assert sum(path.stat().st_size for path in files) < 22 << 20


def test_volumes_are_mounted_or_refused(up: Up) -> None:
    """ConfigMap, secret, downward API and emptyDir at their paths where private mounts are allowed; else a reason."""
    data = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "files"}, "data": {"greeting": "hello"}}
    up.create("/api/v1/namespaces/default/configmaps", data)
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "files"}, "stringData": {"key": "hidden"}}
    up.create("/api/v1/namespaces/default/secrets", secret)
    volumes = [
        {"name": "config", "configMap": {"name": "files"}},
        {"name": "secret", "secret": {"secretName": "files"}},
        {"name": "info", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/mnt/podscaler-test/{volume['name']}"} for volume in volumes]
    script = "cd /mnt/podscaler-test; cat config/greeting secret/key info/name; echo kept > scratch/f; cat scratch/f"
    body = pod("mounting", container(command=["/bin/sh", "-c", script], volumeMounts=mounts), restartPolicy="Never")
    body["spec"]["volumes"] = volumes
    up.create(PODS, body)

    def outcome() -> str:
        found = up.get(f"{PODS}/mounting")
        if found["status"].get("phase") == "Succeeded":
            return "mounted"
        refusals = [m for name, _, m in up.events() if name == "mounting" and "mount" in m]
        return refusals[0] if refusals else ""

    if eventually(outcome) == "mounted":
        assert logs(up, "mounting") == "hellohiddenmountingkept\n"
        assert not os.path.exists("/mnt/podscaler-test/scratch/f")


def test_a_simulated_pod_has_no_process(up: Up) -> None:
    """It runs and is ready at once, and uses what its annotation says."""
    body = pod("pretended", runtimeClassName="simulated")
    body["metadata"]["annotations"] = {"podscaler.dev/simulated-cpu": "250m", "podscaler.dev/simulated-memory": "64Mi"}
    started(up, body)
    metrics = eventually(lambda: up.find("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/pretended"))
    assert metrics["containers"] == [{"name": "app", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]


def test_cpu_of_a_process_tree_is_measured(up: Up) -> None:
    """A child that burns one core shows in the pod's metrics, with time and window."""
    burn = "import subprocess,sys;subprocess.run([sys.executable,'-c','while True: pass'])"
    started(up, pod("burning", python(burn)))
    path = "/apis/metrics.k8s.io/v1/namespaces/default/pods/burning"

    def cores() -> float:
        metrics = up.find(path)
        return int(metrics["containers"][0]["usage"]["cpu"].rstrip("n")) / 1e9 if metrics else 0.0

    eventually(cores, until=lambda value: value > 0.1)  # whoever shares the machine leaves it as much
    metrics = up.get(path)
    assert metrics["window"].endswith("s")
    assert metrics["timestamp"].endswith("Z")
    up.delete(f"{PODS}/burning", {"gracePeriodSeconds": 0})


def test_nodes_have_metrics(up: Up) -> None:
    """The machine itself has a usage."""
    items = eventually(lambda: up.get("/apis/metrics.k8s.io/v1beta1/nodes")["items"])
    assert set(items[0]["usage"]) == {"cpu", "memory"}


def test_limits_are_enforced_or_said_not_to_be(up: Up) -> None:
    """The node's conditions say whether resource limits hold on this machine."""
    conditions = {c["type"]: c for c in up.node()["status"]["conditions"]}
    assert conditions["ResourceLimitsEnforced"]["status"] in {"True", "False"}
    assert conditions["ResourceLimitsEnforced"]["message"]


def test_a_crash_of_up_leaves_no_orphans_and_restarts_the_pods(fresh_up: Up) -> None:
    """kill -9: the next start ends the old processes and runs the same pods again; a stop ends everything."""
    fresh_up.start()
    code = "import os,time;print(os.getpid());time.sleep(1000)"
    before = started(fresh_up, pod("survivor", python(code)))
    first = int(eventually(lambda: logs(fresh_up, "survivor")))
    fresh_up.kill()
    assert process_exists(first)
    fresh_up.start()
    eventually(lambda: not process_exists(first))

    def restarts() -> int:
        return int(status_of(fresh_up.get(f"{PODS}/survivor")).get("restartCount", 0))

    eventually(restarts, until=lambda count: count == 1)
    second = int(eventually(lambda: logs(fresh_up, "survivor")))
    assert fresh_up.get(f"{PODS}/survivor")["metadata"]["uid"] == before["metadata"]["uid"]
    assert fresh_up.stop() == 0
    eventually(lambda: not process_exists(second))


def test_a_deletion_is_seen_before_the_pod_is_gone(up: Up) -> None:
    """A pod that ignores its stop signal is terminating until its grace period ends; watches see both."""
    stubborn = container(command=["/bin/sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"])
    since = started(up, pod("stubborn", stubborn))["metadata"]["resourceVersion"]
    up.delete(f"{PODS}/stubborn")
    assert up.get(f"{PODS}/stubborn")["metadata"]["deletionGracePeriodSeconds"] == 2
    path = f"{PODS}?watch=true&resourceVersion={since}&fieldSelector=metadata.name%3Dstubborn"
    seen = up.watch(path, until=lambda events: any(each["type"] == "DELETED" for each in events))
    terminating = [each for each in seen if each["object"]["metadata"].get("deletionTimestamp")]
    assert terminating[0]["type"] == "MODIFIED"
    assert terminating[0]["object"]["status"]["phase"] == "Running"
