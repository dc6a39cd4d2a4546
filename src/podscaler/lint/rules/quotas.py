"""Lint rules about replicas that the namespace's ResourceQuotas do not allow: PSL004 minReplicas, PSL023 maxReplicas.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes. The usage of other pods of the namespace, and
quotas with scopes, are not counted: each finding is certain, but not every conflict is found.

Source: the documentation of ResourceQuota.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podscaler.api.machinery import quantity
from podscaler.lint.model import workloads
from podscaler.lint.model.findings import RuleFinding, Severity, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler
from podscaler.lint.model.linted_item import Item, mapping
from podscaler.lint.model.workloads import Workload

ONE_POD_MILLI = 1000
_POD_COUNTS = frozenset({"pods", "count/pods"})
"""The entries of a quota that count pods."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """The replicas of the target that one entry of a quota allows."""

    quota: Item
    entry: str
    replicas: int


@rule("PSL004", "quota-below-minimum", Severity.ERROR, "A ResourceQuota allows fewer pods than minReplicas.")
def quota_below_minimum(context: LintContext) -> Iterator[RuleFinding]:
    """PSL004: a quota with room for fewer pods than minReplicas."""
    for autoscaler, limit in _strictest_limits(context):
        if limit.replicas < autoscaler.min_replicas:
            yield _finding(
                autoscaler, limit, "minReplicas", autoscaler.min_replicas, "the least that is asked for never runs"
            )


@rule("PSL023", "quota-below-maximum", Severity.WARNING, "A ResourceQuota allows fewer pods than maxReplicas.")
def quota_below_maximum(context: LintContext) -> Iterator[RuleFinding]:
    """PSL023: a quota with room for fewer pods than maxReplicas, but not fewer than minReplicas."""
    for autoscaler, limit in _strictest_limits(context):
        if autoscaler.min_replicas <= limit.replicas < autoscaler.max_replicas:
            yield _finding(autoscaler, limit, "maxReplicas", autoscaler.max_replicas, "the rest stays without pods")


def _finding(autoscaler: LintedAutoscaler, limit: _Limit, field: str, replicas: int, effect: str) -> RuleFinding:
    """The finding for a bound (`field` and its value `replicas`) of which a quota allows only `limit.replicas`."""
    return RuleFinding(
        autoscaler.item,
        f"spec.{field}",
        f"{field} is {replicas}, but {limit.quota.full_name} has room for {limit.replicas} of the target's pods at "
        f"most ({limit.entry}): {effect}",
        f"raise {limit.entry} of the quota, lower what a pod asks for, or lower {field}",
        other_item=limit.quota,
    )


def _strictest_limits(context: LintContext) -> Iterator[tuple[LintedAutoscaler, _Limit]]:
    """The strictest limit of each autoscaler that has one."""
    for autoscaler in context.autoscalers:
        workload = workloads.target_of(autoscaler, context)
        if workload is None:
            continue
        quotas = context.of_kind("", "ResourceQuota", autoscaler.item.namespace)
        limits = [limit for quota in quotas for limit in _limits_of(quota, workload)]
        if limits:
            yield autoscaler, min(limits, key=lambda limit: limit.replicas)


def _limits_of(quota: Item, workload: Workload) -> Iterator[_Limit]:
    """How many pods of a workload each entry of a quota allows; quotas with scopes are skipped."""
    spec = mapping(quota.obj.get("spec"))
    if quota.api_errors or spec.get("scopes") or spec.get("scopeSelector"):
        return
    for quota_resource, hard_milli in _amounts_milli(spec.get("hard")).items():
        pod_milli = _used_by_one_pod_milli(quota_resource, workload)
        if pod_milli:  # neither unknown nor 0: a pod that uses nothing is not limited
            yield _Limit(quota, quota_resource, max(hard_milli, 0) // pod_milli)


def _used_by_one_pod_milli(quota_resource: str, workload: Workload) -> int | None:
    """The least that one pod uses of a quota's resource, in thousandths; None: not known."""
    if quota_resource in _POD_COUNTS:
        return ONE_POD_MILLI
    prefix, _, resource = quota_resource.rpartition(".")  # `cpu` means `requests.cpu`
    if prefix not in ("", "requests", "limits") or workload.has_pod_resources:
        return None
    amounts_milli = [container.amount_milli(prefix or "requests", resource) for container in workload.containers]
    return sum(amount or 0 for amount in amounts_milli)


def _amounts_milli(hard: Any) -> dict[str, int]:
    """The entries of a quota's `hard` in thousandths; entries that are not quantities are left out."""
    amounts_milli = {}
    for name, amount in mapping(hard).items():
        if isinstance(amount, str | int) and not isinstance(amount, bool):
            with contextlib.suppress(quantity.QuantityError):
                amounts_milli[name] = quantity.parse(str(amount)).milli_value()
    return amounts_milli
