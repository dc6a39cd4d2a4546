"""The table that `kubectl get hpa` prints: `web  Deployment/web  cpu: 40%/80%  1  10  3  5d`.

PRINTER is part of the record in `hpa`.

Source: docs/spec/api.md 7 (Table output).
"""

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


def _cells(hpa: Object, _now_ns: int) -> list[Any]:
    """The cells between name and age of an autoscaler in v2."""
    spec, status = hpa.get("spec") or {}, hpa.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    lowest = spec.get("minReplicas")
    return [
        f"{target.get('kind', '')}/{target.get('name', '')}",
        targets(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if lowest is None else str(lowest),
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


def targets(metrics: list[Object], current: list[Object]) -> str:
    """The TARGETS cell: `current/target` of at most two metrics, matched with the status by position."""
    if not metrics:
        return printing.NONE
    texts = [_metric_text(metric, current[i] if i < len(current) else {}) for i, metric in enumerate(metrics)]
    visible_texts = ", ".join(texts[:_METRICS_SHOWN])
    return f"{visible_texts} + {len(texts) - _METRICS_SHOWN} more..." if len(texts) > _METRICS_SHOWN else visible_texts


def _metric_text(metric: Object, current: Object) -> str:
    """The column TARGETS of one metric: `cpu: 45%/60%`, `12/10 (avg)`."""
    kind = metric.get("type", "")
    if kind not in _SOURCES:
        return "<unknown type>"
    source = metric.get(_SOURCES[kind]) or {}
    source_status = current.get(_SOURCES[kind])
    current_value = None if source_status is None else source_status.get("current") or {}
    target = source.get("target") or {}
    if kind in ("External", "Object"):
        return _value_text(target, current_value)
    if kind == "Pods":
        return f"{_current_text(current_value, 'averageValue')}/{target.get('averageValue', '<nil>')}"
    return f"{source.get('name', '')}: {_resource_text(target, current_value)}"


def _value_text(target: Object, current_value: Object | None) -> str:
    if "averageValue" in target:
        return f"{_current_text(current_value, 'averageValue')}/{target['averageValue']} (avg)"
    current_text = printing.UNKNOWN if current_value is None else current_value.get("value", "<nil>")
    return f"{current_text}/{target.get('value', '<nil>')}"


def _resource_text(target: Object, current_value: Object | None) -> str:
    """The current value and the target of a resource: `45%/60%` or `120Mi/100Mi`."""
    if "averageValue" in target:
        return f"{_current_text(current_value, 'averageValue')}/{target['averageValue']}"
    share = (current_value or {}).get("averageUtilization")
    current_text = printing.UNKNOWN if share is None else f"{share}%"
    target_pct = target.get("averageUtilization")
    return f"{current_text}/{'<auto>' if target_pct is None else f'{target_pct}%'}"


def _current_text(current_value: Object | None, key: str) -> str:
    return str((current_value or {}).get(key, printing.UNKNOWN))
