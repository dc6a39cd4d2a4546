"""Metrics that no adapter of the cluster serves (PSL013). Says nothing about files alone.

Source: docs/spec/decision.md 7 (Metrics client): which API serves which type; the discovery documents of metrics
adapters.
"""

from collections.abc import Iterator, Mapping

from podscaler.lint.model.findings import Rule, RuleFinding, Severity
from podscaler.lint.model.lint_context import LintedAutoscaler, LintedMetric, Material

RESOURCE, CUSTOM, EXTERNAL = "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"
GROUPS: Mapping[str, str] = {
    "Resource": RESOURCE,
    "ContainerResource": RESOURCE,
    "Pods": CUSTOM,
    "Object": CUSTOM,
    "External": EXTERNAL,
}
"""The group that serves each type of metric."""

_UNLISTED = frozenset({"externalmetrics"})
"""What adapters list that do not list their metrics."""


def _unserved(material: Material) -> Iterator[RuleFinding]:
    served = material.cluster.metrics if material.cluster else {}
    for autoscaler in material.autoscalers:
        for metric in autoscaler.metrics:
            group = GROUPS[metric.type]
            if group in served:
                yield from _checked(autoscaler, metric, group, served[group])


def _checked(
    autoscaler: LintedAutoscaler, metric: LintedMetric, group: str, listed: frozenset[str] | None
) -> Iterator[RuleFinding]:
    if listed is None:
        yield RuleFinding(
            autoscaler.item,
            metric.path,
            f"the cluster does not serve {group}, which metrics of type {metric.type} come from",
            "install metrics-server" if group == RESOURCE else "install an adapter that serves it",
            other=autoscaler.target,
        )
    elif group != RESOURCE and listed - _UNLISTED and not _is_listed(metric, listed):
        yield RuleFinding(
            autoscaler.item,
            f"{metric.path}.metric.name",
            f"{metric.name} is not among the {len(listed)} metrics that {group} lists{_for(metric)}",
            f"see `kubectl get --raw /apis/{group}` for the versions and their metrics, and the adapter's rules",
            other=autoscaler.target,
        )


def _is_listed(metric: LintedMetric, listed: frozenset[str]) -> bool:
    name = metric.name
    if metric.type == "External":
        return name in listed
    if metric.type == "Pods":
        return f"pods/{name}" in listed
    kind = _described(metric).lower()
    names = {each.rpartition("/")[0].partition(".")[0] for each in listed if each.rpartition("/")[2] == name}
    return any(plural in (kind, f"{kind}s", f"{kind}es", f"{kind[:-1]}ies") for plural in names)


def _for(metric: LintedMetric) -> str:
    if metric.type == "External":
        return ""
    return " for pods" if metric.type == "Pods" else f" for {_described(metric)}"


def _described(metric: LintedMetric) -> str:
    kind: str = (metric.source.get("describedObject") or {}).get("kind", "")
    return kind


METRICS = Rule("PSL013", "metric-not-served", Severity.ERROR, "No adapter of the cluster serves the metric.", _unserved)
