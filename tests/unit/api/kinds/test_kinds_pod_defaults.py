"""Defaults of pods, and what admission adds to new ones."""

from typing import Any

import pytest

from podscaler.api.kinds.pods import pod_admission, pod_defaults


def _container(**more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "example.com/i:1", **more}
    pod_defaults.set_pod_spec_defaults({"containers": [container]})
    return container


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_pull_policy_depends_on_the_tag(image: str, policy: str) -> None:
    """Images whose content may change are pulled always."""
    assert _container(image=image)["imagePullPolicy"] == policy


def test_probes_and_hooks() -> None:
    """Probes get their times, http handlers path and scheme; what is given stays."""
    probe = {"httpGet": {"port": 80}, "periodSeconds": 3, "timeoutSeconds": 0}
    found = _container(readinessProbe=probe, lifecycle={"preStop": {"httpGet": {"port": 81, "path": "/x"}}})
    assert found["readinessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "periodSeconds": 3,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert found["lifecycle"] == {"preStop": {"httpGet": {"port": 81, "path": "/x", "scheme": "HTTP"}}}


def test_negative_grace_periods() -> None:
    """That of a pod becomes one second, that of a template stays."""
    pod, workload = ({"spec": {"terminationGracePeriodSeconds": -5}} for _ in range(2))
    pod_defaults.set_pod_defaults(pod)
    pod_defaults.set_template_defaults(owner := {"template": workload})
    periods = [each["spec"]["terminationGracePeriodSeconds"] for each in (pod, owner["template"])]
    assert periods == [1, -5]


def test_ports_and_variables() -> None:
    """Ports speak TCP, field references mean v1."""
    found = _container(
        ports=[{"containerPort": 80}], env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    )
    assert [found["ports"], found["env"][0]["valueFrom"]["fieldRef"]["apiVersion"]] == [
        [{"containerPort": 80, "protocol": "TCP"}],
        "v1",
    ]


@pytest.mark.parametrize(
    ("volume", "filled"),
    [
        pytest.param({"name": "v"}, {"name": "v", "emptyDir": {}}, id="no source"),
        pytest.param({"secret": {}}, {"secret": {"defaultMode": 420}}, id="secret"),
        pytest.param({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}, id="host path"),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}], "defaultMode": 256}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 256,
                }
            },
            id="projected",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {
                "downwardAPI": {
                    "items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}],
                    "defaultMode": 420,
                }
            },
            id="downward API",
        ),
    ],
)
def test_volumes(volume: dict[str, Any], filled: dict[str, Any]) -> None:
    """Files are readable by all unless told otherwise; a volume without a source is an empty directory."""
    pod_defaults.set_pod_spec_defaults({"volumes": [volume], "containers": []})
    assert volume == filled


def test_requests_default_to_limits_in_pods_only() -> None:
    """A pod's requests follow from its limits; a template keeps what was written."""
    pod, template = ({"spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]}} for _ in range(2))
    pod_defaults.set_pod_defaults(pod)
    pod_defaults.set_template_defaults({"template": template})
    assert [each["spec"]["containers"][0]["resources"] for each in (pod, template)] == [
        {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
        {"limits": {"cpu": "1"}},
    ]


def test_service_account_has_two_names() -> None:
    """The old name of the field is kept in step with the new one."""
    specs = [{"serviceAccount": "a"}, {"serviceAccountName": "b", "serviceAccount": "a"}]
    for spec in specs:
        pod_defaults.set_pod_spec_defaults(spec)
    assert [(spec["serviceAccountName"], spec["serviceAccount"]) for spec in specs] == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        pytest.param([{}], "BestEffort", id="nothing"),
        pytest.param([{"requests": {"cpu": "0"}}], "BestEffort", id="zero"),
        pytest.param([{"requests": {"cpu": "1"}}], "Burstable", id="requests"),
        pytest.param([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed", id="limits"),
        pytest.param(
            [{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}],
            "Guaranteed",
            id="equal in value",
        ),
        pytest.param(
            [{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable", id="less requested"
        ),
        pytest.param([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable", id="one container without"),
        pytest.param([{"limits": {"memory": "1Gi"}}], "Burstable", id="one resource"),
    ],
)
def test_qos_class(resources: list[dict[str, Any]], qos: str) -> None:
    """Guaranteed, Burstable or BestEffort follows from requests and limits of all containers."""
    assert pod_admission.qos_class({"containers": [{"resources": each} for each in resources]}) == qos


def test_tolerations_are_not_doubled() -> None:
    """A pod that already tolerates an unreachable node keeps its own toleration."""
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    pod = {"spec": {"containers": [], "tolerations": [own]}}
    pod_admission.admit(pod)
    assert [each["key"].rpartition("/")[2] for each in pod["spec"]["tolerations"]] == ["unreachable", "not-ready"]
