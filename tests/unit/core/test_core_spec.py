"""The spec of an autoscaler as a decision reads it: defaults, target, behavior, tolerance.

Source: docs/spec/api.md 1.1 (autoscaling/v2), docs/spec/decision.md 2 (Reconcile in order), 5 (Tolerance).
"""

import msgspec
import pytest

from podscaler.api.typed import autoscaling
from podscaler.core.calculation import calculation_types
from podscaler.core.calculation.calculation_types import Tolerance
from podscaler.core.model import spec
from podscaler.core.model.metric_spec import ResourceMetric, Utilization
from podscaler.core.model.settings import DEFAULT, Settings
from podscaler.core.model.spec import Policy, Rules
from podscaler.testing.decisions import SECOND, external_metric, resource, rules, scaler


def test_defaults_of_the_api() -> None:
    """Without minReplicas and metrics, the API's defaults apply."""
    read = spec.parse("ns", "web", autoscaling.HorizontalPodAutoscalerSpec(max_replicas=5))
    (metric,) = read.metrics
    assert (read.key, read.min_replicas, read.behavior, read.scales_on_others) == ("ns/web", 1, None, False)
    assert isinstance(metric, ResourceMetric)
    assert (metric.resource, metric.target) == ("cpu", Utilization(80))


def test_whole_object() -> None:
    """A whole autoscaler gives the same as its parts."""
    wire = autoscaling.HorizontalPodAutoscaler(
        metadata=msgspec.convert({"name": "web", "namespace": "default"}, autoscaling.ObjectMeta),
        spec=autoscaling.HorizontalPodAutoscalerSpec(
            scale_target_ref=autoscaling.CrossVersionObjectReference("Deployment", "web", "apps/v1"),
            max_replicas=10,
            metrics=(msgspec.convert(resource(utilization=50), autoscaling.MetricSpec),),
        ),
    )
    assert spec.of(wire) == scaler()


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("", ""),
        ("/", ""),
        ("v1", ""),
        ("apps/v1", ""),
        ("apps/", ""),
        ("a/b/c", "unexpected GroupVersion string: a/b/c"),
    ],
)
def test_target_version(version: str, fault: str) -> None:
    """An apiVersion has at most one slash."""
    assert scaler(target_ref={"kind": "Foo", "name": "x", "apiVersion": version}).target_fault == fault


def test_reference() -> None:
    """Messages name the target by kind, the autoscaler's namespace, and name."""
    assert scaler(target_ref={"kind": "deployment", "name": "x"}).reference == "deployment/default/x"


def test_empty_behavior_is_filled_in() -> None:
    """An empty behavior has the API's default policies, and the flag's window for scale-downs."""
    behavior = scaler(behavior={}).behavior
    assert behavior == spec.Behavior(
        up=Rules(0, "Max", (Policy("Pods", 4, 15 * SECOND), Policy("Percent", 100, 15 * SECOND)), None, 15 * SECOND),
        down=Rules(None, "Max", (Policy("Percent", 100, 15 * SECOND),), None, 15 * SECOND),
    )


def test_behavior_as_written() -> None:
    """What is set is kept; the longest period is that of the policies."""
    behavior = scaler(
        behavior={"scaleDown": rules(("Pods", 1, 60), ("Percent", 10, 90), window=0, select="Min", tolerance="50m")}
    ).behavior
    assert behavior is not None
    assert behavior.down == Rules(
        0, "Min", (Policy("Pods", 1, 60 * SECOND), Policy("Percent", 10, 90 * SECOND)), 0.05, 90 * SECOND
    )


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (None, Tolerance(0.1, 0.1)),
        ({}, Tolerance(0.1, 0.1)),
        ({"scaleUp": rules(tolerance="0")}, Tolerance(0.1, 0.0)),
        ({"scaleDown": rules(tolerance="0.3")}, Tolerance(0.30000000000000004, 0.1)),
    ],
)
def test_tolerance(behavior: dict[str, object] | None, expected: Tolerance) -> None:
    """Each direction has its own tolerance where it is set, else the flag's."""
    assert calculation_types.tolerance(scaler(behavior=behavior), DEFAULT) == expected


@pytest.mark.parametrize(
    ("value", "tolerance", "allowed"),
    [
        (1.1, 0.1, True),
        (1.1000000000000003, 0.1, False),
        (0.9, 0.1, True),
        (0.8999999999999999, 0.1, False),
        (1.0, 0.0, True),
        (float("nan"), 1e9, False),
        (float("inf"), 1e9, False),
    ],
)
def test_tolerance_ends(value: float, tolerance: float, allowed: bool) -> None:
    """Both ends are within; NaN never is."""
    assert calculation_types.tolerance(scaler(), Settings(tolerance=tolerance)).allows(value) is allowed


def test_what_can_wake_from_zero() -> None:
    """Object and External metrics are about more than the pods."""
    assert scaler(resource(utilization=1), external_metric(value="1")).scales_on_others
