"""The table that `kubectl get hpa` prints: `web  Deployment/web  cpu: 40%/80%  1  10  3  5d`.

PRINTER is part of `hpa.RESOURCE`; `podscaler.cli.diagnosis.list_autoscalers` shows `targets`, too. A new column: in
PRINTER and in `_cells`, in the same order. A new type of metric: _SOURCES and `_metric_text`.

Source: docs/spec/api.md 7 (Table output).
"""

from itertools import zip_longest
from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.resource import tables
from podscaler.api.resource.resources import Column, Object

_METRICS_SHOWN = 2
_SOURCES = {
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""Type of a metric -> its field with the source."""


def _cells(hpa: Object, _now_ns: int) -> list[Any]:
    """The cells between name and age of an autoscaler in v2."""
    spec, status = hpa.get("spec") or {}, hpa.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    min_replicas = spec.get("minReplicas")
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if min_replicas is None else str(min_replicas),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
    ]


PRINTER = tables.named(
    "autoscaler",
    Column("Reference", description="The object whose replicas are scaled."),
    Column("Targets", description="Current value and target of each metric."),
    Column("MinPods", description="Lower limit of the number of replicas."),
    Column("MaxPods", description="Upper limit of the number of replicas."),
    Column("Replicas", description="Number of replicas last seen by the autoscaler."),
    cells=_cells,
)


def targets(metrics: list[Object], current_metrics: list[Object]) -> str:
    """The TARGETS cell: `current/target` of at most two metrics.

    Args:
        metrics: `spec.metrics`.
        current_metrics: `status.currentMetrics`, matched with `metrics` by position; it may be shorter.
    """
    if not metrics:
        return printing.NONE
    metric_texts = [
        _metric_text(metric, current or {}) for metric, current in zip_longest(metrics, current_metrics[: len(metrics)])
    ]
    shown_text = ", ".join(metric_texts[:_METRICS_SHOWN])
    hidden_count = len(metric_texts) - _METRICS_SHOWN
    return f"{shown_text} + {hidden_count} more..." if hidden_count > 0 else shown_text


def _metric_text(metric: Object, current: Object) -> str:
    """The text of one metric: `cpu: 45%/60%`, `12/10 (avg)`.

    Args:
        metric: an item of `spec.metrics`.
        current: the item of `status.currentMetrics` at its position; empty without one.
    """
    metric_type = metric.get("type", "")
    if metric_type not in _SOURCES:
        return "<unknown type>"
    source = metric.get(_SOURCES[metric_type]) or {}
    source_status = current.get(_SOURCES[metric_type])
    current_amounts = None if source_status is None else source_status.get("current") or {}
    target = source.get("target") or {}
    if metric_type in ("External", "Object"):
        return _value_text(target, current_amounts)
    if metric_type == "Pods":
        return f"{_current_text(current_amounts, 'averageValue')}/{target.get('averageValue', '<nil>')}"
    return f"{source.get('name', '')}: {_resource_text(target, current_amounts)}"


def _value_text(target: Object, current_amounts: Object | None) -> str:
    """Current amount and target of an Object or External metric; `current_amounts` is None before the first value."""
    if "averageValue" in target:
        return f"{_current_text(current_amounts, 'averageValue')}/{target['averageValue']} (avg)"
    current_text = printing.UNKNOWN if current_amounts is None else current_amounts.get("value", "<nil>")
    return f"{current_text}/{target.get('value', '<nil>')}"


def _resource_text(target: Object, current_amounts: Object | None) -> str:
    """Current amount and target of a resource: `45%/60%` or `120Mi/100Mi`."""
    if "averageValue" in target:
        return f"{_current_text(current_amounts, 'averageValue')}/{target['averageValue']}"
    current_pct = (current_amounts or {}).get("averageUtilization")
    current_text = printing.UNKNOWN if current_pct is None else f"{current_pct}%"
    target_pct = target.get("averageUtilization")
    return f"{current_text}/{'<auto>' if target_pct is None else f'{target_pct}%'}"


def _current_text(current_amounts: Object | None, field: str) -> str:
    """The amount in `field` of a metric's `current`, `<unknown>` without one."""
    return str((current_amounts or {}).get(field, printing.UNKNOWN))
