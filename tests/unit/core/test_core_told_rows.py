"""Every row of what a sync can tell: conditions, events, reasons of a rescale, each from a sync that tells it.

Source: docs/spec/decision.md 11.3 (Conditions).
"""

from collections.abc import Callable
from typing import Any

import pytest

from podscaler.api.machinery import selectors
from podscaler.core import settle
from podscaler.core.decision import Decision
from podscaler.core.model.history import History, Recommendation
from podscaler.core.model.observation import Failure, Observation
from podscaler.core.model.selector_store import SelectorStore
from podscaler.testing.decisions import (
    NOW,
    SECOND,
    Json,
    container_resource,
    decided,
    event_rows,
    external_metric,
    object_metric,
    observed,
    pods_metric,
    resource,
    rules,
    scaler,
    using,
    values,
)

Told = Callable[[], Decision]
"""A sync that tells something."""

GONE = Failure("gone")
LONG_AGO = History((Recommendation(1, NOW - 3600 * SECOND),))
QUEUE = external_metric(average="1")


def queue(wanted: int, *, replicas: int = 3, past: History = LONG_AGO, **rest: Any) -> Decision:
    """A sync of an autoscaler whose queue asks for so many replicas."""
    return decided(scaler(QUEUE, **rest), observed(values(wanted * 1000), replicas=replicas), past)


def failing(entry: Json) -> Decision:
    """A sync whose only metric fails."""
    return decided(scaler(entry), observed(GONE))


def overlapping() -> Decision:
    """A sync of an autoscaler that shares its pods."""
    store = SelectorStore()
    store.store("default/all", selectors.parse("app"))
    return decided(scaler(QUEUE), observed(values(3000), neighbours=store.namespace("default")))


def refused() -> Decision:
    """A sync whose scale could not be written."""
    draft = queue(5).draft
    assert draft is not None
    return settle.refused(draft, NOW, "quota")


def unreported() -> Decision:
    """A sync whose status could not be written."""
    return settle.unreported(queue(3), observed().status, "web", "modified")


RECENT = History((Recommendation(3, NOW - 10 * SECOND),))
NAME = "external metric queue(nil)"
NO_CUSTOM = "unable to fetch metrics from custom metrics API: gone"
OBJECT = f"unable to get metric rps on Ingress default/main: {NO_CUSTOM}"
PODS = f"unable to get metric rps: {NO_CUSTOM}"
RESOURCE = (
    "failed to get cpu utilization: unable to get metrics for resource cpu:"
    " unable to fetch metrics from resource metrics API: gone"
)
EXTERNAL = "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: gone"
MAGIC = 'unknown metric source type "Magic"'
UNABLE = "the HPA was unable to compute the replica count: "
INVALID = (
    "couldn't convert selector into a corresponding internal selector object: found '', expected: identifier after ','"
)
SHARED = "pods by selector app=web are controlled by more than one HPA (e.g. [default/all default/web])"
UP_WINDOW = {"scaleUp": rules(window=60)}
ONE_DOWN = {"scaleDown": rules(("Pods", 1, 60), window=0)}

