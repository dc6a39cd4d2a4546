"""Accumulates the CPU time of containers and of the machine, which the node's endpoints report as counters.

`metrics.resource.sampler` calls `UsageTotals.observe` in each round and makes a `UsageSnapshot` of the result for each
request. Pure. A new kind of usage: a field of `processes.TreeReading`, and of `UsageTotal` and `PodTotal` here.

Invariants: the CPU time of one run of a container never decreases, although the sum over its processes can
(`processes`); a container that is started again begins at zero with a later start time. The CPU time of simulated
containers is their rate integrated over the rounds.

Source: cAdvisor's counters, which the kubelet reports in /metrics/resource and /stats/summary.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.resource.processes import TreeReading
from podscaler.controlplane.metrics.resource.rates import MeasuredRun, Rate, SampleTime

ContainerKey = tuple[str, str]
"""The uid of a pod, and the name of a container in it."""

_SIMULATED_PID = 0
"""Marks the run of a simulated container, which has no process."""


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """The usage of a container, a pod or the machine at an instant.

    Attributes:
        started_ns: when it started, nanoseconds since the epoch.
        cpu_ns: CPU time since then, in nanoseconds of one core.
        cpu_nanocores: the latest rate; None before there are two readings.
        memory_bytes: resident memory.
    """

    started_ns: int
    cpu_ns: int
    cpu_nanocores: int | None
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class PodTotal:
    """The usage of one running pod.

    Attributes:
        start_time: status.startTime of the pod (RFC 3339).
        containers: by name; without those that have no process.
    """

    namespace: str
    name: str
    uid: str
    start_time: str
    containers: Mapping[str, UsageTotal]

    @property
    def cpu_ns(self) -> int:
        """The CPU time of all containers."""
        return sum(container.cpu_ns for container in self.containers.values())

    @property
    def cpu_nanocores(self) -> int | None:
        """The rate of all containers; None while one has none."""
        rates = [container.cpu_nanocores for container in self.containers.values()]
        known_rates = [rate for rate in rates if rate is not None]
        return sum(known_rates) if len(known_rates) == len(rates) else None

    @property
    def memory_bytes(self) -> int:
        """The memory of all containers."""
        return sum(container.memory_bytes for container in self.containers.values())


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """The usage of the node and its pods, as of one round of readings.

    Attributes:
        node_name: empty while there is no node.
        at_ns: the time of the readings, nanoseconds since the epoch.
        node: of the whole machine, since it booted.
        pods: those with at least one container that was read, by namespace and name.
    """

    node_name: str
    at_ns: int
    node: UsageTotal
    pods: tuple[PodTotal, ...]


@dataclass(frozen=True, slots=True)
class _Accumulated:
    """The total of one container after the latest round.

    Attributes:
        run: the container's root process and start; a restart is another run.
        cpu_ns: the sum of all increases of its CPU time since then.
        read_cpu_ns: the CPU time of the latest reading; 0 for a simulated container.
        integrated_until_ns: the monotonic time of the latest round; 0 for a container with processes.
    """

    run: MeasuredRun
    cpu_ns: int
    memory_bytes: int
    read_cpu_ns: int = 0
    integrated_until_ns: int = 0


class UsageTotals:
    """The CPU time of each running container, accumulated since its start."""

    def __init__(self) -> None:
        self._accumulated: dict[ContainerKey, _Accumulated] = {}

    def observe(
        self,
        containers: Mapping[ContainerKey, MeasuredRun],
        readings: Mapping[int, TreeReading],
        simulated: Mapping[ContainerKey, Rate],
        sampled_at: SampleTime,
    ) -> None:
        """Add a round of readings; containers without one are forgotten.

        Args:
            containers: the running containers.
            readings: of their process trees, by root pid.
            simulated: the rates of simulated containers.
            sampled_at: the time of the round.
        """
        accumulated = {}
        for key, run in containers.items():
            if (reading := readings.get(run.pid)) is not None:
                accumulated[key] = self._after_reading(key, run, reading)
        for key, rate in simulated.items():
            accumulated[key] = self._after_simulation(key, rate, sampled_at)
        self._accumulated = accumulated

    def totals(self, rates: Mapping[ContainerKey, Rate]) -> dict[ContainerKey, UsageTotal]:
        """The totals after the latest round, with these latest rates."""
        totals = {}
        for key, container in self._accumulated.items():
            rate = rates.get(key)
            nanocores = None if rate is None else rate.cpu_nanocores
            totals[key] = UsageTotal(container.run.started_ns, container.cpu_ns, nanocores, container.memory_bytes)
        return totals

    def _after_reading(self, key: ContainerKey, run: MeasuredRun, reading: TreeReading) -> _Accumulated:
        """The total of a container with processes after a reading; a sum that has decreased adds nothing."""
        read_ns = round(reading.cpu_s * NANOSECONDS)
        previous = self._accumulated.get(key)
        if previous is None or previous.run != run:
            cpu_ns = read_ns
        else:
            cpu_ns = previous.cpu_ns + max(read_ns - previous.read_cpu_ns, 0)
        return _Accumulated(run, cpu_ns, reading.memory_bytes, read_cpu_ns=read_ns)

    def _after_simulation(self, key: ContainerKey, rate: Rate, sampled_at: SampleTime) -> _Accumulated:
        """The total of a simulated container: it uses its rate of CPU time from the previous round until this one."""
        round_ns = round(sampled_at.monotonic_s * NANOSECONDS)
        previous = self._accumulated.get(key)
        if previous is None or previous.run.pid != _SIMULATED_PID:
            run = MeasuredRun(_SIMULATED_PID, sampled_at.stamp_ns)
            return _Accumulated(run, cpu_ns=0, memory_bytes=rate.memory_bytes, integrated_until_ns=round_ns)
        used_ns = rate.cpu_nanocores * (round_ns - previous.integrated_until_ns) // NANOSECONDS
        return _Accumulated(previous.run, previous.cpu_ns + used_ns, rate.memory_bytes, integrated_until_ns=round_ns)
