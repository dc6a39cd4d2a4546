"""Typed API objects: what is read is written back without loss, in upstream's order and with its omissions."""

import msgspec

from podscaler.api.typed import autoscaling, metrics, pods

FULL = (
    b'{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"web","namespace":"default",'
    b'"uid":"u","resourceVersion":"7","generation":2,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"},'
    b'"annotations":{"c":"d"},"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"p",'
    b'"controller":false}],"finalizers":["x/y"]},"spec":{"scaleTargetRef":{"kind":"Deployment","name":"web",'
    b'"apiVersion":"apps/v1"},"minReplicas":0,"maxReplicas":9,"metrics":[{"type":"External","external":{"metric":{'
    b'"name":"queue","selector":{"matchLabels":{"q":"1"}}},"target":{"type":"Value","value":"1.50"}}},{"type":'
    b'"ContainerResource","containerResource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50},'
    b'"container":"app"}}],"behavior":{"scaleDown":{"stabilizationWindowSeconds":0,"selectPolicy":"Min","policies":[{'
    b'"type":"Pods","value":4,"periodSeconds":15}],"tolerance":"50m"}}},"status":{"observedGeneration":2,'
    b'"lastScaleTime":"2026-01-01T00:00:00Z","desiredReplicas":0,"currentMetrics":[{"type":""},{"type":"Resource",'
    b'"resource":{"name":"cpu","current":{"averageValue":"1","averageUtilization":10}}}],"conditions":[{"type":'
    b'"AbleToScale","status":"True","lastTransitionTime":null,"reason":"R","message":"M","observedGeneration":3}]}}'
)


def test_autoscaler_round_trip() -> None:
    """Every field of an autoscaler survives reading and writing, byte for byte."""
    read = msgspec.json.decode(FULL, type=autoscaling.HorizontalPodAutoscaler)
    assert msgspec.json.encode(read) == FULL


def test_empty_status() -> None:
    """A status always shows desiredReplicas and currentMetrics, and nothing else that is empty."""
    assert msgspec.json.encode(autoscaling.HorizontalPodAutoscalerStatus()) == (
        b'{"desiredReplicas":0,"currentMetrics":null}'
    )


def test_scale_round_trip() -> None:
    """A Scale omits zero spec.replicas and always shows status.replicas."""
    text = b'{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web"},"spec":{},"status":{"replicas":0}}'
    assert msgspec.json.encode(msgspec.json.decode(text, type=autoscaling.Scale)) == text


def test_pod_is_trimmed() -> None:
    """A pod is read without what no decision uses."""
    text = b'{"metadata":{"name":"a","annotations":{"x":"y"}},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}'
    assert msgspec.json.decode(text, type=pods.Pod) == pods.Pod(
        metadata=pods.PodMeta(name="a"), status=pods.PodStatus(phase="Running")
    )


def test_metric_answers_by_kind() -> None:
    """The kind of an answer says which of the metrics APIs it came from."""
    answers = metrics.PodMetricsList | metrics.MetricValueList | metrics.ExternalMetricValueList
    kinds = ["PodMetricsList", "MetricValueList", "ExternalMetricValueList"]
    read = [msgspec.json.decode(b'{"kind":"%s"}' % kind.encode(), type=answers) for kind in kinds]
    assert read == [metrics.PodMetricsList(), metrics.MetricValueList(), metrics.ExternalMetricValueList()]
