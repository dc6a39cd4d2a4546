"""Derives the containers of a workload from a recording: requests, CPU limits, memory, and shares of the load.

Called by `recording_scenario`: `add_pod` and `add_usage` at each sync, then `models`, `memory_load`, `sentences`. The
resource metrics API responds with CPU and memory of all containers, whatever the metric is, so a recording with any
resource metric shows all of them.

1. The least memory that a container took in a ready pod is what it takes without load.
2. The rest of the memory of all pods is load, which ready pods share. Ready pods without usage count as the average.
3. A container's shares of CPU and of the load's memory are those in the sums over the whole recording.
4. A container that uses 95 % of its CPU limit hides demand, and so does a pod at a limit of the whole pod. A simulated
   container has its own limit, or its share of that of the pod.

Worked numbers: two pods take 100 MiB and 130 MiB, and 90 MiB is the least. The load has 230 - 2 * 90 = 50 MiB.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

import msgspec

from podscaler.api.machinery import quantity
from podscaler.api.typed import pods as typed_pods
from podscaler.api.typed.metrics import PodMetricsList
from podscaler.api.typed.recording import RecordingError
from podscaler.core.calculation import samples
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.metric_spec import ResourceMetric
from podscaler.core.model.observation import Pod
from podscaler.core.model.spec import Spec
from podscaler.simulation.evaluation.demand_reconstruction import AT_LIMIT_RATIO
from podscaler.simulation.model import step_series
from podscaler.simulation.model.workloads import ContainerModel, ResourceLoad

_MIB = 1 << 20
_POD_DECODER = msgspec.json.Decoder(typed_pods.Pod)
_NO_LIMITS: Mapping[str, int] = {}


class CPULimits(NamedTuple):
    """The CPU limits of a pod, in thousandths of a core.

    Attributes:
        pod_milli: of the pod as a whole, in place of those of its containers; None if there is none.
        containers_milli: by container, of those that have one.
    """

    pod_milli: int | None = None
    containers_milli: Mapping[str, int] = _NO_LIMITS


@lru_cache(maxsize=256)
def read_limits(pod_json: bytes) -> CPULimits:
    """The CPU limits of a recorded pod, a Pod as JSON; init containers count if they are sidecars.

    Raises RecordingError if the JSON or a quantity cannot be read. Cached, since syncs repeat the same pods.
    """
    try:
        spec = _POD_DECODER.decode(pod_json).spec
        if pod_limit := _cpu_limit(spec.resources):
            return CPULimits(quantity.parse(pod_limit).milli_value())
        sidecars = [
            init_container for init_container in spec.init_containers or () if init_container.restart_policy == "Always"
        ]
        limits = {
            container.name: _cpu_limit(container.resources) for container in (*(spec.containers or ()), *sidecars)
        }
        return CPULimits(None, {name: quantity.parse(limit).milli_value() for name, limit in limits.items() if limit})
    except (msgspec.DecodeError, ValueError) as error:
        raise RecordingError(f"the limits of a pod cannot be read: {error}") from None


def _cpu_limit(resources: typed_pods.ResourceRequirements | None) -> str:
    """The quantity in `limits.cpu`; empty if there is none."""
    return resources.limits.cpu if resources and resources.limits else ""


class _ContainerRequests(NamedTuple):
    """The requests of a container in thousandths; 0 if it has none."""

    name: str
    cpu_milli: int
    memory_milli: int


class _MemoryObservation(NamedTuple):
    """The memory of the pods at an instant, and the numbers of pods that were measured and that were ready."""

    at_ms: int
    used_bytes: int
    measured: int
    ready: int


class RecordedContainers:
    """Sums up the pods and the usage of all syncs, and makes the containers of the simulated pod of them.

    Args:
        version: the emulated version of Kubernetes, by which quantities are read.

    Attributes:
        limits: the CPU limits of the pods; the caller sets them anew where they change.

    The sums of CPU (thousandths of a core) and memory, the numbers of measurements, and the least memory of a ready pod
    are kept by the name of the container.
    """

    def __init__(self, version: Emulation, limits: CPULimits) -> None:
        self._version = version
        self.limits = limits
        self._requests_of_pods: Counter[tuple[_ContainerRequests, ...]] = Counter()
        self._cpu_milli: Counter[str] = Counter()
        self._memory_bytes: Counter[str] = Counter()
        self._measured: Counter[str] = Counter()
        self._least_bytes: dict[str, int] = {}
        self._memory: list[_MemoryObservation] = []

    def add_pod(self, pod: Pod) -> None:
        """Count the requests of a pod; one pod of each sync is enough."""
        self._requests_of_pods[_container_requests(pod)] += 1

    def add_usage(self, usage: PodMetricsList, at_ms: int, ready: Set[str], *, cpu_milli: Mapping[str, int]) -> int:
        """Add the usage of an instant; returns how many pods are at their CPU limit.

        Args:
            at_ms: the instant, since the epoch.
            ready: the names of the ready pods.
            cpu_milli: the CPU of each pod in this usage.

        Raises ValueError if a quantity cannot be read.
        """
        memory_of_pods = self._values_milli(usage, "memory", "")
        if memory_of_pods:
            self._memory.append(
                _MemoryObservation(at_ms, sum(memory_of_pods.values()) // 1000, len(memory_of_pods), len(ready))
            )
        container_names = dict.fromkeys(
            [container.name for pod_metrics in usage.items or () for container in pod_metrics.containers or ()]
        )
        pods_at_limit = _pods_at_limit(cpu_milli, self.limits.pod_milli)
        is_only = len(container_names) == 1  # then the usage of the pods is that of the container
        for name in container_names:
            cpu_of_container = cpu_milli if is_only else self._values_milli(usage, "cpu", name)
            self._cpu_milli[name] += sum(cpu_of_container.values())
            self._add_memory(name, memory_of_pods if is_only else self._values_milli(usage, "memory", name), ready)
            pods_at_limit |= _pods_at_limit(cpu_of_container, self.limits.containers_milli.get(name))
        return len(pods_at_limit)

    def _values_milli(self, usage: PodMetricsList, resource: str, container: str) -> Mapping[str, int]:
        """The usage of each pod in thousandths, by its name; an empty `container` means all containers."""
        pod_samples = samples.of_resource(usage, resource, container, self._version).samples
        return {pod: sample.value_milli for pod, sample in pod_samples.items()}

    def _add_memory(self, name: str, values_milli: Mapping[str, int], ready: Set[str]) -> None:
        """Add the memory of a container, given in thousandths of a byte by pod; `ready` are names of pods."""
        self._memory_bytes[name] += sum(values_milli.values()) // 1000
        self._measured[name] += len(values_milli)
        ready_bytes = [value // 1000 for pod, value in values_milli.items() if pod in ready]
        if ready_bytes:
            least_bytes = min(ready_bytes)
            self._least_bytes[name] = min(least_bytes, self._least_bytes.get(name, least_bytes))

    def models(self) -> tuple[ContainerModel, ...]:
        """The containers of a pod, with the most frequent requests and the last limits."""
        containers = self._usual_containers()
        container_names = [container.name for container in containers]
        cpu_permille = _permille([self._cpu_milli[name] for name in container_names])
        memory_permille = _permille([self._load_bytes(name) for name in container_names])
        return tuple(
            [
                ContainerModel(
                    name=container.name,
                    requests_milli=_without_zeros({"cpu": container.cpu_milli, "memory": container.memory_milli}),
                    cpu_limit_milli=self._limit_milli(container.name, cpu_share),
                    idle_memory_bytes=self._least_bytes.get(container.name, 0),
                    load_permille=cpu_share,
                    memory_permille=memory_share,
                )
                for container, cpu_share, memory_share in zip(containers, cpu_permille, memory_permille, strict=True)
            ]
        )

    def _limit_milli(self, name: str, permille: int) -> int | None:
        """The limit of a container, or its share (`permille`) of the limit of the pod; None if it has none."""
        pod_limit_milli = self.limits.pod_milli
        if pod_limit_milli is None:
            return self.limits.containers_milli.get(name)
        return -(-pod_limit_milli * permille // 1000)  # rounded up

    def memory_load(self, start_ms: int) -> ResourceLoad | None:
        """The memory of the load over milliseconds since `start_ms`; None if no memory was recorded."""
        if not self._memory:
            return None
        idle_bytes = self._idle_bytes()
        steps = [
            (max(memory_sample.at_ms - start_ms, 0), _load_memory_bytes(memory_sample, idle_bytes))
            for memory_sample in self._memory
        ]
        (_, first_bytes), *later_steps = steps
        return ResourceLoad(resource="memory", total=step_series.from_steps([(0, first_bytes), *later_steps]))

    def sentences(self, spec: Spec, models: Sequence[ContainerModel]) -> list[str]:
        """Sentences about what the simulated containers assume where a metric of the spec depends on it."""
        lines = []
        resources = [metric for metric in spec.metrics if isinstance(metric, ResourceMetric)]
        if any(metric.resource == "memory" for metric in resources):
            lines.append(
                f"A pod takes {self._idle_bytes() / _MIB:,.0f} MiB of memory, the least that ready pods took; the "
                "rest stays as recorded in total, and ready pods share it."
            )
        if len(models) > 1 and any(metric.container for metric in resources):
            shares = ", ".join(
                f"{model.name} {model.load_permille / 10:g} % of CPU "
                f"and {model.memory_share_permille / 10:g} % of memory"
                for model in models
            )
            lines.append(f"Containers share the load as in the whole recording: {shares}.")
        return lines

    def _usual_containers(self) -> tuple[_ContainerRequests, ...]:
        """The containers that most pods have; those that were measured where the pods have none."""
        counted_requests = [(count, requests) for requests, count in self._requests_of_pods.items() if requests]
        if counted_requests:
            _, most_frequent_requests = max(counted_requests)
            return most_frequent_requests
        return tuple([_ContainerRequests(name, 0, 0) for name in self._cpu_milli])

    def _idle_bytes(self) -> int:
        """The memory of a pod without load."""
        return sum(self._least_bytes.get(container.name, 0) for container in self._usual_containers())

    def _load_bytes(self, name: str) -> int:
        """The memory of a container's load, summed up over all measurements."""
        return max(self._memory_bytes[name] - self._measured[name] * self._least_bytes.get(name, 0), 0)


