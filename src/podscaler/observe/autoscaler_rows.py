"""Makes the rows of the list of autoscalers, of objects as informers cache them and of the decisions that are known.

Called by `podscaler.observe.live_cluster`. Values of metrics are those in the status, as kubectl shows them, so that a
row has them also where another controller decides. A new column: a field of `views.AutoscalerRow`, filled by `of`.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from podscaler.api.machinery import instants, quantity
from podscaler.api.typed.autoscaling import (
    HorizontalPodAutoscaler,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
)
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.observe import health
from podscaler.observe.decision_history import DecisionTrack
from podscaler.observe.sync_points import MILLI, MILLISECOND_NS, PERCENT
from podscaler.observe.views import AutoscalerRow, MetricView

SPARKLINE_MS = 30 * 60_000
SPARKLINE_POINTS = 30
UNKNOWN_TEXT = "<unknown>"
DEFAULT_MIN_REPLICAS = 1


def of(autoscaler: Autoscaler, track: DecisionTrack | None, *, now_ms: int, decided_by: str) -> AutoscalerRow:
    """The row of an autoscaler.

    Args:
        autoscaler: the object.
        track: its decisions; None if no decision is known, and the counts are those of the status.
        now_ms: for the sparkline.
        decided_by: the manager that wrote its status; empty if it is not known.
    """
    wire = autoscaler.wire
    latest = track.latest if track is not None else None
    carried_out_decision = latest.decision if latest is not None and latest.is_carried_out else None
    row_health = health.of(wire, carried_out_decision)
    # the newest counts of the track; without a track those of the status
    counts = {} if track is None else {name: track.columns.last(name) for name in ("replicas", "desired", "ready")}
    status = wire.status if wire.status.conditions else None
    replicas, desired = counts.get("replicas"), counts.get("desired")
    if replicas is None and status is not None:
        replicas = status.current_replicas
    if track is None and status is not None:  # a track without desired replicas has no conclusion
        desired = status.desired_replicas
    return AutoscalerRow(
        namespace=autoscaler.metadata.namespace,
        name=autoscaler.metadata.name,
        kind=autoscaler.kind.kind,
        state=row_health.state,
        severity=row_health.severity,
        reason=row_health.reason,
        target=f"{wire.spec.scale_target_ref.kind}/{wire.spec.scale_target_ref.name}",
        replicas=replicas,
        desired=desired,
        ready=counts.get("ready"),
        min=DEFAULT_MIN_REPLICAS if wire.spec.min_replicas is None else wire.spec.min_replicas,
        max=wire.spec.max_replicas,
        metrics=metrics(wire),
        last_scale_at=instant_ms(wire.status.last_scale_time),
        changed_at=None if track is None else track.changed_at,
        sparkline=() if track is None else track.columns.sampled(now_ms - SPARKLINE_MS, now_ms, SPARKLINE_POINTS),
        decided_by=decided_by,
    )


def as_object(autoscaler: Autoscaler) -> dict[str, Any]:
    """The cached object in JSON-ready form, with apiVersion and kind."""
    kind = autoscaler.kind
    obj: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(autoscaler.wire))
    return obj | {"apiVersion": kind.api_version, "kind": kind.kind}


def sort_key(row: AutoscalerRow) -> tuple[int, str, str]:
    """The key of a sort: the worst first, then by namespace and name."""
    return -row.severity, row.namespace, row.name


def instant_ms(text: str | None) -> int | None:
    """The instant of a timestamp of the API in ms; None if there is none, or it cannot be read."""
    try:
        return instants.parse(text) // MILLISECOND_NS if text else None
    except ValueError:
        return None


def metrics(wire: HorizontalPodAutoscaler) -> tuple[MetricView, ...]:
    """Each metric of the spec, with the value of the status that has its index and type."""
    reported = wire.status.current_metrics or ()
    return tuple([_metric_view(metric, reported, index) for index, metric in enumerate(wire.spec.metrics or ())])


def _metric_view(spec: MetricSpec, reported: Sequence[MetricStatus], index: int) -> MetricView:
    """The metric of the spec with that index; values that cannot be read are None, and `<unknown>` in the text."""
    name, target = _name_and_target(spec)
    status = reported[index] if index < len(reported) and reported[index].type == spec.type else None
    current = _current_value(status)
    if target.average_utilization is not None:
        utilization_pct = None if current is None else current.average_utilization
        current_text = UNKNOWN_TEXT if utilization_pct is None else f"{utilization_pct}%"
        return MetricView(
            name=name,
            type=spec.type,
            current=utilization_pct,
            target=target.average_utilization,
            unit=PERCENT,
            text=f"{current_text}/{target.average_utilization}%",
        )
    is_average = target.average_value is not None
    target_text = target.average_value if is_average else target.value
    current_quantity = None
    if current is not None:
        current_quantity = current.average_value if is_average else current.value
    # as kubectl, which marks averages of Object and External metrics; here those of Pods metrics are marked, too
    suffix = " (avg)" if is_average and spec.type not in ("Resource", "ContainerResource") else ""
    return MetricView(
        name=name,
        type=spec.type,
        current=_find_milli(current_quantity),
        target=_find_milli(target_text),
        unit=MILLI,
        text=f"{current_quantity or UNKNOWN_TEXT}/{target_text or UNKNOWN_TEXT}{suffix}",
    )


def _name_and_target(spec: MetricSpec) -> tuple[str, MetricTarget]:
    """The name as the timeline has it, and the target; empty ones for an unknown type."""
    if spec.resource is not None:
        return spec.resource.name, spec.resource.target
    if spec.container_resource is not None:
        source = spec.container_resource
        return f"{source.name} of container {source.container}", source.target
    if spec.pods is not None:
        return spec.pods.metric.name, spec.pods.target
    if spec.object is not None:
        described = spec.object.described_object
        return f"{spec.object.metric.name} of {described.kind}/{described.name}", spec.object.target
    if spec.external is not None:
        return spec.external.metric.name, spec.external.target
    return f"a metric of type {spec.type}", MetricTarget()


def _current_value(status: MetricStatus | None) -> MetricValueStatus | None:
    """The current value of the one source that a status has; None without a status or source."""
    if status is None:
        return None
    sources = (status.resource, status.container_resource, status.pods, status.object, status.external)
    return next((source.current for source in sources if source is not None), None)


def _find_milli(text: str | None) -> int | None:
    """The thousandths of a quantity; None if there is none, or it cannot be read."""
    try:
        return quantity.milli(text) if text else None
    except ValueError:
        return None
