"""Assignments on a spec and on flags: every form, and one sentence for each that cannot be used."""

import re
from typing import Any

import msgspec
import pytest

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.core.model import settings
from podscaler.core.model.settings import Gates, Settings
from podscaler.explain import what_if
from podscaler.testing.decisions import (
    Json,
    container_resource,
    external_metric,
    object_metric,
    pods_metric,
    resource,
    rules,
)

METRICS = [
    resource(utilization=50),
    container_resource(average="100m"),
    pods_metric("10"),
    object_metric(value="5"),
    external_metric(average="3"),
]


def spec(**changes: Any) -> HorizontalPodAutoscalerSpec:
    """A spec with a metric of each type."""
    wire: Json = {
        "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": 2,
        "maxReplicas": 10,
        "metrics": METRICS,
    }
    return msgspec.convert(wire | changes, HorizontalPodAutoscalerSpec)


def applied(text: str, **changes: Any) -> tuple[Json, Settings]:
    """The spec as JSON, and the settings, after assignments."""
    after, flags = what_if.apply(what_if.parse(text), spec(**changes), settings.DEFAULT)
    return msgspec.json.decode(msgspec.json.encode(after)), flags


def target(text: str, index: int) -> Json:
    """The target of a metric after assignments."""
    metric = applied(text)[0]["metrics"][index]
    source = metric[metric["type"][:1].lower() + metric["type"][1:]]
    found: Json = source["target"]
    return found


def test_bounds() -> None:
    """Minimum and maximum, in any order; `spec.` may stand before a field."""
    after, flags = applied("spec.maxReplicas=20, minReplicas=12")
    assert (after["minReplicas"], after["maxReplicas"], flags) == (12, 20, settings.DEFAULT)


def test_the_rest_stays() -> None:
    """What is not assigned stays as it was, and the spec that was given is not changed."""
    before = spec()
    copy = msgspec.json.encode(before)
    after, _ = what_if.apply(what_if.parse("minReplicas=3"), before, settings.DEFAULT)
    assert msgspec.structs.replace(after, min_replicas=2) == before
    assert msgspec.json.encode(before) == copy


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ("metrics[0].target=60%", 0, {"type": "Utilization", "averageUtilization": 60}),
        ("metrics[0].target=250m", 0, {"type": "AverageValue", "averageValue": "250m"}),
        ("metrics[1].target=70 %", 1, {"type": "Utilization", "averageUtilization": 70}),
        ("metrics[2].target=12", 2, {"type": "AverageValue", "averageValue": "12"}),
        ("metrics[3].target=7", 3, {"type": "Value", "value": "7"}),
        ("metrics[4].target=7", 4, {"type": "AverageValue", "averageValue": "7"}),
        ("metrics[4].target.value=7", 4, {"type": "Value", "value": "7"}),
        ("metrics[3].target.averageValue=1k", 3, {"type": "AverageValue", "averageValue": "1k"}),
        ("metrics[1].target.averageUtilization=40", 1, {"type": "Utilization", "averageUtilization": 40}),
    ],
)
def test_targets(text: str, index: int, expected: Json) -> None:
    """The form follows from the text, and from what the metric had."""
    assert target(text, index) == expected


def test_behavior_fields() -> None:
    """Each field of a direction; what the API defaults is there."""
    after, _ = applied(
        "behavior.scaleDown.stabilizationWindowSeconds=1m30s,behavior.scaleDown.selectPolicy=Min,"
        "behavior.scaleDown.tolerance=5%,behavior.scaleDown.policies[0].value=10,"
        "behavior.scaleDown.policies[1].value=2,behavior.scaleDown.policies[1].periodSeconds=60"
    )
    assert after["behavior"]["scaleDown"] == {
        "stabilizationWindowSeconds": 90,
        "selectPolicy": "Min",
        "policies": [
            {"type": "Percent", "value": 10, "periodSeconds": 15},
            {"type": "Pods", "value": 2, "periodSeconds": 60},
        ],
        "tolerance": "0.05",
    }
    assert after["behavior"]["scaleUp"]["selectPolicy"] == "Max"


