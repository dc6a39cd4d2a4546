"""The environment of containers: values, references, Services."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from podscaler.api import port_map
from podscaler.controlplane.kubelet.volumes import environment, references, service_variables
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError, PodPlacement

PLACE = PodPlacement("127.2.1.1", "127.2.0.1", "vm", {"cpu": "8", "memory": "16Gi"})
POD: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "uid": "u1",
        "labels": {"app": "web", "tier": 'a "b"'},
        "annotations": {"note": "x"},
    },
    "spec": {
        "serviceAccountName": "robot",
        "containers": [
            {"name": "web", "resources": {"limits": {"cpu": "1500m"}, "requests": {"cpu": "250m", "memory": "64Mi"}}}
        ],
    },
}
OBJECTS = {
    ("configmaps", "shop", "cm"): {"data": {"k": "from map", "bad=name": "x", "other": "y"}},
    ("secrets", "shop", "sec"): {"data": {"k": base64.b64encode(b"hidden").decode()}},
}


def find(resource: str, namespace: str, name: str) -> dict[str, Any] | None:
    return OBJECTS.get((resource, namespace, name))


def made(container: Mapping[str, Any], **base: str) -> dict[str, str]:
    return environment.environment(POD, {"name": "web", **container}, PLACE, find=find, base=base, services={})


def source(**value_from: Any) -> dict[str, Any]:
    return {"env": [{"name": "V", "valueFrom": value_from}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$", "$"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$(A)$(", "1$("),
        ("$()", "$()"),
        ("", ""),
    ],
)
def test_references_in_texts(text: str, expected: str) -> None:
    """$(NAME) is replaced where NAME is known, $$ is one dollar, everything else stays."""
    assert environment.expand_references(text, {"A": "1", "B": "2"}) == expected


def test_later_variables_see_earlier_ones() -> None:
    """A value may refer to what stands before it, the last definition of a name wins."""
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(C)"},
        {"name": "C", "value": "3"},
        {"name": "A"},
    ]
    assert made({"env": env}, PATH="/bin") == {"PATH": "/bin", "A": "", "B": "1-$(C)", "C": "3"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web-1"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u1"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "x"),
        ("metadata.labels", 'app="web"\ntier="a \\"b\\""'),
        ("spec.nodeName", "vm"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "127.2.1.1"),
        ("status.podIPs", "127.2.1.1"),
        ("status.hostIP", "127.2.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, expected: str) -> None:
    """Every fieldPath that Kubernetes offers; those of the status are known before it is written."""
    assert made(source(fieldRef={"fieldPath": path})) == {"V": expected}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param({"resource": "limits.cpu"}, "2", id="rounded up to whole cores"),
        pytest.param({"resource": "limits.cpu", "divisor": "1m"}, "1500", id="in thousandths"),
        pytest.param({"resource": "requests.memory"}, str(64 << 20), id="bytes"),
        pytest.param({"resource": "requests.memory", "divisor": "1Mi"}, "64", id="mebibytes"),
        pytest.param({"resource": "requests.memory", "divisor": "0"}, str(64 << 20), id="no divisor"),
        pytest.param({"resource": "limits.memory", "divisor": "1Gi"}, "16", id="the node's, where there is no limit"),
        pytest.param({"resource": "requests.ephemeral-storage"}, "0", id="nothing requested"),
        pytest.param({"resource": "limits.cpu", "containerName": "web", "divisor": "1m"}, "1500", id="by name"),
    ],
)
def test_resources_of_a_container(reference: dict[str, str], expected: str) -> None:
    """resourceFieldRef in units of its divisor."""
    assert made(source(resourceFieldRef=reference)) == {"V": expected}


def test_keys_of_config_maps_and_secrets() -> None:
    """configMapKeyRef as text, secretKeyRef decoded; an optional one that is absent leaves the variable out."""
    assert made(source(configMapKeyRef={"name": "cm", "key": "k"})) == {"V": "from map"}
    assert made(source(secretKeyRef={"name": "sec", "key": "k"})) == {"V": "hidden"}
    assert made(source(secretKeyRef={"name": "sec", "key": "none", "optional": True})) == {}
    assert made(source(configMapKeyRef={"name": "none", "key": "k", "optional": True})) == {}


def test_all_keys_of_a_source() -> None:
    """envFrom takes every key that can be a name, with its prefix; env wins over it; optional ones may be absent."""
    sources = [
        {"prefix": "P_", "configMapRef": {"name": "cm"}},
        {"secretRef": {"name": "sec"}},
        {"configMapRef": {"name": "none", "optional": True}},
    ]
    env = [{"name": "P_other", "value": "mine"}]
    assert made({"envFrom": sources, "env": env}) == {"P_k": "from map", "P_other": "mine", "k": "hidden"}


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (source(configMapKeyRef={"name": "none", "key": "k"}), 'configmap "none" not found'),
        (source(configMapKeyRef={"name": "cm", "key": "none"}), "couldn't find key none in ConfigMap shop/cm"),
        (source(secretKeyRef={"name": "none", "key": "k"}), 'secret "none" not found'),
        (source(secretKeyRef={"name": "sec", "key": "none"}), "couldn't find key none in Secret shop/sec"),
        ({"envFrom": [{"configMapRef": {"name": "none"}}]}, 'configmap "none" not found'),
        ({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found'),
        (source(fieldRef={"fieldPath": "spec.hostname"}), "unsupported fieldPath: spec.hostname"),
        (source(resourceFieldRef={"resource": "cpu"}), "unsupported container resource: cpu"),
        (source(resourceFieldRef={"resource": "limits.cpu", "containerName": "no"}), "container no not found"),
        (source(fileKeyRef={"path": "x"}), "the source of the environment variable V is not supported: fileKeyRef"),
        (
            {"env": [{"name": "V", "value": "a\0b"}]},
            "the environment variable 'V' holds a NUL byte, which an environment cannot hold",
        ),
    ],
)
def test_what_cannot_be_resolved(container: dict[str, Any], message: str) -> None:
    """A fault with the kubelet's sentence holds the container back."""
    with pytest.raises(ContainerConfigError) as caught:
        made(container)
    assert (caught.value.reason, caught.value.message) == (references.CONFIG_ERROR, message)


