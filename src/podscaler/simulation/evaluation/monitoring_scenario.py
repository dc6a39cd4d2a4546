"""Makes a scenario out of series of Prometheus: what kube-state-metrics and cAdvisor export of a workload.

Called by `podscaler.cli.backtest.prometheus_source` with the results of range queries at one step. The spec of the
autoscaler is a manifest, since these series have no behavior. What they do not have is assumed, and
`RecordedWorkload.assumptions` states it. A new query: an attribute of MonitoredSeries, and an item of DEFAULT_QUERIES.
"""

import bisect
import math
from collections.abc import Mapping, Sequence

import msgspec

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.core.model.metric_spec import ResourceMetric
from podscaler.core.model.spec import Spec
from podscaler.simulation.evaluation import demand_reconstruction
from podscaler.simulation.evaluation.demand_reconstruction import AT_LIMIT_RATIO, UsageObservation
from podscaler.simulation.evaluation.recording_scenario import RecordedWorkload
from podscaler.simulation.model.scenario import AutoscalerModel, SimulationScenario
from podscaler.simulation.model.workloads import ContainerModel, PodModel, ResourceLoad, WorkloadModel

USAGE_WINDOW_MS = 60_000
"""The window of the rates in the default queries: a value is the average of the minute before it."""

Series = Sequence[tuple[float, float]]
"""Points in order of time: seconds since the epoch, and a value, which is NaN where it is missing."""


class MonitoredSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the queries.

    Attributes:
        usage: the CPU of all pods, in cores.
        hottest: the CPU of the pod that uses most, in cores.
        ready, replicas: numbers of pods.
        requests: the CPU request of a pod, in cores.
        limits: the CPU limit of a pod, in cores; empty if the pods have none.
    """

    usage: Series
    hottest: Series
    ready: Series
    replicas: Series
    requests: Series
    limits: Series = ()


def recorded_workload(series: MonitoredSeries, spec: Spec, wire: HorizontalPodAutoscalerSpec) -> RecordedWorkload:
    """The workload of an autoscaler. Raises UsageError if the spec or the values cannot be used.

    Args:
        series: of its pods; all but `limits` have at least one value.
        spec, wire: the autoscaler's spec, parsed and in the API's form.
    """
    for metric in spec.metrics:
        if not isinstance(metric, ResourceMetric) or metric.resource != "cpu" or metric.container:
            raise UsageError(
                f"{spec.key}: the metric {metric.name} is not read from a monitoring system; only the "
                "resource cpu of whole pods is"
            )
    limit_milli = round(_last_value(series.limits) * 1000) if series.limits else None
    observations = _observations(series, limit_milli)
    if not observations:
        raise UsageError(f"{spec.key}: the query of usage has no value")
    end_ms = observations[-1].at_ms + USAGE_WINDOW_MS
    reconstruction = demand_reconstruction.reconstruct(observations, end_ms)
    kind, _, name = spec.reference.split("/", 2)  # Kind/namespace/name
    _, initial_replicas = series.replicas[0]
    container_model = ContainerModel(
        name="all", requests_milli={"cpu": round(_last_value(series.requests) * 1000)}, cpu_limit_milli=limit_milli
    )
    workload_model = WorkloadModel(
        key=f"{spec.namespace}/{name}",
        kind=kind,
        replicas=round(initial_replicas),
        pod=PodModel(containers=(container_model,)),
        demands=(ResourceLoad(resource="cpu", total=reconstruction.demand),),
    )
    scenario = SimulationScenario(
        workloads=(workload_model,),
        autoscalers=(AutoscalerModel(spec=spec, workload=workload_model.key),),
        duration_ms=end_ms - reconstruction.start_ms,
        start_ns=reconstruction.start_ms // 1000 * 1_000_000_000,  # a whole second
    )
    return RecordedWorkload(
        scenario=scenario,
        wire=wire,
        reconstruction=reconstruction,
        assumptions=(*_assumptions(limit_milli), *reconstruction.sentences()),
    )


def _last_value(series: Series) -> float:
    """The value of the last point of a series that is not empty."""
    _, last_value = series[-1]
    return last_value


def _observations(series: MonitoredSeries, limit_milli: int | None) -> list[UsageObservation]:
    """An observation for each value of usage; the other series count with their value at or before it.

    Raises UsageError for usage that is negative or infinite.
    """
    hottest_series, ready_series = _SeriesByInstant(series.hottest), _SeriesByInstant(series.ready)
    observations = []
    for at_s, cores in series.usage:
        if math.isnan(cores):
            continue
        if cores < 0 or math.isinf(cores):
            raise UsageError(
                f"the query of usage has the value {cores:g} at {demand_reconstruction.utc_text(round(at_s * 1000))}"
            )
        ready_pods = round(ready_series.value_at(at_s))
        is_limited = limit_milli is not None and hottest_series.value_at(at_s) * 1000 >= AT_LIMIT_RATIO * limit_milli
        observations.append(
            UsageObservation(
                at_ms=round(at_s * 1000) - USAGE_WINDOW_MS,
                used_milli=math.ceil(cores * 1000),
                measured=ready_pods,  # the series do not say which pods have no usage
                ready=ready_pods,
                limited=int(is_limited),
            )
        )
    return observations


class _SeriesByInstant:
    """The values of a series by instant, without those that are missing."""

    def __init__(self, series: Series) -> None:
        defined_points = [(at_s, value) for at_s, value in series if not math.isnan(value)]
        self._at_s = [at_s for at_s, _ in defined_points]
        self._values = [value for _, value in defined_points]

    def value_at(self, at_s: float) -> float:
        """The last value until then, or else the first one; 0 if there is none."""
        if not self._values:
            return 0.0
        return self._values[max(bisect.bisect_right(self._at_s, at_s) - 1, 0)]


def _assumptions(limit_milli: int | None) -> list[str]:
    """Sentences about what the series lack, and what is assumed in its place."""
    sentences = ["A pod is assumed to be ready after 7 s, and samples to be those of metrics-server with its defaults."]
    if limit_milli is None:
        sentences.append("The query of limits has no series, so no pod is limited.")
    return sentences


_PODS = 'namespace="$NAMESPACE",pod=~"$NAME-[a-z0-9]+(-[a-z0-9]{5})?"'
_RATE = f'rate(container_cpu_usage_seconds_total{{{_PODS},container!=""}}[1m])'

DEFAULT_QUERIES: Mapping[str, str] = {
    "usage": f"sum({_RATE})",
    "hottest": f"max(sum by (pod) ({_RATE}))",
    "ready": f'sum(kube_pod_status_ready{{{_PODS},condition="true"}})',
    "replicas": f"count(kube_pod_info{{{_PODS}}})",
    "requests": f'max(sum by (pod) (kube_pod_container_resource_requests{{{_PODS},resource="cpu"}}))',
    "limits": f'max(sum by (pod) (kube_pod_container_resource_limits{{{_PODS},resource="cpu"}}))',
}
"""PromQL for each attribute of MonitoredSeries; $NAMESPACE and $NAME are those of the workload.

The names of pods are those of Deployments and StatefulSets.
"""
OPTIONAL_QUERIES = frozenset({"limits"})
"""The queries that may have no series: the pods have no limits."""
