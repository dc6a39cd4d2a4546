"""Provides what the metrics APIs return in a simulation: samples of resources, and values of other metrics.

Called by `podscaler.simulation.engine` for each metric of a sync; `podscaler.simulation.files.scenario_file` makes a
MetricFeeds to check a scenario. Values come from the feeds of the scenario, from the load of the workload, or from
`podscaler.simulation.world.sampling`.
"""

from podscaler.core.model.metric_spec import ExternalMetric, Metric, ObjectMetric, PodsMetric, ResourceMetric
from podscaler.core.model.observation import Failure, Measurement, PodSamples, Sample, Values
from podscaler.core.model.spec import Spec
from podscaler.simulation.model.scenario import (
    OUTAGE_MESSAGE,
    MetricFeed,
    MetricsOutage,
    SimulationScenario,
    SpecEdit,
)
from podscaler.simulation.world.pods import MS_NS
from podscaler.simulation.world.sampling import SampledResource
from podscaler.simulation.world.workload import VirtualWorkload


class MetricFeeds:
    """The values of all metrics of a scenario. A new type of metric: a case in `measurement` and `_check_metric`.

    Raises ValueError if an autoscaler uses a metric that the scenario has no values of.
    """

    def __init__(self, scenario: SimulationScenario) -> None:
        self._scenario = scenario
        self._feeds = {(feed.metric, feed.object_name): feed for feed in scenario.feeds}
        workload_models = scenario.workloads
        request_loads = {model.key: model.requests for model in workload_models if model.requests is not None}
        self._rate_metrics = {(key, load.rate_metric) for key, load in request_loads.items()}
        self._queue_metrics = {(key, load.queue_metric) for key, load in request_loads.items()}
        for spec, workload in self._specs_with_workloads():
            for metric in spec.metrics:
                self._check_metric(spec, metric, workload)

    def sampled_resources(self, workload: str) -> set[SampledResource]:
        """The resources that autoscalers of a workload (`namespace/name`) use."""
        return {
            (metric.resource, metric.container)
            for spec, key in self._specs_with_workloads()
            if key == workload
            for metric in spec.metrics
            if isinstance(metric, ResourceMetric)
        }

    def measurement(self, metric: Metric, workload: VirtualWorkload, at_ms: int) -> Measurement | None:
        """The measurement of a metric at an instant; None if the metric's own error needs no query."""
        if self._scenario.outages and self._has_outage(_metric_name(metric), at_ms):
            return Failure(OUTAGE_MESSAGE)
        match metric:
            case ResourceMetric(resource=resource, container=container):
                return workload.sampling.published((resource, container))
            case PodsMetric():
                return self._sample_pods(metric, workload, at_ms)
            case ObjectMetric() | ExternalMetric():
                return self._read_value(metric, workload, at_ms)
            case _:
                return None

    def _specs_with_workloads(self) -> list[tuple[Spec, str]]:
        """All specs that ever apply, each with the key of its workload."""
        specs = [(autoscaler.spec, autoscaler.workload) for autoscaler in self._scenario.autoscalers]
        workloads = {spec.key: workload for spec, workload in specs}
        edits = [event.spec for event in self._scenario.events if isinstance(event, SpecEdit)]
        return [*specs, *((spec, workloads[spec.key]) for spec in edits if spec.key in workloads)]

    def _check_metric(self, spec: Spec, metric: Metric, workload: str) -> None:
        """Raise ValueError if the scenario has no values for a metric."""
        if isinstance(metric, PodsMetric | ObjectMetric | ExternalMetric):
            name = metric.identifier.name
            load_metrics = self._rate_metrics if isinstance(metric, PodsMetric) else self._queue_metrics
            if (workload, name) not in load_metrics and self._find_feed(metric) is None:
                raise ValueError(f"{spec.key}: the scenario has no values of the metric {name}")
        elif isinstance(metric, ResourceMetric) and metric.resource not in {"cpu", "memory"}:
            raise ValueError(f"{spec.key}: the resource {metric.resource} cannot be simulated; cpu and memory can")

    def _find_feed(self, metric: PodsMetric | ObjectMetric | ExternalMetric) -> MetricFeed | None:
        """The feed of the metric's object, or else that of all objects; None: the load of a workload has the values."""
        name, subject = metric.identifier.name, metric.subject
        return self._feeds.get((name, subject)) or self._feeds.get((name, ""))

    def _has_outage(self, name: str, at_ms: int) -> bool:
        return any(_applies(outage, name, at_ms) for outage in self._scenario.outages)

    def _sample_pods(self, metric: PodsMetric, workload: VirtualWorkload, at_ms: int) -> PodSamples:
        """The sample of each running pod: its share of a total (0 while it is not ready), or the same value for all."""
        running = workload.running
        feed = self._find_feed(metric)
        total_milli = workload.serving.rate_milli if feed is None else feed.values.value_at(at_ms - feed.lag_ms)
        if feed is None or feed.sharing == "shared":
            milli_of_ready, milli_of_others = total_milli // max(workload.ready, 1), 0
        else:
            milli_of_ready = milli_of_others = total_milli
        taken_at_ns = self._scenario.start_ns + at_ms // 1000 * 1000 * MS_NS
        ready_sample, other_sample = Sample(milli_of_ready, taken_at_ns), Sample(milli_of_others, taken_at_ns)
        samples = {pod.name: ready_sample if pod.is_ready else other_sample for pod in running}
        return PodSamples(samples, is_empty=not samples)

    def _read_value(self, metric: ObjectMetric | ExternalMetric, workload: VirtualWorkload, at_ms: int) -> Values:
        """The value of the feed, or the number of requests that wait, in thousandths."""
        feed = self._find_feed(metric)
        if feed is not None:
            return Values((feed.values.value_at(at_ms - feed.lag_ms),))
        return Values((workload.serving.waiting_milli,))


def _metric_name(metric: Metric) -> str:
    """The name of the metric or resource; empty for other types."""
    match metric:
        case ResourceMetric(resource=resource):
            return resource
        case PodsMetric() | ObjectMetric() | ExternalMetric():
            return metric.identifier.name
        case _:
            return ""


def _applies(outage: MetricsOutage, name: str, at_ms: int) -> bool:
    return outage.at_ms <= at_ms < outage.until_ms and outage.metric in ("", name)
