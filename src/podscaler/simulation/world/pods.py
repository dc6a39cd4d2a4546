"""Simulates one pod: its states, its share of the load, and its observation by the autoscaler.

A pod waits for a node, is launched (Pending), runs, becomes ready, may crash and be restarted, and is removed.
`podscaler.simulation.world.workload` moves it from state to state.
"""

from collections.abc import Mapping
from random import Random

from podscaler.core.model.observation import ContainerRequests, Pod
from podscaler.simulation.model.workloads import PodModel

SECOND_MS = 1_000
MS_NS = 1_000_000

LONG_AGO_MS = 3_600_000
"""How long the pods that exist at the start have been ready."""


class PodObservations:
    """Converts the pods of a workload to what the autoscaler (`podscaler.core`) reads.

    Args:
        name: of the workload, and the value of the label `app` of its pods.
        start_ns: the instant of millisecond 0 since the epoch; a whole second.
    """

    def __init__(self, name: str, model: PodModel, start_ns: int) -> None:
        self.labels: Mapping[str, str] = {"app": name}
        self._start_ns = start_ns
        self._containers = tuple(ContainerRequests(each.name, each.requests_milli) for each in model.containers)
        # As in the controller, a resource counts only if all containers have a request for it.
        resources_by_container = [set(container.requests_milli) for container in model.containers]
        fully_requested = set.intersection(*resources_by_container) if resources_by_container else set()
        self._requests_milli = {name: amount for name, amount in model.request_milli.items() if name in fully_requested}

    def timestamp_ns(self, at_ms: int) -> int:
        """An instant as the API has it, in whole seconds (metav1.Time)."""
        return self._start_ns + at_ms // SECOND_MS * SECOND_MS * MS_NS

    def observe(self, pod: "VirtualPod") -> Pod:
        """The pod as it is now."""
        is_scheduled = pod.scheduled_at_ms is not None
        return Pod(
            name=pod.name,
            labels=self.labels,
            phase="Running" if pod.is_running else "Pending",
            is_deleting=False,
            started_at=self.timestamp_ns(pod.scheduled_at_ms) if pod.scheduled_at_ms is not None else None,
            ready=str(pod.is_ready) if is_scheduled else None,
            ready_changed_at=self.timestamp_ns(pod.ready_changed_ms),
            containers=self._containers,
            requests_milli=self._requests_milli,
        )


class VirtualPod:
    """One pod.

    Attributes:
        number: how many pods of the workload were made before; the ordinal of a StatefulSet's pod.
        created_ms: when it was made.
        revision: the revision of the template that it was made from.
        node: its node; None if the scenario has no cluster, or the pod waits for room.
        scheduled_at_ms: when it got its node; None: it waits.
        runs_at_ms: the start of its containers, once `is_running`.
        ready_changed_ms: when `is_ready` changed last.
        is_removed: whether it was deleted; events that are due later ignore it.
        random: the generator of its durations, with a seed of the pod's own.
        ready_due_ms: when it becomes ready, if it does not crash before.
        measured_at_ms, measured_work: the instant of its last measurement (None if there was none), and the work that
            it had done until then, with that of its start.
    """

    def __init__(self, name: str, number: int, created_ms: int, revision: int, random: Random) -> None:
        self.name = name
        self.number = number
        self.created_ms = created_ms
        self.revision = revision
        self.random = random
        self.ready_due_ms = 0
        self.node: int | None = None
        self.scheduled_at_ms: int | None = None
        self.runs_at_ms = 0
        self.ready_changed_ms = created_ms
        self.is_running = False
        self.is_ready = False
        self.is_removed = False
        self.measured_at_ms: int | None = None
        self.measured_work = 0
        self._work_done = 0
        self._work_of_each_before = 0

    def become_ready(self, at_ms: int, work_of_each: int) -> None:
        """Begin to take a share of the load; `work_of_each` is `ServedLoad.work_of_each` now."""
        self.is_ready = True
        self.ready_changed_ms = at_ms
        self._work_of_each_before = work_of_each

    def become_unready(self, at_ms: int, work_of_each: int) -> None:
        """Take no share of the load any more."""
        self._work_done += work_of_each - self._work_of_each_before
        self.is_ready = False
        self.ready_changed_ms = at_ms

    def work(self, work_of_each: int) -> int:
        """The work that it has served, in millionths of a core times milliseconds."""
        return self._work_done + (work_of_each - self._work_of_each_before if self.is_ready else 0)
