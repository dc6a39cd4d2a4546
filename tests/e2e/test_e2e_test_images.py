"""The images of Kubernetes' end-to-end tests, as real pods."""

import ssl
import urllib.request
from typing import Any

import pytest
from up_process import Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CORE = "/api/v1/namespaces/default"
REGISTRY = "registry.k8s.io/e2e-test-images"
ISSUER_ROLE = "system:service-account-issuer-discovery"


def running_address(up: Up, name: str, container: dict[str, Any]) -> str:
    """The address of a new pod that is ready."""
    probe = {"tcpSocket": {"port": container.pop("port")}, "periodSeconds": 1}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "readinessProbe": probe, **container}]}
    up.create(f"{CORE}/pods", {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})

    def status() -> dict[str, Any]:
        return dict(up.get(f"{CORE}/pods/{name}")["status"])

    ready = eventually(
        status,
        until=lambda found: any(
            each["type"] == "Ready" and each["status"] == "True" for each in found.get("conditions", [])
        ),
    )
    return str(ready["podIP"])


def fetch(url: str, data: bytes | None = None) -> str:
    """The body of a response."""
    context = ssl._create_unverified_context() if url.startswith("https:") else None
    with urllib.request.urlopen(url, data, timeout=30, context=context) as response:
        return str(response.read().decode())


def test_a_consumer_behind_its_controller(up: Up) -> None:
    """The controller reaches the consumers by their Service, and the consumer starts its processes."""
    running_address(up, "consumer", {"image": f"{REGISTRY}/resource-consumer:1.14", "port": 8080})
    service = {"selector": {"app": "consumer"}, "ports": [{"port": 8080}]}
    up.create(f"{CORE}/services", {"metadata": {"name": "consumer"}, "spec": service})
    command = ["/agnhost", "resource-consumer-controller", "--consumer-service-name=consumer"]
    address = running_address(up, "controller", {"image": f"{REGISTRY}/agnhost", "command": command, "port": 8080})
    form = b"millicores=15&durationSec=1&requestSizeMillicores=10"
    assert eventually(
        lambda: fetch(f"http://{address}:8080/ConsumeCPU", form), until=lambda text: "Failed" not in text
    ) == ("RC manager: sending 2 requests to consume 15 millicores\nConsumed 10 millicores\nConsumed 5 millicores\n")


def test_netexec(up: Up) -> None:
    """It serves at the pod's address, with the pod's name."""
    address = running_address(up, "web-0", {"image": f"{REGISTRY}/agnhost", "args": ["netexec"], "port": 8080})
    assert fetch(f"http://{address}:8080/dial?host={address}&port=8081&request=hostname&protocol=udp") == (
        '{"responses": ["web-0"]}'
    )


def test_external_metrics(up: Up) -> None:
    """The metrics that exist at the start are served over TLS."""
    address = running_address(
        up, "external", {"image": f"{REGISTRY}/agnhost", "args": ["external-metrics"], "port": 6443}
    )
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/http_requests_total"
    assert '"value": "500"' in fetch(f"https://{address}:6443{path}")


def test_a_token_is_verified_by_the_issuer_s_documents(up: Up) -> None:
    """A pod finds the documents by the name of the issuer, and its account may read them."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ISSUER_ROLE}
    binding = {"metadata": {"name": "issuer"}, "subjects": [subject], "roleRef": role}
    up.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    token = {"serviceAccountToken": {"path": "token", "audience": "test"}}
    container = {
        "name": "c",
        "image": f"{REGISTRY}/agnhost",
        "args": ["test-service-account-issuer-discovery", "--token-path=/tokens/token", "--audience=test"],
        "volumeMounts": [{"name": "tokens", "mountPath": "/tokens"}],
    }
    volume = {"name": "tokens", "projected": {"sources": [token]}}
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": [volume]}
    up.create(f"{CORE}/pods", {"metadata": {"name": "verifier"}, "spec": spec})
    phase = eventually(
        lambda: up.get(f"{CORE}/pods/verifier")["status"].get("phase"),
        until=lambda found: found in ("Succeeded", "Failed"),
    )
    assert phase == "Succeeded"
