"""Lint rules about metrics that act otherwise than intended: PSL006 totals, PSL020 memory alone, PSL025 resources.

`podscaler.lint.rulebook` lists the rules, and says where a new one goes.

Source: docs/spec/decision.md 6.5 (Object, Value target) to 6.8 (External, AverageValue target): a Value is compared as
it is and multiplies the current replicas, an AverageValue is divided by them first.
"""

import difflib
import re
from collections.abc import Iterator

from podscaler.lint.model.findings import RuleFinding, Severity, about, rule
from podscaler.lint.model.lint_context import LintContext, LintedAutoscaler, LintedMetric

_WORDS_OF_TOTALS = """
total count qps rps rate queue queued messages jobs tasks backlog lag depth pending waiting connections sessions
requests
"""
_WORDS_OF_OTHER_METRICS = """
ratio percent pct percentage utilization usage seconds milliseconds ms latency duration time p50 p90 p95 p99 quantile
avg average mean per age errors error oldest
"""
MEASURED_RESOURCES = ("cpu", "memory")
"""The resources that metrics-server, and any other server of metrics.k8s.io by its documentation, reports."""
_RESOURCES_BY_OTHER_NAME = {"ram": "memory", "mem": "memory", "cores": "cpu", "processor": "cpu"}
_RATE = re.compile(r"per_(second|minute)")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


@rule("PSL006", "value-of-a-total", Severity.WARNING, "A metric that looks like a total has a target of type Value.")
def value_of_a_total(context: LintContext) -> Iterator[RuleFinding]:
    """PSL006: a total over all pods that is compared with a target for the whole, not for each pod."""
    for autoscaler in context.autoscalers:
        for metric in autoscaler.metrics:
            if (
                metric.type in ("Object", "External")
                and metric.target.get("type") == "Value"
                and _is_total(metric.name)
            ):
                yield _total_finding(autoscaler, metric)


def _is_total(name: str) -> bool:
    """Whether a name means a count over all pods: `queue_depth` and `qps` do, `queue_age_seconds` does not."""
    name_words = {word.lower() for word in _WORD.findall(_RATE.sub("rate", name))}
    return bool(name_words & set(_WORDS_OF_TOTALS.split())) and not name_words & set(_WORDS_OF_OTHER_METRICS.split())


def _total_finding(autoscaler: LintedAutoscaler, metric: LintedMetric) -> RuleFinding:
    """The finding for a metric whose name looks like that of a total."""
    target_text = metric.target.get("value", "")
    return about(
        autoscaler,
        f"{metric.path}.target.type",
        f"{metric.name} looks like a total over all pods, and target type Value compares it as it is: while it is "
        f"above {target_text}, every sync multiplies the replicas again, up to maxReplicas",
        "use target type AverageValue with what one pod can take, if it is a total",
    )


@rule("PSL020", "memory-only", Severity.INFO, "Memory is the only metric.")
def memory_only(context: LintContext) -> Iterator[RuleFinding]:
    """PSL020: memory as the only metric."""
    for autoscaler in context.autoscalers:
        if autoscaler.metrics and all(metric.resource == "memory" for metric in autoscaler.metrics):
            yield about(
                autoscaler,
                "spec.metrics",
                "memory is the only metric: many programs keep memory that they once had, so that nothing is ever "
                "scaled down, and more pods do not make the others smaller",
                "add cpu or a metric of the load, or make sure that the program returns memory",
            )


@rule(
    "PSL025",
    "unknown-resource",
    Severity.ERROR,
    "A resource metric names a resource that the resource metrics API does not measure.",
)
def unknown_resource(context: LintContext) -> Iterator[RuleFinding]:
    """PSL025: a resource that the resource metrics API does not measure."""
    for autoscaler in context.autoscalers:
        for metric in autoscaler.metrics:
            if metric.resource and metric.resource not in MEASURED_RESOURCES:
                yield about(
                    autoscaler,
                    f"{metric.path}.name",
                    f"the resource metrics API measures {' and '.join(MEASURED_RESOURCES)}, and no {metric.resource}: "
                    "the metric fails at every sync",
                    _resource_fix(metric.resource),
                )


def _resource_fix(resource: str) -> str:
    """What to write in place of an unknown resource."""
    resources_by_name = {name: name for name in MEASURED_RESOURCES} | _RESOURCES_BY_OTHER_NAME
    similar_names = difflib.get_close_matches(resource.lower(), resources_by_name, n=1)
    return (
        f"write {resources_by_name[similar_names[0]]}"
        if similar_names
        else "use a metric of type Pods, Object or External for anything else"
    )