CONDITIONS: dict[str, tuple[Told, tuple[str, str, str]]] = {
    "FailedGetScale": (
        lambda: decided(scaler(), Observation(scale=GONE)),
        ("AbleToScale", "False", "the HPA controller was unable to get the target's current scale: gone"),
    ),
    "SucceededGetScale": (
        lambda: failing(QUEUE),
        ("AbleToScale", "True", "the HPA controller was able to get the target's current scale"),
    ),
    "ReadyForNewScale": (lambda: queue(3), ("AbleToScale", "True", "recommended size matches current size")),
    "ScaleDownStabilized": (
        lambda: queue(1, past=RECENT),
        (
            "AbleToScale",
            "True",
            "recent recommendations were higher than current one, applying the highest recent recommendation",
        ),
    ),
    "ScaleUpStabilized": (
        lambda: queue(5, past=RECENT, behavior=UP_WINDOW),
        (
            "AbleToScale",
            "True",
            "recent recommendations were lower than current one, applying the lowest recent recommendation",
        ),
    ),
    "SucceededRescale": (
        lambda: queue(5),
        ("AbleToScale", "True", "the HPA controller was able to update the target scale to 5"),
    ),
    "FailedUpdateScale": (
        refused,
        ("AbleToScale", "False", "the HPA controller was unable to update the target scale: quota"),
    ),
    "ValidMetricFound": (
        lambda: queue(3),
        ("ScalingActive", "True", f"the HPA was able to successfully calculate a replica count from {NAME}"),
    ),
    "ScalingDisabled": (
        lambda: queue(3, replicas=0),
        ("ScalingActive", "False", "scaling is disabled since the replica count of the target is zero"),
    ),
    "InvalidSelector": (
        lambda: decided(scaler(), observed(selector="a,")),
        ("ScalingActive", "False", INVALID),
    ),
    "AmbiguousSelector": (overlapping, ("ScalingActive", "False", SHARED)),
    "FailedGetObjectMetric": (lambda: failing(object_metric(value="1")), ("ScalingActive", "False", UNABLE + OBJECT)),
    "FailedGetPodsMetric": (lambda: failing(pods_metric()), ("ScalingActive", "False", UNABLE + PODS)),
    "FailedGetResourceMetric": (
        lambda: failing(resource(utilization=50)),
        ("ScalingActive", "False", UNABLE + RESOURCE),
    ),
    "FailedGetContainerResourceMetric": (
        lambda: failing(container_resource(utilization=50)),
        ("ScalingActive", "False", UNABLE + RESOURCE),
    ),
    "FailedGetExternalMetric": (lambda: failing(QUEUE), ("ScalingActive", "False", UNABLE + EXTERNAL)),
    "InvalidMetricSourceType": (lambda: failing({"type": "Magic"}), ("ScalingActive", "False", UNABLE + MAGIC)),
    "DesiredWithinRange": (
        lambda: queue(5),
        ("ScalingLimited", "False", "the desired count is within the acceptable range"),
    ),
    "ScaleUpLimit": (
        lambda: queue(9),
        ("ScalingLimited", "True", "the desired replica count is increasing faster than the maximum scale rate"),
    ),
    "ScaleDownLimit": (
        lambda: queue(1, behavior=ONE_DOWN),
        ("ScalingLimited", "True", "the desired replica count is decreasing faster than the maximum scale rate"),
    ),
    "TooManyReplicas": (
        lambda: queue(9, most=5),
        ("ScalingLimited", "True", "the desired replica count is more than the maximum replica count"),
    ),
    "TooFewReplicas": (
        lambda: queue(1, least=2),
        ("ScalingLimited", "True", "the desired replica count is less than the minimum replica count"),
    ),
    "ScaledToZero": (
        lambda: queue(0, least=0),
        ("ScaledToZero", "True", "the HPA controller scaled the workload to zero"),
    ),
    "NotScaledToZero": (
        lambda: queue(5),
        ("ScaledToZero", "False", "the HPA controller did not scale the workload to zero"),
    ),
}


@pytest.mark.parametrize("reason", CONDITIONS)
def test_condition(reason: str) -> None:
    """Each reason has its condition, status and message."""
    decide, told = CONDITIONS[reason]
    found = {each.reason: (each.type, each.status, each.message) for each in decide().status.conditions or ()}
    assert found[reason] == told


def test_condition_without_a_selector() -> None:
    """InvalidSelector has another message where the scale has no selector at all."""
    decision = decided(scaler(), observed(selector=""))
    found = {each.reason: each.message for each in decision.status.conditions or ()}
    assert found["InvalidSelector"] == "the HPA target's scale is missing a selector"


