"""The object that takes an autoscaler's place."""

import json
from typing import Any

import pytest

from podscaler.controller.coexistence import counterpart
from podscaler.controller.informers import handover
from podscaler.controller.options.autoscaler_kinds import HPA, POD_AUTOSCALER

SPEC = {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}


def source(**metadata: Any) -> dict[str, Any]:
    """An autoscaler as read."""
    meta = {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "generation": 3}
    return {"metadata": meta | metadata, "spec": SPEC, "status": {"desiredReplicas": 2}}


def test_what_is_kept() -> None:
    """Labels, annotations, owners and spec; not finalizers, versions and marks of an earlier migration."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}
    annotations = {
        "a": "b",
        handover.MIGRATING_TO: "hpa",
        handover.HISTORY: "old",
        handover.MIGRATED_FROM: "hpa/web/u0",
    }
    meta = {"labels": {"l": "m"}, "ownerReferences": [owner], "finalizers": ["f"], "annotations": annotations}
    assert counterpart.of(source(**meta), POD_AUTOSCALER, HPA, history="record") == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"l": "m"},
            "ownerReferences": [owner],
            "annotations": {
                "a": "b",
                handover.MIGRATED_FROM: "podautoscaler/web/u1",
                handover.HISTORY: "record",
            },
        },
        "spec": SPEC,
    }


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        pytest.param(
            json.dumps({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {}}),
            {"apiVersion": "podscaler.dev/v1alpha1", "kind": "PodAutoscaler", "spec": {}},
            id="of the same version",
        ),
        pytest.param(json.dumps({"apiVersion": "autoscaling/v1"}), None, id="of an older version"),
        pytest.param("{", None, id="nonsense"),
    ],
)
def test_what_kubectl_applied(applied: str, expected: dict[str, Any] | None) -> None:
    """The next `kubectl apply` of the other kind finds what it would have left there."""
    found = counterpart.of(source(annotations={counterpart.LAST_APPLIED: applied}), HPA, POD_AUTOSCALER, history="")
    text = found["metadata"]["annotations"].get(counterpart.LAST_APPLIED)
    assert (None if text is None else json.loads(text)) == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({"maxReplicas": 6}, True, id="a bound"),
        pytest.param({"minReplicas": 1}, True, id="a field that was added"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_an_edit(changed: dict[str, Any], expected: bool) -> None:
    """The counterpart differs where the source says something else; its own defaults are no difference."""
    made = counterpart.of(source(), HPA, POD_AUTOSCALER, history="")
    made = made | {"spec": made["spec"] | {"behavior": {"scaleUp": {}}}}
    edited = source()
    edited["spec"] = SPEC | changed
    wanted = counterpart.of(edited, HPA, POD_AUTOSCALER, history="")
    assert counterpart.differs(made, wanted) is expected


def test_no_status_yet() -> None:
    """A source that no controller has looked at gives no status."""
    assert counterpart.with_status({"metadata": {}}, source()) is None


def test_a_failure_policy_becomes_annotations() -> None:
    """A HorizontalPodAutoscaler has no field for it."""
    stated = {"keepLastFor": "5m", "ignoreFailed": True, "fallback": {"replicas": 3, "after": "10m"}}
    before = source() | {"spec": SPEC | {"onMetricFailure": stated}}
    made = counterpart.of(before, POD_AUTOSCALER, HPA, history="")
    assert made["spec"] == SPEC
    assert made["metadata"]["annotations"] == {
        "podscaler.dev/on-metric-failure-keep-last-for": "5m",
        "podscaler.dev/on-metric-failure-ignore-failed": "true",
        "podscaler.dev/on-metric-failure-fallback-replicas": "3",
        "podscaler.dev/on-metric-failure-fallback-after": "10m",
        handover.MIGRATED_FROM: "podautoscaler/web/u1",
    }
