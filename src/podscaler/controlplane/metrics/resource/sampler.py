"""Samples the usage of containers every `--metric-resolution` and provides it as PodMetrics and NodeMetrics.

`podscaler.cli.up.machine` runs one `Sampler`; the node's endpoints report the same readings as counters
(`Sampler.snapshot`).

A round (`Sampler.sample`) joins what `processes` reads, `rates` and `totals` compute and `simulated` states. Process
trees are read in a thread. A pod has metrics once all its running containers have a rate, with the time of the last
reading and the window between the last two: values are not repeated, interpolated or smoothed.

Source: metrics-server (PodMetrics omit a pod while one of its containers has no sample).

Differs: timestamps do not follow a wall clock that is set back by more than STEP_MAX_NS.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from podscaler.api.machinery import duration
from podscaler.base.clock import NANOSECONDS, Clock, rfc3339
from podscaler.controlplane.metrics.resource import simulated
from podscaler.controlplane.metrics.resource.pods import Key, PodFact, RunningPods
from podscaler.controlplane.metrics.resource.processes import (
    TreeReading,
    machine_started_ns,
    machine_usage,
    read_trees,
)
from podscaler.controlplane.metrics.resource.rates import MeasuredRun, Rate, SampleTime, UsageRates
from podscaler.controlplane.metrics.resource.totals import (
    ContainerKey,
    PodTotal,
    UsageSnapshot,
    UsageTotal,
    UsageTotals,
)
from podscaler.controlplane.registry.registry import Object, Registry

log = logging.getLogger(__name__)

STEP_MAX_NS = 2 * NANOSECONDS
"""Timestamps follow a wall clock that is set back by at most this."""
_NANOSECONDS_PER_MS = 1_000_000
_MACHINE_PID = 0
"""Stands for the whole machine, which has no root process."""


class SampledContainer(Protocol):
    """A container with a process, as the node provides it.

    `pid` is the root of its process tree, `started_ns` its start (nanoseconds since the epoch), `command_pids` are the
    root pids of commands that clients run in it (`kubectl exec`).
    """

    @property
    def pod_uid(self) -> str: ...

    @property
    def container(self) -> str: ...

    @property
    def pid(self) -> int: ...

    @property
    def started_ns(self) -> int: ...

    @property
    def command_pids(self) -> frozenset[int]: ...


class CommandUsage:
    """Adds the usage of commands beside a container's process (`kubectl exec`) to the container's usage.

    The CPU time of a command that has ended stays in its container's sum, so that the sum does not decrease.
    """

    def __init__(self) -> None:
        # by the container's root pid: CPU time of the running commands by pid, and the sum of those that have ended
        self._running_cpu_s: dict[int, dict[int, float]] = {}
        self._ended_cpu_s: dict[int, float] = {}

    def observe(
        self, readings: Mapping[int, TreeReading], commands: Mapping[int, frozenset[int]]
    ) -> dict[int, TreeReading]:
        """The readings of containers, including those of their commands that run or ended in earlier rounds.

        Args:
            readings: of containers and commands in this round, by root pid.
            commands: the root pids of running commands by the container's root pid.
        """
        container_readings = {}
        for root, pids in commands.items():
            running_commands = {pid: readings[pid] for pid in pids if pid in readings}
            earlier_cpu_s = self._running_cpu_s.get(root, {})
            newly_ended_cpu_s = sum(cpu_s for pid, cpu_s in earlier_cpu_s.items() if pid not in running_commands)
            ended_cpu_s = self._ended_cpu_s.get(root, 0.0) + newly_ended_cpu_s
            self._remember_commands(
                root, {pid: reading.cpu_s for pid, reading in running_commands.items()}, ended_cpu_s
            )
            if root in readings:
                container_readings[root] = _with_commands(readings[root], running_commands.values(), ended_cpu_s)
        self._forget_others(commands)
        return container_readings

    def _remember_commands(self, root: int, running_cpu_s: dict[int, float], ended_cpu_s: float) -> None:
        """Keep the CPU seconds of a container's running commands by pid, and of its ended ones, if there are any."""
        if running_cpu_s or ended_cpu_s:
            self._running_cpu_s[root], self._ended_cpu_s[root] = running_cpu_s, ended_cpu_s

    def _forget_others(self, roots: Mapping[int, frozenset[int]]) -> None:
        """Drop what is kept of containers that are not in `roots`."""
        for root in self._running_cpu_s.keys() - roots.keys():
            del self._running_cpu_s[root], self._ended_cpu_s[root]


