"""The annotations with custom metrics of Kubernetes 1.2 to 1.5: how they are read, and what `convert` makes of them."""

import re
from typing import Any

import pytest

from podscaler.api.kinds.autoscaling import alpha_custom_metrics, conversion
from podscaler.api.kinds.autoscaling.alpha_custom_metrics import STATUSES, TARGETS, AnnotatedMetric

QPS = '{"items":[{"name":"qps","value":"10"},{"name":"errors","value":500}]}'
REFERENCE = {"kind": "ReplicationController", "name": "web"}


def _extensions(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "extensions/v1beta1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"scaleRef": REFERENCE | {"subresource": "scale"}, "maxReplicas": 3},
    }


def _pods(name: str, average: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}


def test_the_metrics_of_an_annotation() -> None:
    """A value is a quantity, or a number."""
    found = alpha_custom_metrics.parse_list(QPS)
    assert found == (AnnotatedMetric("qps", "10"), AnnotatedMetric("errors", "500"))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "is no JSON: "),
        ("[]", 'must be an object with a list "items"'),
        ('{"items": {}}', 'must be an object with a list "items"'),
        ('{"items": [5]}', "items[0] must be an object"),
        ('{"items": [{"value": "1"}]}', "items[0].name must be the name of a metric"),
        ('{"items": [{"name": "a/b", "value": "1"}]}', "items[0].name may not contain '/'"),
        ('{"items": [{"name": "a", "value": true}]}', "items[0].value must be a quantity"),
        ('{"items": [{"name": "a"}]}', "items[0].value must be a quantity"),
        ('{"items": [{"name": "a", "value": "x"}]}', "items[0].value must be a quantity: "),
    ],
)
def test_wrong_annotations(text: str, error: str) -> None:
    """The error names the field."""
    with pytest.raises(ValueError, match=f"^{re.escape(error)}"):
        alpha_custom_metrics.parse_list(text)


def test_annotations_become_metrics_of_pods() -> None:
    """There is no default metric beside them, and the annotations are gone."""
    given = _extensions(**{TARGETS: QPS, STATUSES: '{"items":[{"name":"qps","value":"12"}]}', "other": "stays"})
    converted = conversion.convert(given, "autoscaling/v2")
    assert converted.losses == ()
    assert converted.obj["metadata"]["annotations"] == {"other": "stays"}
    assert converted.obj["spec"]["metrics"] == [_pods("qps", "10"), _pods("errors", "500")]
    (current,) = converted.obj["status"]["currentMetrics"]
    assert current["pods"] == {"metric": {"name": "qps"}, "current": {"averageValue": "12"}}


def test_they_stand_beside_the_cpu_utilization() -> None:
    """Both are targets, in v1 too, where the metrics of pods are in v1's own annotation."""
    given = _extensions(**{TARGETS: '{"items":[{"name":"qps","value":"10"}]}'})
    given["spec"]["cpuUtilization"] = {"targetPercentage": 60}
    converted = conversion.convert(given, "autoscaling/v1").obj
    assert converted["spec"]["targetCPUUtilizationPercentage"] == 60
    noted = '[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10"}}]'
    assert converted["metadata"]["annotations"] == {"autoscaling.alpha.kubernetes.io/metrics": noted}


def test_an_annotation_that_cannot_be_read_stays() -> None:
    """That is reported as a loss."""
    converted = conversion.convert(_extensions(**{TARGETS: "[]"}), "autoscaling/v2")
    assert converted.obj["metadata"]["annotations"] == {TARGETS: "[]"}
    text = f'metadata.annotations["{TARGETS}"]: must be an object with a list "items"; it stays'
    assert [str(loss) for loss in converted.losses] == [text]
