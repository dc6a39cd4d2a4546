"""The scale that follows from a workload is the one that the API server answers."""

from typing import Any

import msgspec
import pytest

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.api.typed.autoscaling import Scale, ScaleSpec, ScaleStatus
from podscaler.controller.informers import target_informer

META = {
    "name": "web",
    "namespace": "shop",
    "uid": "u",
    "resourceVersion": "7",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"a": "b"},
}
EXPRESSIONS = {
    "matchLabels": {"b": "2", "a": "1"},
    "matchExpressions": [{"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "Exists"}],
}


def _read(resource: target_informer.Resource, spec: dict[str, Any], status: dict[str, Any] | None = None) -> Scale:
    workload = {"metadata": META, "spec": spec} | ({"status": status} if status else {})
    return target_informer.scale_decoder(resource)(msgspec.Raw(msgspec.json.encode(workload)))


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
def test_workloads_with_a_label_selector(plural: str) -> None:
    """Metadata, replicas and the selector's canonical text."""
    scale = _read(("apps", plural), {"replicas": 3, "selector": EXPRESSIONS, "template": {}}, {"replicas": 2})
    assert scale == Scale(
        "autoscaling/v1",
        ObjectMeta(
            name="web",
            namespace="shop",
            uid="u",
            resource_version="7",
            creation_timestamp="2026-01-01T00:00:00Z",
        ),
        ScaleSpec(3),
        ScaleStatus(2, "a=1,b=2,c in (x,y),d"),
    )


def test_a_replication_controller() -> None:
    """Its selector is a map of labels."""
    scale = _read(("", "replicationcontrollers"), {"replicas": 1, "selector": {"b": "2", "a": "1"}})
    assert scale.status == ScaleStatus(0, "a=1,b=2")


@pytest.mark.parametrize(
    ("resource", "spec", "expected"),
    [
        (("apps", "deployments"), {"replicas": 0, "selector": {}}, (0, "")),
        (("apps", "deployments"), {"selector": {"matchLabels": {"a": "1"}}}, (1, "a=1")),
        (("apps", "deployments"), {"replicas": 2}, (2, "")),
        (("", "replicationcontrollers"), {"replicas": 2}, (2, "")),
    ],
    ids=["zero, selecting everything", "replicas left out", "no selector", "no map"],
)
def test_edges(resource: target_informer.Resource, spec: dict[str, Any], expected: tuple[int, str]) -> None:
    """What the server does with what is left out."""
    scale = _read(resource, spec)
    assert (scale.spec.replicas, scale.status.selector) == expected


def test_a_selector_that_is_wrong() -> None:
    """It is a ValueError, with the object's name, so that the scale is asked for."""
    wrong = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    with pytest.raises(ValueError, match='shop/web: "Like" is not a valid label selector operator'):
        _read(("apps", "deployments"), {"selector": wrong})