def _with_commands(container_reading: TreeReading, commands: Iterable[TreeReading], ended_cpu_s: float) -> TreeReading:
    """The usage of a container with its running commands, and the CPU time of ended ones."""
    cpu_s, memory_bytes = container_reading.cpu_s + ended_cpu_s, container_reading.memory_bytes
    for reading in commands:
        cpu_s += reading.cpu_s
        memory_bytes += reading.memory_bytes
    return TreeReading(cpu_s, memory_bytes)


def _namespace_and_name(metrics_object: Object) -> Key:
    meta = metrics_object["metadata"]
    return meta.get("namespace", ""), meta["name"]


class MetricsTable:
    """The newest metrics as `providers.VirtualObjects`, replaced after every round."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}

    def replace(self, objects: Iterable[Object]) -> None:
        """Replace all objects."""
        self._objects = {_namespace_and_name(metrics_object): metrics_object for metrics_object in objects}

    def list(self, namespace: str) -> Sequence[Object]:
        """The objects of a namespace (`""`: all), sorted by namespace and name."""
        keys = [(owner, name) for owner, name in sorted(self._objects) if namespace in ("", owner)]
        return [self._objects[key] for key in keys]

    def get(self, namespace: str, name: str) -> Object | None:
        """One object, None if it does not exist."""
        return self._objects.get((namespace, name))


class Sampler:
    """Reads the usage of all containers of the node in rounds, and keeps the metrics of the last one.

    Args:
        registry: where pods and their controllers are read.
        list_containers: returns the containers that have a process now.
        clock: time, and the delay between rounds.
        get_node_name: returns the node's name for NodeMetrics; empty while there is no node.
        resolution_s: seconds between rounds.
    """

    def __init__(
        self,
        registry: Registry,
        list_containers: Callable[[], Iterable[SampledContainer]],
        *,
        clock: Clock,
        get_node_name: Callable[[], str],
        resolution_s: float,
    ) -> None:
        self.pod_metrics = MetricsTable()
        self.node_metrics = MetricsTable()
        self._registry = registry
        self._list_containers = list_containers
        self._clock = clock
        self._get_node_name = get_node_name
        self._resolution_s = resolution_s
        self._last_sample_time: SampleTime | None = None
        self._running_pods = RunningPods(registry)
        self._commands = CommandUsage()
        self._rates: UsageRates[tuple[str, str]] = UsageRates()
        self._node_rates: UsageRates[str] = UsageRates()
        self._node_since: MeasuredRun | None = None
        self._node_base_s = 0.0
        """The CPU time of the machine in the first round, at `_node_since`."""
        self._logged_annotations: set[tuple[str, str]] = set()
        """The invalid annotations that were logged: uid of the pod, and name."""
        self._totals = UsageTotals()
        self._latest_rates: Mapping[ContainerKey, Rate] = {}
        self._node_total: UsageTotal | None = None

    def snapshot(self) -> UsageSnapshot | None:
        """The usage of the node and its running pods as of the latest round; None before the first."""
        if self._last_sample_time is None or self._node_total is None:
            return None
        totals, pods = self._totals.totals(self._latest_rates), []
        for (namespace, name), fact in sorted(self._running_pods.running().items()):
            sampled = [container for container in fact.containers if (fact.uid, container) in totals]
            if sampled:
                containers = {container: totals[fact.uid, container] for container in sampled}
                pods.append(PodTotal(namespace, name, fact.uid, fact.start_time, containers))
        return UsageSnapshot(self._get_node_name(), self._last_sample_time.stamp_ns, self._node_total, tuple(pods))

    def running_pods(self, namespace: str) -> Mapping[str, PodFact]:
        """The running pods of a namespace by name."""
        return self._running_pods.running_in(namespace)

    async def run(self) -> None:
        """Sample until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._running_pods.run())
            tasks.create_task(self._sample_repeatedly())

    async def _sample_repeatedly(self) -> None:
        """Sample at each interval, until cancelled."""
        while True:
            await self.sample()
            await self._clock.sleep(self._resolution_s)

    async def sample(self) -> None:
        """Run one round: read processes, compute rates, publish metrics."""
        sampled = list(self._list_containers())
        containers = {
            (container.pod_uid, container.container): MeasuredRun(container.pid, container.started_ns)
            for container in sampled
        }
        commands = {container.pid: container.command_pids for container in sampled}
        roots = commands.keys() | frozenset().union(*commands.values())
        trees, machine = await asyncio.to_thread(lambda: (read_trees(roots), machine_usage()))
        readings = self._commands.observe(trees, commands)
        sampled_at = self._sample_time()
        facts = self._running_pods.running()
        simulated_rates = self._simulated_rates(facts, sampled_at.stamp_ns)
        rates = self._rates.observe(containers, readings, sampled_at) | simulated_rates
        self._totals.observe(containers, readings, simulated_rates, sampled_at)
        self._latest_rates = rates
        await asyncio.sleep(0)  # with thousands of pods, the rest runs in a later loop iteration
        self.pod_metrics.replace(_pod_metrics(facts, rates))
        self._publish_node(machine, sampled_at)

    def _sample_time(self) -> SampleTime:
        """The current time; timestamps continue when the wall clock is set back by more than STEP_MAX_NS.

        Otherwise an autoscaler, which compares them with the times of pods' conditions, would take pods for unready.
        """
        now_ns, monotonic_s = self._clock.now_ns(), self._clock.monotonic_s()
        stamp_ns = now_ns
        if self._last_sample_time is not None:
            elapsed_ns = round((monotonic_s - self._last_sample_time.monotonic_s) * NANOSECONDS)
            continued_ns = self._last_sample_time.stamp_ns + elapsed_ns
            stamp_ns = continued_ns if continued_ns - now_ns > STEP_MAX_NS else now_ns
        self._last_sample_time = SampleTime(now_ns, monotonic_s, stamp_ns)
        return self._last_sample_time

    def _simulated_rates(self, facts: Mapping[Key, PodFact], now_ns: int) -> dict[tuple[str, str], Rate]:
        """The rates of the containers of simulated pods by pod uid and container name, as their annotations state."""
        simulated_pods = [
            (fact, fact.simulation_fields) for fact in facts.values() if fact.simulation_fields is not None
        ]
        pods = [fact for fact, _ in simulated_pods]
        sharer_counts = Counter(_sharing_group(fact) for fact in pods if fact.ready)
        pod_by_controller = {fact.controller: fact for fact in pods}  # so that each controller is read once
        annotations = {controller: self._annotations_of(fact) for controller, fact in pod_by_controller.items()}
        window_ns = round(self._resolution_s * NANOSECONDS)
        rates = {}
        for fact, fields in simulated_pods:
            usage = simulated.container_usage(
                fields,
                controller_annotations=annotations[fact.controller],
                sharers=sharer_counts[_sharing_group(fact)] if fact.ready else 0,
            )
            self._report_invalid(fact, {**annotations[fact.controller], **fields["metadata"]["annotations"]})
            for name, container_usage in usage.items():
                rates[fact.uid, name] = Rate(
                    container_usage.cpu_nanocores, container_usage.memory_bytes, now_ns, window_ns
                )
        return rates

    def _annotations_of(self, fact: PodFact) -> Mapping[str, str]:
        """The annotations of a pod's controller; empty if it has none, or it does not exist."""
        if fact.controller is None:
            return {}
        resource, name, _ = fact.controller
        owner = self._registry.find(resource, fact.metadata["namespace"], name)
        annotations: Mapping[str, str] = (owner or {"metadata": {}})["metadata"].get("annotations", {})
        return annotations

    def _report_invalid(self, fact: PodFact, annotations: Mapping[str, str]) -> None:
        """Log each invalid one of a pod's annotations, or of its controller's, once."""
        for key in simulated.invalid_annotations(annotations):
            if (fact.uid, key) not in self._logged_annotations:
                self._logged_annotations.add((fact.uid, key))
                log.warning("pod %s: annotation %s is not a quantity and counts as zero", fact.metadata["name"], key)

    def _publish_node(self, machine: TreeReading, sampled_at: SampleTime) -> None:
        """Replace the NodeMetrics; its rates are of the CPU time since the first round, which counts as its start."""
        if self._node_since is None:
            self._node_since = MeasuredRun(_MACHINE_PID, sampled_at.now_ns)
            self._node_base_s = machine.cpu_s
        reading = TreeReading(machine.cpu_s - self._node_base_s, machine.memory_bytes)
        rates = self._node_rates.observe({"node": self._node_since}, {_MACHINE_PID: reading}, sampled_at)
        self._node_total = self._machine_total(machine, rates.get("node"))
        name = self._get_node_name()
        if "node" in rates and name:
            metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            self.node_metrics.replace([_metrics_object(metadata, rates["node"], {"usage": _usage_json(rates["node"])})])

    def _machine_total(self, machine: TreeReading, rate: Rate | None) -> UsageTotal:
        """The usage of the machine since it booted; its CPU time does not decrease."""
        before_ns = self._node_total.cpu_ns if self._node_total is not None else 0
        cpu_ns = max(round(machine.cpu_s * NANOSECONDS), before_ns)
        nanocores = None if rate is None else rate.cpu_nanocores
        return UsageTotal(machine_started_ns(), cpu_ns, nanocores, machine.memory_bytes)


