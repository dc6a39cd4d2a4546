"""The state of an autoscaler in a word: each condition with its reason, which one wins, and what a decision adds."""

import pytest

from podscaler.api.machinery import instants
from podscaler.api.typed.autoscaling import (
    Condition,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    MetricSpec,
    MetricStatus,
)
from podscaler.core.model.trace import FailureResponse
from podscaler.observe import health
from podscaler.observe.health import Health, HealthSeverity, HealthState
from podscaler.testing.decisions import decided, external_metric, observed, scaler, values

SINCE = "2026-03-03T10:00:00Z"
SINCE_NS = instants.parse(SINCE)
RESCALED = "2026-03-03T10:05:00Z"
RESCALED_NS = instants.parse(RESCALED)


def condition(kind: str, status: str, reason: str = "", message: str = "") -> Condition:
    """A condition since SINCE."""
    return Condition(kind, status, SINCE, reason, message)


ABLE = condition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
ACTIVE = condition("ScalingActive", "True", "ValidMetricFound", "the HPA was able to")
WITHIN = condition("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range")


def limited(reason: str, message: str = "") -> Condition:
    """ScalingLimited, True."""
    return condition("ScalingLimited", "True", reason, message)


def autoscaler(
    *conditions: Condition, replicas: tuple[int, int] = (5, 5), metrics: tuple[str, ...] = ("Resource",)
) -> HorizontalPodAutoscaler:
    """An autoscaler from 2 to 10 with these conditions, current and desired replicas, and types in currentMetrics."""
    spec = HorizontalPodAutoscalerSpec(
        min_replicas=2, max_replicas=10, metrics=tuple([MetricSpec("Resource") for _ in metrics])
    )
    status = HorizontalPodAutoscalerStatus(
        last_scale_time=RESCALED,
        current_replicas=replicas[0],
        desired_replicas=replicas[1],
        current_metrics=tuple([MetricStatus(each) for each in metrics]),
        conditions=conditions or None,
    )
    return HorizontalPodAutoscaler(spec=spec, status=status)


NO_SCALE = 'the HPA controller was unable to get the target\'s current scale: deployments.apps "web" not found'
FORBIDDEN = 'deployments.apps "web" is forbidden: User "hpa" cannot get resource "deployments/scale"'
NO_VALUE = "unable to get external metric shop/queue/nil: no metrics returned from external metrics API"
KEPT = FailureResponse.KEPT.value

