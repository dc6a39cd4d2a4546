"""Simulates the resource metrics of one workload: measures pods at intervals, and publishes samples after a lag.

A sample of CPU is the average of what the pod used between its last two measurements; a new pod is measured by its
total since its start once it is old enough. A sample of memory is what the pod uses at the measurement. A pod whose
measurement fails has no sample until the next one. This is how metrics-server makes the samples of the Metrics API.

Called by `podscaler.simulation.world.workload`, which publishes the result of `measure` after the lag. Pods whose state
does not change have equal samples; they are kept as `_SteadyPods`, which saves measuring each.

Source: docs/simulation.md (The metrics pipeline).
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from random import Random
from typing import NamedTuple

import msgspec

from podscaler.core.model.observation import PodSamples, Sample
from podscaler.simulation.model.scenario import MetricsServerModel
from podscaler.simulation.model.workloads import ContainerModel, PodModel
from podscaler.simulation.world.pods import MS_NS, PodObservations, VirtualPod

SampledResource = tuple[str, str]
"""A resource, and the container that is sampled; an empty name: the whole pod."""


class _PodUsage(NamedTuple):
    """What a pod used since its last measurement; pods with equal usage have equal samples.

    Attributes:
        window_ms: the time since then.
        served: the work of that time, in millionths of a core times milliseconds.
    """

    window_ms: int
    served: int
    is_ready: bool


class _SteadyPods(msgspec.Struct, frozen=True):
    """Pods that were all ready and measured at one instant: until one of them changes, their samples are equal.

    Attributes:
        at_ms, work_of_each: the instant of their last measurement, and `ServedLoad.work_of_each` then.
    """

    pods: tuple[VirtualPod, ...]
    names: tuple[str, ...]
    at_ms: int
    work_of_each: int


class ResourceSampling:
    """The samples of one workload.

    Args:
        observations: converts instants to timestamps.
        resources: those that autoscalers use.
        seed: the seed of the draws of measurements that fail.
    """

    def __init__(
        self,
        model: MetricsServerModel,
        pod_model: PodModel,
        observations: PodObservations,
        resources: Iterable[SampledResource],
        seed: str,
    ) -> None:
        self._model = model
        self._pod_model = pod_model
        self._observations = observations
        self._containers = {
            (resource, container): [
                container_model for container_model in pod_model.containers if container in ("", container_model.name)
            ]
            for resource, container in resources
        }
        self._dropout_random = Random(f"{seed}/dropout")
        self._published: Mapping[SampledResource, PodSamples] = {}
        self._steady: _SteadyPods | None = None

    def measure(
        self, pods: Sequence[VirtualPod], at_ms: int, *, work_of_each: int, bytes_of_each: int
    ) -> Mapping[SampledResource, PodSamples]:
        """The samples of the pods now, to be published after the lag.

        Args:
            work_of_each, bytes_of_each: as in `ServedLoad`.
        """
        steady = self._steady
        if steady is not None:
            usage = _PodUsage(at_ms - steady.at_ms, work_of_each - steady.work_of_each, is_ready=True)
            samples_by_resource = [
                dict.fromkeys(steady.names, sample) for sample in self._samples_of_usage(usage, at_ms, bytes_of_each)
            ]
            self._steady = _SteadyPods(steady.pods, steady.names, at_ms, work_of_each)
        else:
            samples_by_resource = self._measure_each(pods, at_ms, work_of_each, bytes_of_each)
            if self._are_steady(pods, at_ms):
                self._steady = _SteadyPods(tuple(pods), tuple([pod.name for pod in pods]), at_ms, work_of_each)
        samples_of_resources = zip(self._containers, samples_by_resource, strict=True)
        return {
            key: PodSamples(resource_samples, is_empty=not resource_samples)
            for key, resource_samples in samples_of_resources
        }

    def before_change(self) -> None:
        """Store what each pod was measured at, because a pod is made or removed, or changes its state, now."""
        steady, self._steady = self._steady, None
        if steady is not None:
            for pod in steady.pods:
                pod.measured_at_ms = steady.at_ms
                pod.measured_work = pod.work(steady.work_of_each) + self._burst_work(pod, steady.at_ms)

    def _are_steady(self, pods: Iterable[VirtualPod], at_ms: int) -> bool:
        """Whether all pods were measured now and serve load alone, and no measurement can fail."""
        burst_ms = self._pod_model.burst_ms
        return not self._model.dropout_ratio and all(
            pod.is_ready and pod.measured_at_ms == at_ms and at_ms - pod.runs_at_ms >= burst_ms for pod in pods
        )

    def _measure_each(
        self, pods: Iterable[VirtualPod], at_ms: int, work_of_each: int, bytes_of_each: int
    ) -> list[dict[str, Sample]]:
        """For each resource in order the samples by name of the pod; the windows of pods may differ."""
        samples_by_resource: list[dict[str, Sample]] = [{} for _ in self._containers]
        samples_by_usage: dict[_PodUsage, list[Sample]] = {}  # most pods have served the same
        for pod in pods:
            window_ms = self._window_ms(pod, at_ms)
            if not window_ms or self._draw_failure():
                continue
            work = pod.work(work_of_each) + self._burst_work(pod, at_ms)
            usage = _PodUsage(window_ms, work - pod.measured_work, pod.is_ready)
            pod.measured_at_ms, pod.measured_work = at_ms, work
            pod_samples = samples_by_usage.get(usage)
            if pod_samples is None:
                pod_samples = samples_by_usage[usage] = self._samples_of_usage(usage, at_ms, bytes_of_each)
            for resource_samples, sample in zip(samples_by_resource, pod_samples, strict=True):
                resource_samples[pod.name] = sample
        return samples_by_resource

    def _samples_of_usage(self, usage: _PodUsage, at_ms: int, bytes_of_each: int) -> list[Sample]:
        """The samples of a pod with that usage, in the order of the resources."""
        taken_at_ns, window_ns = self._observations.timestamp_ns(at_ms), usage.window_ms * MS_NS
        load_bytes = bytes_of_each if usage.is_ready else 0
        values_milli = [
            _cpu_milli(containers, usage.window_ms, usage.served)
            if resource == "cpu"
            else _memory_bytes(containers, load_bytes) * 1000
            for (resource, _), containers in self._containers.items()
        ]
        return [Sample(value_milli, taken_at_ns, window_ns) for value_milli in values_milli]

    def publish(self, samples: Mapping[SampledResource, PodSamples]) -> None:
        """Let the metrics API show these samples."""
        self._published = samples

    def retain(self, pods: Set[str]) -> None:
        """Show no samples of other pods, which are gone."""
        self._published = {
            key: published if published.samples.keys() <= pods else _retain_pods(published, pods)
            for key, published in self._published.items()
        }

    def published(self, resource: SampledResource) -> PodSamples:
        """What the metrics API shows."""
        return self._published.get(resource, _NO_SAMPLES)

    def mark_measured(self, pod: VirtualPod, at_ms: int) -> None:
        """Take the pod as measured at that instant, for pods that exist at the start."""
        pod.measured_at_ms, pod.measured_work = at_ms, self._burst_work(pod, at_ms)

    def _window_ms(self, pod: VirtualPod, at_ms: int) -> int:
        """The length of the window that is measured now; 0 if the pod cannot be measured."""
        if not pod.is_running:
            return 0
        if pod.measured_at_ms is not None:
            return at_ms - pod.measured_at_ms
        age_ms = at_ms - pod.runs_at_ms
        return age_ms if age_ms >= self._model.fresh_ms else 0

    def _draw_failure(self) -> bool:
        """Whether this measurement fails; draws nothing without dropouts, so that results do not depend on the seed."""
        return self._model.dropout_ratio > 0 and self._dropout_random.random() < self._model.dropout_ratio

    def _burst_work(self, pod: VirtualPod, at_ms: int) -> int:
        """The work that the pod has done for its start, beyond load."""
        return self._pod_model.burst_ucores * min(at_ms - pod.runs_at_ms, self._pod_model.burst_ms)


_NO_SAMPLES = PodSamples({}, is_empty=True)


def _retain_pods(published: PodSamples, pods: Set[str]) -> PodSamples:
    remaining = {name: sample for name, sample in published.samples.items() if name in pods}
    return PodSamples(remaining, is_empty=not remaining)


def _cpu_milli(containers: list[ContainerModel], window_ms: int, served: int) -> int:
    """The average CPU of the containers, in thousandths of a core, rounded up as Quantity.MilliValue rounds."""
    used_work = sum(
        [container.idle_cpu_ucores * window_ms + served * container.load_permille // 1000 for container in containers]
    )
    return -(-used_work // (window_ms * 1000))


def _memory_bytes(containers: list[ContainerModel], load_bytes: int) -> int:
    return sum(
        [container.idle_memory_bytes + load_bytes * container.memory_share_permille // 1000 for container in containers]
    )
