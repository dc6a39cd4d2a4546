"""Parses an entry of `spec.metrics`: its target as a number, and the texts for messages about it.

Called by `podscaler.core.model.spec` once for each edit of an autoscaler; the calculators use the result. Example: the
Resource metric `cpu` with averageUtilization 60 becomes ResourceMetric(resource="cpu", target=Utilization(60)), which
messages name `cpu resource utilization (percentage of request)`. The texts, those of the HPA controller, are made here
so that a sync without failures formats nothing. A new metric type: a subclass of Metric and a reader in `_READERS`;
then `podscaler.core.proposals`, `podscaler.core.algorithm` and `podscaler.metrics.metric_fetching`.

Source: docs/spec/decision.md 3.3 (Failure of one metric), 4 (One metric), 6 (Replica calculator), 12.1 (Label selector
inside a message).
"""

from collections.abc import Callable
from typing import Any

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.text.quoting import quoted
from podscaler.api.typed import autoscaling
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.observation import Fact


class Utilization(Fact, frozen=True, gc=False):
    """A percentage of the pods' requests."""

    pct: int


class Average(Fact, frozen=True, gc=False):
    """An amount for each pod, in thousandths."""

    milli: int


class Total(Fact, frozen=True, gc=False):
    """An amount for all pods together, in thousandths (`type: Value`)."""

    milli: int


Target = Utilization | Average | Total


class Metric(Fact, frozen=True, gc=False, kw_only=True):
    """One metric of an autoscaler: the fields that all types have.

    A failed query leads to the error outer_prefix + inner_prefix + calculator_prefix + query_prefix + error; its event
    has it without the first two (the bare error).

    Attributes:
        type: the text in the spec, such as `Resource`.
        target: None if no target is set, and `fault` says so.
        name: how messages name the metric.
        subject: the container or object (`Kind/name`) that is measured; empty for other types.
        reason: the reason of the event and of the condition ScalingActive when the metric fails.
        outer_prefix, inner_prefix: of the error of the sync, before the bare one.
        calculator_prefix: of the bare error, before the error of the calculator.
        query_prefix: of the calculator's error, before that of a failed query.
        fault: the bare error of an invalid entry, which needs no query; empty if the entry is valid.
        has_inner_fault: whether the returned error of `fault` has `inner_prefix` too.
    """

    type: str
    target: Target | None = None
    name: str = ""
    subject: str = ""
    reason: str = ""
    outer_prefix: str = ""
    inner_prefix: str = ""
    calculator_prefix: str = ""
    query_prefix: str = ""
    fault: str = ""
    has_inner_fault: bool = False

    @property
    def average_milli(self) -> int:
        """The target for each pod in thousandths; 0 if the target is no average."""
        return self.target.milli if isinstance(self.target, Average) else 0


class ResourceMetric(Metric, frozen=True, gc=False, kw_only=True):
    """A resource of each pod, or of one container of it (else `container` is empty)."""

    resource: str
    container: str = ""


class IdentifiedMetric(Metric, frozen=True, gc=False, kw_only=True):
    """A metric by its name and the `selector` of its labels (EVERYTHING where the spec has none, or an invalid one)."""

    identifier: autoscaling.MetricIdentifier
    selector: Selector


class PodsMetric(IdentifiedMetric, frozen=True, gc=False, kw_only=True):
    """A custom metric of each pod."""


class ObjectMetric(IdentifiedMetric, frozen=True, gc=False, kw_only=True):
    """A custom metric of one object."""

    described: autoscaling.CrossVersionObjectReference


class ExternalMetric(IdentifiedMetric, frozen=True, gc=False, kw_only=True):
    """A metric of the external metrics API, which belongs to no object of the cluster."""


class UnknownMetric(Metric, frozen=True, gc=False, kw_only=True):
    """An entry whose type is none of the five that Kubernetes has; its `fault` says so."""


def parse(entry: autoscaling.MetricSpec, namespace: str, version: Emulation) -> Metric:
    """One entry of `spec.metrics` of an autoscaler in `namespace`. Raises ValueError for an unreadable quantity.

    A missing source is read as an empty one; the API admits neither.
    """
    reader = _READERS.get(entry.type)
    if reader is None:
        fault = f"unknown metric source type {quoted(entry.type)}"
        return UnknownMetric(type=entry.type, reason="InvalidMetricSourceType", fault=fault)
    return reader(entry, namespace, version)


def _average_target(target: autoscaling.MetricTarget, version: Emulation) -> Average | None:
    return None if target.average_value is None else Average(version.parse_milli(target.average_value))


def _total_target(target: autoscaling.MetricTarget, version: Emulation) -> Total | None:
    return None if target.value is None else Total(version.parse_milli(target.value))


def _read_resource(entry: autoscaling.MetricSpec, namespace: str, version: Emulation) -> Metric:
    """A Resource metric, of whole pods."""
    del namespace
    source = entry.resource or autoscaling.ResourceMetricSource()
    prefix = f"failed to get {source.name} resource metric value: "
    target = _resource_target(source.name, source.target, f"{source.name} resource utilization", version)
    return ResourceMetric(
        type=entry.type, reason="FailedGetResourceMetric", outer_prefix=prefix, resource=source.name, **target
    )


