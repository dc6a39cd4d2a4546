"""Lint rule about metrics that no adapter of the cluster serves (PSL013); it needs a cluster, not only files.

`podscaler.lint.rulebook` lists it; `podscaler.cli.diagnosis` uses the groups. A new type of metric: an entry in GROUPS,
and its names in `_is_listed`.

Source: docs/spec/decision.md 7 (Metrics client): which API serves which type; the discovery documents of metrics
adapters.
"""

from collections.abc import Iterator, Mapping

from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler, LintedMetric

RESOURCE, CUSTOM, EXTERNAL = "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"
GROUPS: Mapping[str, str] = {
    "Resource": RESOURCE,
    "ContainerResource": RESOURCE,
    "Pods": CUSTOM,
    "Object": CUSTOM,
    "External": EXTERNAL,
}
"""The group that serves each type of metric."""

_PLACEHOLDERS = frozenset({"externalmetrics"})
"""All that the discovery of an adapter has that does not list its metrics (such as KEDA's)."""


@rule("PSL013", "metric-not-served", Severity.ERROR, "No adapter of the cluster serves the metric.")
def metric_not_served(context: LintContext) -> Iterator[RuleFinding]:
    """PSL013: a metric that the cluster's metrics APIs do not list."""
    served = context.cluster.metrics if context.cluster else {}
    for autoscaler in context.autoscalers:
        for metric in autoscaler.metrics:
            group = GROUPS[metric.type]
            if group in served:
                yield from _check_metric(autoscaler, metric, group, served[group])


def _check_metric(
    autoscaler: LintedAutoscaler, metric: LintedMetric, group: str, listed: frozenset[str] | None
) -> Iterator[RuleFinding]:
    """The finding of a metric that is not in `listed`, which is None if the cluster does not serve the API at all."""
    if listed is None:
        yield about(
            autoscaler,
            metric.path,
            f"the cluster does not serve {group}, which metrics of type {metric.type} come from",
            "install metrics-server" if group == RESOURCE else "install an adapter that serves it",
        )
    elif group != RESOURCE and listed - _PLACEHOLDERS and not _is_listed(metric, listed):
        yield about(
            autoscaler,
            f"{metric.path}.metric.name",
            f"{metric.name} is not among the {len(listed)} metrics that {group} lists{_object_text(metric)}",
            f"see `kubectl get --raw /apis/{group}` for the versions and their metrics, and the adapter's rules",
        )


def _is_listed(metric: LintedMetric, listed: frozenset[str]) -> bool:
    """Whether the API lists a metric: External by its name, Pods as `pods/NAME`, Object as `PLURAL/NAME`."""
    name = metric.name
    if metric.type == "External":
        return name in listed
    if metric.type == "Pods":
        return f"pods/{name}" in listed
    kind = _described_kind(metric).lower()
    plurals = {kind, f"{kind}s", f"{kind}es", f"{kind[:-1]}ies"}  # those of English; adapters list resources
    for listed_name in listed:
        resource, _, metric_name = listed_name.rpartition("/")
        if metric_name == name and resource.partition(".")[0] in plurals:
            return True
    return False


def _object_text(metric: LintedMetric) -> str:
    """The object of a metric as part of a message, with a leading space; empty for External metrics."""
    if metric.type == "External":
        return ""
    return " for pods" if metric.type == "Pods" else f" for {_described_kind(metric)}"


def _described_kind(metric: LintedMetric) -> str:
    kind: str = (metric.source.get("describedObject") or {}).get("kind", "")
    return kind