def service(name: str, namespace: str, address: str, *ports: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": address, "ports": list(ports)}}


SERVICES = [
    service("kubernetes", "default", "127.2.224.1", {"name": "https", "port": 443}),
    service("redis-main", "shop", "127.2.224.9", {"name": "tcp-redis", "port": 6379}, {"name": "m", "port": 80}),
    service("headless", "shop", "None", {"port": 1}),
    service("elsewhere", "default", "127.2.224.3", {"port": 1}),
]
MASTER = {
    "KUBERNETES_SERVICE_HOST": "127.2.224.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://127.2.224.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://127.2.224.1:443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_ADDR": "127.2.224.1",
}


def test_services_of_the_namespace() -> None:
    """The Docker-links variables of each Service of the namespace and of `kubernetes`; headless ones are left out."""
    found = service_variables.service_variables(SERVICES, namespace="shop")
    assert found == MASTER | {
        "REDIS_MAIN_SERVICE_HOST": "127.2.224.9",
        "REDIS_MAIN_SERVICE_PORT": "6379",
        "REDIS_MAIN_SERVICE_PORT_TCP_REDIS": "6379",
        "REDIS_MAIN_SERVICE_PORT_M": "80",
        "REDIS_MAIN_PORT": "tcp://127.2.224.9:6379",
        "REDIS_MAIN_PORT_6379_TCP": "tcp://127.2.224.9:6379",
        "REDIS_MAIN_PORT_6379_TCP_PROTO": "tcp",
        "REDIS_MAIN_PORT_6379_TCP_PORT": "6379",
        "REDIS_MAIN_PORT_6379_TCP_ADDR": "127.2.224.9",
        "REDIS_MAIN_PORT_80_TCP": "tcp://127.2.224.9:80",
        "REDIS_MAIN_PORT_80_TCP_PROTO": "tcp",
        "REDIS_MAIN_PORT_80_TCP_PORT": "80",
        "REDIS_MAIN_PORT_80_TCP_ADDR": "127.2.224.9",
    }


def test_service_links_may_be_refused() -> None:
    """enableServiceLinks: false leaves `kubernetes` alone."""
    assert service_variables.service_variables(SERVICES, namespace="shop", enable_service_links=False) == MASTER


def test_a_moved_port_is_told_where_it_is() -> None:
    """A Service whose port had to move is found at the port that answers."""
    moved = service("kubernetes", "default", "127.2.224.1", {"name": "https", "port": 443})
    moved["metadata"]["annotations"] = {port_map.ANNOTATION: '{"443": 20443}'}
    found = service_variables.service_variables([moved], namespace="shop")
    assert found["KUBERNETES_SERVICE_PORT"] == "20443"
    assert found["KUBERNETES_PORT"] == "tcp://127.2.224.1:20443"
