"""The pipeline of resource metrics for one workload: measures pods at intervals, and shows the samples after a lag.

A sample of CPU is the average of what the pod used between its last two measurements; a new pod is measured by its
total since its start once it is old enough. A sample of memory is what the pod uses at the measurement. A pod whose
measurement fails has no sample until the next one. This is how metrics-server makes the samples of the Metrics API.

Source: docs/simulation.md (The metrics pipeline).
"""

from collections.abc import Iterable, Mapping, Set
from random import Random

from podscaler.core.model.observation import PodSamples, Sample
from podscaler.simulation.model.scenario import MetricsServerModel
from podscaler.simulation.model.workloads import ContainerModel, PodModel
from podscaler.simulation.world.pods import MS_NS, PodFacts, VirtualPod

SampledResource = tuple[str, str]
"""A resource, and the container that is sampled; an empty name: the whole pod."""


class ResourceSampling:
    """The samples of one workload.

    Args:
        resources: those that autoscalers ask for.
        seed: of the measurements that fail.
    """

    def __init__(
        self,
        model: MetricsServerModel,
        pod_model: PodModel,
        facts: PodFacts,
        resources: Iterable[SampledResource],
        seed: str,
    ) -> None:
        self._model = model
        self._pod_model = pod_model
        self._facts = facts
        self._containers = {
            (resource, container): [each for each in pod_model.containers if container in ("", each.name)]
            for resource, container in resources
        }
        self._random = Random(f"{seed}/dropout")
        self._published: Mapping[SampledResource, PodSamples] = {}

    def measure(
        self, pods: Iterable[VirtualPod], at_ms: int, *, work_of_each: int, bytes_of_each: int
    ) -> Mapping[SampledResource, PodSamples]:
        """The samples of the pods now, to be published after the lag.

        Args:
            work_of_each, bytes_of_each: as in `ServedLoad`.
        """
        samples: dict[SampledResource, dict[str, Sample]] = {resource: {} for resource in self._containers}
        by_pods = list(samples.values())
        alike: dict[tuple[int, int, bool], list[Sample]] = {}  # most pods have served the same
        has_burst, may_fail = self._pod_model.burst_ms > 0, self._model.dropout_ratio > 0
        for pod in pods:
            if (measured_at_ms := pod.measured_at_ms) is not None and pod.is_running:
                window_ms = at_ms - measured_at_ms
            else:
                window_ms = self._first_window_ms(pod, at_ms)
            if not window_ms or (may_fail and self._fails()):
                continue
            work = pod.work(work_of_each)
            if has_burst:
                work += self._burst_work(pod, at_ms)
            usage = (window_ms, work - pod.measured_work, pod.is_ready)
            pod.measured_at_ms, pod.measured_work = at_ms, work
            of_pod = alike.get(usage)
            if of_pod is None:
                of_pod = alike[usage] = self._samples(*usage, at_ms, bytes_of_each)
            for index, by_pod in enumerate(by_pods):
                by_pod[pod.name] = of_pod[index]
        return {key: PodSamples(by_pod, is_empty=not by_pod) for key, by_pod in samples.items()}

    def _samples(
        self, window_ms: int, served_requests: int, is_ready: bool, at_ms: int, bytes_of_each: int
    ) -> list[Sample]:
        """The samples of one pod, in the order of the resources."""
        taken_at_ns, window_ns = self._facts.timestamp_ns(at_ms), window_ms * MS_NS
        load_bytes = bytes_of_each if is_ready else 0
        values_milli = [
            _cpu_milli(containers, window_ms, served_requests)
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
            key: published if published.samples.keys() <= pods else _only(published, pods)
            for key, published in self._published.items()
        }

    def published(self, resource: SampledResource) -> PodSamples:
        """What the metrics API shows."""
        return self._published.get(resource, _NO_SAMPLES)

    def start(self, pod: VirtualPod, at_ms: int) -> None:
        """Take the pod as measured at that instant, for pods that exist at the start."""
        pod.measured_at_ms, pod.measured_work = at_ms, self._burst_work(pod, at_ms)

    def _first_window_ms(self, pod: VirtualPod, at_ms: int) -> int:
        """The length of a pod's first window, which is measured now; 0: the pod cannot be measured."""
        if not pod.is_running:
            return 0
        age_ms = at_ms - pod.runs_at_ms
        return age_ms if age_ms >= self._model.fresh_ms else 0

    def _fails(self) -> bool:
        return self._random.random() < self._model.dropout_ratio

    def _burst_work(self, pod: VirtualPod, at_ms: int) -> int:
        """The work that the pod has done for its start, beyond load."""
        return self._pod_model.burst_ucores * min(at_ms - pod.runs_at_ms, self._pod_model.burst_ms)


_NO_SAMPLES = PodSamples({}, is_empty=True)


def _only(published: PodSamples, pods: Set[str]) -> PodSamples:
    remaining = {name: sample for name, sample in published.samples.items() if name in pods}
    return PodSamples(remaining, is_empty=not remaining)


def _cpu_milli(containers: list[ContainerModel], window_ms: int, served_requests: int) -> int:
    """The average CPU of the containers, in thousandths of a core, rounded up as Quantity.MilliValue rounds."""
    ucore_ms = sum(
        each.idle_cpu_ucores * window_ms + served_requests * each.load_permille // 1000 for each in containers
    )
    return -(-ucore_ms // (window_ms * 1000))


def _memory_bytes(containers: list[ContainerModel], load_bytes: int) -> int:
    return sum(each.idle_memory_bytes + load_bytes * each.load_permille // 1000 for each in containers)
