"""Replicas that the namespace's ResourceQuotas do not allow: PSL004 minReplicas, PSL023 maxReplicas.

What other pods of the namespace use comes on top and is not counted; nor are quotas with scopes. So what is said is
certain, and not all that could be said.

Source: the documentation of ResourceQuota.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from podscaler.lint.model import amounts, workloads
from podscaler.lint.model.findings import Rule, RuleFinding, Severity
from podscaler.lint.model.items import Item, mapping
from podscaler.lint.model.lint_context import LintedAutoscaler, Material
from podscaler.lint.model.workloads import Workload

POD_MILLI = 1000
_PODS = frozenset({"pods", "count/pods"})


@dataclass(frozen=True, slots=True)
class _Limit:
    """What one entry of a quota allows of the target: so many replicas at most."""

    quota: Item
    entry: str
    replicas: int


def _below_minimum(material: Material) -> Iterator[RuleFinding]:
    for autoscaler, limit in _limits(material):
        if limit.replicas < autoscaler.least:
            yield _found(autoscaler, limit, "minReplicas", autoscaler.least, "the least that is asked for never runs")


def _below_maximum(material: Material) -> Iterator[RuleFinding]:
    for autoscaler, limit in _limits(material):
        if autoscaler.least <= limit.replicas < autoscaler.most:
            yield _found(autoscaler, limit, "maxReplicas", autoscaler.most, "the rest stays without pods")


def _found(autoscaler: LintedAutoscaler, limit: _Limit, field: str, replicas: int, so: str) -> RuleFinding:
    return RuleFinding(
        autoscaler.item,
        f"spec.{field}",
        f"{field} is {replicas}, but {limit.quota.shown} has room for {limit.replicas} of the target's pods at most "
        f"({limit.entry}): {so}",
        f"raise {limit.entry} of the quota, lower what a pod asks for, or lower {field}",
        other=limit.quota,
    )


def _limits(material: Material) -> Iterator[tuple[LintedAutoscaler, _Limit]]:
    """The strictest limit of each autoscaler that has one."""
    for autoscaler in material.autoscalers:
        workload = workloads.target_of(autoscaler, material)
        quotas = material.of_kind("", "ResourceQuota", autoscaler.item.namespace) if workload else ()
        found = [limit for quota in quotas if workload for limit in _limits_of(quota, workload)]
        if found:
            yield autoscaler, min(found, key=lambda limit: limit.replicas)


def _limits_of(quota: Item, workload: Workload) -> Iterator[_Limit]:
    spec = mapping(quota.obj.get("spec"))
    if quota.faults or spec.get("scopes") or spec.get("scopeSelector"):
        return
    for entry, hard_milli in amounts.milli(spec.get("hard")).items():
        one_milli = _of_one_pod(entry, workload)
        if one_milli:
            yield _Limit(quota, entry, max(hard_milli, 0) // one_milli)


def _of_one_pod(entry: str, workload: Workload) -> int | None:
    """What one pod takes of an entry, in thousandths, at the least; None where that is not known."""
    if entry in _PODS:
        return POD_MILLI
    kind, _, resource = entry.rpartition(".")
    if kind not in ("", "requests", "limits") or workload.has_pod_resources:
        return None
    each = [container.amount_milli(kind or "requests", resource) for container in workload.containers]
    return sum(amount or 0 for amount in each)


MINIMUM = Rule(
    "PSL004",
    "quota-below-minimum",
    Severity.ERROR,
    "A ResourceQuota allows fewer pods than minReplicas.",
    _below_minimum,
)
MAXIMUM = Rule(
    "PSL023",
    "quota-below-maximum",
    Severity.WARNING,
    "A ResourceQuota allows fewer pods than maxReplicas.",
    _below_maximum,
)
