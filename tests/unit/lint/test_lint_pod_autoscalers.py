"""PodAutoscalers are judged by their definition and by the rules of HorizontalPodAutoscalers."""

from typing import Any

import pytest
from lint_manifests import Object, cpu, deployment, hpa, short

from podscaler.lint.model import reading
from podscaler.lint.model.linted_item import APIError, DocumentOrigin

OURS = {"apiVersion": "podscaler.dev/v1alpha1", "kind": "PodAutoscaler"}
TOO_FEW = APIError("spec.maxReplicas", "Invalid value: 1: must be greater than or equal to `minReplicas`")


def faults(value: Any, *, is_live: bool = False) -> tuple[APIError, ...]:
    """Why the object would be refused."""
    (item,) = reading.items(value, DocumentOrigin() if is_live else DocumentOrigin("f.yaml"))
    return item.api_errors


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (hpa(foo=1) | OURS, (APIError("", 'unknown field "spec.foo"'),)),
        (
            hpa(maxReplicas="2") | OURS,
            (
                APIError(
                    "spec.maxReplicas",
                    'Invalid value: "string": spec.maxReplicas in body must be of type integer: "string"',
                ),
            ),
        ),
        (
            hpa(metrics=[cpu(type="AverageValue", averageValue=1.5)]) | OURS,
            (
                APIError(
                    "spec.metrics[0].resource.target.averageValue",
                    'Invalid value: "number": spec.metrics[0].resource.target.averageValue in body must be of type '
                    'integer,string: "number"',
                ),
            ),
        ),
        (
            hpa(metrics=[cpu()] * 101) | OURS,
            (APIError("spec.metrics", "Too many: 101: must have at most 100 items"),),
        ),
        (hpa(maxReplicas=1) | OURS, (TOO_FEW,)),
        (
            hpa() | OURS | {"apiVersion": "podscaler.dev/v1"},
            (APIError("apiVersion", 'no kind "PodAutoscaler" is registered for version "podscaler.dev/v1"'),),
        ),
        (hpa() | {"apiVersion": "example.com/v1", "kind": "PodAutoscaler"}, ()),
    ],
    ids=[
        "an unknown field",
        "a wrong type",
        "a quantity that its definition does not take",
        "more metrics than its definition takes",
        "what servers refuse by CEL",
        "a version that there never was",
        "somebody else's kind of that name",
    ],
)
def test_what_is_refused(value: Object, expected: tuple[APIError, ...]) -> None:
    """First what the definition says; where that has nothing against it, what the controller would refuse."""
    assert faults(value) == expected


def test_what_a_server_without_cel_has_stored() -> None:
    """The controller refuses it, so it is a fault in a cluster too; what the server has dropped is not."""
    assert faults(hpa(maxReplicas=1) | OURS, is_live=True) == (TOO_FEW,)
    assert faults(hpa(foo=1) | OURS, is_live=True) == ()


def test_both_kinds_on_one_target() -> None:
    """A PodAutoscaler and a HorizontalPodAutoscaler of one target are two autoscalers."""
    field = "spec.scaleTargetRef"
    assert short(hpa(), hpa() | OURS, deployment()) == [
        ("PSL008", "HorizontalPodAutoscaler shop/web", field),
        ("PSL008", "PodAutoscaler shop/web", field),
    ]


def test_a_list_of_them() -> None:
    """The elements of a PodAutoscalerList need not say what they are."""
    whole = {"apiVersion": OURS["apiVersion"], "kind": "PodAutoscalerList", "items": [{"metadata": {"name": "a"}}]}
    (item,) = reading.items(whole, DocumentOrigin("f.yaml"))
    assert (item.full_name, [fault.field for fault in item.api_errors]) == ("PodAutoscaler default/a", ["spec"])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"keepLastFor": "24h", "fallback": {"replicas": 3}}, []),
        ({"keepLastFor": "25h"}, [("PSL026", "spec.onMetricFailure.keepLastFor")]),
        ({"keepLastFor": "5"}, [("PSL000", "spec.onMetricFailure.keepLastFor")]),
        ({"fallback": {"replicas": -1}}, [("PSL000", "spec.onMetricFailure.fallback.replicas")]),
        ({"fallback": {"replicas": 30}}, [("PSL027", "spec.onMetricFailure.fallback.replicas")]),
    ],
    ids=["valid", "too long", "no unit", "negative", "above the maximum"],
)
def test_a_failure_policy(policy: Object, expected: list[tuple[str, str]]) -> None:
    """A field is reported once: by its schema, or else by its own rule."""
    found = short(hpa(onMetricFailure=policy) | OURS, deployment())
    assert [(rule, field) for rule, _, field in found] == expected


def test_annotations_beside_the_field() -> None:
    """They do not count."""
    annotations = {"podscaler.dev/on-metric-failure-ignore-failed": "true"}
    found = short(hpa(onMetricFailure={"ignoreFailed": True}, annotations=annotations) | OURS, deployment())
    field = "metadata.annotations[podscaler.dev/on-metric-failure-ignore-failed]"
    assert found == [("PSL026", "PodAutoscaler shop/web", field)]