def _container_requests(pod: Pod) -> tuple[_ContainerRequests, ...]:
    """The requests of each container of a pod, in order."""
    requests = [(container.name, container.requests_milli) for container in pod.containers]
    return tuple([_ContainerRequests(name, milli.get("cpu", 0), milli.get("memory", 0)) for name, milli in requests])


def _pods_at_limit(used_milli: Mapping[str, int], limit_milli: int | None) -> set[str]:
    """The names of the pods that use AT_LIMIT_RATIO of a limit or more; none without a limit."""
    if not limit_milli:
        return set()
    return {pod for pod, used in used_milli.items() if used >= AT_LIMIT_RATIO * limit_milli}


def _without_zeros(requests_milli: Mapping[str, int]) -> dict[str, int]:
    return {resource: amount for resource, amount in requests_milli.items() if amount}


def _load_memory_bytes(observed: _MemoryObservation, idle_bytes: int) -> int:
    """The memory of the load, without `idle_bytes` for each pod; ready pods without usage count as the average."""
    used_bytes = max(observed.used_bytes - observed.measured * idle_bytes, 0)
    return used_bytes * max(observed.ready, observed.measured) // observed.measured


def _permille(weights: Sequence[int]) -> list[int]:
    """The shares of weights in thousandths, with the sum of 1000; the first has all where there is no weight."""
    total = sum(weights)
    if not total:
        return [1000, *[0 for _ in weights[1:]]]
    # Differences of rounded running sums add up to 1000; rounded shares need not.
    ends = [running_sum * 1000 // total for running_sum in itertools.accumulate(weights)]
    return [end - begin for begin, end in itertools.pairwise([0, *ends])]