def _read_container_resource(entry: autoscaling.MetricSpec, namespace: str, version: Emulation) -> Metric:
    """A ContainerResource metric, of one container of each pod."""
    del namespace
    source = entry.container_resource or autoscaling.ContainerResourceMetricSource()
    target = _resource_target(source.name, source.target, f"{source.name} container resource utilization", version)
    return ResourceMetric(
        type=entry.type,
        reason="FailedGetContainerResourceMetric",
        outer_prefix=f"failed to get {source.container} container metric value: ",
        resource=source.name,
        container=source.container,
        subject=source.container,
        **target,
    )


def _resource_target(
    resource: str, target: autoscaling.MetricTarget, utilization_name: str, version: Emulation
) -> dict[str, Any]:
    """The fields of ResourceMetric that the target determines; `target.type` is ignored, as the HPA controller does."""
    number: Target | None = _average_target(target, version)
    if number is not None:
        name, calculator_prefix = f"{resource} resource", f"failed to get {resource} usage: "
    elif target.average_utilization is not None:
        number, name = Utilization(target.average_utilization), f"{utilization_name} (percentage of request)"
        calculator_prefix = f"failed to get {resource} utilization: "
    else:
        fault = "neither an average utilization target nor an average value (usage) target was set"
        return {"fault": f"invalid resource metric source: {fault}"}
    return {
        "target": number,
        "name": name,
        "calculator_prefix": calculator_prefix,
        "query_prefix": f"unable to get metrics for resource {resource}: ",
    }


def _read_pods(entry: autoscaling.MetricSpec, namespace: str, version: Emulation) -> Metric:
    """A Pods metric; its target must be an AverageValue."""
    del namespace
    source = entry.pods or autoscaling.PodsMetricSource()
    metric = source.metric.name
    target = _average_target(source.target, version)
    target_fault = "" if target else "invalid pods metric source: no average value target was set"
    selector, selector_fault = _parse_selector(source.metric)
    return PodsMetric(
        type=entry.type,
        target=target,
        name=f"pods metric {metric}",
        reason="FailedGetPodsMetric",
        outer_prefix="failed to get pods metric value: ",
        query_prefix=f"unable to get metric {metric}: ",
        fault=selector_fault or target_fault,
        identifier=source.metric,
        selector=selector,
    )


def _read_object(entry: autoscaling.MetricSpec, namespace: str, version: Emulation) -> Metric:
    """An Object metric, with a Value or an AverageValue as target."""
    source = entry.object or autoscaling.ObjectMetricSource()
    metric, described = source.metric.name, source.described_object
    target: Target | None = None
    name, inner_prefix = f"{described.kind} metric {metric}", ""
    if source.target.type == "Value":
        target = _total_target(source.target, version)
    elif source.target.type == "AverageValue":
        target = _average_target(source.target, version)
        # As upstream, which names an Object metric with an average like an External one.
        name, inner_prefix = _name_with_labels(source.metric), f"failed to get {metric} object metric: "
    target_fault = "" if target else _no_target_fault("object")
    selector, selector_fault = _parse_selector(source.metric)
    return ObjectMetric(
        type=entry.type,
        target=target,
        name=name,
        subject=f"{described.kind}/{described.name}",
        reason="FailedGetObjectMetric",
        outer_prefix="failed to get object metric value: ",
        inner_prefix=inner_prefix,
        query_prefix=f"unable to get metric {metric} on {described.kind} {namespace}/{described.name}: ",
        fault=selector_fault or target_fault,
        identifier=source.metric,
        selector=selector,
        described=described,
    )


def _read_external(entry: autoscaling.MetricSpec, namespace: str, version: Emulation) -> Metric:
    """An External metric, with an AverageValue, or else a Value, as target."""
    source = entry.external or autoscaling.ExternalMetricSource()
    metric = source.metric.name
    target = _average_target(source.target, version) or _total_target(source.target, version)
    average_prefix = f"failed to get {metric} external metric: "
    labels_text = selectors.go_text(source.metric.selector)
    selector, selector_fault = _parse_selector(source.metric)
    return ExternalMetric(
        type=entry.type,
        target=target,
        name=_name_with_labels(source.metric),
        reason="FailedGetExternalMetric",
        outer_prefix=f"failed to get {metric} external metric value: ",
        inner_prefix=average_prefix if isinstance(target, Average) else f"failed to get external metric {metric}: ",
        query_prefix=f"unable to get external metric {namespace}/{metric}/{labels_text}: ",
        fault=selector_fault if target else _no_target_fault("external"),
        has_inner_fault=bool(target and selector_fault),
        identifier=source.metric,
        selector=selector,
    )


def _name_with_labels(metric: autoscaling.MetricIdentifier) -> str:
    return f"external metric {metric.name}({selectors.go_text(metric.selector)})"


def _no_target_fault(kind: str) -> str:
    """The fault of an entry without a target."""
    return f"invalid {kind} metric source: neither a value target nor an average value target was set"


def _parse_selector(metric: autoscaling.MetricIdentifier) -> tuple[Selector, str]:
    """The selector and an empty text; for an invalid selector EVERYTHING and the error."""
    try:
        return selectors.from_label_selector(metric.selector or {}), ""
    except selectors.SelectorError as error:
        return selectors.EVERYTHING, str(error)


_READERS: dict[str, Callable[[autoscaling.MetricSpec, str, Emulation], Metric]] = {
    "Resource": _read_resource,
    "ContainerResource": _read_container_resource,
    "Pods": _read_pods,
    "Object": _read_object,
    "External": _read_external,
}
