"""Collects the facts of one sync: the target's scale, its pods, and the metrics that the decision reads.

The reconciler calls `Observer.observe` in each sync. Pods come from the cache; the scale and each metric may cost a
request. The decision is asked twice: with the facts that cost no metrics it says which metrics it needs
(`decide.needed_metrics`), and the facts with these metrics are returned. The metrics of one autoscaler are queried
concurrently. `podscaler.core` decides how autoscalers with the same target or pods conflict; `AutoscalerStates` keeps
their selectors.

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
from podscaler.core.decide import Demand
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
    """The sources of the facts of a sync.

    Attributes:
        targets: reads the scales of targets.
        pods: the cache of all pods.
        metrics: reads the metrics APIs.
        find_conflicting: the keys of the autoscalers of other controllers that scale the same target.
    """

    targets: ScaleClient
    pods: Cache[CachedPod]
    metrics: MetricsSource
    find_conflicting: Callable[[Autoscaler], Iterable[Key]]


class Observer:
    """Collects the facts of syncs, and notes in the states which autoscalers have the same target.

    Args:
        sources: the sources of the facts.
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
        """The facts of one sync; a request that failed is a fact, too (`Failure`)."""
        target, scale = await self._read_target(autoscaler)
        state = self._states.of(autoscaler.key)
        conflicting = frozenset(self._find_conflicting(autoscaler))
        self._states.drop_conflicting(state, kept_keys=conflicting)
        pods, pods_version = self._target_pods(autoscaler, scale), self._pods.version
        facts = self._observation(autoscaler, scale, pods)
        needed = decide.needed_metrics(autoscaler.spec, facts, self._settings)
        if needed.selector is None:  # the decision needs no metrics
            return ObservedSync(facts, target, pods)
        self._states.keep_conflicting(state, conflicting, needed.selector)
        fetched_metrics, durations_s = await self._fetch_metrics(autoscaler.metadata.namespace, needed)
        if self._pods.version != pods_version:
            pods = self._target_pods(autoscaler, scale)  # as they are when the samples arrive
        measurements = tuple([fetched.measurement if fetched else None for fetched in fetched_metrics])
        facts = self._observation(autoscaler, scale, pods, measurements)
        return ObservedSync(facts, target, pods, fetched_metrics, durations_s)

    async def _read_target(self, autoscaler: Autoscaler) -> tuple[ScaleTarget | None, Scale | Failure]:
        """The target, for the write, with its scale as a fact; None with the failure where it cannot be read."""
        if fault := autoscaler.spec.target_fault or autoscaler.fault:
            return None, Failure(fault)
        reference = autoscaler.wire.spec.scale_target_ref
        try:
            target = await self._targets.read(autoscaler.metadata.namespace, reference)
        except StatusError as error:
            return None, Failure(error.message, error.reason, error.code)
        return target, api_conversion.scale(target.scale)

    def _observation(
        self,
        autoscaler: Autoscaler,
        scale: Scale | Failure,
        pods: Sequence[CachedPod],
        metrics: Sequence[Measurement | None] = (),
    ) -> Observation:
        """The facts for a decision; `metrics` has one result for each metric of the spec, empty before the queries."""
        key = autoscaler.key
        return Observation(
            scale=scale,
            status=autoscaler.wire.status,
            generation=autoscaler.metadata.generation,
            pods=[pod.facts for pod in pods],
            metrics=metrics,
            neighbours=self._states.neighbours(key[0]),
            is_registered=self._states.of(key).is_registered,
        )

    def _target_pods(self, autoscaler: Autoscaler, scale: Scale | Failure) -> Sequence[CachedPod]:
        """The cached pods that the scale's selector matches; empty without a valid selector."""
        if isinstance(scale, Failure) or not scale.selector:
            return ()
        try:
            selector = selectors.parse(scale.selector)
        except SelectorError:
            return ()  # the decision reports it
        return self._pods.select(autoscaler.metadata.namespace, selector)

    async def _fetch_metrics(
        self, namespace: str, needed: Demand
    ) -> tuple[tuple[FetchedMetric | None, ...], tuple[float, ...]]:
        """The result of each needed metric (None if it is not needed), and the duration of each query in seconds."""
        selector = needed.selector or selectors.NOTHING
        timed = [self._fetch_timed(namespace, metric, selector) for metric in needed.metrics]
        results = [await timed[0]] if len(timed) == 1 else await asyncio.gather(*timed)
        return tuple([fetched for fetched, _ in results]), tuple([duration_s for _, duration_s in results])

    async def _fetch_timed(
        self, namespace: str, metric: Metric | None, selector: Selector
    ) -> tuple[FetchedMetric | None, float]:
        """The result of one metric query (None for no metric), and its duration in seconds."""
        if metric is None:
            return None, 0.0
        started_s = self._clock.monotonic_s()
        fetched_metric = await metric_fetching.fetch(
            self._metrics, metric, namespace=namespace, selector=selector, rules=self._settings.emulation
        )
        return fetched_metric, self._clock.monotonic_s() - started_s
