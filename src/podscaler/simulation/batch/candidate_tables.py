"""Converts the specs of candidates to arrays of integers for the compiled functions.

Called by `podscaler.simulation.batch.batch_runs`. A spec that it cannot simulate raises `NotCovered`. A new field of a
spec: an obstacle in `check_spec`, or a column of `layout`, filled here and used by `decision_kernel`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from podscaler.core.calculation import calculation_types
from podscaler.core.limits import stabilization
from podscaler.core.model import failure_policy
from podscaler.core.model.metric_spec import (
    Average,
    ExternalMetric,
    Metric,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    Total,
    Utilization,
)
from podscaler.core.model.spec import Policy, Spec
from podscaler.simulation.batch import layout
from podscaler.simulation.batch.layout import Array
from podscaler.simulation.model.workloads import ContainerModel, WorkloadModel

_SPAN_MAX_NS = 1 << 61
_INT64_MAX = 2**63 - 1


class NotCovered(Exception):
    """The batch engine cannot simulate a scenario or a candidate; str() is the reason, in one sentence."""


class SpecTables(NamedTuple):
    """The candidates as arrays; `layout` states their fields.

    Attributes:
        event_slots: how many scale events a candidate keeps at most in each direction.
    """

    specs: Array
    tolerances: Array
    metrics: Array
    policies: Array
    event_slots: int


class MetricSources(NamedTuple):
    """What the metrics of candidates can refer to.

    Attributes:
        feeds: the row of the values of a metric, and whether pods share them, by metric and object (`Kind/name`, or
            empty for all objects).
    """

    workload: WorkloadModel
    feeds: Mapping[tuple[str, str], tuple[int, bool]]


def span_ns(span: int) -> int:
    """A span or window in ns, cut to what can be added to an instant without a wrap of 64 bits."""
    return max(-_SPAN_MAX_NS, min(span, _SPAN_MAX_NS))


def of_specs(
    candidates: Sequence[Spec], sources: MetricSources, settings: Any, syncs: int, sync_period_ms: int
) -> SpecTables:
    """The candidates as arrays, for a scenario with that many syncs. Raises NotCovered for the first that cannot be."""
    specs = np.zeros((len(candidates), layout.SPEC_FIELDS), np.int64)
    tolerances = np.zeros((len(candidates), 2), np.float64)
    metrics: list[list[int]] = []
    policies: list[tuple[int, int, int]] = []
    for row, tolerance, spec in zip(specs, tolerances, candidates, strict=True):
        check_spec(spec)
        spec_tolerance = calculation_types.tolerance(spec, settings)
        tolerance[:] = spec_tolerance.down, spec_tolerance.up
        row[layout.MIN_REPLICAS], row[layout.MAX_REPLICAS] = spec.min_replicas, spec.max_replicas
        row[layout.SCALES_ON_OTHERS] = spec.scales_on_others
        row[layout.DOWN_WINDOW_NS] = span_ns(settings.downscale_stabilization_ns)
        row[layout.METRICS] = len(metrics)
        metrics += [_metric_row(metric, spec, sources) for metric in spec.metrics]
        row[layout.END_OF_METRICS] = len(metrics)
        if spec.behavior is not None:
            _set_behavior(row, spec, settings, policies)
    longest_ns = int(specs[:, [layout.UP_LONGEST_NS, layout.DOWN_LONGEST_NS]].max(initial=0))
    return SpecTables(
        specs,
        tolerances,
        np.array(metrics, np.int64).reshape(-1, layout.METRIC_FIELDS),
        np.array(policies, np.int64).reshape(-1, layout.POLICY_FIELDS),
        event_slots=min(longest_ns // (sync_period_ms * layout.MS_NS), syncs) + 3,  # one a sync, and a margin
    )


def check_spec(spec: Spec) -> None:
    """Raises NotCovered for a spec that the batch engine cannot simulate, whatever its metrics."""
    if spec.failure_policy != failure_policy.NO_POLICY:
        raise NotCovered("a policy for metrics that cannot be read is not covered")
    if spec.target_fault:
        raise NotCovered("a target with an invalid apiVersion is not covered")


def _set_behavior(row: Array, spec: Spec, settings: Any, policies: list[tuple[int, int, int]]) -> None:
    """Set the fields of `specs` that depend on the behavior, and append the rows of its policies to `policies`."""
    behavior = spec.behavior
    assert behavior is not None
    down_ns, up_ns = stabilization.windows_ns(behavior, settings)
    row[layout.HAS_BEHAVIOR] = 1
    row[layout.DOWN_WINDOW_NS], row[layout.UP_WINDOW_NS] = span_ns(down_ns), span_ns(up_ns)
    row[layout.UP_SELECTION] = _SELECTIONS.get(behavior.up.select_policy, layout.SELECT_MAX)
    row[layout.DOWN_SELECTION] = _SELECTIONS.get(behavior.down.select_policy, layout.SELECT_MAX)
    row[layout.UP_LONGEST_NS] = span_ns(behavior.up.longest_period_ns)
    row[layout.DOWN_LONGEST_NS] = span_ns(behavior.down.longest_period_ns)
    row[layout.UP_POLICIES] = len(policies)
    policies += [_policy_row(policy) for policy in behavior.up.policies]
    row[layout.DOWN_POLICIES] = len(policies)
    policies += [_policy_row(policy) for policy in behavior.down.policies]
    row[layout.END_OF_POLICIES] = len(policies)


_SELECTIONS = {"Max": layout.SELECT_MAX, "Min": layout.SELECT_MIN, "Disabled": layout.SELECT_DISABLED}


def _policy_row(policy: Policy) -> tuple[int, int, int]:
    """The fields of a row of `policies`: IS_PODS, POLICY_VALUE, POLICY_PERIOD_NS."""
    return int(policy.type == "Pods"), policy.value, span_ns(policy.period_ns)


def _metric_row(metric: Metric, spec: Spec, sources: MetricSources) -> list[int]:
    """The row of `metrics` for one metric of a spec. Raises NotCovered."""
    row = [0] * layout.METRIC_FIELDS
    if metric.fault:
        raise NotCovered(f"an invalid metric is not covered: {metric.fault}")
    target = metric.target
    if isinstance(target, Utilization):
        row[layout.TARGET] = target.pct
    elif target is not None:
        row[layout.TARGET] = target.milli
    if isinstance(metric, ResourceMetric):
        _set_resource(row, metric, sources.workload)
    elif isinstance(metric, PodsMetric | ObjectMetric | ExternalMetric):
        _set_values(row, metric, spec, sources)
    if not -_INT64_MAX <= row[layout.TARGET] <= _INT64_MAX:
        raise NotCovered(f"the target of {metric.name} is beyond 64 bits")
    return row


def _set_resource(row: list[int], metric: ResourceMetric, workload: WorkloadModel) -> None:
    """Set the fields of `metrics` for a resource of all containers, or of one of them. Raises NotCovered."""
    if metric.resource not in ("cpu", "memory"):
        raise NotCovered(f"the resource {metric.resource} cannot be simulated; cpu and memory can")
    containers = workload.pod.containers
    first_container, end_container = 0, len(containers)
    if metric.container:
        chosen_indexes = [index for index, container in enumerate(containers) if container.name == metric.container]
        first_container, end_container = (chosen_indexes[0], chosen_indexes[0] + 1) if chosen_indexes else (0, 0)
    request = find_request_milli(containers[first_container:end_container], metric.resource)
    row[layout.KIND] = layout.UTILIZATION if isinstance(metric.target, Utilization) else layout.RESOURCE_AVERAGE
    row[layout.IS_CPU] = int(metric.resource == "cpu")
    row[layout.FIRST_CONTAINER], row[layout.END_OF_CONTAINERS] = first_container, end_container
    row[layout.HAS_REQUEST], row[layout.REQUEST] = int(request is not None), request or 0


def find_request_milli(containers: Sequence[ContainerModel], resource: str) -> int | None:
    """The sum of the requests in thousandths; None if a container has none, or there is no container."""
    requests = [container.requests_milli.get(resource) for container in containers]
    stated_requests = [request for request in requests if request is not None]
    return sum(stated_requests) if requests and len(stated_requests) == len(requests) else None


def _set_values(
    row: list[int], metric: PodsMetric | ObjectMetric | ExternalMetric, spec: Spec, sources: MetricSources
) -> None:
    """Set the fields of `metrics` for a metric with values of a feed, or of the requests. Raises NotCovered."""
    name, request_load = metric.identifier.name, sources.workload.requests
    feed = sources.feeds.get((name, metric.subject)) or sources.feeds.get((name, ""))
    if feed is not None:
        feed_row, is_shared = feed
        row[layout.FEED], row[layout.IS_SHARED] = feed_row, int(is_shared)
    else:
        load_metric = None
        if request_load is not None:
            load_metric = request_load.rate_metric if isinstance(metric, PodsMetric) else request_load.queue_metric
        if load_metric != name:
            raise NotCovered(f"{spec.key}: the scenario has no values of the metric {name}")
        row[layout.FEED], row[layout.IS_SHARED] = -1, 1
    if isinstance(metric, PodsMetric):
        row[layout.KIND] = layout.PODS_AVERAGE
    elif isinstance(metric.target, Total):
        row[layout.KIND] = layout.TOTAL
    else:
        assert isinstance(metric.target, Average)
        row[layout.KIND] = layout.OBJECT_AVERAGE if isinstance(metric, ObjectMetric) else layout.EXTERNAL_AVERAGE
