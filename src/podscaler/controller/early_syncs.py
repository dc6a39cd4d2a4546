"""Syncs autoscalers before their period ends when their usage has changed (`--react-to-changes`).

`podscaler.controller.assembly` runs the Reactor. Rules:

1. Every tick (`ControllerSettings.tick_s`) the resource metrics of each namespace with autoscalers are listed once; the
   syncs that follow use the same list.
2. An autoscaler is synced early if the total usage of its target's pods, of a resource that it scales on, differs by
   more than SHARE_OF_TOLERANCE of the tolerance from what it was at its last early sync, or a period ago. Totals,
   because a change of replicas alone changes averages and not totals.
3. Custom and external metrics are not checked between syncs: their queries are what a sync costs. A further kind of
   metrics: a filter beside `_resource_metrics`, and its totals in `_find_totals`.

It costs a list for each namespace and tick, and the early syncs. Differs: upstream waits for the period.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from podscaler.api.machinery import selectors
from podscaler.api.typed.metrics import PodMetrics, PodMetricsList
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.reconcile.observer import SyncSources
from podscaler.core.calculation import samples
from podscaler.core.model.metric_spec import ResourceMetric
from podscaler.kube.informers.cache import Key
from podscaler.metrics.queries import ResourceMetricsQuery

log = logging.getLogger(__name__)

SHARE_OF_TOLERANCE = 0.5

Totals = tuple[int, ...]
"""The usage of a target's pods, in thousandths, for each resource metric of its autoscaler."""


class Reactor:
    """Queues autoscalers whose usage has changed before their period ends, by the module's rules.

    Args:
        sources: the metrics and the pods that syncs use.
        states: has the selectors of targets.
        settings: the interval (`tick_s`), the sync period and the tolerance.
    """

    def __init__(
        self, sources: SyncSources, states: AutoscalerStates, clock: Clock, settings: ControllerSettings
    ) -> None:
        self._metrics = sources.metrics
        self._pods = sources.pods
        self._states = states
        self._clock = clock
        self._interval_s = settings.tick_s
        self._period_s = settings.sync_period_s
        self._change_ratio_max = settings.tolerance * SHARE_OF_TOLERANCE
        self._rules = settings.decision.emulation
        self._baselines: dict[Key, tuple[float, Totals]] = {}
        """For each autoscaler: when its usage was last kept to compare with (monotonic seconds), and that usage."""

    async def run(
        self, list_autoscalers: Callable[[], Iterable[Autoscaler]], queue_sync: Callable[[Key], None]
    ) -> None:
        """Call `queue_sync` with the keys of the listed autoscalers whose usage has changed, until cancelled."""
        while True:
            await self._clock.sleep(self._interval_s)
            by_namespace: dict[str, list[Autoscaler]] = {}
            for autoscaler in list_autoscalers():
                if any(isinstance(metric, ResourceMetric) for metric in autoscaler.spec.metrics):
                    by_namespace.setdefault(autoscaler.metadata.namespace, []).append(autoscaler)
            for namespace, group in by_namespace.items():
                await self._queue_changed(namespace, group, queue_sync)
            self._forget_others({autoscaler.key for group in by_namespace.values() for autoscaler in group})

    async def _queue_changed(
        self, namespace: str, autoscalers: Sequence[Autoscaler], queue_sync: Callable[[Key], None]
    ) -> None:
        """Call `queue_sync` for those autoscalers of one namespace whose usage has changed; an API error skips all."""
        try:
            pod_metrics = await self._metrics.query(ResourceMetricsQuery(namespace, selectors.EVERYTHING))
        except StatusError as error:
            log.debug("changes of usage in %s cannot be detected: %s", namespace, error)
            return
        metrics_by_pod = {metrics_of_pod.metadata.name: metrics_of_pod for metrics_of_pod in pod_metrics.items or ()}
        for autoscaler in autoscalers:
            if self._has_changed(autoscaler, metrics_by_pod):
                queue_sync(autoscaler.key)

    def _has_changed(self, autoscaler: Autoscaler, metrics_by_pod: dict[str, PodMetrics]) -> bool:
        """Whether the usage has changed (rule 2); a changed usage becomes the one to compare with."""
        key, now_s = autoscaler.key, self._clock.monotonic_s()
        totals = self._find_totals(autoscaler, metrics_by_pod)
        if totals is None:
            return False
        baseline = self._baselines.get(key)
        if baseline is None:
            self._baselines[key] = (now_s, totals)
            return False
        baseline_at_s, baseline_totals = baseline
        has_changed = self._differ(baseline_totals, totals)
        is_outdated = len(baseline_totals) != len(totals) or now_s - baseline_at_s >= self._period_s
        if has_changed or is_outdated:
            self._baselines[key] = (now_s, totals)
        return has_changed

    def _differ(self, before: Totals, after: Totals) -> bool:
        """Whether the total of a resource changed by more than the share of the tolerance (rule 2)."""
        # not strict: of a spec that was edited since there may be more or fewer totals
        return any(abs(new - old) > self._change_ratio_max * old for old, new in zip(before, after, strict=False))

    def _find_totals(self, autoscaler: Autoscaler, metrics_by_pod: dict[str, PodMetrics]) -> Totals | None:
        """The usage now, from the metrics of the namespace's pods by name; None if it is unknown or cannot be read."""
        selector = self._states.of(autoscaler.key).selector
        if selector is None:
            return None  # no sync has read the target yet
        pods = self._pods.select(autoscaler.metadata.namespace, selector)
        metrics_of_pods = tuple(
            [metrics_by_pod[pod.metadata.name] for pod in pods if pod.metadata.name in metrics_by_pod]
        )
        try:
            return tuple(
                self._usage_milli(PodMetricsList(items=metrics_of_pods), metric)
                for metric in _resource_metrics(autoscaler)
            )
        except ValueError:
            return None  # the sync reports an invalid number

    def _usage_milli(self, usage: PodMetricsList, metric: ResourceMetric) -> int:
        """The usage of one resource, summed over the pods, in thousandths."""
        pod_samples = samples.of_resource(usage, metric.resource, metric.container, self._rules).samples
        return sum(sample.value_milli for sample in pod_samples.values())

    def _forget_others(self, keys: set[Key]) -> None:
        """Drop the totals of all autoscalers but those of `keys`."""
        for key in self._baselines.keys() - keys:
            del self._baselines[key]


def _resource_metrics(autoscaler: Autoscaler) -> Iterable[ResourceMetric]:
    return (metric for metric in autoscaler.spec.metrics if isinstance(metric, ResourceMetric))
