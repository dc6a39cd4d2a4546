"""Reads what one sync decides by: the target's scale, its pods, and the metrics that the decision needs.

The reconciler and `podscaler.cli.explain.explain_cluster` call `Observer.observe`, which makes two Observations, the
inputs of `podscaler.core.decide`: one without metrics, by which `decide.needed_metrics` says which metrics to query,
and one with their results. The last one is returned in an ObservedSync, with the objects that it was made from.
Pods come from the cache; the scale and each metric may cost a request. `podscaler.core` decides how autoscalers with
the same target or pods conflict; `AutoscalerStates` keeps their selectors. A new input of decisions: a field of
Observation that `_make_observation` sets, and of the recording (`podscaler.controller.recording.recording`).

Source: docs/spec/decision.md 2 (Reconcile in order, steps 1 to 10), 3.1 (Selector checks), 7 (Metrics client).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controller.informers.observed_objects import Autoscaler, CachedPod
from podscaler.controller.informers.scale_client import ScaleClient, ScaleTarget
from podscaler.controller.reconcile.autoscaler_state import AutoscalerStates
from podscaler.controller.recording.observed_sync import ObservedSync
from podscaler.core import decide
from podscaler.core.model import api_conversion
from podscaler.core.model.metric_spec import Metric
from podscaler.core.model.observation import Failure, Measurement, Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.kube.informers.cache import Cache, Key
from podscaler.metrics import metric_fetching
from podscaler.metrics.metric_fetching import FetchedMetric
from podscaler.metrics.queries import MetricsSource


@dataclass(frozen=True, slots=True)
class SyncSources:
    """What an Observer reads from.

    Attributes:
        targets: reads the scales of targets.
        pods: the cache of all pods.
        metrics: reads the metrics APIs.
        find_conflicting: returns the keys of the autoscalers of other controllers that scale the same target.
    """

    targets: ScaleClient
    pods: Cache[CachedPod]
    metrics: MetricsSource
    find_conflicting: Callable[[Autoscaler], Iterable[Key]]


class Observer:
    """Reads the inputs of decisions, and notes in the states which autoscalers have the same target.

    Args:
        sources: what it reads from.
        states: of all autoscalers: their selectors, and whether the watch has them.
        clock: for the durations of queries.
        settings: the settings of decisions.
    """

    def __init__(self, sources: SyncSources, states: AutoscalerStates, clock: Clock, settings: Settings) -> None:
        self._targets = sources.targets
        self._pods = sources.pods
        self._metrics = sources.metrics
        self._find_conflicting = sources.find_conflicting
        self._states = states
        self._clock = clock
        self._settings = settings

    async def observe(self, autoscaler: Autoscaler) -> ObservedSync:
        """What the decision of one sync reads; failed requests are in it as a `Failure`, and none is raised."""
        target, scale = await self._read_target(autoscaler)
        state = self._states.of(autoscaler.key)
        self._states.set_conflicting(state, frozenset(self._find_conflicting(autoscaler)))
        pods, pods_version = self._select_pods(autoscaler, scale), self._pods.version
        without_metrics = self._make_observation(autoscaler, scale, pods)
        needed = decide.needed_metrics(autoscaler.spec, without_metrics, self._settings)
        pod_selector = needed.selector
        if pod_selector is None:  # the decision ends before it reads metrics: autoscaling is disabled, no scale, ...
            return ObservedSync(without_metrics, target, pods)
        self._states.store_conflicting_selector(state, pod_selector)
        namespace = autoscaler.metadata.namespace
        fetched_metrics, durations_s = await self._fetch_metrics(namespace, needed.metrics, pod_selector)
        if self._pods.version != pods_version:
            pods = self._select_pods(autoscaler, scale)  # as they are when the samples arrive
        measurements = tuple([fetched.measurement if fetched else None for fetched in fetched_metrics])
        observation = self._make_observation(autoscaler, scale, pods, measurements)
        return ObservedSync(observation, target, pods, fetched_metrics, durations_s)

    async def _read_target(self, autoscaler: Autoscaler) -> tuple[ScaleTarget | None, Scale | Failure]:
        """The target, for the write, with its scale for the decision; None with the failure if it cannot be read."""
        if fault := autoscaler.spec.target_fault or autoscaler.fault:
            return None, Failure(fault)
        reference = autoscaler.wire.spec.scale_target_ref
        try:
            target = await self._targets.read(autoscaler.metadata.namespace, reference)
        except StatusError as error:
            return None, Failure(error.message, error.reason, error.code)
        return target, api_conversion.scale(target.scale)

    def _make_observation(
        self,
        autoscaler: Autoscaler,
        scale: Scale | Failure,
        pods: Sequence[CachedPod],
        metrics: Sequence[Measurement | None] = (),
    ) -> Observation:
        """The input of a decision; `metrics` has one result for each metric of the spec, empty before the queries."""
        key = autoscaler.key
        return Observation(
            scale=scale,
            status=autoscaler.wire.status,
            generation=autoscaler.metadata.generation,
            pods=[pod.core_pod for pod in pods],
            metrics=metrics,
            neighbours=self._states.neighbours(key[0]),
            is_registered=self._states.of(key).is_registered,
        )

    def _select_pods(self, autoscaler: Autoscaler, scale: Scale | Failure) -> Sequence[CachedPod]:
        """The cached pods that the scale's selector matches; empty without a valid selector."""
        if isinstance(scale, Failure) or not scale.selector:
            return ()
        try:
            selector = selectors.parse(scale.selector)
        except SelectorError:
            return ()  # the decision reports it
        return self._pods.select(autoscaler.metadata.namespace, selector)

    async def _fetch_metrics(
        self, namespace: str, metrics: Sequence[Metric | None], selector: Selector
    ) -> tuple[tuple[FetchedMetric | None, ...], tuple[float, ...]]:
        """The result and the duration in seconds of each query, made concurrently; None and 0.0 for no metric."""
        queries = [self._fetch_timed(namespace, metric, selector) for metric in metrics]
        if len(queries) == 1:  # most autoscalers have one metric: no task is made for it
            results = [await queries[0]]
        else:
            results = await asyncio.gather(*queries)
        return tuple([fetched for fetched, _ in results]), tuple([duration_s for _, duration_s in results])

    async def _fetch_timed(
        self, namespace: str, metric: Metric | None, selector: Selector
    ) -> tuple[FetchedMetric | None, float]:
        """The result of one metric query, and its duration in seconds; None and 0.0 for no metric."""
        if metric is None:
            return None, 0.0
        started_s = self._clock.monotonic_s()
        fetched_metric = await metric_fetching.fetch(
            self._metrics, metric, namespace=namespace, selector=selector, rules=self._settings.emulation
        )
        return fetched_metric, self._clock.monotonic_s() - started_s
