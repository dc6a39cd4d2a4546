"""When a status is written, and what is sent."""

from typing import Any

import msgspec
import pytest

from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.reconcile import status_writer
from podscaler.core.model import spec
from podscaler.kube.client.client import Client
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport, json_answer


def _status(**fields: Any) -> HorizontalPodAutoscalerStatus:
    return msgspec.convert(
        {
            "observedGeneration": 2,
            "lastScaleTime": "2026-01-01T00:00:00Z",
            "currentReplicas": 3,
            "desiredReplicas": 3,
            "currentMetrics": [_memory("73536000")],
            "conditions": [_condition("AbleToScale"), _condition("ScalingActive")],
        }
        | fields,
        HorizontalPodAutoscalerStatus,
    )


def _memory(average: str) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": average}}}


def _condition(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"} | fields


CONDITIONS = [_condition("AbleToScale"), _condition("ScalingActive")]


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({}, True),
        ({"currentMetrics": [_memory("73536k")]}, True),
        ({"currentMetrics": [_memory("73537k")]}, False),
        ({"currentMetrics": []}, False),
        ({"lastScaleTime": "2026-01-01T01:00:00+01:00"}, True),
        ({"lastScaleTime": "2026-01-01T00:00:01Z"}, False),
        ({"lastScaleTime": None}, False),
        ({"observedGeneration": 3}, False),
        ({"desiredReplicas": 4}, False),
        ({"conditions": CONDITIONS[::-1]}, False),
        ({"conditions": [_condition("AbleToScale", message="m"), CONDITIONS[1]]}, False),
    ],
    ids=[
        "equal",
        "another text of the same quantity",
        "another quantity",
        "no metrics any more",
        "the same instant",
        "another instant",
        "no instant",
        "generation",
        "replicas",
        "order of conditions",
        "message",
    ],
)
def test_is_same(fields: dict[str, Any], same: bool) -> None:
    """Semantic equality: values, not texts; everything else exactly, the order of conditions too."""
    assert status_writer.is_same(_status(), _status(**fields)) is same


@pytest.mark.parametrize("name", ["currentMetrics", "conditions"])
def test_nothing_is_an_empty_list(name: str) -> None:
    """An absent list equals an empty one."""
    assert status_writer.is_same(_status(**{name: None}), _status(**{name: []}))


async def test_the_whole_object_is_put() -> None:
    """The body is the object as read, with kind and apiVersion, and the new status; the new version comes back."""
    transport = ScriptedTransport()
    path = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web/status"
    transport.on("PUT", path, json_answer({"metadata": {"resourceVersion": "8"}}))
    read = {
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "annotations": {"a": "b"}},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}, "maxReplicas": 5},
    }
    wire = msgspec.convert(read, HorizontalPodAutoscaler)
    autoscaler = Autoscaler(wire.metadata, wire, spec.of(wire))
    version = await status_writer.put_status(Client(transport, VirtualClock()), autoscaler, _status())
    assert (version, msgspec.json.decode(transport.requests[0].body or b"")) == (
        "8",
        {
            "kind": "HorizontalPodAutoscaler",
            "apiVersion": "autoscaling/v2",
            **read,
            "status": msgspec.json.decode(msgspec.json.encode(_status())),
        },
    )
