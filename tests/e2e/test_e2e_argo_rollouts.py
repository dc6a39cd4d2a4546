"""Argo Rollouts runs on `podscaler up` by its own manifests: a canary, and an autoscaler of a Rollout."""

from collections.abc import Iterator
from pathlib import Path

import ecosystem_programs
import pytest
from ecosystem_programs import Object
from up_process import Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.real, pytest.mark.usefixtures("kubectl_present")]

NAMESPACE = "argo-rollouts"
ROLLOUT = "/apis/argoproj.io/v1alpha1/namespaces/default/rollouts/web"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


@pytest.fixture
def controller() -> Iterator[Path]:
    """The program."""
    with ecosystem_programs.shared_programs("argo-rollouts") as programs:
        yield programs["argo-rollouts"]


def rollout(version: str) -> Object:
    """Two pods; of a new version one is started, and the other when a user promotes it."""
    container = {"name": "main", "image": "registry.k8s.io/pause", "env": [{"name": "VERSION", "value": version}]}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
            "strategy": {"canary": {"maxSurge": 0, "maxUnavailable": 1, "steps": [{"setWeight": 50}, {"pause": {}}]}},
        },
    }


def autoscaler() -> Object:
    """At least three pods of the Rollout."""
    reference = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"}
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": reference, "minReplicas": 3, "maxReplicas": 5}}


def test_a_canary_and_an_autoscaler_of_a_rollout(up: Up, controller: Path) -> None:
    """A new version waits with half of the pods until it is promoted; an autoscaler writes the scale of the Rollout."""
    deploy(up, controller)
    ecosystem_programs.apply(up, [rollout("1")])
    eventually(lambda: versions(up), until=lambda found: found == ["1", "1"])
    ecosystem_programs.apply(up, [rollout("2")])
    eventually(lambda: up.get(ROLLOUT)["status"].get("phase"), until=lambda phase: phase == "Paused")
    assert versions(up) == ["1", "2"]
    up.patch(f"{ROLLOUT}/status", {"status": {"pauseConditions": None}})
    eventually(lambda: versions(up), until=lambda found: found == ["2", "2"])
    up.create(AUTOSCALERS, autoscaler())
    eventually(lambda: versions(up), until=lambda found: found == ["2", "2", "2"])


def deploy(up: Up, controller: Path) -> None:
    """Apply the project's own manifests, and wait until the controller is ready."""
    objects = ecosystem_programs.read_objects(ecosystem_programs.manifests("argo_rollouts", "install.yaml"))
    deployment = ecosystem_programs.of_kind(objects, "Deployment", "argo-rollouts")
    ecosystem_programs.run_program(deployment, controller)
    up.kubectl("create", "namespace", NAMESPACE)
    ecosystem_programs.apply(up, objects, namespace=NAMESPACE)
    deployment["metadata"]["namespace"] = NAMESPACE
    ecosystem_programs.await_ready(up, deployment)


def versions(up: Up) -> list[str]:
    """The versions of the ready pods."""
    pods = up.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")["items"]
    ready = [each for each in pods if any(one["ready"] for one in each["status"].get("containerStatuses", ()))]
    return sorted(each["spec"]["containers"][0]["env"][0]["value"] for each in ready)
