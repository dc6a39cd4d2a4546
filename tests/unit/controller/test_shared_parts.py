"""Parts of pods that are equal are kept once."""

import msgspec
import pytest

from podscaler.api.typed.pods import Container, Pod, PodCondition, PodMeta, PodSpec, PodStatus, ResourceRequirements
from podscaler.controller.informers import interned_parts, observed_objects
from podscaler.controller.informers.observed_objects import CachedPod
from podscaler.core.model import api_conversion
from podscaler.core.model.emulation import V1_37


def _pod(name: str, **labels: str) -> Pod:
    requests = ResourceRequirements({"cpu": "100m", "memory": "64Mi"})
    return Pod(
        PodMeta(name, "shop", f"uid-{name}", "7", None, labels or None),
        PodSpec(containers=(Container("main", requests), Container("side", requests))),
        PodStatus("Running", (PodCondition("Ready", "True", "2026-01-01T00:00:00Z"),), "2026-01-01T00:00:00Z"),
    )


def _read(*pods: Pod) -> list[CachedPod]:
    read = observed_objects.pod_source(V1_37).read
    return [read(msgspec.Raw(msgspec.json.encode(pod))) for pod in pods]


def test_nothing_changes() -> None:
    """What is kept equals the pod, with and without labels."""
    pods = [_pod("a", app="web"), _pod("b", app="web"), _pod("c")]
    assert _read(*pods) == [CachedPod(pod.metadata, api_conversion.pod(pod)) for pod in pods]


def test_equal_parts_are_one_object() -> None:
    """Pods of one workload share labels, containers and requests; other labels are others."""
    first, second, other = _read(_pod("a", app="web"), _pod("b", app="web"), _pod("c", app="api"))
    assert first.metadata.labels is second.metadata.labels is second.core_pod.labels
    assert first.core_pod.containers is second.core_pod.containers is other.core_pod.containers
    assert first.core_pod.requests_milli is second.core_pod.requests_milli
    assert other.metadata.labels == {"app": "api"}


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many different pods are still read right when what is known is forgotten in between."""
    monkeypatch.setattr(interned_parts, "PARTS_MAX", 3)
    pods = [_pod(f"p{number}", app=f"app-{number % 7}") for number in range(50)]
    assert [pod.metadata for pod in _read(*pods)] == [pod.metadata for pod in pods]
