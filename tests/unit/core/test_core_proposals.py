"""Names and error texts of each metric type and target.

Source: docs/spec/decision.md 3.3 (Failure of one metric), 4 (One metric), 12.1 (Label selector inside a message), 12.4
(Converting a metric's selector).
"""

import pytest

from podscaler.core import proposals
from podscaler.core.model.observation import IncompleteObservation
from podscaler.core.model.trace import MetricFailure, MetricStep
from podscaler.testing.decisions import (
    DOWN,
    Json,
    container_resource,
    external_metric,
    metric_of,
    object_metric,
    pods,
    pods_metric,
    resource,
    situation,
)

LABELS = {"matchLabels": {"b": "2", "a": "1"}}
SHOWN = "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{},}"
WRONG = {"matchExpressions": [{"key": "k", "operator": "Near"}]}
FAULT = '"Near" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        (resource(utilization=50), "cpu resource utilization (percentage of request)"),
        (resource("memory", average="1"), "memory resource"),
        (container_resource(utilization=50), "cpu container resource utilization (percentage of request)"),
        (container_resource(average="1"), "cpu resource"),
        (pods_metric(), "pods metric rps"),
        (object_metric(value="1"), "Ingress metric rps"),
        (object_metric(average="1"), "external metric rps(nil)"),
        (external_metric(value="1", selector=LABELS), f"external metric queue({SHOWN})"),
        (external_metric(average="1"), "external metric queue(nil)"),
    ],
)
def test_metric_names(entry: Json, name: str) -> None:
    """How messages name a metric."""
    assert metric_of(entry).name == name


OBJECT = "unable to get metric rps on Ingress default/main: unable to fetch metrics from custom metrics API: x"
EXTERNAL = "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: x"


@pytest.mark.parametrize(
    ("entry", "reason", "bare", "prefix"),
    [
        (object_metric(value="1"), "FailedGetObjectMetric", OBJECT, "failed to get object metric value: "),
        (
            object_metric(average="1"),
            "FailedGetObjectMetric",
            OBJECT,
            "failed to get object metric value: failed to get rps object metric: ",
        ),
        (
            pods_metric(),
            "FailedGetPodsMetric",
            "unable to get metric rps: unable to fetch metrics from custom metrics API: x",
            "failed to get pods metric value: ",
        ),
        (
            resource(utilization=50),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from"
            " resource metrics API: x",
            "failed to get cpu resource metric value: ",
        ),
        (
            container_resource(average="1"),
            "FailedGetContainerResourceMetric",
            "failed to get cpu usage: unable to get metrics for resource cpu: unable to fetch metrics from resource"
            " metrics API: x",
            "failed to get app container metric value: ",
        ),
        (
            external_metric(average="1"),
            "FailedGetExternalMetric",
            EXTERNAL,
            "failed to get queue external metric value: failed to get queue external metric: ",
        ),
        (
            external_metric(value="1"),
            "FailedGetExternalMetric",
            EXTERNAL,
            "failed to get queue external metric value: failed to get external metric queue: ",
        ),
    ],
)
def test_failed_query(entry: Json, reason: str, bare: str, prefix: str) -> None:
    """The bare error goes into event and condition, the returned one has the prefixes too."""
    down = type(DOWN)("x")
    result = proposals.of_metric(metric_of(entry), down, situation(pods(1)))
    assert result.step.failure == MetricFailure(reason, bare, prefix + bare)


NO_RESOURCE_TARGET = (
    "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
)
NO_TARGET = "invalid {} metric source: neither a value target nor an average value target was set"


@pytest.mark.parametrize(
    ("entry", "reason", "bare", "prefix"),
    [
        (resource(), "FailedGetResourceMetric", NO_RESOURCE_TARGET, "failed to get cpu resource metric value: "),
        (
            container_resource(),
            "FailedGetContainerResourceMetric",
            NO_RESOURCE_TARGET,
            "failed to get app container metric value: ",
        ),
        (
            object_metric(value="1", kind="Utilization"),
            "FailedGetObjectMetric",
            NO_TARGET.format("object"),
            "failed to get object metric value: ",
        ),
        (
            object_metric(kind="Value", average="1"),
            "FailedGetObjectMetric",
            NO_TARGET.format("object"),
            "failed to get object metric value: ",
        ),
        (
            external_metric(),
            "FailedGetExternalMetric",
            NO_TARGET.format("external"),
            "failed to get queue external metric value: ",
        ),
        (
            object_metric(average="1", selector=WRONG),
            "FailedGetObjectMetric",
            FAULT,
            "failed to get object metric value: ",
        ),
        (pods_metric(selector=WRONG), "FailedGetPodsMetric", FAULT, "failed to get pods metric value: "),
        (
            external_metric(value="1", selector=WRONG),
            "FailedGetExternalMetric",
            FAULT,
            "failed to get queue external metric value: failed to get external metric queue: ",
        ),
        ({"type": 'Mag"ic'}, "InvalidMetricSourceType", r'unknown metric source type "Mag\"ic"', ""),
        ({"type": "Pods"}, "FailedGetPodsMetric", "invalid pods metric source: no average value target was set", None),
    ],
)
def test_failure_without_a_query(entry: Json, reason: str, bare: str, prefix: str | None) -> None:
    """What is wrong with the entry itself fails without asking anybody."""
    result = proposals.of_metric(metric_of(entry), None, situation(pods(1)))
    outer = "failed to get pods metric value: " if prefix is None else prefix
    assert result.step.failure == MetricFailure(reason, bare, outer + bare)


def test_status_of_a_failed_metric_is_empty() -> None:
    """A failed metric has an empty entry in status."""
    result = proposals.of_metric(metric_of({"type": "Magic"}), None, situation(pods(1)))
    assert (result.status, result.step) == (
        proposals.NO_STATUS,
        MetricStep(
            "Magic",
            "",
            None,
            failure=MetricFailure(
                "InvalidMetricSourceType",
                'unknown metric source type "Magic"',
                'unknown metric source type "Magic"',
            ),
        ),
    )


def test_an_answer_is_needed() -> None:
    """A metric that must be asked for cannot do without its answer."""
    with pytest.raises(IncompleteObservation, match="an answer is needed"):
        proposals.of_metric(metric_of(resource(utilization=50)), None, situation(pods(1)))
