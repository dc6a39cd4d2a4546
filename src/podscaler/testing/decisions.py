"""Builders of autoscalers, pods and observations for tests of decisions (`podscaler.core.decide`).

By default everything happens at NOW, and each pod requests one CPU and has been ready for an hour. A test decides with
`decided(scaler(), observed(using(3, 900), replicas=3))`: three pods that use 0.9 CPU each, against a target of 50 %.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podscaler.api.typed import autoscaling
from podscaler.core import decide
from podscaler.core.calculation.calculation_types import Situation, Tolerance
from podscaler.core.decision import Decision
from podscaler.core.model import history, metric_spec, spec
from podscaler.core.model import settings as settings_module
from podscaler.core.model.emulation import V1_37, Emulation
from podscaler.core.model.history import History
from podscaler.core.model.observation import (
    ContainerRequests,
    Failure,
    Measurement,
    Observation,
    Pod,
    PodSamples,
    Sample,
    Scale,
    Values,
)
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec

SECOND = 1_000_000_000
NOW = 1_767_225_600 * SECOND
"""2026-01-01T00:00:00Z."""
NOW_TEXT = "2026-01-01T00:00:00Z"

Json = dict[str, Any]


def resource(name: str = "cpu", *, utilization: int | None = None, average: str | None = None) -> Json:
    """A Resource metric (MetricSpec as JSON); `utilization` in percent, `average` as a quantity."""
    return {"type": "Resource", "resource": {"name": name, "target": target(utilization, average)}}


def container_resource(
    name: str = "cpu", container: str = "app", *, utilization: int | None = None, average: str | None = None
) -> Json:
    """A ContainerResource metric; `utilization` in percent, `average` as a quantity."""
    source = {"name": name, "container": container, "target": target(utilization, average)}
    return {"type": "ContainerResource", "containerResource": source}


def target(utilization: int | None, average: str | None) -> Json:
    """The MetricTarget of a resource: Utilization in percent, or AverageValue; without a value if both are None."""
    if utilization is not None:
        return {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "AverageValue", "averageValue": average} if average is not None else {"type": "AverageValue"}


def pods_metric(average: str = "1", *, name: str = "rps", selector: Json | None = None) -> Json:
    """A Pods metric with the AverageValue `average`."""
    metric = {"name": name, "selector": selector}
    return {"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": average}}}


def object_metric(
    *, value: str | None = None, average: str | None = None, selector: Json | None = None, kind: str = ""
) -> Json:
    """An Object metric of the Ingress `main`; its target has the type `kind`, by default that of the given amount."""
    target: Json = {"type": kind or ("Value" if value is not None else "AverageValue")}
    target |= {key: amount for key, amount in (("value", value), ("averageValue", average)) if amount is not None}
    source = {
        "describedObject": {"kind": "Ingress", "name": "main", "apiVersion": "networking.k8s.io/v1"},
        "metric": {"name": "rps", "selector": selector},
        "target": target,
    }
    return {"type": "Object", "object": source}


def external_metric(*, value: str | None = None, average: str | None = None, selector: Json | None = None) -> Json:
    """An External metric `queue`; its target is a Value with `value`, else an AverageValue."""
    target: Json = {"type": "Value" if value is not None else "AverageValue"}
    target |= {key: amount for key, amount in (("value", value), ("averageValue", average)) if amount is not None}
    return {"type": "External", "external": {"metric": {"name": "queue", "selector": selector}, "target": target}}


def scaler(
    *metrics: Json,
    least: int = 1,
    most: int = 10,
    behavior: Json | None = None,
    target_ref: Json | None = None,
    emulation: Emulation = V1_37,
    on_failure: Json | None = None,
) -> Spec:
    """The parsed spec of the HPA default/web; without metrics it has CPU at 50 %.

    Args:
        metrics: entries of spec.metrics, as JSON.
        least, most: minReplicas and maxReplicas.
        target_ref: scaleTargetRef; None: the Deployment `web`.
        on_failure: the spec's `onMetricFailure`, which PodAutoscalers have.
    """
    wire = {
        "scaleTargetRef": target_ref or {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": list(metrics) or [resource(utilization=50)],
        "behavior": behavior,
        "onMetricFailure": on_failure,
    }
    typed = msgspec.convert(wire, autoscaling.HorizontalPodAutoscalerSpec)
    return spec.parse("default", "web", typed, emulation)


def metric_of(entry: Json, emulation: Emulation = V1_37) -> metric_spec.Metric:
    """One entry of spec.metrics (JSON), parsed for the namespace `default`."""
    return metric_spec.parse(msgspec.convert(entry, autoscaling.MetricSpec), "default", emulation)


def rules(
    *policies: tuple[str, int, int], window: int | None = None, select: str | None = None, tolerance: str | None = None
) -> Json:
    """The HPAScalingRules of one direction as JSON; policies are (type, value, periodSeconds), `window` in seconds."""
    policy_objects = [{"type": kind, "value": value, "periodSeconds": seconds} for kind, value, seconds in policies]
    return {
        "stabilizationWindowSeconds": window,
        "selectPolicy": select,
        "policies": policy_objects or None,
        "tolerance": tolerance,
    }


def pod(
    name: str = "a",
    *,
    phase: str = "Running",
    ready: str | None = "True",
    deleting: bool = False,
    started: int | None = -3600,
    changed: int = -3600,
    **requests_milli: int,
) -> Pod:
    """A pod with one container.

    Args:
        ready: the status of the Ready condition; None if the pod has no such condition.
        deleting: whether it has a deletionTimestamp.
        started, changed: the start (None: not started) and the last transition of Ready, in seconds from NOW.
        requests_milli: requests by resource, in thousandths; 1 CPU by default.
    """
    requests = requests_milli or {"cpu": 1000}
    return Pod(
        name=name,
        labels={"app": "web"},
        phase=phase,
        is_deleting=deleting,
        started_at=None if started is None else NOW + started * SECOND,
        ready=ready,
        ready_changed_at=NOW + changed * SECOND,
        containers=(ContainerRequests("app", requests),),
        requests_milli=requests,
    )


def labelled(each: Pod, labels: Mapping[str, str]) -> Pod:
    """A copy of the pod with these labels."""
    return msgspec.structs.replace(each, labels=labels)


def pods(count: int, **facts: Any) -> list[Pod]:
    """`count` equal pods, named p0, p1, ...; `facts` are arguments of `pod`."""
    return [pod(f"p{index}", **facts) for index in range(count)]


def sampled(*values_milli: int | None, **named_milli: int) -> PodSamples:
    """Samples in thousandths of p0, p1, ... (None: no sample), and of pods by name."""
    values = {f"p{index}": value for index, value in enumerate(values_milli) if value is not None} | named_milli
    return PodSamples({name: Sample(value, NOW, 0) for name, value in values.items()})


def situation(
    listed: Sequence[Pod],
    *,
    replicas: int | None = None,
    status_replicas: int | None = None,
    tolerance: float = 0.1,
    settings: Settings = settings_module.DEFAULT,
) -> Situation:
    """The input of a metric's calculation with the pods `listed`, and one tolerance for both directions.

    `replicas` defaults to the number of pods, `status_replicas` to `replicas`.
    """
    count = len(listed) if replicas is None else replicas
    status = count if status_replicas is None else status_replicas
    return Situation(NOW, count, status, listed, Tolerance(tolerance, tolerance), settings)


def conditions(**by_type: str) -> tuple[autoscaling.Condition, ...]:
    """Conditions with these types and statuses, which are an hour old."""
    return tuple(
        autoscaling.Condition(kind, status, "2025-12-31T23:00:00Z", "Old", "old") for kind, status in by_type.items()
    )


def observed(
    *answers: Measurement | None,
    replicas: int = 3,
    status_replicas: int | None = None,
    listed: Sequence[Pod] | None = None,
    selector: str = "app=web",
    before: tuple[autoscaling.Condition, ...] = (),
    **others: Any,
) -> Observation:
    """An observation of a target with `replicas` replicas and, unless `listed`, as many ready pods.

    Args:
        answers: the results of the metrics, in the order of the spec.
        before: the conditions of the former status.
        others: further attributes of Observation.
    """
    status = autoscaling.HorizontalPodAutoscalerStatus(
        current_replicas=replicas, desired_replicas=replicas, conditions=before or None
    )
    return Observation(
        scale=Scale(replicas, replicas if status_replicas is None else status_replicas, selector),
        status=status,
        generation=1,
        pods=pods(replicas) if listed is None else listed,
        metrics=answers,
        **others,
    )


def using(replicas: int, milli: int) -> PodSamples:
    """Samples of `replicas` pods p0, p1, ... that all use `milli` thousandths."""
    return sampled(*[milli] * replicas)


def values(*values_milli: int) -> Values:
    """The result of an Object or External metric."""
    return Values(values_milli)


DOWN = Failure("the server is currently unable to handle the request", "ServiceUnavailable", 503)
"""The result of a metric whose API is down."""


def decided(
    scaler_spec: Spec,
    observation: Observation,
    past: History = history.EMPTY,
    now: int = NOW,
    settings: Settings = settings_module.DEFAULT,
) -> Decision:
    """The decision for an observation, without former history unless given."""
    return decide.decide(scaler_spec, observation, past, now, settings)


def condition_rows(decision: Decision) -> list[tuple[str, str, str]]:
    """Type, status and reason of each condition of the new status."""
    return [(condition.type, condition.status, condition.reason) for condition in decision.status.conditions or ()]


def messages(decision: Decision) -> dict[str, str]:
    """The messages of the new conditions by type."""
    return {condition.type: condition.message for condition in decision.status.conditions or ()}


def event_rows(decision: Decision) -> list[tuple[str, str, str]]:
    """Type, reason and message of each event of the decision."""
    return [(event.type, event.reason, event.message) for event in decision.events]