def _sharing_group(fact: PodFact) -> Hashable:
    """What the pods that share a total have in common: their controller; a pod without one shares with no other."""
    return fact.controller or fact.uid


def _pod_metrics(facts: Mapping[Key, PodFact], rates: Mapping[tuple[str, str], Rate]) -> Iterable[Object]:
    """The PodMetrics of the pods whose containers all have a rate, with the time and window of the shortest one."""
    for fact in facts.values():
        pod_rates = {name: rates[fact.uid, name] for name in fact.containers if (fact.uid, name) in rates}
        if not pod_rates or len(pod_rates) < len(fact.containers):
            continue
        shortest = min(pod_rates.values(), key=lambda rate: rate.window_ns)
        containers = [{"name": name, "usage": _usage_json(rate)} for name, rate in pod_rates.items()]
        yield _metrics_object(fact.metadata, shortest, {"containers": containers})


def _metrics_object(metadata: Mapping[str, Any], rate: Rate, usage_fields: Mapping[str, Any]) -> Object:
    """A PodMetrics or NodeMetrics with these fields (`containers` or `usage`), and the time and window of the rate."""
    window = duration.text(rate.window_ns - rate.window_ns % _NANOSECONDS_PER_MS)  # whole milliseconds
    return {"metadata": dict(metadata), "timestamp": rfc3339(rate.at_ns), "window": window, **usage_fields}


def _usage_json(rate: Rate) -> dict[str, str]:
    return {"cpu": f"{rate.cpu_nanocores}n", "memory": f"{rate.memory_bytes // 1024}Ki"}
