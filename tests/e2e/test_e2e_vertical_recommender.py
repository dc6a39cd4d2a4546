"""VPA's recommender recommends requests for a workload of `podscaler up`, from the metrics that `up` serves."""

from collections.abc import Iterator
from pathlib import Path

import ecosystem_programs
import pytest
from ecosystem_programs import Object
from up_process import Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.real, pytest.mark.usefixtures("kubectl_present")]

RECOMMENDERS = "/apis/autoscaling.k8s.io/v1/namespaces/default/verticalpodautoscalers"
BUSY: Object = {
    "metadata": {"name": "busy"},
    "spec": {
        "selector": {"matchLabels": {"app": "busy"}},
        "template": {
            "metadata": {"labels": {"app": "busy"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {"name": "main", "image": "none", "command": ["sh", "-c", "while sleep 0.1; do :; done"]}
                ],
            },
        },
    },
}
AUTOSCALER: Object = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "busy"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"},
        "updatePolicy": {"updateMode": "Off"},
    },
}


@pytest.fixture
def recommender() -> Iterator[Path]:
    """The program."""
    with ecosystem_programs.shared_programs("vpa-recommender") as programs:
        yield programs["vpa-recommender"]


def test_it_recommends(up: Up, recommender: Path) -> None:
    """Its own manifests are applied; the status of an autoscaler gets a recommendation for the container."""
    folder = ecosystem_programs.manifests("vpa")
    [deployment] = [
        each
        for each in ecosystem_programs.read_objects(folder / "recommender-deployment.yaml")
        if each["kind"] == "Deployment"
    ]
    ecosystem_programs.run_program(
        deployment, recommender, "--address=$(POD_IP):8942", "--recommender-interval=2s", "--leader-elect=true"
    )
    ecosystem_programs.apply(up, ecosystem_programs.read_objects(folder / "vpa-v1-crd-gen.yaml"))
    ecosystem_programs.apply(up, [*ecosystem_programs.read_objects(folder / "vpa-rbac.yaml"), deployment])
    up.create("/apis/apps/v1/namespaces/default/deployments", BUSY)
    eventually(lambda: up.request("POST", RECOMMENDERS, AUTOSCALER).status, until=lambda status: status == 201)
    ecosystem_programs.await_ready(up, deployment)
    found = eventually(lambda: up.get(f"{RECOMMENDERS}/busy").get("status", {}).get("recommendation"))
    [container] = found["containerRecommendations"]
    assert container["containerName"] == "main"
    assert {"cpu", "memory"} <= container["target"].keys()
