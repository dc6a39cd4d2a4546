"""The facts for one sync: the target's scale, its pods, and metrics where the decision will look at them.

The reconciler calls it first. Pods come from the cache; the scale and metrics cost a request each. Metrics of one
autoscaler are asked for at the same time.

Source: docs/spec/decision.md 2 (Reconcile in order, steps 1 to 10), 3.1 (Selector checks), 7 (Metrics client).
"""

import asyncio
from collections.abc import Sequence

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.base.errors import StatusError
from podscaler.controller.informers.observed_objects import Autoscaler, CachedPod
from podscaler.controller.reconcile.state import Memory
from podscaler.controller.reconcile.surroundings import Surroundings
from podscaler.controller.recording.observed import ObservedSync
from podscaler.controller.scales.target import ScaleTarget
from podscaler.core import decide
from podscaler.core.decide import Demand
from podscaler.core.model import model
from podscaler.core.model.metric_spec import Metric
from podscaler.core.model.model import Failure, Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.kube.informers.cache import Cache
from podscaler.metrics import fetched
from podscaler.metrics.fetched import FetchedMetric


class Observer:
    """See the module.

    Args:
        around: where to ask.
        memory: the other autoscalers' selectors.
        pods: all pods.
        flags: the decision's settings.
    """

    def __init__(self, around: Surroundings, memory: Memory, pods: Cache[CachedPod], flags: Settings) -> None:
        self._around = around
        self._memory = memory
        self._pods = pods
        self._flags = flags

    async def observe(self, autoscaler: Autoscaler) -> ObservedSync:
        """The facts. Raises nothing that the world may cause: failures are facts."""
        target, scale = await self._read_target(autoscaler)
        rivals = frozenset(self._around.rivals(autoscaler))
        self._memory.drop_rivals(autoscaler.key, besides=rivals)
        pods, pods_version = self._target_pods(autoscaler, scale), self._pods.version
        observation = self._observation(autoscaler, scale, pods)
        needed = decide.needed_metrics(autoscaler.spec, observation, self._flags)
        if needed.selector is None:
            return ObservedSync(observation, target, pods)
        self._memory.keep_selector(autoscaler.key, needed.selector)
        self._memory.keep_rivals(autoscaler.key, rivals, needed.selector)
        answers, durations_s = await self._answers(autoscaler.metadata.namespace, needed)
        if self._pods.version != pods_version:
            pods = self._target_pods(autoscaler, scale)  # as they are when the samples have come
        facts = tuple([answer.measurement if answer else None for answer in answers])
        observation = self._observation(autoscaler, scale, pods, facts)
        return ObservedSync(observation, target, pods, answers, durations_s)

    async def _read_target(self, autoscaler: Autoscaler) -> tuple[ScaleTarget | None, Scale | Failure]:
        if fault := autoscaler.spec.target_fault or autoscaler.fault:
            return None, Failure(fault)
        reference = autoscaler.wire.spec.scale_target_ref
        try:
            target = await self._around.targets.read(autoscaler.metadata.namespace, reference)
        except StatusError as error:
            return None, Failure(error.message, error.reason, error.code)
        wire = target.scale
        return target, Scale(wire.spec.replicas, wire.status.replicas, wire.status.selector)

    def _observation(
        self,
        autoscaler: Autoscaler,
        scale: Scale | Failure,
        pods: Sequence[CachedPod],
        metrics: Sequence[model.Measurement | None] = (),
    ) -> Observation:
        key = autoscaler.key
        return Observation(
            scale=scale,
            status=autoscaler.wire.status,
            generation=autoscaler.metadata.generation,
            pods=[pod.facts for pod in pods],
            metrics=metrics,
            neighbours=self._memory.neighbours(key[0]),
            is_registered=self._memory.is_registered(key),
        )

    def _target_pods(self, autoscaler: Autoscaler, scale: Scale | Failure) -> Sequence[CachedPod]:
        if isinstance(scale, Failure) or not scale.selector:
            return ()
        try:
            selector = selectors.parse(scale.selector)
        except SelectorError:
            return ()  # the decision reports it
        return self._pods.select(autoscaler.metadata.namespace, selector)

    async def _answers(
        self, namespace: str, needed: Demand
    ) -> tuple[tuple[FetchedMetric | None, ...], tuple[float, ...]]:
        selector = needed.selector or selectors.NOTHING
        timed = [self._timed(namespace, metric, selector) for metric in needed.metrics]
        results = [await timed[0]] if len(timed) == 1 else await asyncio.gather(*timed)
        return tuple([answer for answer, _ in results]), tuple([duration_s for _, duration_s in results])

    async def _timed(
        self, namespace: str, metric: Metric | None, selector: Selector
    ) -> tuple[FetchedMetric | None, float]:
        if metric is None:
            return None, 0.0
        started_s = self._around.clock.monotonic_s()
        answer = await fetched.fetch(
            self._around.metrics, metric, namespace=namespace, selector=selector, rules=self._flags.emulation
        )
        return answer, self._around.clock.monotonic_s() - started_s
