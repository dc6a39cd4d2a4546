"""Simulates a workload: its pods from creation to removal, their load, and their observation by the autoscaler.

Called by `podscaler.simulation.engine` and `podscaler.simulation.scaler_runs`, which scale it and read it; all other
changes happen by events of the event queue. `podscaler.simulation.batch.world_kernel` computes the same: change both.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from podscaler.core.model.observation import PodSamples, Scale
from podscaler.core.model.pod_list import PodList
from podscaler.simulation.model.results import WorkloadState
from podscaler.simulation.model.scenario import SimulationScenario
from podscaler.simulation.model.workloads import WorkloadModel
from podscaler.simulation.world import pod_replacement
from podscaler.simulation.world.event_queue import EventPriority, EventQueue
from podscaler.simulation.world.load_serving import ServedLoad
from podscaler.simulation.world.nodes import NodeResources, Nodes
from podscaler.simulation.world.pods import LONG_AGO_MS, PodObservations, VirtualPod
from podscaler.simulation.world.sampling import ResourceSampling, SampledResource

_HOUR_MS = 3_600_000


class VirtualWorkload:
    """A workload in the world of one simulation.

    Args:
        scenario: the scenario with the workload, for its delays, its seed and its metrics pipeline.
        event_queue: the events to come.
        nodes: shared by all workloads; None: every pod finds room.
        resources: the resources that autoscalers use, which are sampled.

    Attributes:
        model: what it is made from.
        replicas: those of its scale.
        serving: its load.
        sampling: the samples of its pods.

    Raises ValueError if the model states two demands for a resource, or a pod requests more than a node has.
    """

    def __init__(
        self,
        model: WorkloadModel,
        scenario: SimulationScenario,
        event_queue: EventQueue,
        nodes: Nodes | None,
        resources: Iterable[SampledResource],
    ) -> None:
        seed = f"{scenario.seed}/{model.key}"
        name = model.key.partition("/")[2]
        self.model = model
        self.replicas = model.replicas
        self._scenario = scenario
        self._event_queue = event_queue
        self._nodes = nodes
        self._seed = seed
        self._name = name
        self._observations = PodObservations(name, model.pod, scenario.start_ns)
        self.sampling = ResourceSampling(scenario.metrics_server, model.pod, self._observations, resources, seed)
        requests = model.pod.request_milli
        self._requests = NodeResources(requests.get("cpu", 0), requests.get("memory", 0) // 1000)
        self._pods: list[VirtualPod] = []
        self._observed_pods: PodList | None = None
        self._created_count = 0
        self._ready = 0
        self._revision = 0
        self._removed_count = 0
        self._idle_ucores = sum(container.idle_cpu_ucores for container in model.pod.containers)
        self._idle_work = 0
        self._idle_since_ms = 0
        self._start(scenario.metrics_server.resolution_ms, scenario.metrics_server.lag_ms)

    # What the autoscaler and reports read

    def scale(self) -> Scale:
        """The scale subresource."""
        return Scale(self.replicas, len(self._pods), f"app={self._name}")

    def observed_pods(self) -> PodList:
        """The pods as the autoscaler reads them, in the order in which they were made; kept until a pod changes."""
        if self._observed_pods is None:
            self._observed_pods = PodList([self._observations.observe(pod) for pod in self._pods])
        return self._observed_pods

    @property
    def running(self) -> Sequence[VirtualPod]:
        """The pods whose containers run."""
        return [pod for pod in self._pods if pod.is_running]

    @property
    def ready(self) -> int:
        """The number of ready pods."""
        return self._ready

    def state(self, at_ms: int) -> WorkloadState:
        """The workload at an instant; the sums of work and use are those since the start."""
        serving = self.serving
        serving.advance(at_ms)
        self._count_idle(at_ms)
        return WorkloadState(
            replicas=self.replicas,
            pods=len(self._pods),
            ready=self._ready,
            unscheduled=sum(pod.scheduled_at_ms is None for pod in self._pods) if self._nodes else 0,
            rate_milli=serving.rate_milli,
            demand_ucores=serving.demand_ucores,
            demand_bytes=serving.demand_bytes,
            backlog_ucores_ms=serving.backlog,
            arrived_ucores_ms=serving.arrived,
            lost_ucores_ms=serving.lost,
            used_ucores=serving.served + self._idle_work,
            latency_ms=serving.latency_ms(),
        )

    # What changes it

    def set_replicas(self, replicas: int, at_ms: int) -> None:
        """Write the scale; pods are made or removed after the actuation delay."""
        self.replicas = replicas
        self._event_queue.add(at_ms + self._scenario.actuation_ms, EventPriority.SCALE, self._reconcile)

    def roll_out(self, at_ms: int) -> None:
        """Replace all pods, as a changed template does."""
        self._revision += 1
        self._event_queue.add(at_ms + self._scenario.actuation_ms, EventPriority.SCALE, self._reconcile)

    def _start(self, resolution_ms: int, lag_ms: int) -> None:
        """Make the first pods, and begin early enough that their samples are shown at the start."""
        warm_up_periods = 2 + -(-lag_ms // resolution_ms)
        start_ms = -warm_up_periods * resolution_ms
        self.serving = ServedLoad(self.model, start_ms)
        self._start_ms = start_ms
        for _ in range(self.replicas):
            self._make_pod(start_ms)
        self._event_queue.add(start_ms, EventPriority.LOAD, self._change_load)
        self._event_queue.add(start_ms + resolution_ms, EventPriority.MEASUREMENT, self._measure)
        self._event_queue.add(0, EventPriority.LOAD, self._begin_simulation)

    def _begin_simulation(self, at_ms: int) -> None:
        """At 0 the sums begin; the time before only fills the metrics pipeline."""
        self.serving.advance(at_ms)
        self.serving.forget_past()
        self._idle_work, self._idle_since_ms = 0, at_ms

    def _change_load(self, at_ms: int) -> None:
        step_ms = self.serving.set_load(at_ms)
        if step_ms is not None:
            self._event_queue.add(step_ms, EventPriority.LOAD, self._change_load)

    def _measure(self, at_ms: int) -> None:
        """Take a sample of each pod, which is published later, and plan the next measurement."""
        metrics_server = self._scenario.metrics_server
        self.serving.advance(at_ms)
        samples = self.sampling.measure(
            self._pods, at_ms, work_of_each=self.serving.work_of_each, bytes_of_each=self.serving.bytes_of_each
        )
        removed_count = self._removed_count
        self._event_queue.add(
            at_ms + metrics_server.lag_ms, EventPriority.PUBLICATION, lambda _: self._publish(samples, removed_count)
        )
        self._event_queue.add(at_ms + metrics_server.resolution_ms, EventPriority.MEASUREMENT, self._measure)

    def _publish(self, samples: Mapping[SampledResource, PodSamples], removed_count: int) -> None:
        """Show samples, without those of pods that were removed since `_removed_count` was `removed_count`."""
        self.sampling.publish(samples)
        if self._removed_count != removed_count:
            self.sampling.retain({pod.name for pod in self._pods})

    def _count_idle(self, at_ms: int) -> None:
        """Add what running pods used since the last call, beyond load."""
        if self._idle_ucores:
            running_pods = sum(pod.is_running for pod in self._pods)
            self._idle_work += self._idle_ucores * running_pods * (at_ms - self._idle_since_ms)
        self._idle_since_ms = at_ms

    # The life of a pod

    def _before_change(self) -> None:
        """Called before a pod is made or removed, or changes its state."""
        self._observed_pods = None
        self.sampling.before_change()

    def _reconcile(self, at_ms: int) -> None:
        """Make and remove pods until nothing is to be done now: at each scale, rollout, and pod that gets ready."""
        while True:
            changes = pod_replacement.next_changes(
                self._pods, self.replicas, self._revision, self.model.rollout, is_ordered=self.model.is_ordered
            )
            if not changes.make and not changes.remove:
                return
            for pod in changes.remove:
                self._remove(pod, at_ms)
            for _ in range(changes.make):
                self._make_pod(at_ms)

    def _make_pod(self, at_ms: int) -> None:
        """Create a pod, and schedule it; pods of a StatefulSet get the first free number."""
        pod_number = self._created_count
        if self.model.is_ordered:
            used_ordinals = {pod.number for pod in self._pods}
            pod_number = next(ordinal for ordinal in itertools.count() if ordinal not in used_ordinals)
        random = Random(f"{self._seed}/{self._created_count}")
        pod = VirtualPod(f"{self._name}-{pod_number}", pod_number, at_ms, self._revision, random)
        self._created_count += 1
        self._before_change()
        self._pods.append(pod)
        if self._nodes is None:
            self._on_scheduled(pod, at_ms)
        else:
            self._nodes.schedule(pod, self._requests, self._on_scheduled, at_ms)

    def _on_scheduled(self, pod: VirtualPod, at_ms: int) -> None:
        """Start a pod that has a node; before the start of the simulation it is ready at once."""
        self._before_change()
        if at_ms < 0:
            self._make_ready_before_start(pod)
            return
        pod.scheduled_at_ms = pod.ready_changed_ms = at_ms
        runs_at_ms = at_ms + self.model.pod.launch.draw_ms(pod.random)
        self._event_queue.add(runs_at_ms, EventPriority.POD, lambda now_ms: self._run_containers(pod, now_ms))

    def _make_ready_before_start(self, pod: VirtualPod) -> None:
        """Make a pod ready that exists at the start, as if it had been ready for LONG_AGO_MS."""
        pod.scheduled_at_ms = pod.runs_at_ms = -LONG_AGO_MS
        pod.is_running = True
        self.sampling.mark_measured(pod, self._start_ms)
        self._set_ready(pod, self._start_ms, is_ready=True)
        pod.ready_changed_ms = -LONG_AGO_MS
        self._plan_crash(pod, 0)

    def _run_containers(self, pod: VirtualPod, at_ms: int) -> None:
        """Run the containers of a pod, and plan its readiness and its crash."""
        if pod.is_removed:
            return
        self._count_idle(at_ms)
        self._before_change()
        pod.is_running = True
        pod.runs_at_ms = at_ms
        self._plan_crash(pod, at_ms)
        self._plan_ready(pod, at_ms + self.model.pod.startup.draw_ms(pod.random))

    def _plan_ready(self, pod: VirtualPod, at_ms: int) -> None:
        pod.ready_due_ms = at_ms
        self._event_queue.add(at_ms, EventPriority.POD, lambda now_ms: self._become_ready(pod, now_ms))

    def _become_ready(self, pod: VirtualPod, at_ms: int) -> None:
        if not pod.is_removed and pod.ready_due_ms == at_ms:  # a crash in between has planned it anew
            self._set_ready(pod, at_ms, is_ready=True)
            self._reconcile(at_ms)

    def _plan_crash(self, pod: VirtualPod, at_ms: int) -> None:
        """Draw the next crash: the times between crashes are exponentially distributed."""
        crashes_per_hour = self.model.pod.crashes_per_hour
        if crashes_per_hour > 0:
            delay_ms = round(pod.random.expovariate(crashes_per_hour) * _HOUR_MS)
            self._event_queue.add(at_ms + delay_ms, EventPriority.POD, lambda now_ms: self._crash(pod, now_ms))

    def _crash(self, pod: VirtualPod, at_ms: int) -> None:
        """Make a pod unready, and plan when it is ready again and when it crashes next."""
        if pod.is_removed:
            return
        if pod.is_ready:
            self._set_ready(pod, at_ms, is_ready=False)
        self._plan_ready(pod, at_ms + self.model.pod.restart.draw_ms(pod.random))
        self._plan_crash(pod, at_ms)

    def _set_ready(self, pod: VirtualPod, at_ms: int, *, is_ready: bool) -> None:
        """Change the readiness of a pod; one that loses it loses its share of the work too."""
        self._before_change()
        if not is_ready:  # after a crash; the waiting requests of a pod that is removed stay, for the others
            self.serving.advance(at_ms)
            self.serving.lose_share(self._ready)
        self._ready += 1 if is_ready else -1
        self.serving.set_ready(self._ready, at_ms)
        change_readiness = pod.become_ready if is_ready else pod.become_unready
        change_readiness(at_ms, self.serving.work_of_each)

    def _remove(self, pod: VirtualPod, at_ms: int) -> None:
        """Remove a pod; its node has its room back after the time of the termination."""
        if pod.is_ready:
            self._ready -= 1
            self.serving.set_ready(self._ready, at_ms)
        self._count_idle(at_ms)
        self._before_change()
        pod.is_removed = True
        self._removed_count += 1
        self._pods.remove(pod)
        self.sampling.retain({remaining_pod.name for remaining_pod in self._pods})
        node, nodes = pod.node, self._nodes
        if nodes is not None and node is not None:
            released_ms = at_ms + self.model.pod.termination_ms
            self._event_queue.add(
                released_ms, EventPriority.POD, lambda now_ms: nodes.release(node, self._requests, now_ms)
            )