ONE_OF_ONE = "invalid metrics (1 invalid out of 1), first error is: "
EVENTS: dict[str, tuple[Told, list[tuple[str, str]]]] = {
    "SuccessfulRescale": (lambda: queue(5), [("Normal", f"New size: 5; reason: {NAME} above target")]),
    "FailedRescale": (refused, [("Warning", f"New size: 5; reason: {NAME} above target; error: quota")]),
    "FailedGetScale": (CONDITIONS["FailedGetScale"][0], [("Warning", "gone")]),
    "SelectorRequired": (lambda: decided(scaler(), observed(selector="")), [("Warning", "selector is required")]),
    "InvalidSelector": (lambda: decided(scaler(), observed(selector="a,")), [("Warning", INVALID)]),
    "AmbiguousSelector": (overlapping, [("Warning", SHARED)]),
    "FailedGetObjectMetric": (lambda: failing(object_metric(value="1")), [("Warning", OBJECT)]),
    "FailedGetPodsMetric": (lambda: failing(pods_metric()), [("Warning", PODS)]),
    "FailedGetResourceMetric": (lambda: failing(resource(utilization=50)), [("Warning", RESOURCE)]),
    "FailedGetContainerResourceMetric": (lambda: failing(container_resource(utilization=50)), [("Warning", RESOURCE)]),
    "FailedGetExternalMetric": (lambda: failing(QUEUE), [("Warning", EXTERNAL)]),
    "InvalidMetricSourceType": (lambda: failing({"type": "Magic"}), [("Warning", MAGIC)]),
    "FailedComputeMetricsReplicas": (
        lambda: failing(resource(utilization=50)),
        [("Warning", f"{ONE_OF_ONE}failed to get cpu resource metric value: {RESOURCE}")],
    ),
    "FailedUpdateStatus": (unreported, [("Warning", "modified")]),
}


def test_example_chain() -> None:
    """A metrics API that answers 503 in plain text: event, condition, and the error with its prefixes."""
    text = (
        "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource"
        " metrics API: the server is currently unable to handle the request (get pods.metrics.k8s.io)"
    )
    unable = Failure("the server is currently unable to handle the request (get pods.metrics.k8s.io)")
    decision = decided(scaler(), observed(unable))
    told = [
        *event_rows(decision),
        *[(each.type, each.reason, each.message) for each in decision.status.conditions or ()],
    ]
    assert told == [
        ("Warning", "FailedGetResourceMetric", text),
        (
            "Warning",
            "FailedComputeMetricsReplicas",
            f"{ONE_OF_ONE}failed to get cpu resource metric value: {text}",
        ),
        ("AbleToScale", "SucceededGetScale", "the HPA controller was able to get the target's current scale"),
        ("ScalingActive", "FailedGetResourceMetric", UNABLE + text),
    ]


@pytest.mark.parametrize("reason", EVENTS)
def test_event(reason: str) -> None:
    """Each reason has its type and message, once."""
    decide, told = EVENTS[reason]
    assert [(kind, text) for kind, each, text in event_rows(decide()) if each == reason] == told


@pytest.mark.parametrize(
    ("decide", "reason"),
    [
        (
            lambda: decided(scaler(), observed(using(3, 800))),
            "cpu resource utilization (percentage of request) above target",
        ),
        (lambda: queue(1), "All metrics below target"),
        (lambda: queue(3, replicas=13), "Current number of replicas above Spec.MaxReplicas"),
        (lambda: queue(3, least=2, replicas=1), "Current number of replicas below Spec.MinReplicas"),
    ],
    ids=["above target", "below target", "above the maximum", "below the minimum"],
)
def test_rescale_reason(decide: Told, reason: str) -> None:
    """A rescale says why, as it was before stabilization and limits."""
    decision = decide()
    assert (decision.trace.reason, decision.events[-1].message.partition("reason: ")[2]) == (reason, reason)


@pytest.mark.parametrize(
    ("wanted", "behavior", "reason"),
    [
        (9, {"scaleUp": rules(("Pods", 1, 60))}, f"{NAME} above target"),
        (1, ONE_DOWN, "All metrics below target"),
    ],
    ids=["up", "down"],
)
def test_limits_do_not_change_the_reason(wanted: int, behavior: Json, reason: str) -> None:
    """A rescale that was cut short gives the reason of the whole one."""
    assert queue(wanted, behavior=behavior).trace.reason == reason


def test_held_back_without_a_reason() -> None:
    """A change that is held back entirely leaves neither a reason nor an event."""
    decision = queue(1, past=RECENT)
    assert (decision.trace.reason, decision.events, decision.replicas) == ("", (), None)