def test_behavior_can_be_removed() -> None:
    """`none` takes it away."""
    after, _ = applied("behavior=none", behavior={"scaleDown": rules(window=0)})
    assert "behavior" not in after


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("tolerance=0.2", {"tolerance": 0.2}),
        ("horizontal-pod-autoscaler-tolerance=12.5%", {"tolerance": 0.125}),
        ("downscale-stabilization=1m", {"downscale_stabilization_ns": 60_000_000_000}),
        ("cpu-initialization-period=0", {"cpu_initialization_period_ns": 0}),
        ("initial-readiness-delay=10s", {"initial_readiness_delay_ns": 10_000_000_000}),
        ("HPAScaleToZero=false", {"gates": Gates(scale_to_zero=False)}),
    ],
)
def test_flags(text: str, changed: dict[str, Any]) -> None:
    """Flags and gates, by their names with and without prefix."""
    after, flags = applied(text)
    assert flags == msgspec.structs.replace(settings.DEFAULT, **changed)
    assert after["minReplicas"] == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs assignments such as minReplicas=3,metrics[0].target=60%"),
        ("minReplicas", '"minReplicas" is not an assignment such as minReplicas=3'),
        ("minReplica=3", "minReplica=3: minReplica cannot be assigned; did you mean minReplicas?"),
        ("minReplicas=three", 'minReplicas=three: "three" is not a whole number'),
        ("minReplicas=99999999999", 'minReplicas=99999999999: "99999999999" is not a whole number'),
        (
            "minReplicas=11",
            "minReplicas=11 would be refused: spec.maxReplicas: Invalid value: 10: must be greater than or equal to "
            "`minReplicas`",
        ),
        (
            "metrics[5].target=1",
            "metrics[5].target=1: the autoscaler has 5 of them, the last is metrics[4]",
        ),
        (
            "metrics[2].target=50%",
            "metrics[2].target=50%: a percentage is of requests, which only Resource and ContainerResource metrics "
            "have",
        ),
        ("metrics[0].target=much", 'metrics[0].target=much: "much" is not a quantity such as 500m, 2 or 64Mi'),
        (
            "metrics[0].target=0%",
            "metrics[0].target=0% would be refused: spec.metrics[0].resource.target.averageUtilization: Invalid value: "
            "0: must be greater than 0",
        ),
        (
            "behavior.scaleUp.selectPolicy=Most",
            "behavior.scaleUp.selectPolicy=Most would be refused: spec.behavior.scaleUp.selectPolicy: Unsupported "
            'value: "Most": supported values: "Disabled", "Max", "Min"',
        ),
        (
            "behavior.scaleUp.policies[3].value=1",
            "behavior.scaleUp.policies[3].value=1: there are 2 policies; policies[2] would add one",
        ),
        (
            "behavior.scaleDown.stabilizationWindowSeconds=1500ms",
            "behavior.scaleDown.stabilizationWindowSeconds=1500ms: only whole seconds can be set",
        ),
        (
            "behavior=off",
            "behavior=off: only none can be assigned to all of it; its fields are behavior.scaleDown.selectPolicy, ...",
        ),
        (
            "tolerance=5 percent",
            "tolerance=5 percent: flag horizontal-pod-autoscaler-tolerance: could not convert "
            "string to float: '5 percent'",
        ),
        ("tolerance=x%", 'tolerance=x%: "x%" is not a percentage'),
        (
            "HPAScaleToZero=off",
            "HPAScaleToZero=off: flag feature-gates: "
            'invalid value of HPAScaleToZero=off: "off" is neither true nor false',
        ),
    ],
)
def test_what_cannot_be_assigned(text: str, sentence: str) -> None:
    """What is wrong, and what would be right."""
    with pytest.raises(UsageError) as caught:
        applied(text)
    assert str(caught.value) == f"what-if {sentence}"


def test_an_unknown_path_lists_what_there_is() -> None:
    """Nothing resembles it: everything that can be assigned."""
    with pytest.raises(
        UsageError, match=r"what can be: minReplicas, maxReplicas, metrics\[0\].target, .*, and scaleUp"
    ):
        applied("xyz=1")


def test_faults_from_before_are_not_held_against_the_question() -> None:
    """A spec that the API would refuse today can still be asked about."""
    broken = {"scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "a/b/c"}}
    assert applied("minReplicas=3", **broken)[0]["minReplicas"] == 3


def test_a_failure_policy() -> None:
    """Each field of `onMetricFailure`, which an autoscaler of either kind can have in a what-if."""
    text = "onMetricFailure.keepLastFor=5m,onMetricFailure.ignoreFailed=true,onMetricFailure.fallback.replicas=3"
    stated = {"keepLastFor": "5m", "ignoreFailed": True, "fallback": {"replicas": 3}}
    assert applied(text)[0]["onMetricFailure"] == stated
    assert "onMetricFailure" not in applied("onMetricFailure=none", onMetricFailure=stated)[0]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("onMetricFailure=some", "only none can be assigned to all of it"),
        ("onMetricFailure.ignoreFailed=yes", '"yes" is neither true nor false'),
        ("onMetricFailure.keepLastFor=soon", 'keepLastFor: "soon" is not a duration such as 90s or 5m'),
        ("onMetricFailure.fallback.replicas=-1", "fallback.replicas: must be 0 or more"),
        ("onMetricFailure.fallback.after=5m", "set onMetricFailure.fallback.replicas first"),
    ],
)
def test_a_failure_policy_that_cannot_be_assigned(text: str, fault: str) -> None:
    """The sentence names the fault."""
    with pytest.raises(UsageError, match=re.escape(fault)):
        applied(text)
