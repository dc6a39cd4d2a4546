"""Lint rules about targets that usage cannot exceed: PSL011 by the tolerance, PSL016 by the containers' limits.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Example: with requests of 100m and limits of 100m, CPU is at most 100 %; a target of 120 % never scales up.

Source: docs/spec/decision.md 6.3 (Utilisation target): nothing happens while the ratio of usage to target is within the
tolerance of 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from podscaler.api.machinery import quantity
from podscaler.core.model import settings
from podscaler.lint.model import workloads
from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler, LintedMetric
from podscaler.lint.model.workloads import Workload

WIDE_TOLERANCE_RATIO = 0.5
"""From this tolerance on, a behavior is reported."""


@dataclass(frozen=True, slots=True)
class _UtilizationRange:
    """A utilization target, and the highest utilization that the limits allow, both in percent of requests.

    Attributes:
        tolerance_ratio: of scaling up.
        limits_owner: whose limits they are, for messages: `the containers'`.
    """

    autoscaler: LintedAutoscaler
    metric: LintedMetric
    target_pct: int
    highest_pct: float
    tolerance_ratio: float
    limits_owner: str


@rule(
    "PSL011",
    "tolerance-hides-target",
    Severity.WARNING,
    "The tolerance is so wide that the metric hardly ever, or never, leaves it.",
)
def tolerance_hides_target(context: LintContext) -> Iterator[RuleFinding]:
    """PSL011: a target that usage can exceed, but not by the tolerance."""
    for autoscaler in context.autoscalers:
        for direction in ("scaleUp", "scaleDown"):
            yield from _wide_tolerance(autoscaler, direction)
    for utilization in _utilization_ranges(context):
        scales_above_pct = utilization.target_pct * (1 + utilization.tolerance_ratio)
        if utilization.target_pct < utilization.highest_pct <= scales_above_pct:
            default_note = "" if _is_stated(utilization.autoscaler) else " (the controller's default)"
            tolerance_text = f"{utilization.tolerance_ratio:g}{default_note}"
            reason = f"utilization has to exceed {utilization.target_pct} % by the tolerance of {tolerance_text}"
            yield _finding(utilization, reason)


@rule(
    "PSL016",
    "utilization-unreachable",
    Severity.ERROR,
    "The utilization target is more than the containers' limits allow.",
)
def utilization_unreachable(context: LintContext) -> Iterator[RuleFinding]:
    """PSL016: a utilization target that the containers' limits keep out of reach."""
    for utilization in _utilization_ranges(context):
        if utilization.target_pct >= utilization.highest_pct:
            yield _finding(utilization, f"the target is {utilization.target_pct} %")


def _finding(utilization: _UtilizationRange, reason: str) -> RuleFinding:
    """The finding for a target that the limits of the pods keep out of reach."""
    metric = utilization.metric
    return RuleFinding(
        utilization.autoscaler.item,
        f"{metric.path}.target.averageUtilization",
        f"{reason}, but {utilization.limits_owner} limits keep {metric.resource} at {utilization.highest_pct:g} % of "
        "requests at most: it never scales up by this metric",
        "lower averageUtilization, or give limits more room above requests",
        other_item=utilization.autoscaler.target,
    )


def _wide_tolerance(autoscaler: LintedAutoscaler, direction: str) -> Iterator[RuleFinding]:
    """Tolerances so wide that the direction hardly ever scales, whatever the metric is."""
    written = autoscaler.scaling_rules(direction).get("tolerance")
    ratio = _tolerance_ratio(written)
    if ratio is None or ratio < WIDE_TOLERANCE_RATIO or autoscaler.is_disabled(direction):
        return
    if direction == "scaleUp":
        effect = f"nothing is scaled up before the metric is {100 * (1 + ratio):g} % of its target"
    elif ratio < 1:
        effect = f"nothing is scaled down before the metric is {100 * (1 - ratio):g} % of its target"
    else:
        effect = "nothing is ever scaled down, not even at no load at all"
    yield about(
        autoscaler,
        f"spec.behavior.{direction}.tolerance",
        f"tolerance is a ratio, and {written} means {100 * ratio:g} %: {effect}",
        "write 0.1 for ten percent, and change the target itself where it is not meant",
    )


def _utilization_ranges(context: LintContext) -> Iterator[_UtilizationRange]:
    """The utilization targets whose highest value is known."""
    for autoscaler in context.autoscalers:
        workload = workloads.target_of(autoscaler, context)
        if workload is None or autoscaler.is_disabled("scaleUp"):
            continue
        stated_ratio = _tolerance_ratio(autoscaler.scaling_rules("scaleUp").get("tolerance"))
        ratio = settings.DEFAULT.tolerance if stated_ratio is None else stated_ratio
        for metric in autoscaler.metrics:
            target_pct = metric.target.get("averageUtilization")
            if not target_pct or not metric.resource:
                continue
            highest_pct = _highest_pct(workload, metric)
            if highest_pct is not None:
                limits_owner = f"container {metric.container}'s" if metric.container else "the containers'"
                yield _UtilizationRange(autoscaler, metric, target_pct, highest_pct, ratio, limits_owner)


def _highest_pct(workload: Workload, metric: LintedMetric) -> float | None:
    """The utilization with all measured containers at their limits; None if one has no limit, or no request."""
    if workload.has_pod_resources:
        return None
    containers = [container for container in workload.containers if metric.container in ("", container.name)]
    limits = [container.amount_milli("limits", metric.resource) for container in containers]
    requests = [container.amount_milli("requests", metric.resource) for container in containers]
    if None in limits or None in requests:
        return None
    requested = sum(amount or 0 for amount in requests)
    return 100 * sum(amount or 0 for amount in limits) / requested if requested > 0 else None


def _is_stated(autoscaler: LintedAutoscaler) -> bool:
    return autoscaler.scaling_rules("scaleUp").get("tolerance") is not None


def _tolerance_ratio(tolerance: str | None) -> float | None:
    return None if tolerance is None else quantity.parse(tolerance).approximate_float()