FINE, NOTABLE, LIMITED, BROKEN = HealthSeverity


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(
            autoscaler(),
            Health(HealthState.UNKNOWN, LIMITED, "no controller has written its status"),
            id="no status",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, WITHIN), Health(HealthState.STEADY, FINE, "", RESCALED_NS), id="at its target"
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, WITHIN, replicas=(3, 5)),
            Health(HealthState.SCALING_UP, FINE, "from 3 to 5", RESCALED_NS),
            id="up",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, WITHIN, replicas=(5, 3)),
            Health(HealthState.SCALING_DOWN, FINE, "from 5 to 3", RESCALED_NS),
            id="down",
        ),
        pytest.param(
            autoscaler(condition("AbleToScale", "True", "ScaleDownStabilized", "recent were higher"), ACTIVE, WITHIN),
            Health(HealthState.STABILIZING, FINE, "recent were higher", RESCALED_NS),
            id="within a window",
        ),
        pytest.param(
            autoscaler(condition("AbleToScale", "False", "BackoffBoth", "the time since"), ACTIVE, WITHIN),
            Health(HealthState.COOLING, FINE, "the time since", SINCE_NS),
            id="cooldown of older rules is no failure",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, limited("ScaleUpLimit", "increasing faster")),
            Health(HealthState.LIMITED, NOTABLE, "increasing faster", SINCE_NS),
            id="a policy is used up",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, limited("ScaleUpLimit"), replicas=(3, 5)),
            Health(HealthState.SCALING_UP, FINE, "from 3 to 5", RESCALED_NS),
            id="a limited step is a step",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, limited("TooManyReplicas"), replicas=(6, 10)),
            Health(HealthState.AT_MAXIMUM, LIMITED, "its metrics ask for more than maxReplicas, which is 10", SINCE_NS),
            id="the maximum counts during the last step too",
        ),
        pytest.param(
            autoscaler(condition("AbleToScale", "True", "ScaleDownStabilized"), ACTIVE, limited("TooManyReplicas")),
            Health(HealthState.STABILIZING, FINE, "", RESCALED_NS),
            id="only the window asks for more than the maximum",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, limited("TooFewReplicas"), replicas=(2, 2)),
            Health(HealthState.AT_MINIMUM, FINE, "its metrics ask for less than minReplicas, which is 2", SINCE_NS),
            id="the minimum",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, limited("TooFewReplicas"), replicas=(4, 2)),
            Health(HealthState.SCALING_DOWN, FINE, "from 4 to 2", RESCALED_NS),
            id="on the way to the minimum",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, WITHIN, condition("ScaledToZero", "True"), replicas=(0, 0)),
            Health(HealthState.AT_ZERO, FINE, "", SINCE_NS),
            id="scaled to zero",
        ),
        pytest.param(
            autoscaler(ABLE, condition("ScalingActive", "False", "ScalingDisabled", "scaling is disabled")),
            Health(
                HealthState.DISABLED, NOTABLE, "its target has no replicas, and nothing that could start one", SINCE_NS
            ),
            id="paused",
        ),
        pytest.param(
            autoscaler(ABLE, condition("ScalingActive", "True", KEPT, "last values count")),
            Health(HealthState.FALLBACK, LIMITED, "last values count", SINCE_NS),
            id="a failure policy",
        ),
        pytest.param(
            autoscaler(ABLE, ACTIVE, WITHIN, metrics=("Resource", "")),
            Health(HealthState.SOME_METRICS, LIMITED, "1 of its 2 metrics cannot be read", SINCE_NS),
            id="one of two metrics",
        ),
        pytest.param(
            autoscaler(
                ABLE,
                condition(
                    "ScalingActive",
                    "False",
                    "FailedGetExternalMetric",
                    f"the HPA was unable to compute the replica count: {NO_VALUE}",
                ),
                limited("TooManyReplicas"),
            ),
            Health(HealthState.NO_METRICS, BROKEN, NO_VALUE, SINCE_NS),
            id="no metric, before any bound",
        ),
        pytest.param(
            autoscaler(ABLE, condition("ScalingActive", "False", "AmbiguousSelector", "pods by a and b")),
            Health(HealthState.AMBIGUOUS, BROKEN, "pods by a and b", SINCE_NS),
            id="shared pods",
        ),
        pytest.param(
            autoscaler(ABLE, condition("ScalingActive", "False", "InvalidSelector", "missing a selector")),
            Health(HealthState.NO_PODS, BROKEN, "missing a selector", SINCE_NS),
            id="no selector",
        ),
        pytest.param(
            autoscaler(condition("AbleToScale", "False", "FailedGetScale", NO_SCALE), ACTIVE),
            Health(HealthState.NO_TARGET, BROKEN, 'deployments.apps "web" not found', SINCE_NS),
            id="no target, before the metrics of an earlier sync",
        ),
        pytest.param(
            autoscaler(condition("AbleToScale", "False", "FailedGetScale", FORBIDDEN)),
            Health(HealthState.FORBIDDEN, BROKEN, FORBIDDEN, SINCE_NS),
            id="the controller may not read the scale",
        ),
        pytest.param(
            autoscaler(condition("AbleToScale", "False", "FailedUpdateScale", "no quota"), ACTIVE),
            Health(HealthState.CANNOT_SCALE, BROKEN, "no quota", SINCE_NS),
            id="the scale cannot be written",
        ),
    ],
)
def test_state_by_conditions(shown: HorizontalPodAutoscaler, expected: Health) -> None:
    """The word, its severity, its sentence, and since when."""
    assert health.of(shown) == expected


def test_every_state_has_a_severity() -> None:
    """No word is without one."""
    assert set(health.SEVERITIES) == set(HealthState)


@pytest.mark.parametrize("severity", list(HealthSeverity))
def test_problems(severity: HealthSeverity) -> None:
    """From LIMITED on it is a problem."""
    assert Health(HealthState.STEADY, severity, "").is_problem is (severity >= 2)


def test_a_time_that_cannot_be_read_is_not_known() -> None:
    """Other controllers may write anything."""
    broken = Condition("AbleToScale", "False", "yesterday", "FailedGetScale", "gone")
    assert health.of(autoscaler(broken)) == Health(HealthState.NO_TARGET, BROKEN, "gone", None)


def test_a_decision_knows_more_than_the_status() -> None:
    """Its status counts in place of the object's, and the sentence says what holds the count back."""
    wire = autoscaler(ABLE, ACTIVE, WITHIN)
    decision = decided(scaler(external_metric(average="1")), observed(values(40_000), replicas=10))
    found = health.of(wire, decision)
    assert (found.state, found.reason) == (HealthState.AT_MAXIMUM, "its metrics ask for 40, but maxReplicas is 10")
