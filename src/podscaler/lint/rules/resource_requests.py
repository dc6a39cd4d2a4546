"""Lint rules about what utilization targets need in the pod template: PSL001 requests, PSL019 the container.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Source: docs/spec/decision.md 6.2 (Requests): one container without a request fails the metric for all pods.
"""

from collections.abc import Iterator

from podscaler.lint.model import workloads
from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler, LintedMetric
from podscaler.lint.model.workloads import MeasuredContainer, Workload
from podscaler.lint.rules.metrics import MEASURED_RESOURCES

_POD_REQUESTS = "spec.template.spec.resources.requests"


@rule(
    "PSL001",
    "missing-request",
    Severity.ERROR,
    "A utilization target needs a request that a container of the pod template does not have.",
)
def missing_request(context: LintContext) -> Iterator[RuleFinding]:
    """PSL001: a utilization target for a resource that the pod template does not request."""
    for autoscaler in context.autoscalers:
        workload = workloads.target_of(autoscaler, context)
        if workload is None:
            continue
        for metric in autoscaler.metrics:
            is_measured = metric.resource in MEASURED_RESOURCES  # PSL025 reports the others
            if is_measured and metric.target.get("type") == "Utilization":
                yield from _missing_requests(autoscaler, metric, workload)


def _missing_requests(autoscaler: LintedAutoscaler, metric: LintedMetric, workload: Workload) -> Iterator[RuleFinding]:
    """The findings of one metric: for the pod as a whole if it has requests of its own, else for each container."""
    if workload.pod.pod_level is not None and not metric.container:
        if metric.resource not in workload.pod.pod_level.with_overhead_milli:
            yield _missing_for_pod(autoscaler, metric, workload)
        return
    for container in workload.containers:
        if metric.container in ("", container.name) and container.amount_milli("requests", metric.resource) is None:
            yield _missing_in_container(autoscaler, metric, workload, container)


def _missing_in_container(
    autoscaler: LintedAutoscaler, metric: LintedMetric, workload: Workload, container: MeasuredContainer
) -> RuleFinding:
    """The finding for a container or sidecar without request."""
    resource = metric.resource
    kind = "sidecar" if ".initContainers[" in container.path else "container"
    return RuleFinding(
        workload.item,
        f"{container.path}.resources",
        f"{kind} {container.name} of the pod template has no {resource} request, so {autoscaler.item.full_name} cannot "
        f"compute {resource} utilization ({metric.path}), and does not scale by it",
        f"set resources.requests.{resource} of {kind} {container.name}, or give the metric an averageValue",
        other_item=autoscaler.item,
    )


def _missing_for_pod(autoscaler: LintedAutoscaler, metric: LintedMetric, workload: Workload) -> RuleFinding:
    """The finding for requests of the pod as a whole that lack the resource."""
    resource = metric.resource
    return RuleFinding(
        workload.item,
        _POD_REQUESTS,
        f"the pod template has requests for the pod as a whole, but none for {resource}, so "
        f"{autoscaler.item.full_name} cannot compute {resource} utilization ({metric.path})",
        f"set {_POD_REQUESTS}.{resource}",
        other_item=autoscaler.item,
    )


@rule(
    "PSL019",
    "container-not-found",
    Severity.ERROR,
    "A ContainerResource metric names a container that the pod template does not have.",
)
def container_not_found(context: LintContext) -> Iterator[RuleFinding]:
    """PSL019: a ContainerResource metric whose container the target does not have."""
    for autoscaler in context.autoscalers:
        workload = workloads.target_of(autoscaler, context)
        if workload is None:
            continue
        names = [container.name for container in workload.containers]
        for metric in autoscaler.metrics:
            if metric.container and metric.container not in names:
                yield about(
                    autoscaler,
                    f"{metric.path}.container",
                    f"{workload.item.full_name} has no container {metric.container} whose "
                    f"use could be measured; it has {', '.join(names)}",
                    "name one of its containers or sidecars",
                )
