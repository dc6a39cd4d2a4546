"""Rows of the list: metrics of every type against their targets, counts with and without decisions, health."""

from typing import Any

import msgspec
import pytest

from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.core.model import spec as specs
from podscaler.core.model.emulation import V1_37
from podscaler.observe import autoscaler_rows
from podscaler.observe.views import MetricView

CPU = {"type": "Utilization", "averageUtilization": 70}
AVERAGE = {"type": "AverageValue", "averageValue": "10"}
VALUE = {"type": "Value", "value": "2k"}
INGRESS = {"kind": "Ingress", "name": "main", "apiVersion": "networking.k8s.io/v1"}


def autoscaler(metrics: list[Any], reported: list[Any], **status: Any) -> Autoscaler:
    """An autoscaler shop/web with these metrics, and the status that reports them so."""
    obj = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 5, "metrics": metrics},
        "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": reported} | status,
    }
    wire = msgspec.convert(obj, HorizontalPodAutoscaler)
    return Autoscaler(wire.metadata, wire, specs.of(wire, V1_37))


@pytest.mark.parametrize(
    ("metric", "current", "expected"),
    [
        (
            {"type": "Resource", "resource": {"name": "cpu", "target": CPU}},
            {
                "type": "Resource",
                "resource": {"name": "cpu", "current": {"averageUtilization": 63, "averageValue": "1"}},
            },
            ("cpu", "Resource", 63, 70, "percent", "63%/70%"),
        ),
        (
            {"type": "Resource", "resource": {"name": "memory", "target": AVERAGE}},
            {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "12"}}},
            ("memory", "Resource", 12_000, 10_000, "milli", "12/10"),
        ),
        (
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": CPU}},
            {"type": ""},
            ("cpu of container app", "ContainerResource", None, 70, "percent", "<unknown>/70%"),
        ),
        (
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": AVERAGE}},
            {"type": "Pods", "pods": {"metric": {"name": "rps"}, "current": {"averageValue": "11500m"}}},
            ("rps", "Pods", 11_500, 10_000, "milli", "11500m/10 (avg)"),
        ),
        (
            {"type": "Object", "object": {"metric": {"name": "rps"}, "target": VALUE, "describedObject": INGRESS}},
            {"type": "Object", "object": {"metric": {"name": "rps"}, "current": {"value": "1500"}}},
            ("rps of Ingress/main", "Object", 1_500_000, 2_000_000, "milli", "1500/2k"),
        ),
        (
            {"type": "External", "external": {"metric": {"name": "queue"}, "target": AVERAGE}},
            {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"averageValue": "nonsense"}}},
            ("queue", "External", None, 10_000, "milli", "nonsense/10 (avg)"),
        ),
    ],
    ids=["utilization", "average", "container", "pods", "object", "external"],
)
def test_metrics(metric: Any, current: Any, expected: tuple[Any, ...]) -> None:
    """The name, the value of the status, and the target, as kubectl prints them."""
    found = autoscaler_rows.metrics(autoscaler([metric], [current]).wire)
    assert [msgspec.structs.astuple(each) for each in found] == [expected]


def test_a_status_without_metrics() -> None:
    """The values are not known."""
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": CPU}}
    assert autoscaler_rows.metrics(autoscaler([metric], []).wire) == (
        MetricView("cpu", "Resource", None, 70, "percent", "<unknown>/70%"),
    )


@pytest.mark.parametrize(
    ("conditions", "counts"),
    [([], (None, None)), ([{"type": "AbleToScale", "status": "True"}], (2, 3))],
    ids=["never synced", "synced by another controller"],
)
def test_counts_without_decisions(conditions: list[Any], counts: tuple[Any, ...]) -> None:
    """They are those of the status, if a controller has written one."""
    row = autoscaler_rows.of(autoscaler([], [], conditions=conditions), None, now_ms=0, decided_by="")
    assert (row.replicas, row.desired) == counts
    assert (row.min, row.max, row.ready, row.sparkline, row.changed_at) == (1, 5, None, (), None)


@pytest.mark.parametrize(
    ("text", "at"),
    [("2026-01-01T00:00:00Z", 1_767_225_600_000), (None, None), ("", None), ("soon", None)],
)
def test_instants(text: str | None, at: int | None) -> None:
    """Timestamps of the API in milliseconds; what cannot be read is not known."""
    assert autoscaler_rows.instant_ms(text) == at
